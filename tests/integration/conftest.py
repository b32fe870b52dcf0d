"""Fixtures over harness.py. Each test has its own folder, simulator and
connector; when it ends, everything it started is ended, and the test fails if
anything is left running.
"""

import os
import signal
import sys

sys.dont_write_bytecode = True

import pytest

import harness


def on_terminate(_number, _frame):
    """A test run that is told to end still ends what it started."""
    raise KeyboardInterrupt


def pytest_configure(config):
    signal.signal(signal.SIGTERM, on_terminate)
    config.addinivalue_line(
        "markers", "real_agents: needs real coding agents; opt-in")
    config.addinivalue_line(
        "markers", "walls: needs what a sanitizer build leaves out")
    config.addinivalue_line(
        "markers", "trap(name): proves that trap or invariant of the ledger")


def pytest_collection_modifyitems(config, items):
    """What is not meant for this run is deselected, not skipped: tests with
    real agents unless they are asked for, and under sanitizers those of
    walls and memory, which such a build does not have as it should.
    """
    unmeant = []
    if not os.environ.get("CONNECTD_REAL_AGENTS"):
        unmeant.append("real_agents")
    if os.environ.get("CONNECTD_SANITIZED"):
        unmeant.append("walls")
    out = [item for item in items
           if any(item.get_closest_marker(name) for name in unmeant)]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in out]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    folder = getattr(item, "connectd_folder", None)
    if report.when == "call" and report.failed and folder is not None:
        for name in ("connectd.stdout", "connectd.stderr", "out/agent.log"):
            path = folder.path / name
            if path.exists():
                text = path.read_text(errors="replace")
                report.sections.append((name, text[-6000:]))


@pytest.fixture(scope="session", autouse=True)
def users():
    harness.make_users()


@pytest.fixture
def folder(request):
    made = harness.Folder()
    request.node.connectd_folder = made
    yield made
    log = made.path / "connectd.stderr"
    text = log.read_text(errors="replace") if log.exists() else ""
    made.remove()
    complaints = harness.sanitizer_lines(text)
    assert not complaints, complaints


@pytest.fixture
def sim(folder):
    made = harness.Sim(folder)
    yield made
    made.close()


@pytest.fixture
def make_connector(sim, folder):
    """Makes connectors that are ended with the test."""
    made = []

    def make(**arguments):
        made.append(harness.Connector(sim, folder, **arguments))
        return made[-1]

    yield make
    for connector in reversed(made):
        connector.close()


@pytest.fixture
def connector(make_connector):
    """A running connector with the default script."""
    return make_connector().start()
