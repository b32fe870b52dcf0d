"""The story that every agent is to live: a mention, worked to its end; what
the model says in it, and what it looks like afterwards.
"""

import pathlib

import harness
from model import Say, Use

HERE = pathlib.Path(__file__).resolve().parent
CONNECT = "basecamp_connect"
THREAD = "basecamp_thread"
ACTIONS = ["get_dispatch", "boost", "ack_dispatch", "read", "reply",
           "complete_dispatch"]


def event_id(conversation):
    return conversation.event_id()


def posted(conversation):
    return conversation.posted()


def use(tool, action, **params):
    """One action of the prompt's event."""
    return Use(tool, action=action, params=dict(params, event_id=event_id))


def whole():
    """The model's part: one step for each of ACTIONS, and the last word."""
    return [
        use(CONNECT, "get_dispatch"),
        use(THREAD, "boost", content="On it"),
        use(CONNECT, "ack_dispatch", ack_id=posted),
        use(THREAD, "read"),
        use(THREAD, "reply", content="The date picker is **fixed**."),
        use(CONNECT, "complete_dispatch", outcome="succeeded",
            reply_id=posted),
        Say(),
    ]


def begin(connector):
    """A running connector that hears of what is mentioned from now on."""
    connector.start()
    connector.sim.wait("answered", 1, route="GET /999/events.json")
    return connector


def wait_ended(connector, timeout=60):
    """The line that says how the attempt ended."""
    return connector.wait_line(timeout, type="dispatch", state="ended")


def row(connector, event):
    """What the ledger has of an event and its place on a task."""
    rows = connector.query(
        "SELECT t.delivery, t.ack_id, t.reply_id, t.outcome, e.state"
        " FROM task_events t JOIN events e ON e.id = t.event_id"
        " WHERE t.event_id = ?", event)
    assert len(rows) == 1
    return rows[0]


def assert_told_once(connector, event):
    """It succeeded, and each message was posted once."""
    assert wait_ended(connector)["stop_reason"] == "finished"
    told = row(connector, event)
    posted = connector.sim.messages()
    assert (told["state"], told["outcome"]) == ("completed", "succeeded")
    assert sorted(m["kind"] for m in posted) == ["boost", "comment"]
    assert {m["id"] for m in posted} == {told["ack_id"], told["reply_id"]}


def assert_no_call_failed(model):
    """No tool result that the agent brought back is an error."""
    last = model.steps()[-1].conversation
    assert not last.errors
    for step in last.results:
        assert "error" not in last.answer(step), last.results[step]


def another_mcpd(connector):
    """Kill the task's mcpd and wait until there is another."""
    killed = connector.kill("mcpd")
    harness.wait_for(lambda: [p for p in connector.roles().get("mcpd", [])
                              if p.pid != killed],
                     what="another mcpd")
