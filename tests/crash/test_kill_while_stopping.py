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


def kill_when_stopping(connector, role, number):
    """The orderly stop begins; as soon as it has, the role is killed."""
    victim = connector.roles()[role][0]
    connector.process.send_signal(number)
    connector.wait_log("stopping: ")
    assert processes.send_signal(victim, harness.signal.SIGKILL)


@pytest.mark.parametrize("role", ["ledger", "intake", "outbox", "mcpd"])
def test_a_death_in_the_stop(make_connector, role):
    connector = stories.begin(make_connector, limits=GRACES, script={
        "default": ["get", "linger-deaf"]})
    event_id, _ = stories.mention(connector)
    harness.wait_for(lambda: connector.agent_records("deaf"),
                     what="a deaf agent")
    kill_when_stopping(connector, role, harness.signal.SIGTERM)
    assert connector.wait_end(SOON) == STOPPED
    connector.start()
    evidence = stories.settle(connector)
    assert stories.outcome_of(evidence, event_id) == ("unknown", "shutdown")


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
