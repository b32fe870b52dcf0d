"""A role killed during an orderly stop: the stop goes on with its successor, in
time, and what it settles is in the ledger.
"""

import time

import pytest

import harness
import processes
import stories

STOPPED = 143
# The stop's bound is a minute. It takes as long as an agent that does not end
# when asked is given, so that the kill falls into it.
SOON = 15
GRACES = {"cancel_grace": "500ms", "close_grace": "200ms"}


def begin_deaf(make_connector, **arguments):
    """The connector, the event, and a worker that is deaf to all but SIGKILL."""
    connector = stories.begin(make_connector, script={
        "default": ["get", "linger-deaf"]}, **arguments)
    event_id, _ = stories.mention(connector)
    harness.wait_for(lambda: connector.agent_records("deaf"),
                     what="a deaf agent")
    return connector, event_id, connector.roles()["worker"][0]


def kill_when_stopping(connector, role, number):
    """The orderly stop begins; as soon as it has, the role is killed."""
    victim = connector.roles()[role][0]
    connector.process.send_signal(number)
    connector.wait_log("stopping: ")
    assert processes.send_signal(victim, harness.signal.SIGKILL)


@pytest.mark.parametrize("role", ["ledger", "intake", "outbox", "mcpd"])
def test_a_death_in_the_stop(make_connector, role):
    connector, event_id, _ = begin_deaf(make_connector, limits=GRACES)
    kill_when_stopping(connector, role, harness.signal.SIGTERM)
    assert connector.wait_end(SOON) == STOPPED
    connector.start()
    evidence = stories.settle(connector)
    assert stories.outcome_of(evidence, event_id) == ("unknown", "shutdown")


@pytest.mark.parametrize("cgroups", [True, False])
def test_the_dispatcher_in_the_stop(make_connector, cgroups):
    """Its successor is there only to settle what it left, as after a crash of
    the whole, within the same stop.
    """
    connector, event_id, worker = begin_deaf(
        make_connector, limits=dict(GRACES, recover_grace="500ms"),
        cgroups=cgroups)
    kill_when_stopping(connector, "dispatcher", harness.signal.SIGTERM)
    assert connector.wait_end(SOON) == STOPPED
    assert not processes.is_running(worker)
    assert [(r["state"], r["stop_reason"]) for r in connector.query(
        "SELECT state, stop_reason FROM attempts")] == [("ended", "lost")]
    connector.start()
    evidence = stories.settle(connector)
    assert stories.outcome_of(evidence, event_id) == ("unknown", "lost")


def test_the_ledger_beside_it(make_connector):
    """The successor asks, and the ledger's successor answers."""
    connector, event_id, worker = begin_deaf(make_connector, limits=GRACES)
    connector.kill("ledger", harness.signal.SIGSTOP)
    kill_when_stopping(connector, "dispatcher", harness.signal.SIGTERM)
    connector.wait_log("a successor settles")
    harness.wait_for(lambda: connector.roles().get("dispatcher"),
                     what="the successor")
    connector.kill("ledger")
    assert connector.wait_end(SOON) == STOPPED
    assert not processes.is_running(worker)
    assert [r["stop_reason"] for r in connector.query(
        "SELECT stop_reason FROM attempts")] == ["lost"]


def test_dispatchers_that_die_and_die_again(make_killat, make_connector):
    """None of them settles it. Its worker is ended all the same; the next
    start settles.
    """
    follower = make_killat(*["later:kill@connectd-dispatcher:exec:%d" % n
                             for n in range(1, 4)])
    connector, event_id, worker = begin_deaf(
        make_connector, limits=GRACES, follower=follower)
    for n in range(1, 4):
        follower.arm(n)
    kill_when_stopping(connector, "dispatcher", harness.signal.SIGTERM)
    assert connector.wait_end(SOON) == STOPPED
    assert not processes.is_running(worker)
    connector.follower = None
    connector.start()
    evidence = stories.settle(connector)
    assert stories.outcome_of(evidence, event_id) == ("unknown", "lost")


# A few moments, of the half minute that the dispatcher may take.
AT_ONCE = 10


def test_a_launch_refused_in_the_stop(make_killat, make_connector):
    """LAUNCH waits at a ledger that dies: its successor knows of a newer
    configuration and refuses it. With that nothing is left to wait for.
    """
    follower = make_killat("hold@connectd-ledger:tx:1~att_[0-9a-f]{24}")
    connector = stories.begin(make_connector, follower=follower)
    event_id, _ = stories.mention(connector)
    follower.wait(what="hold")
    connector.config["projects"][str(harness.PROJECT)]["class"] = "other"
    connector.write_config()
    connector.wait_log("in force, generation 2")
    began = time.monotonic()
    connector.process.send_signal(harness.signal.SIGTERM)
    connector.wait_log("stopping: ")
    connector.kill("ledger")
    assert connector.wait_end(60) == STOPPED
    assert time.monotonic() - began < AT_ONCE
    assert connector.query("SELECT 1 FROM attempts") == []
    assert connector.event_state(event_id) == "admitted"
