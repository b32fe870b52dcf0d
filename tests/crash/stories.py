"""Stories that a kill falls into: a mention, worked to its end by the scripted
agent, and what its end may look like.
"""

import re
import signal

import harness
import leaks
import processes
import promises

# The scripted agent ends at once when asked to; a sweep need not wait long.
LIMITS = {"recover_grace": "2s"}
STEPS = ["get", "ack", "read", "work", "reply", "complete"]
SETTLE_WAIT = 40
ENDS = ("exited with", "ended by signal", "broke the protocol", "ending it",
        "not started")


def new_needles():
    return leaks.Needles(client_secret="not-a-real-secret")


def begin(make_connector, **arguments):
    """A connector that is up and has entered the feed."""
    arguments.setdefault("script", {"default": STEPS})
    arguments["limits"] = dict(LIMITS, **arguments.get("limits", {}))
    return make_connector(**arguments).start()


def mention(connector):
    """The event's id, and the index of the first line that is about it."""
    start = connector.line_count()
    return connector.sim.mention()["event_id"], start


def has_cgroups(connector):
    return bool(connector.status()["data"]["supervisor"]["cgroup"])


def all_ready(connector):
    """The status, when every role is ready."""
    status = connector.status()
    ready = status and all(child["state"] == "ready"
                           for child in status["data"]["children"])
    return status if ready else None


def is_held(connector):
    """Does an attempt wait for a person, because nothing can prove it gone?
    All that is behind it waits too.
    """
    if "held" not in connector.tail(50):
        return False
    status = connector.status()
    return bool(status) and any(
        child["values"].get("held") for child in status["data"]["children"]
        if child["role"] == "dispatcher")


HELD_LOG = re.compile(r"(att_\w+) of an earlier run: held")


def held_for_nothing(connector):
    """Whom the start holds and need not, in words. A cgroup that is recorded
    proves all: what is in it can be ended, and one that is empty or gone has
    nobody (design 5.1). Without one there is doubt about an attempt whose
    process was never recorded, and about a group that has lost its leader.
    """
    names = {found.group(1) for found in
             map(HELD_LOG.search, list(connector.logs.all)) if found}
    live = [a for a in connector.query(
        "SELECT * FROM attempts WHERE state <> 'ended'") if a["id"] in names]
    if not live:
        return ["something is held, and no attempt of an earlier run is"]
    return ["%s is held, and %s" % (a["id"], why) for a, why in
            ((a, against_holding(a)) for a in live) if why]


def against_holding(attempt):
    """Why it should not be held; or nothing."""
    if attempt["containment"].startswith("cgroup:"):
        return "its cgroup tells"
    if not attempt["pid"]:
        return None
    leader = processes.read_process(attempt["pid"])
    if leader and leader.state not in "ZX" and (
            leader.started == attempt["started_ticks"]):
        return "its leader is there to be ended"
    if not any(p.pgid == attempt["pgid"] and p.state not in "ZX"
               for p in processes.all_processes()):
        return "nothing of its group lives"
    return None


def end_held(connector):
    """What nothing can prove gone is a person's to end: end the worker."""
    for process in processes.find_belonging(str(connector.folder.path),
                                            connector.folder.marker):
        if process.comm in ("claude", "connect-bridge", "sleep"):
            processes.send_signal(process, signal.SIGKILL)


def settle(connector, needles=None):
    """Wait until nothing moves any more; what there is then, checked. The
    tokens of tasks are learnt meanwhile, for a re-key replaces them.
    """
    needles = needles or new_needles()
    left = []

    def is_settled():
        connector.must_run()
        needles.learn(connector)
        left[:] = promises.unsettled(connector)
        return not left and all_ready(connector)
    try:
        harness.wait_for(is_settled, SETTLE_WAIT, "the end", every=0.02)
    except harness.HarnessError as error:
        raise harness.HarnessError("%s: %s\n%s" % (
            error, left, connector.tail(40))) from error
    return promises.check(connector, needles)


# ---- how a story ended -----------------------------------------------------

