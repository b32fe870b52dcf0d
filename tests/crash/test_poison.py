"""Records that end whoever has them in hand: at the second such death they are
quarantined, and no other is (design 3.1, "Poison"). And roles that hang: seen
by the watchdog, ended, and replaced alone.

A signal that a process makes itself comes from here instead. What it does to
the count is the same, and it falls where the record is in hand.
"""

import signal

import pytest

import harness
import stories

READ = "GET /{a}/comments/{id}"
THREAD = "GET /{a}/recordings/{id}/comments.json"
WATCHDOG = {"watchdog": "1s"}
needs_root = pytest.mark.skipif(
    not harness.is_root(), reason="only root sees what is not dumpable")


def child_of(connector, role):
    """The child's status; None while there is none."""
    status = connector.status()
    return status and next(c for c in status["data"]["children"]
                           if c["role"] == role)


def wait_restarts(connector, role, count):
    """The child's status, once it is ready after so many restarts."""
    def look():
        child = child_of(connector, role)
        is_back = child and (child["restarts"], child["state"]) == (count,
                                                                    "ready")
        return child if is_back else None
    return harness.wait_for(look, what="%s to be back" % role)


def deaths_of(evidence, event_id):
    return evidence.event(event_id)["quarantine"]


def check_others(connector, role):
    """No other role has died of anything, and this one as was told."""
    for child in connector.status()["data"]["children"]:
        if child["role"] != role:
            assert child["restarts"] == child["own_deaths"] == 0, child


def check_quarantined(connector, evidence, event_id):
    """Kept, shown, said, and neither run nor timed."""
    event = evidence.event(event_id)
    assert (event["state"], event["reason"]) == ("blocked", "quarantined")
    assert event["next_retry_at"] is None
    assert event["quarantine"] == 2
    assert evidence.of_event("task_events", event_id) == []
    status = connector.connectctl("status").stdout
    assert "quarantined" in status, status
    shown = connector.connectctl("show", str(event_id)).stdout
    assert "quarantined" in shown, shown
    connector.wait_log("event %d was in hand at 2 deaths" % event_id)


def check_went_well(evidence, event_id):
    """Once, on whichever task: it may have waited on another's before."""
    assert evidence.event(event_id)["state"] == "completed"
    done, = [r for r in evidence.of_event("task_events", event_id)
             if r["exposed_at"]]
    assert done["outcome"] == "succeeded"


def reads(connector, count):
    """Wait for so many reads of recordings, asked of Basecamp at all."""
    connector.sim.wait("requests", count, route=READ)


# ---- intake ----------------------------------------------------------------

@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV])
def test_a_record_that_ends_intake(make_connector, number):
    """Three are in hand at the first death: from then on one at a time, so
    that the second finds the one.
    """
    connector = stories.begin(make_connector)
    connector.sim.gate(READ)
    mentions = [connector.sim.mention() for _ in range(3)]
    made = [m["event_id"] for m in mentions]
    reads(connector, 3)
    connector.kill("intake", number)
    reads(connector, 4)
    wait_restarts(connector, "intake", 1)
    connector.kill("intake", number)
    reads(connector, 5)
    child = wait_restarts(connector, "intake", 2)
    assert child["own_deaths"] == 2
    connector.sim.release(READ)
    evidence = stories.settle(connector)
    check_quarantined(connector, evidence, made[0])
    for event_id in made[1:]:
        check_went_well(evidence, event_id)
        assert deaths_of(evidence, event_id) == 1
    read = [r["path"] for r in evidence.requests
            if r["path"].startswith("/999/comments/")]
    paths = ["/999/comments/%d" % m["recording_id"] for m in mentions]
    assert sorted(read[:3]) == paths
    assert read[3:6] == paths  # each alone
    check_others(connector, "intake")
    # A person has it run, and it counts anew.
    assert connector.connectctl("redispatch", str(made[0])).returncode == 0
    connector.wait_event(made[0], "completed")
    evidence = stories.settle(connector)
    check_went_well(evidence, made[0])
    assert deaths_of(evidence, made[0]) == 0


def test_an_outside_kill_does_not_count(make_connector):
    connector = stories.begin(make_connector)
    connector.sim.gate(READ)
    made = [connector.sim.mention()["event_id"] for _ in range(2)]
    for restarts in (1, 2, 3):
        reads(connector, 2 * restarts)
        connector.kill("intake")
        wait_restarts(connector, "intake", restarts)
    connector.sim.release(READ)
    evidence = stories.settle(connector)
    for event_id in made:
        check_went_well(evidence, event_id)
        assert deaths_of(evidence, event_id) == 0
    assert child_of(connector, "intake")["own_deaths"] == 0


def test_both_may_die(make_connector):
    """The ledger is gone when intake dies of itself, and the next one is
    killed as well: the count finds the one that lives.
    """
    connector = stories.begin(make_connector)
    connector.sim.gate(READ)
    event_id, _ = stories.mention(connector)
    for restarts in (1, 2):
        reads(connector, restarts)
        connector.kill("ledger", signal.SIGSTOP)
        connector.kill("intake", signal.SIGABRT)
        connector.kill("ledger")
        wait_restarts(connector, "ledger", restarts)
        wait_restarts(connector, "intake", restarts)
    connector.sim.release(READ)
    evidence = stories.settle(connector)
    check_quarantined(connector, evidence, event_id)


# ---- the ledger ------------------------------------------------------------

