"""Two mentions in one conversation: each is worked on once, in order."""

import pytest

import harness

POST_COMMENT = "POST /999/recordings/*/comments"

OTHER_THREAD = 55
STEPS = ["get", "ack", "reply", "complete"]


def two_that_wait(connector, steps):
    """Two mentions wait for the directory, which another thread's has; then
    it is free, and an agent with those steps starts.
    """
    sim = connector.sim
    sim.wait("answered", 1, route="GET /999/events.json")
    sim.gate(POST_COMMENT)
    sim.mention()
    sim.wait("held", 1)
    first, second = [sim.mention(recording_id=OTHER_THREAD)["event_id"]
                     for _ in range(2)]
    connector.wait_event(first, "admitted")
    connector.wait_event(second, "queued")
    connector.set_script({"default": steps})
    sim.release(POST_COMMENT)
    for event_id in (first, second):
        connector.wait_event(event_id, "completed")
    assert not connector.agent_records("step_failed")
    return first, second


def rows_of(connector, event_id):
    return [(row["delivery"], row["outcome"]) for row in connector.query(
        "SELECT delivery, outcome FROM task_events WHERE event_id = ?"
        " ORDER BY task_id", event_id)]


def prompts(connector):
    return [(record["pid"], record["event_id"])
            for record in connector.agent_records("step")
            if record["name"] == "get"]


def test_a_sibling_is_told_of_when_the_turn_has_ended(make_connector):
    """One worker does both, in order, each on a prompt of its own."""
    connector = make_connector(script={"default": STEPS}).start()
    first, second = two_that_wait(connector, STEPS)
    for event_id in (first, second):
        assert rows_of(connector, event_id) == [("completed", "succeeded")]
    (worker, told), (same, then) = prompts(connector)[-2:]
    assert (worker, told, then) == (same, first, second)
    comments = [m for m in connector.sim.messages() if m["kind"] == "comment"]
    assert len(comments) == 3


def test_a_sibling_that_nobody_was_told_of_starts_afterwards(make_connector):
    """One task takes both, its worker goes after the first, and the second
    has a task of its own.
    """
    connector = make_connector(script={"default": STEPS}).start()
    first, second = two_that_wait(connector, [*STEPS, "exit:0"])
    assert rows_of(connector, first) == [("completed", "succeeded")]
    assert rows_of(connector, second) == [
        ("admitted", ""), ("completed", "succeeded")]
    (worker, told), (another, then) = prompts(connector)[-2:]
    assert (told, then) == (first, second)
    assert worker != another


def test_a_worker_pulls_a_sibling_by_itself(make_connector):
    """Who asks for the earliest gets what has joined; no other task gets it
    again.
    """
    connector = make_connector(script={"default": STEPS}).start()
    pulls = ["get-any", "ack", "complete"]
    for event_id in two_that_wait(connector, pulls + pulls):
        assert rows_of(connector, event_id) == [("completed", "succeeded")]


NOW = {
    "removed": lambda other: {"777": {"path": other, "class": "web"}},
    "moved": lambda other: {
        str(harness.PROJECT): {"path": other, "class": "web"}},
    "unreadable": None,
}


@pytest.mark.parametrize("how", NOW)
def test_no_further_prompt_without_its_route(make_connector, how):
    """Trap 6 of dispatch.md: it had joined when its route was taken away.
    The turn goes on, and nobody is told of it.
    """
    connector = make_connector(script={"default": [
        "get", "ack", "arrive", "await:arrived=dispatched", "read", "reply",
        "complete"]}).start()
    sim = connector.sim
    sim.wait("answered", 1, route="GET /999/events.json")
    sim.gate(POST_COMMENT)
    first = sim.mention()["event_id"]
    sim.wait("held", 1)
    second = connector.director.arrived
    connector.wait_event(second, "dispatched")
    if NOW[how] is None:
        connector.write_config("{ nonsense")
    else:
        other = connector.folder.make("other", 0o755, connector.user)
        connector.config["projects"] = NOW[how](str(other))
        connector.write_config()
    connector.wait_log("nothing new is admitted" if NOW[how] is None
                       else "in force, generation 2")
    sim.release(POST_COMMENT)
    connector.wait_event(first, "completed")
    connector.wait_log("no follow-up: connect.json does not load"
                       if NOW[how] is None else
                       "no follow-up: its route is not")
    connector.wait_event(second, "admitted")
    assert rows_of(connector, first) == [("completed", "succeeded")]
    assert rows_of(connector, second) == [("admitted", "")]
    attempt, = connector.query("SELECT stop_reason FROM attempts")
    assert attempt["stop_reason"] == "finished"
    assert [r["event_id"] for r in connector.agent_records("prompt")] == [
        first]
