"""What the outbox does in a turn, at a start and while it stops (operator.md
1.6, 1.11).
"""

import signal
import time

import pytest

from harness import AGENT
from surroundings import wait_for

COMMENTS = "POST /{a}/recordings/{id}/comments.json"
STAND_DOWN_MAX = 64     # of ledger/claim.c


def messages(connector):
    """{(kind, state): how many} of the outbox."""
    return {(row["kind"], row["state"]): row["n"] for row in connector.query(
        "SELECT kind, state, COUNT(*) AS n FROM outbox GROUP BY kind, state")}


def stale_notices(make_connector):
    """A connector whose outbox hangs at a first notice, and behind it more
    that lost their point than two claims stand down, and one that did not:
    it is told once, when the hanging is over, that there was news meanwhile.
    """
    connector = make_connector(
        script={"default": ["get", "ack-id", "linger"]},
        limits={"still_running": "50ms", "reconcile_after": "1m"})
    connector.start()
    fault = connector.sim.fault(COMMENTS, times=1, hang=True,
                                when="before")["fault"]
    event_id = connector.sim.mention()["event_id"]
    connector.sim.wait("hits", 1, fault=fault)
    wait_for(lambda: messages(connector).get(
        ("still_running", "pending"), 0) > 2 * STAND_DOWN_MAX, timeout=60,
        what="more than stand down at once")
    connector.kill("worker")
    connector.wait_event(event_id, "completed")
    wait_for(lambda: ("completion", "pending") in messages(connector),
             what="the notice of its end")
    return connector


def test_what_is_due_behind_what_stands_down(make_connector):
    connector = stale_notices(make_connector)
    connector.sim.clear_faults()
    wait_for(lambda: ("completion", "sent") in messages(connector),
             what="the notice behind them: %s" % messages(connector))
    assert not [state for _, state in messages(connector)
                if state == "pending"]


def test_what_is_due_behind_what_stands_down_at_a_start(make_connector):
    """Nothing is dispatched before that is sent."""
    connector = stale_notices(make_connector)
    connector.kill("supervisor")
    connector.wait_end()
    connector.sim.clear_faults()
    connector.sim.gate(COMMENTS)
    connector.start()
    connector.sim.wait("held", 1)
    event_id = connector.sim.mention()["event_id"]
    connector.wait_event(event_id, "admitted")
    assert ("completion", "sending") in messages(connector)
    connector.sim.release(COMMENTS)
    connector.wait_event(event_id, "dispatched", "completed")


UNROUTED = 48699915
TOKENS = "POST /oauth/tokens"
TURN = 16               # sends of a turn, of outbox/work.c


def test_a_doubt_is_of_one_message(make_connector):
    """The others wait until Basecamp may be well again."""
    connector = make_connector(limits={"reconcile_after": "1m"})
    sim = connector.start().sim
    sim.gate(COMMENTS)
    for _ in range(TURN):
        sim.mention(project_id=UNROUTED)
    sim.wait("held", 1)
    wait_for(lambda: sum(messages(connector).values()) == TURN,
             what="all that is due")
    fault = sim.fault(COMMENTS, times=0, status=429,
                      headers={"Retry-After": "3"})["fault"]
    sim.release(COMMENTS)
    sim.wait("hits", 1, fault=fault)
    connector.wait_log("may or may not be posted: HTTP 429")
    assert connector.status()
    sim.clear_faults()
    wait_for(lambda: messages(connector) == {
        ("holding_reply", "sending"): 1,
        ("holding_reply", "sent"): TURN - 1}, what="the others")
    assert len(sim.log(COMMENTS)) == TURN


# ---- while it stops --------------------------------------------------------


def test_a_stop_sends_all_that_is_due(make_connector):
    """More than a turn's messages wait behind one that takes its time."""
    connector = make_connector(limits={"reconcile_after": "1m"})
    sim = connector.start().sim
    sim.gate(COMMENTS)
    sim.mention(project_id=UNROUTED)
    sim.wait("held", 1)
    for _ in range(2 * TURN):
        sim.mention(project_id=UNROUTED)
    wait_for(lambda: messages(connector).get(
        ("holding_reply", "pending")) == 2 * TURN, what="what waits")
    connector.process.send_signal(signal.SIGTERM)
    connector.wait_log("stopping")
    sim.release(COMMENTS)
    assert connector.wait_end() == 143
    assert messages(connector) == {("holding_reply", "sent"): 2 * TURN + 1}


