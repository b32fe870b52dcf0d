"""A worker that went away without a word: what it posted by itself becomes a
link beside the unknown outcome (operator.md 1.14, 2.8).
"""

import json
import urllib.request

import pytest

from surroundings import wait_for

COMMENTS = "/999/recordings/%d/comments.json"
POST_COMMENT = "POST /999/recordings/*/comments"
LIST_COMMENTS = "GET /999/recordings/*/comments"
AGENT = 52007412
ITS_OWN_TOKEN = "the-agent-itself"


def post_as_agent(sim, recording_id, text):
    """With a token that is none of the connector's."""
    sim.world({"tokens": [{"token": ITS_OWN_TOKEN, "person_id": AGENT,
                           "scope": "full"}]})
    request = urllib.request.Request(
        sim.url + COMMENTS % recording_id, method="POST",
        data=json.dumps({"content": text}).encode(),
        headers={"Content-Type": "application/json",
                 "User-Agent": "test (a@b.example)",
                 "Authorization": "Bearer " + ITS_OWN_TOKEN})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=20) as answer:
        return json.load(answer)["id"]


def row_of(connector, event_id):
    rows = connector.query(
        "SELECT delivery, outcome, adopted_reply_id FROM task_events"
        " WHERE event_id = ?", event_id)
    return dict(rows[0]) if rows else {}


def acknowledged(make_connector):
    """A worker that says it has it, and then nothing: its connector, its
    event, and where the answer is to be.
    """
    connector = make_connector(
        script={"default": ["get", "ack", "linger"]}).start()
    connector.sim.wait("answered", 1, route="GET /999/events.json")
    event_id = connector.sim.mention()["event_id"]
    wait_for(lambda: row_of(connector, event_id).get("delivery")
             == "delivered", what="the acknowledgement")
    return connector, event_id, connector.query(
        "SELECT reply_recording_id FROM events WHERE id = ?",
        event_id)[0]["reply_recording_id"]


@pytest.mark.trap("T55")
def test_its_own_reply_is_told_from_a_notice_in_doubt(make_connector):
    """The notice of its end is posted and the connector does not know: the
    listing shows two messages of the agent, and one is a reply.
    """
    connector, event_id, thread = acknowledged(make_connector)
    sim = connector.sim
    reply = post_as_agent(sim, thread, "<div>It is done.</div>")
    sim.gate(LIST_COMMENTS)
    sim.fault(POST_COMMENT, times=1, when="after", drop=True)
    connector.kill("worker")
    connector.wait_event(event_id, "completed")
    sim.wait("messages", 2, kind="comment")
    sim.release(LIST_COMMENTS)
    wait_for(lambda: row_of(connector, event_id)["adopted_reply_id"],
             what="an adopted reply")
    assert row_of(connector, event_id) == {
        "delivery": "completed", "outcome": "unknown",
        "adopted_reply_id": reply}


def test_of_two_none_is_adopted(make_connector):
    """Nobody can say which of them answers."""
    connector, event_id, thread = acknowledged(make_connector)
    sim = connector.sim
    for text in ("<div>It is done.</div>", "<div>No, it is not.</div>"):
        post_as_agent(sim, thread, text)
    connector.kill("worker")
    connector.wait_event(event_id, "completed")
    sim.wait("answered", 1, route=LIST_COMMENTS)
    connector.stop()
    assert row_of(connector, event_id)["adopted_reply_id"] is None


def test_a_reply_without_its_receipt_is_adopted_with_it(make_connector):
    """The reply lands, its answer does not come and everything dies. What a
    listing would show is that reply, which waits to be looked for: it is
    found once, as the intent's message and as the event's.
    """
    connector = make_connector(
        script={"default": ["get", "ack", "reply", "complete"]},
        limits={"reconcile_after": "2s"}).start()
    sim = connector.sim
    fault = sim.fault(POST_COMMENT, times=1, hang=True, when="after")["fault"]
    event_id = sim.mention()["event_id"]
    sim.wait("hits", 1, fault=fault)
    sim.wait("messages", 1, kind="comment")
    reply, = [m["id"] for m in sim.messages() if m["kind"] == "comment"]
    connector.kill("supervisor")
    connector.wait_end()
    connector.start()
    connector.wait_event(event_id, "completed")
    rows = wait_for(lambda: connector.query(
        "SELECT state, receipt_id, note FROM outbox WHERE state <> 'sending'"
        " AND kind = 'worker_reply'"), what="what became of it")
    assert [dict(row) for row in rows] == [
        {"state": "sent", "receipt_id": reply,
         "note": "adopted by reconciliation"}]
    assert row_of(connector, event_id) == {
        "delivery": "completed", "outcome": "unknown",
        "adopted_reply_id": reply}
