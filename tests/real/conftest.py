"""The real agents in place of the scripted one, with a scripted model. All of
it is opt-in: the packages are a gigabyte.
"""

import importlib.util
import json
import pathlib
import sys

sys.dont_write_bytecode = True

HERE = pathlib.Path(__file__).resolve().parent
INTEGRATION = HERE.parent / "integration"
sys.path[:0] = [str(INTEGRATION), str(HERE)]

spec = importlib.util.spec_from_file_location("integration_conftest",
                                              INTEGRATION / "conftest.py")
shared = importlib.util.module_from_spec(spec)
spec.loader.exec_module(shared)

import pytest

import clients as installed
import harness
import model as scripted

pytest_configure = shared.pytest_configure
pytest_collection_modifyitems = shared.pytest_collection_modifyitems
users = shared.users
folder = shared.folder
sim = shared.sim
make_connector = shared.make_connector


@pytest.fixture(scope="session")
def clients(users):
    made = installed.Clients()
    yield made
    made.close()


@pytest.fixture
def model():
    made = scripted.Model()
    yield made
    made.close()
    assert not made.faults
    assert not made.elsewhere


class Tap:
    """What goes by between the agents and their bridges."""

    def __init__(self, folder, path):
        self.path = path
        program = folder.programs() / "connect-bridge"
        real = folder.make("bin/tapped") / program.name
        program.rename(real)
        tap = program.with_name("tap.py")
        tap.write_bytes((HERE / "tap.py").read_bytes())
        tap.chmod(0o755)
        program.write_text('#!/bin/sh\nexec %s %s %s "$@"\n'
                           % (tap, path, real))
        program.chmod(0o755)

    def records(self):
        with open(self.path, encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]


@pytest.fixture
def tap(folder):
    """A tap in the bridge's place, for connectors that are made later."""
    out = folder.make("out", 0o755, harness.WORKER_USER)
    return Tap(folder, out / "wire.jsonl")


@pytest.fixture
def make_claude(make_connector, folder, clients, model):
    """Makes connectors whose worker is the real Claude Code."""
    home = folder.make("agent-home", 0o700, harness.WORKER_USER)

    def make(env=None, arguments=(), **more):
        connector = make_connector(**more)
        worker = connector.config["worker"]
        worker["command"] = [clients.path("claude"), *arguments]
        worker["read"] = []
        del worker["env"]["CONNECTD_AGENT_SCRIPT"]
        worker["env"].update(
            model.proxy_environ(), HOME=str(home),
            ANTHROPIC_BASE_URL=model.url, ANTHROPIC_API_KEY="dummy-key",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", **(env or {}))
        connector.write_config()
        return connector

    return make
