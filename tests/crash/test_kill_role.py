"""One role killed with SIGKILL, idle and at chosen moments of a story. It is
back at once, no other child is touched, and the six promises hold. (At each
of its writes: test_sweep.py.)
"""

import pytest

import harness
import promises
import stories

ROLES = ("ledger", "intake", "dispatcher", "outbox", "mcpd")
BOOSTS = "POST /{a}/recordings/{id}/boosts.json"
COMMENTS = "POST /{a}/recordings/{id}/comments.json"
READ = "GET /{a}/comments/{id}"
THREAD = "GET /{a}/recordings/{id}/comments.json"


def wait_back(connector, role, pid, timeout=10):
    """The child's status, once it is another process and ready."""
    def look(status):
        child = next(c for c in status["data"]["children"]
                     if c["role"] == role)
        return child["pid"] not in (pid, 0) and child["state"] == "ready"
    status = connector.wait_status(look, timeout, role + " to be back")
    return next(c for c in status["data"]["children"] if c["role"] == role)


def finish(connector, event_id, role, pid, before, needles=None):
    """Wait for the end and check all of it; returns how it ended. PID is
    what was killed, None for nothing.
    """
    evidence = stories.settle(connector, needles)
    stories.check_only_death(connector, before, role, pid)
    return stories.check_end(evidence, event_id, role), evidence


# ---- idle ------------------------------------------------------------------

@pytest.mark.parametrize("role", ROLES[:-1])
def test_idle(make_connector, role):
    connector = stories.begin(make_connector)
    before = stories.pids(connector)
    pid = connector.kill(role)
    child = wait_back(connector, role, pid)
    assert (child["restarts"], child["own_deaths"]) == (1, 0)
    event_id, _ = stories.mention(connector)
    end, _ = finish(connector, event_id, role, pid, before)
    assert end == ("succeeded", "finished")


def test_idle_mcpd(make_connector):
    """While its worker does nothing; the token is another one afterwards."""
    connector = stories.begin(make_connector, script={
        "default": ["get", "kill:mcpd", "ack", "kill:mcpd", "reply",
                    "complete"]})
    before = stories.pids(connector)
    event_id, _ = stories.mention(connector)
    evidence = stories.settle(connector)
    assert stories.check_end(evidence, event_id, "mcpd") == (
        "succeeded", "finished")
    assert evidence.rows["tasks"][0]["rekeys"] == 2
    assert stories.pids(connector) == before


def test_again_and_again(make_connector):
    """From the second death within ten seconds on there is a pause, and it
    is shown; an outside kill is nobody's own fault.
    """
    connector = stories.begin(make_connector)
    for restarts in (1, 2, 3):
        pid = connector.kill("intake")
        child = wait_back(connector, "intake", pid)
        assert (child["restarts"], child["own_deaths"]) == (restarts, 0)
    event_id, _ = stories.mention(connector)
    evidence = stories.settle(connector)
    assert stories.outcome_of(evidence, event_id) == ("succeeded", "finished")


# ---- an outbox between claim and receipt -----------------------------------

def hold_post(connector, route, when):
    """The POST is stored or not, and its answer never comes."""
    return connector.sim.fault(route, hang=True, times=1, when=when)["fault"]


MESSAGES = {"boost": (BOOSTS, "worker_ack"),
            "comment": (COMMENTS, "worker_reply")}


@pytest.mark.parametrize("kind", MESSAGES)
def test_outbox_after_the_write(make_connector, kind):
    """It was stored: it is found and adopted, and the story goes on."""
    route, intent = MESSAGES[kind]
    connector = stories.begin(make_connector)
    before = stories.pids(connector)
    fault = hold_post(connector, route, "after")
    event_id, _ = stories.mention(connector)
    connector.sim.wait("hits", 1, fault=fault)
    pid = connector.kill("outbox")
    end, evidence = finish(connector, event_id, "outbox", pid, before)
    assert end == ("succeeded", "finished")
    row, = [r for r in evidence.rows["outbox"] if r["kind"] == intent]
    assert row["state"] == "sent" and "adopted" in row["note"]


@pytest.mark.parametrize("kind", MESSAGES)
def test_outbox_before_the_write(make_connector, kind):
    """It was not stored, and nobody can tell: it is shown, never resent."""
    route, intent = MESSAGES[kind]
    connector = stories.begin(make_connector)
    before = stories.pids(connector)
    fault = hold_post(connector, route, "before")
    event_id, _ = stories.mention(connector)
    connector.sim.wait("hits", 1, fault=fault)
    pid = connector.kill("outbox")
    end, evidence = finish(connector, event_id, "outbox", pid, before)
    assert end == ("unknown", "finished")
    row, = stories.doubts(evidence)
    assert row["kind"] == intent
    assert stories.posted(evidence, kind) == []
    text = connector.connectctl("status").stdout
    assert "message %d, %s" % (row["id"], intent) in text, text