def test_a_stop_claims_nothing_without_time_for_an_answer(make_connector):
    """The token comes when less than that is left (T15): what waits is sent
    at the next start, as it says.
    """
    connector = make_connector(
        script={"default": ["get", "ack-id", "linger"]},
        limits={"cancel_grace": "100ms", "outbox_flush": "5200ms"})
    sim = connector.sim
    sim.world({"token_lifetime": 6})
    connector.start()
    event_id = sim.mention()["event_id"]
    wait_for(lambda: connector.query(
        "SELECT 1 FROM task_events WHERE delivery = 'delivered'"),
        what="its acknowledgement")
    sim.gate(TOKENS)
    sim.wait("held", 1)
    connector.process.send_signal(signal.SIGTERM)
    wait_for(lambda: ("completion", "pending") in messages(connector),
             what="the notice of its end")
    until = time.monotonic() + 0.5
    wait_for(lambda: time.monotonic() > until, what="too little time")
    sim.release(TOKENS)
    assert connector.wait_end() == 143
    assert messages(connector)["completion", "pending"] == 1
    assert not [m for m in sim.messages() if m["kind"] == "comment"]
    assert "what waits still is sent from the next start on" in (
        connector.tail())
    connector.start()
    wait_for(lambda: ("completion", "sent") in messages(connector),
             what="the notice of event %d" % event_id)


def test_a_stop_says_what_it_cuts_short(make_connector):
    """Nobody may be told that it is sent later: it may be there already."""
    connector = make_connector(limits={"outbox_flush": "5500ms",
                                       "reconcile_after": "1m"})
    sim = connector.start().sim
    fault = sim.fault(COMMENTS, times=1, hang=True, when="after")["fault"]
    sim.mention(project_id=UNROUTED)
    sim.wait("hits", 1, fault=fault)
    assert connector.stop() == 143
    assert messages(connector) == {("holding_reply", "sending"): 1}
    assert "the next start looks whether it arrived" in connector.tail()
    assert "sent from the next start" not in connector.tail()


# ---- while there is no access token ----------------------------------------

NO_TOKEN = {
    "limited": {"status": 429, "headers": {"Retry-After": "1"}},
    "failing": {"status": 503},
    "refused": {"status": 401},
    "refused for good": {"status": 401, "body": {"error": "invalid_client"}},
}


def unauthorized_message(connector, answer):
    """The one message is answered 401, and a renewal with that answer."""
    sim = connector.start().sim
    sim.fault(COMMENTS, times=1, status=401)
    fault = sim.fault(TOKENS, times=0, **answer)["fault"]
    sim.mention(project_id=UNROUTED)
    sim.wait("hits", 1, fault=fault)
    connector.wait_log("waits for another access token")
    assert messages(connector) == {("holding_reply", "sending"): 1}


def bring_credential(connector):
    connector.sim.world({"clients": [{
        "client_id": "agent-client", "secret": "another-secret",
        "person_id": AGENT, "scope": "full"}]})
    connector.write_credentials(client_secret="another-secret")


@pytest.mark.parametrize("name", NO_TOKEN)
def test_a_401_waits_for_another_token(make_connector, name):
    """It created nothing, and says nothing of the message: that is posted
    with the next token, whenever there is one.
    """
    connector = make_connector(limits={"feed_retry": "20ms"})
    unauthorized_message(connector, NO_TOKEN[name])
    connector.sim.clear_faults()
    if name.startswith("refused"):
        bring_credential(connector)
        assert connector.connectctl("reload").returncode == 0
    wait_for(lambda: messages(connector) == {("holding_reply", "sent"): 1},
             what="the message: %s" % messages(connector))
    assert len(connector.sim.log(COMMENTS)) == 2
    assert len(connector.sim.messages()) == 1


def test_a_stop_ends_the_wait_for_a_token(make_connector):
    """In doubt, not refused: nobody sends it again by himself, and a person
    is shown it. The stop does not take its whole bound for it.
    """
    connector = make_connector(limits={"outbox_flush": "30s"})
    unauthorized_message(connector, NO_TOKEN["refused"])
    assert connector.stop(timeout=20) == 143
    assert messages(connector) == {("holding_reply", "sending"): 1}
    connector.sim.clear_faults()
    bring_credential(connector)
    connector.start()
    connector.wait_status(
        lambda s: s["data"]["status"]["indeterminate_intents"])
    assert len(connector.sim.log(COMMENTS)) == 1


def test_what_is_in_doubt_waits_for_a_token(make_connector):
    """No token is no failed listing, and the start waits for one: then it is
    listed at once.
    """
    connector = make_connector(limits={"outbox_flush": "30s"})
    unauthorized_message(connector, NO_TOKEN["refused for good"])
    assert connector.stop(timeout=20) == 143
    connector.sim.clear_faults()
    connector.start(entered=False)
    connector.wait_log("feed ended: credential_refused")
    bring_credential(connector)
    assert connector.connectctl("reload").returncode == 0
    connector.wait_status(
        lambda s: s["data"]["status"]["indeterminate_intents"])
    assert connector.query("SELECT reconcile_failures, note FROM outbox") == [
        {"reconcile_failures": 0, "note": "0 matching messages"}]
    assert "not settled yet" not in connector.tail(50)