def standing_row(evidence, event_id):
    """The event's one row on a task that was not withdrawn, nor left by the
    task's end before anybody was told of it.
    """
    rows = [r for r in evidence.of_event("task_events", event_id)
            if not r["withdrawn_at"] and r["delivery"] != "admitted"]
    assert len(rows) == 1, rows
    return rows[0]


def standing_end(evidence, event_id):
    """(outcome, stop reason) of what it ended on."""
    row = standing_row(evidence, event_id)
    attempt, = evidence.task_attempts(row["task_id"])
    return row["outcome"], attempt["stop_reason"]


def outcome_of(evidence, event_id):
    """The same of an event that is completed."""
    assert evidence.event(event_id)["state"] == "completed"
    return standing_end(evidence, event_id)


def notices(evidence, event_id):
    """The completion notices of the task that the event ended on."""
    task_id = standing_row(evidence, event_id)["task_id"]
    attempts = {a["id"] for a in evidence.task_attempts(task_id)}
    return [r for r in evidence.rows["outbox"]
            if r["kind"] == "completion" and r["attempt_id"] in attempts]


def doubts(evidence):
    return [r for r in evidence.rows["outbox"]
            if r["state"] == "indeterminate"]


def posted(evidence, kind):
    """What Basecamp has of a worker: boost or comment, without notices."""
    told = {promises.place_of_row(r) for r in evidence.rows["outbox"]
            if r["kind"] == "completion"}
    return [m for m in evidence.messages if m["kind"] == kind and
            promises.Place(kind, m["recording_id"],
                           promises.words(m["content"])) not in told]


def check_withdrawn(evidence, event_id):
    """A second attempt stands only after a first that never was a process."""
    for row in evidence.of_event("task_events", event_id):
        if row["withdrawn_at"]:
            attempt, = evidence.task_attempts(row["task_id"])
            assert attempt["spawn_failed"] == 1 and not attempt["pid"]


def check_end(evidence, event_id, role):
    """It went well, or ended exactly as is promised for a kill of the role
    (design 3.1, dispatch.md 21).
    """
    outcome, stop = outcome_of(evidence, event_id)
    row = standing_row(evidence, event_id)
    told = notices(evidence, event_id)
    check_withdrawn(evidence, event_id)
    assert len(posted(evidence, "boost")) <= 1
    assert len(posted(evidence, "comment")) <= 1
    if outcome == "succeeded" and row["reply_id"]:
        assert told == []
    else:
        assert [t["state"] for t in told] in (["sent"], ["indeterminate"])
    if (outcome, stop) == ("succeeded", "finished"):
        assert row["ack_id"] in [m["id"] for m in posted(evidence, "boost")]
        assert row["reply_id"] in [m["id"] for m in
                                   posted(evidence, "comment")]
    elif role in ("dispatcher", "supervisor"):
        assert stop == "lost" and outcome in ("unknown", "succeeded")
    else:
        assert role == "outbox" and outcome == "unknown"
        assert doubts(evidence), "unknown, and no message is in doubt"
    return outcome, stop


# ---- that only one process died --------------------------------------------

def pids(connector):
    return {role: [p.pid for p in found]
            for role, found in connector.roles().items()
            if role in harness.ROLES}


def deaths_logged(connector):
    """What the supervisor's log says of ends that nobody asked for."""
    return [line for line in connector.logs.all
            if line.startswith("connectd: ") and "connectd-" in line
            and any(words in line for words in ENDS)]


def check_only_death(connector, before, role, pid):
    """Of all children only that one has died, and only by the kill."""
    after = pids(connector)
    for name in harness.ROLES:
        if name == role and pid is not None:
            assert after[name] != [pid] and len(after[name]) == 1
        else:
            assert after[name] == before[name], name
    for child in connector.status()["data"]["children"]:
        assert child["restarts"] == (
            child["role"] == role and pid is not None), child
        assert child["own_deaths"] == 0, child
    told = [line for line in deaths_logged(connector)
            if "(pid %s)" % pid not in line]
    assert told == [], told
