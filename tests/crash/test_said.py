"""What reads the connector's messages must notice wrong words and places: one
good message of each kind, and the same with one thing changed.
"""

import types

import pytest

import said

AGENT = 9
EVENT, OTHER = 12, 123
COMMENT, THREAD, OTHERS, ELSEWHERE = 51, 50, 61, 60
FOOT = " - posted by connectd, not by the agent"
LOST = said.STOPS["lost"]
UNKNOWN = said.OUTCOMES["unknown"]


def div(*lines):
    return "<div>%s</div>" % "<br>".join(lines)


GOOD = {
    "guard_ack": "\N{EYES} received",
    "worker_ack": "On it",
    "worker_reply": "<p>Done: event 12.</p>",
    "holding_reply": div(
        "Nothing was started: this project is not one that this connector"
        " works in.",
        "Once it is, this starts the work: connectctl redispatch 12",
        "Event 12" + FOOT),
    "still_running": div(
        "Task 3: the agent is still at work, as of 10:02 UTC.",
        "It was started at 09:52 UTC; no progress was reported yet.",
        "Attempt att_1, notice 1" + FOOT),
    "completion": div(
        "Task 3: " + LOST,
        "Event 12: %s To run it again: connectctl redispatch 12" % UNKNOWN,
        "Attempt att_1" + FOOT),
    "retraction": div(
        "Event 12: an earlier notice here asked for its redispatch.",
        "A person closed it, at 10:02 UTC; that notice stays as a record.",
        "Event 12" + FOOT),
}


def recording(ident, parent, event):
    return {"id": ident, "parent_id": parent, "events": [
        {"id": event, "creator_id": 1}, {"id": 900 + ident,
                                         "creator_id": AGENT}]}


def message_of(kind):
    is_boost = kind in said.BOOSTS
    return {"kind": "boost" if is_boost else "comment", "content": GOOD[kind],
            "recording_id": COMMENT if is_boost else THREAD}


def evidence_of(*messages, asked=()):
    """A task with one event, whose attempt was lost."""
    world = {"recordings": [recording(COMMENT, THREAD, EVENT),
                            recording(OTHERS, ELSEWHERE, OTHER)]}
    return types.SimpleNamespace(
        connector=types.SimpleNamespace(sim=types.SimpleNamespace(
            get=lambda path: world, ready={"agent_id": AGENT})),
        rows={"attempts": [{"id": "att_1", "task_id": 3,
                            "stop_reason": "lost"}],
              "task_events": [{"task_id": 3, "event_id": EVENT,
                               "withdrawn_at": None, "outcome": "unknown",
                               "reply_id": None}]},
        messages=messages, requests=asked, of_event=lambda table, ident: [])


def is_wrong(evidence):
    with pytest.raises(AssertionError):
        said.read(evidence)


@pytest.mark.parametrize("kind", GOOD)
def test_each_kind(kind):
    evidence = evidence_of(message_of(kind))
    attempts = {"att_1"}
    assert said.count(evidence, EVENT, attempts) == {kind: 1}
    assert said.count(evidence, OTHER, set()) == {}


@pytest.mark.parametrize("kind", GOOD)
@pytest.mark.parametrize("change", [
    {"recording_id": ELSEWHERE}, {"kind": "chat_line"},
    {"content": "<div>some<br>thing</div>"}])
def test_another_place_and_other_words(kind, change):
    is_wrong(evidence_of(dict(message_of(kind), **change)))


@pytest.mark.parametrize("kind", said.BOOSTS)
def test_on_the_conversation_instead(kind):
    is_wrong(evidence_of(dict(message_of(kind), recording_id=THREAD)))
    evidence = evidence_of(dict(message_of(kind), recording_id=OTHERS))
    assert said.count(evidence, EVENT, {"att_1"}) == {}


def test_a_request_that_left_nothing():
    request = {"method": "POST", "path": "/999/recordings/%d/boosts.json",
               "body": {"content": GOOD["guard_ack"]}}
    there = dict(request, path=request["path"] % COMMENT)
    assert said.read(evidence_of(asked=[there])) == []
    is_wrong(evidence_of(asked=[dict(there, path=request["path"] % THREAD)]))


@pytest.mark.parametrize("old, new", [
    (LOST, said.STOPS["finished"]), (UNKNOWN, said.OUTCOMES["failed"]),
    ("redispatch 12", "redispatch 123"),
    (" To run it again: connectctl redispatch 12", ""),
    ("Event 12:", "Event 123:"), ("Task 3", "Task 4"), (FOOT, ""),
    ("att_1", "att_2"), ("<br>", " ")])
def test_a_completion_that_is_not_true(old, new):
    message = message_of("completion")
    assert old in message["content"]
    text = message["content"].replace(old, new)
    with pytest.raises((AssertionError, KeyError, ValueError)):
        said.read(evidence_of(dict(message, content=text)))