@pytest.mark.parametrize("when, posted", [("before", 0), ("after", 1)])
def test_outbox_with_a_notice(make_connector, when, posted):
    """The connector's own words, between claim and receipt."""
    connector = stories.begin(make_connector, script={
        "default": ["get", "ack-id", "fail"]})
    fault = hold_post(connector, COMMENTS, when)
    event_id, _ = stories.mention(connector)
    connector.sim.wait("hits", 1, fault=fault)
    connector.kill("outbox")
    evidence = stories.settle(connector)
    assert stories.outcome_of(evidence, event_id) == ("failed", "finished")
    notice, = stories.notices(evidence, event_id)
    assert notice["state"] == ("sent" if posted else "indeterminate")
    assert len(evidence.messages) == posted


def test_outbox_with_a_guard(make_connector):
    """The guard's boost was stored and its receipt lost: adopted, once. It is
    one for a record that waits, behind a worker that reads its thread.
    """
    connector = stories.begin(
        make_connector, limits={"guard_delay": "50ms"},
        script={"default": ["get", "read", "reply", "complete"]})
    sim = connector.sim
    sim.gate(THREAD)
    first, _ = stories.mention(connector)
    sim.wait("held", 1)
    sim.gate(READ)
    made = sim.mention()
    sim.wait("held", 2)
    route = "POST /999/recordings/%d/boosts.json" % made["recording_id"]
    fault = hold_post(connector, route, "after")
    sim.release(READ)
    sim.wait("hits", 1, fault=fault)
    connector.kill("outbox")
    harness.wait_for(lambda: connector.query(
        "SELECT id FROM outbox WHERE kind = 'guard_ack' AND event_id = ?"
        " AND state = 'sent' AND note LIKE '%adopted%'", made["event_id"]),
        what="the guard to be adopted")
    sim.release(THREAD)
    evidence = stories.settle(connector)
    for event_id in (first, made["event_id"]):
        assert stories.outcome_of(evidence, event_id) == ("succeeded",
                                                          "finished")
    assert len([m for m in evidence.messages if m["kind"] == "boost" and
                m["recording_id"] == made["recording_id"]]) == 1
    assert stories.standing_row(evidence, made["event_id"])["guard"] == "fired"


# ---- a dispatcher while its worker runs ------------------------------------

RUNNING = {
    "prompted": (["grandchild", "kill:dispatcher", "linger"],
                 "unknown", 1),
    "pulled": (["get", "grandchild", "kill:dispatcher", "linger"],
               "unknown", 1),
    "acknowledged": (["get", "ack", "setsid-grandchild", "kill:dispatcher",
                      "linger-deaf"], "unknown", 1),
    "reported": (["get", "ack", "reply", "complete", "grandchild",
                  "kill:dispatcher", "linger"], "succeeded", 0),
}


@pytest.mark.parametrize("name", RUNNING)
def test_dispatcher_with_a_running_attempt(make_connector, name):
    """Settled as lost, its whole tree ended, told once, never run again; the
    next mention in the same place runs as a task of its own.
    """
    steps, outcome, told = RUNNING[name]
    connector = stories.begin(make_connector,
                              limits={"recover_grace": "200ms"})
    if not stories.has_cgroups(connector):
        # Nobody can prove that a session of its own is gone.
        steps = [step.replace("setsid-", "") for step in steps]
    connector.set_script({"default": stories.STEPS,
                          "events": {"1": [steps]}})
    before = stories.pids(connector)
    event_id, _ = stories.mention(connector)
    end, evidence = finish(connector, event_id, "dispatcher",
                           before["dispatcher"][0], before)
    assert end == (outcome, "lost")
    assert len(stories.notices(evidence, event_id)) == told
    assert len([r for r in evidence.agent if r["what"] == "prompt"]) == 1
    second, _ = stories.mention(connector)
    evidence = stories.settle(connector)
    assert stories.outcome_of(evidence, second) == ("succeeded", "finished")


# ---- a read in flight ------------------------------------------------------

@pytest.mark.parametrize("role", ["ledger", "intake"])
def test_while_the_recording_is_read(make_connector, role):
    connector = stories.begin(make_connector)
    before = stories.pids(connector)
    connector.sim.gate(READ)
    event_id, _ = stories.mention(connector)
    connector.sim.wait("held", 1)
    pid = connector.kill(role)
    wait_back(connector, role, pid)
    connector.sim.release(READ)
    end, _ = finish(connector, event_id, role, pid, before)
    assert end == ("succeeded", "finished")


def test_every_id_served_is_recorded(make_connector):
    """Pages of one row, while intake and ledger die in turn."""
    connector = stories.begin(make_connector)
    connector.sim.world({"options": {"page_size": 1}})
    for role in ("intake", "ledger", "intake"):
        made = connector.sim.post("/sim/emit", {
            "event_type": "comment.created", "bucket_id": harness.PROJECT,
            "recording_id": 1, "creator_id": harness.OPERATOR, "count": 20})
        connector.sim.wait("served", made["first_id"] + 3)
        pid = connector.kill(role)
        wait_back(connector, role, pid)
    connector.sim.wait("served", made["event_id"])
    rows = harness.wait_for(
        lambda: (lambda r: r if len(r) == 60 else None)(connector.query(
            "SELECT id, state FROM events")), 40, "all 60 records")
    assert [r["id"] for r in rows] == list(range(1, 61))
    evidence = promises.Evidence(connector)
    assert list(promises.nothing_lost(evidence)) == []
