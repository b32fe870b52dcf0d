"""The fixtures of the integration tests, and where a sweep's chance is from.

CONNECTD_SWEEP set: every case instead of a sample. CONNECTD_SEED: the seed of
an earlier run, which the end of its report shows; the same seed makes the same
cases.
"""

import importlib.util
import pathlib
import sys

sys.dont_write_bytecode = True

INTEGRATION = pathlib.Path(__file__).resolve().parents[1] / "integration"
sys.path[:0] = [str(INTEGRATION), str(pathlib.Path(__file__).parent)]

spec = importlib.util.spec_from_file_location("integration_conftest",
                                              INTEGRATION / "conftest.py")
shared = importlib.util.module_from_spec(spec)
spec.loader.exec_module(shared)

import pytest

import chance
import killat
import sweep

SUMMARY = pytest.StashKey()

pytest_runtest_makereport = shared.pytest_runtest_makereport
users = shared.users
folder = shared.folder
sim = shared.sim
make_connector = shared.make_connector


@pytest.fixture
def make_killat(folder):
    """Makes what follows a tree. Name it before make_connector: what is held
    must be let go before a connector can be stopped, and is killed here.
    """
    made = []

    def make(*rules, **arguments):
        made.append(killat.Killat(folder, *rules, **arguments))
        return made[-1]

    yield make
    for one in reversed(made):
        one.close()


def pytest_configure(config):
    shared.pytest_configure(config)
    config.stash[SUMMARY] = []


@pytest.fixture(scope="session")
def counts():
    """The calls of the sweep's story, role by role."""
    return sweep.count()


@pytest.fixture
def summary(request):
    """A line for the end of the report, whatever the test comes to."""
    return request.config.stash[SUMMARY].append


def pytest_terminal_summary(terminalreporter, config):
    lines = ["CONNECTD_SEED=%d" % chance.SEED, *config.stash[SUMMARY]]
    for line in lines:
        terminalreporter.write_line("swept: " + line)