@needs_root
def test_a_record_that_hangs_the_ledger(make_killat, make_connector):
    """With its verdict in hand, each time, until it is ended for silence."""
    holds = ["hold@connectd-ledger:tx:%d~venomous" % n for n in (1, 2)]
    follower = make_killat(*holds)
    connector = stories.begin(make_connector, follower=follower,
                              limits=WATCHDOG)
    connector.sim.gate(READ)
    bad = connector.sim.mention(text="a venomous one")["event_id"]
    good = [connector.sim.mention()["event_id"] for _ in range(2)]
    reads(connector, 3)
    connector.sim.release(READ)
    child = wait_restarts(connector, "ledger", 2)
    assert (child["own_deaths"], child["silences"]) == (2, 2)
    evidence = stories.settle(connector)
    check_quarantined(connector, evidence, bad)
    for event_id in good:
        check_went_well(evidence, event_id)
        assert deaths_of(evidence, event_id) <= 1
    check_others(connector, "ledger")


@needs_root
def test_a_launch_that_hangs_the_ledger(make_killat, make_connector):
    """An admitted record, in the dispatcher's LAUNCH: it is never started."""
    holds = ["hold@connectd-ledger:tx:%d~att_[0-9a-f]{24}" % n for n in (1, 2)]
    follower = make_killat(*holds)
    connector = stories.begin(make_connector, follower=follower,
                              limits=WATCHDOG)
    event_id, _ = stories.mention(connector)
    child = wait_restarts(connector, "ledger", 2)
    assert (child["own_deaths"], child["silences"]) == (2, 2)
    evidence = stories.settle(connector)
    check_quarantined(connector, evidence, event_id)
    assert evidence.agent == evidence.rows["attempts"] == []
    other, _ = stories.mention(connector)
    check_went_well(stories.settle(connector), other)
    check_others(connector, "ledger")


@needs_root
def test_the_disks_fault_does_not_count(make_killat, make_connector):
    """A COMMIT of unknown outcome ends the ledger with 75."""
    follower = make_killat("later:fail=EIO@connectd-ledger:fdatasync")
    connector = stories.begin(make_connector, follower=follower)
    connector.sim.gate(READ)
    event_id, _ = stories.mention(connector)
    reads(connector, 1)
    follower.arm(1)
    connector.sim.release(READ)
    follower.wait(what="fail")
    child = wait_restarts(connector, "ledger", 1)
    assert child["own_deaths"] == 0
    evidence = stories.settle(connector)
    check_went_well(evidence, event_id)
    assert deaths_of(evidence, event_id) == 0


# ---- roles that hang -------------------------------------------------------

def begin_hanging(make_connector, steps=None):
    return stories.begin(make_connector, limits=WATCHDOG, script={
        "default": steps or stories.STEPS})


def check_hung(connector, role):
    child = wait_restarts(connector, role, 1)
    assert (child["own_deaths"], child["silences"]) == (1, 1), child
    check_others(connector, role)


def test_intake_hangs(make_connector):
    """With a record in hand, which counts; nobody has to ask for status."""
    connector = begin_hanging(make_connector)
    connector.sim.gate(READ)
    event_id, _ = stories.mention(connector)
    reads(connector, 1)
    connector.kill("intake", signal.SIGSTOP)
    connector.wait_log("connectd-intake ended with event %d" % event_id)
    connector.sim.release(READ)
    check_hung(connector, "intake")
    evidence = stories.settle(connector)
    check_went_well(evidence, event_id)
    assert deaths_of(evidence, event_id) == 1


def test_the_ledger_hangs(make_connector):
    """Seen because intake has a record in hand, whose verdict it waits for."""
    connector = begin_hanging(make_connector)
    connector.sim.gate(READ)
    event_id, _ = stories.mention(connector)
    reads(connector, 1)
    connector.kill("ledger", signal.SIGSTOP)
    connector.sim.release(READ)
    connector.wait_log("connectd-ledger (pid")
    check_hung(connector, "ledger")
    evidence = stories.settle(connector)
    check_went_well(evidence, event_id)
    assert deaths_of(evidence, event_id) == 1


def test_the_dispatcher_hangs(make_connector):
    """Its worker is ended and settled as lost; nothing is counted."""
    connector = begin_hanging(make_connector, ["get", "linger"])
    event_id, start = stories.mention(connector)
    connector.wait_line(start=start, type="dispatch", state="running")
    harness.wait_for(lambda: connector.query(
        "SELECT 1 FROM task_events WHERE pulled_at IS NOT NULL"),
        what="the pull")
    connector.kill("dispatcher", signal.SIGSTOP)
    check_hung(connector, "dispatcher")
    evidence = stories.settle(connector)
    assert stories.outcome_of(evidence, event_id) == ("unknown", "lost")
    assert deaths_of(evidence, event_id) == 0


def test_the_outbox_hangs(make_connector):
    """Before it has claimed what the worker asks to post."""
    connector = begin_hanging(make_connector)
    connector.sim.gate(THREAD)
    connector.set_script({"default": [
        "get", "read", "ack", "reply", "complete"]})
    event_id, _ = stories.mention(connector)
    connector.sim.wait("held", 1)
    connector.kill("outbox", signal.SIGSTOP)
    connector.sim.release(THREAD)
    check_hung(connector, "outbox")
    evidence = stories.settle(connector)
    check_went_well(evidence, event_id)


def test_an_mcpd_hangs(make_connector):
    """Its worker's call waits, and is answered by another."""
    connector = begin_hanging(make_connector)
    connector.sim.gate(THREAD)
    event_id, _ = stories.mention(connector)
    connector.sim.wait("held", 1)
    connector.kill("mcpd", signal.SIGSTOP)
    connector.wait_log("connectd-mcpd att_")
    connector.sim.release(THREAD)
    evidence = stories.settle(connector)
    check_went_well(evidence, event_id)
    assert evidence.rows["tasks"][0]["rekeys"] == 1
    check_others(connector, "mcpd")
