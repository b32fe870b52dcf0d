"""A blocked record is decided anew: what a person is told of the verdict."""

import json
import subprocess

import pytest


def asking(connector, event, *flags):
    return subprocess.Popen(
        [str(connector.bin / "connectctl"), "-P", connector.profile, *flags,
         "redispatch", str(event)], env=connector.environ,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def blocked(make_connector):
    """Nothing is served: a mention is blocked for want of a route."""
    connector = make_connector(
        script={"default": ["get", "ack", "reply", "complete"]})
    connector.routes = connector.config["projects"]
    connector.config["projects"] = {}
    connector.write_config()
    connector.start()
    event = connector.sim.mention()["event_id"]
    connector.wait_event(event, "blocked")
    return connector, event


def serve(connector):
    connector.config["projects"] = connector.routes
    connector.write_config()
    assert connector.connectctl("reload").returncode == 0


def answers(done):
    assert done.returncode == 0
    return [json.loads(line)["data"] for line in done.stdout.splitlines()]


def test_the_verdict(blocked):
    """The decision at once, then what came of it."""
    connector, event = blocked
    done = connector.connectctl("redispatch", str(event))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("event %d is decided anew\n"
                           "event %d is blocked (no_route)\n" % (event, event))
    serve(connector)
    done = connector.connectctl("redispatch", str(event))
    assert done.stdout == ("event %d is decided anew\n"
                           "event %d is admitted\n" % (event, event))
    connector.wait_event(event, "completed")


def test_the_verdict_as_json(blocked):
    connector, event = blocked
    decision, verdict = answers(
        connector.connectctl("--json", "redispatch", str(event)))
    assert decision["event_id"] == event
    assert decision["from_state"] == decision["state"] == "blocked"
    assert decision["from_reason"] == "no_route"
    assert decision["rerun"] is True
    assert decision["admitted"] is decision["held"] is False
    assert verdict == {"verdict": "blocked", "verdict_reason": "no_route",
                       "rerun_skipped": None}
    serve(connector)
    _, verdict = answers(
        connector.connectctl("--json", "redispatch", str(event)))
    assert verdict == {"verdict": "admitted", "verdict_reason": None,
                       "rerun_skipped": None}


def test_a_verdict_that_does_not_come(blocked):
    """It is not waited for without end. The decision stands: no failure."""
    connector, event = blocked
    serve(connector)
    connector.sim.gate("GET /*")
    with asking(connector, event, "--json") as client:
        decision = json.loads(client.stdout.readline())["data"]
        assert client.poll() is None
        verdict = json.loads(client.communicate(timeout=30)[0])["data"]
        assert client.returncode == 0
    assert decision["rerun"] is True
    assert verdict["verdict"] is verdict["verdict_reason"] is None
    assert "`connectctl show EVENT`" in verdict["rerun_skipped"]
    connector.sim.release("GET /*")
    connector.wait_event(event, "completed")


def test_a_connector_that_ends_meanwhile(blocked):
    connector, event = blocked
    serve(connector)
    connector.sim.gate("GET /*")
    with asking(connector, event) as client:
        assert client.stdout.readline() == (
            "event %d is decided anew\n" % event)
        connector.kill()
        assert client.communicate(timeout=30)[0] == (
            "no verdict yet: the connector ended\n")
        assert client.returncode == 0


def test_another_person_is_first(blocked):
    """What it became is told, whoever decided."""
    connector, event = blocked
    serve(connector)
    connector.sim.gate("GET /*")
    with asking(connector, event) as client:
        assert client.stdout.readline() == (
            "event %d is decided anew\n" % event)
        assert connector.connectctl("discard", str(event)).returncode == 0
        assert client.communicate(timeout=30)[0] == (
            "event %d is discarded (by_operator)\n" % event)
        assert client.returncode == 0


READ = "GET /{a}/comments/{id}"


@pytest.mark.parametrize("verdict", ["blocked", "admitted"])
def test_a_verdict_from_before_it_is_none(make_connector, verdict):
    """A timed retry was on its way, perhaps under routes that a person has
    mended since: whatever comes of it is not what was asked for.
    """
    connector = make_connector(
        limits={"blocked_retry": "100ms"},
        script={"default": ["get", "ack", "reply", "complete"]})
    connector.routes = connector.config["projects"]
    if verdict == "blocked":
        connector.config["projects"] = {}
        connector.write_config()
    sim = connector.start().sim
    sim.fault(READ, status=404, times=1)
    event = sim.mention()["event_id"]
    connector.wait_event(event, "blocked")
    sim.gate(READ)
    sim.wait("held", 1)
    if verdict == "blocked":
        serve(connector)
    with asking(connector, event) as client:
        assert client.stdout.readline() == (
            "event %d is decided anew\n" % event)
        sim.release(READ)
        assert client.communicate(timeout=30)[0] == (
            "event %d is admitted\n" % event)
    connector.wait_event(event, "completed")
    assert len(sim.log(READ)) >= 3


def test_what_becomes_of_others(blocked):
    """It is followed, too, and not taken for the verdict."""
    connector, event = blocked
    other = connector.sim.mention()["event_id"]
    connector.wait_event(other, "blocked")
    serve(connector)
    connector.sim.gate("GET /*")
    with asking(connector, event) as client:
        assert client.stdout.readline() == (
            "event %d is decided anew\n" % event)
        assert connector.connectctl("discard", str(other)).returncode == 0
        connector.sim.release("GET /*")
        assert client.communicate(timeout=30)[0] == (
            "event %d is admitted\n" % event)
        assert client.returncode == 0
