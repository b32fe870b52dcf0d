"""A held attempt, whose tree nobody can prove gone, keeps its place whatever
dies beside it (dispatch.md 9).
"""

import os

import harness
import processes
import stories


def held(connector):
    """What the dispatcher counts, or None."""
    status = connector.status()
    return status and next(child["values"].get("held")
                           for child in status["data"]["children"]
                           if child["role"] == "dispatcher")


def test_a_ledger_that_dies_while_it_is_asked_who_lives(
        make_killat, make_connector):
    """It dies with the list half told; its successor is asked to go on, and
    anew: the one must not take the end of the other for an attempt's end.
    """
    follower = make_killat(
        "later:hold@connectd-ledger:write:1~att_[0-9a-f]{24}",
        "later:kill@connectd-ledger:write:1")
    connector = stories.begin(
        make_connector, cgroups=False,
        limits={"recover_grace": "1s", "cancel_grace": "1s"},
        script={"default": ["get", "ack", "grandchild", "linger"]})
    stories.mention(connector)
    child = harness.wait_for(lambda: connector.agent_records("grandchild"),
                             what="its grandchild")[0]["child"]
    worker = connector.roles()["worker"][0]
    connector.kill("supervisor")
    connector.wait_end()
    processes.send_signal(worker, 9)
    connector.follower = follower
    try:
        connector.start()
        harness.wait_for(lambda: held(connector) == "1", what="the hold")
        follower.arm(1)
        connector.kill("ledger")
        follower.wait(what="hold")
        follower.arm(2)
        follower.go(1)
        follower.wait(what="kill")
        event_id = connector.sim.mention()["event_id"]
        connector.wait_event(event_id, "queued")
        attempt, = connector.query("SELECT state FROM attempts")
        assert attempt["state"] != "ended"
        assert held(connector) == "1"
    finally:
        os.kill(child, 9)
