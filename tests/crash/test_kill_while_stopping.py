"""A role killed during an orderly stop: the stop goes on with its successor, in
time, and what it settles is in the ledger.
"""

import pytest

import harness
import processes
import stories

STOPPED = 143
# The stop's bound is a minute; an agent that ends when asked needs none of it.
SOON = 15


def kill_when_stopping(connector, role, number):
    """The orderly stop begins; as soon as it has, the role is killed."""
    victim = connector.roles()[role][0]
    connector.process.send_signal(number)
    connector.wait_log("stopping: ")
    assert processes.send_signal(victim, harness.signal.SIGKILL)


@pytest.mark.parametrize("role", ["ledger", "intake", "outbox", "mcpd"])
def test_a_death_in_the_stop(make_connector, role):
    connector = stories.begin(make_connector, script={
        "default": ["get", "sleep:200", "linger"]})
    event_id, start = stories.mention(connector)
    connector.wait_line(start=start, type="dispatch", state="running")
    harness.wait_for(lambda: connector.agent_records("step"),
                     what="a working agent")
    kill_when_stopping(connector, role, harness.signal.SIGTERM)
    assert connector.wait_end(SOON) == STOPPED
    connector.start()
    evidence = stories.settle(connector)
    assert stories.outcome_of(evidence, event_id) == ("unknown", "shutdown")
