"""What the outbox does in a turn, at a start and while it stops (operator.md
1.6, 1.11).
"""

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
    connector.start().wait_entered()
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
