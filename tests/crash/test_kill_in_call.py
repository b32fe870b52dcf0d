"""A process killed between a call of basecamp_thread and its answer, which
Basecamp holds back meanwhile: the agent gets one answer, and one message is
there (design 6, 6.1).
"""

import collections

import pytest

import harness
import stories

THREAD = "GET /{a}/recordings/{id}/comments.json"
BOOSTS = "POST /{a}/recordings/{id}/boosts.json"
COMMENTS = "POST /{a}/recordings/{id}/comments.json"

# What is asked of Basecamp, and the step in which the agent calls it.
CALLS = {
    "read": (THREAD, "read"),
    "boost": (BOOSTS, "ack"),
    "reply": (COMMENTS, "reply"),
}
ROLES = ("bridge", "mcpd", "outbox", "ledger", "intake")


def script_of(action, role):
    """Whose server dies calls it again, as the real agent's model does."""
    steps = list(stories.STEPS)
    if role == "bridge":
        step = CALLS[action][1]
        steps.insert(steps.index(step), step + "?")
    return {"default": steps}


def hold(connector, action, role):
    """Make Basecamp keep the answer back; how that is ended. A request of the
    outbox dies with it: there the message was stored, and only its answer
    never comes.
    """
    route = CALLS[action][0]
    if role == "outbox" and action != "read":
        fault = connector.sim.fault(route, hang=True, times=1, when="after")
        return lambda: connector.sim.wait("hits", 1, fault=fault["fault"]), \
            lambda: None
    connector.sim.gate(route)
    return lambda: connector.sim.wait("held", 1), \
        lambda: connector.sim.release(route)


def wait_next(connector, role, pid):
    """Until there is another process in its place."""
    if role == "bridge":
        harness.wait_for(
            lambda: len(connector.agent_records("server_open")) == 2,
            what="the agent to start its server again")
        return
    harness.wait_for(lambda: [p for p in connector.roles().get(role, [])
                              if p.pid != pid], what="another " + role)
    if role != "mcpd":
        connector.wait_status(
            lambda s: all(c["state"] == "ready" for c in s["data"]["children"]
                          if c["role"] == role), what=role + " to be ready")


def answers(evidence, action):
    """What the agent was answered to that action, and how often it asked."""
    asked = 0
    said = []
    action_of = {}
    for record in evidence.agent:
        if record["what"] == "call":
            action_of[record["pid"]] = record["arguments"]["action"]
            asked += record["arguments"]["action"] == action
        elif record["what"] == "answer":
            if action_of[record["pid"]] == action:
                said.append(record)
    return asked, said


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("action", CALLS)
def test_killed_in_a_call(make_connector, action, role):
    connector = stories.begin(make_connector, script=script_of(action, role))
    needles = stories.new_needles()
    before = stories.pids(connector)
    is_held, end_hold = hold(connector, action, role)
    event_id, _ = stories.mention(connector)
    is_held()
    needles.learn(connector)
    pid = connector.kill(role)
    wait_next(connector, role, pid)
    end_hold()
    evidence = stories.settle(connector, needles)
    stories.check_only_death(connector, before, role, pid)
    assert stories.check_end(evidence, event_id, role) == ("succeeded",
                                                           "finished")
    asked, said = answers(evidence, action)
    if role == "bridge":
        assert asked == 2 and said.pop(0)["is_error"]
    else:
        assert asked == 1
    assert [record["is_error"] for record in said] == [False]
    found = collections.Counter(m["kind"] for m in evidence.messages)
    assert found == {"boost": 1, "comment": 1}
    servers = [r for r in evidence.agent if r["what"] == "server_start"]
    assert len(servers) == (2 if role == "bridge" else 1)
