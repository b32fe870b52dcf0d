"""The checker must see each promise broken: the evidence of a story that went
well, with one thing in it changed.
"""

import copy
import os
import subprocess

import pytest

import harness
import leaks
import processes
import promises
import stories

LATER = "2999-01-01T00:00:00.000000000Z"


@pytest.fixture(scope="module")
def story():
    """The evidence of one undisturbed story with a grandchild."""
    folder = harness.Folder()
    sim = harness.Sim(folder)
    connector = harness.Connector(sim, folder, script={
        "default": ["get", "ack", "reply", "grandchild", "complete"]})
    try:
        connector.start()
        sim.mention()
        yield stories.settle(connector, stories.new_needles())
    finally:
        connector.close()
        sim.close()
        folder.remove()


@pytest.fixture
def evidence(story):
    """A copy to spoil; it is good as it is."""
    made = copy.copy(story)
    for name in ("rows", "messages", "requests", "agent", "served",
                 "processes", "cgroups", "status"):
        setattr(made, name, copy.deepcopy(getattr(story, name)))
    made.report = leaks.Report(story.needles)
    made.report.read = dict(story.report.read)
    assert promises.broken(made) == {}
    return made


def broken(evidence):
    """The one promise that is broken now."""
    found = promises.broken(evidence)
    assert len(found) == 1, found
    (name, texts), = found.items()
    assert texts
    return name


def row(evidence, table, **fields):
    return next(r for r in evidence.rows[table]
                if all(r[k] == v for k, v in fields.items()))


def add(evidence, table, base, **changes):
    evidence.rows[table].append(dict(base, **changes))


# ---- runs once -------------------------------------------------------------

RUNS = "no instruction runs twice"


def test_handed_over_twice(evidence):
    add(evidence, "task_events", row(evidence, "task_events"), task_id=2,
        pulled_at=None)
    assert broken(evidence) == RUNS


def test_handed_over_again_by_a_person(evidence):
    """Which is no fault."""
    add(evidence, "task_events", row(evidence, "task_events"), task_id=2)
    evidence.rows["decisions"].append(
        {"event_id": 1, "action": "redispatch"})
    evidence.agent.append({"what": "prompt", "event_id": 1, "pid": 5})
    assert promises.broken(evidence) == {}


def test_handed_over_again_after_a_failed_start(evidence):
    """Nor is that."""
    add(evidence, "task_events", row(evidence, "task_events"), task_id=2,
        withdrawn_at=LATER, pulled_at=None)
    assert promises.broken(evidence) == {}


def test_prompted_twice(evidence):
    evidence.agent.append({"what": "prompt", "event_id": 1, "pid": 5})
    assert broken(evidence) == RUNS


def test_pulled_by_two(evidence):
    call, = [r for r in evidence.agent if r["what"] == "call" and
             r["arguments"]["action"] == "get_dispatch"]
    answer = evidence.agent[evidence.agent.index(call) + 1]
    assert answer["what"] == "answer"
    evidence.agent += [dict(call, pid=5), dict(answer, pid=5)]
    assert broken(evidence) == RUNS


def test_pulled_and_not_known(evidence):
    row(evidence, "task_events")["pulled_at"] = None
    assert broken(evidence) == RUNS


def test_prompted_and_not_known(evidence):
    row(evidence, "task_events")["withdrawn_at"] = LATER
    assert broken(evidence) == RUNS


# ---- posted once -----------------------------------------------------------

POSTED = "no message is posted twice"


@pytest.mark.parametrize("kind", ["boost", "comment"])
def test_posted_twice(evidence, kind):
    message = next(m for m in evidence.messages if m["kind"] == kind)
    evidence.messages.append(dict(message, id=77))
    assert broken(evidence) == POSTED


def test_asked_twice(evidence):
    """Two requests are one too many, whatever was stored of them."""
    request, = [r for r in evidence.requests if r["method"] == "POST" and
                "comments" in r["path"]]
    evidence.requests.append(dict(request, status=0))
    assert broken(evidence) == POSTED


def test_asked_again_after_a_401(evidence):
    """Which is no fault."""
    request, = [r for r in evidence.requests if r["method"] == "POST" and
                "comments" in r["path"]]
    evidence.requests.append(dict(request, status=401))
    assert promises.broken(evidence) == {}


def test_posted_by_nobody(evidence):
    evidence.messages.append({"kind": "comment", "id": 77, "content": "x",
                              "recording_id": 1000000})
    assert broken(evidence) == POSTED


@pytest.mark.parametrize("field", ["receipt_id", "recording_id", "body"])
def test_receipt_of_another(evidence, field):
    sent = row(evidence, "outbox", kind="worker_reply")
    sent[field] = "other words" if field == "body" else 77
    assert broken(evidence) == POSTED


def test_doubt_that_is_not_shown(evidence):
    doubt = row(evidence, "outbox", kind="worker_ack")
    doubt.update(state="indeterminate", receipt_id=None)
    assert broken(evidence) == POSTED
    evidence.status["data"]["status"]["indeterminate_intents"] = [
        {"id": doubt["id"]}]
    assert promises.broken(evidence) == {}


# ---- nothing lost, nothing held --------------------------------------------

def test_served_and_not_recorded(evidence):
    evidence.served.add(99)
    assert broken(evidence) == "nothing served is lost"


HELD = "nothing held is dispatched"


@pytest.mark.parametrize("changes", [
    {"state": "held"}, {"review": 1, "state": "dispatched"}])
def test_held_on_a_task(evidence, changes):
    row(evidence, "events").update(changes)
    row(evidence, "task_events")["retired_at"] = None
    assert broken(evidence) == HELD


def test_authorized_on_a_task(evidence):
    """Which is no fault."""
    row(evidence, "events").update(review=1, authorized_at=LATER)
    row(evidence, "task_events")["retired_at"] = None
    assert promises.broken(evidence) == {}


def test_launched_under_the_hold(evidence):
    evidence.rows["hold_marker"].append({"held_at": "2000-01-01"})
    assert broken(evidence) == HELD


# ---- nothing released ------------------------------------------------------

LEFT = "nothing is released while it runs"


def our_process(**changes):
    return processes.read_process(os.getpid())._replace(**changes)


@pytest.mark.parametrize("name", ["pgid", "sid"])
def test_a_member_of_its_group_lives(evidence, name):
    attempt = row(evidence, "attempts")
    evidence.processes.append(our_process(**{
        name: attempt["pgid"], "started": attempt["started_ticks"] + 5}))
    assert broken(evidence) == LEFT


def test_a_number_used_again(evidence):
    """What started before the attempt is none of its."""
    attempt = row(evidence, "attempts")
    evidence.processes.append(our_process(
        pgid=attempt["pgid"], started=attempt["started_ticks"] - 5))
    assert promises.broken(evidence) == {}


def test_a_member_of_its_cgroup_lives(evidence):
    evidence.cgroups[row(evidence, "attempts")["id"]] = [os.getpid()]
    assert broken(evidence) == LEFT


def test_a_zombie_of_its_group(evidence):
    attempt = row(evidence, "attempts")
    evidence.processes.append(our_process(
        pgid=attempt["pgid"], started=attempt["started_ticks"], state="Z"))
    assert promises.broken(evidence) == {}


def test_a_grandchild_lives(evidence):
    """Known from the agent's log alone, outside of group and cgroup."""
    with subprocess.Popen(
            ["/usr/bin/sleep", "600"], start_new_session=True, cwd="/",
            env={harness.MARKER: evidence.connector.folder.marker}) as child:
        try:
            harness.wait_for(lambda: processes.has_become(child.pid, "sleep"),
                             what="the child's program")
            evidence.processes = processes.all_processes()
            evidence.agent.append({"what": "grandchild", "child": child.pid})
            assert broken(evidence) == LEFT
        finally:
            child.kill()


# ---- nothing leaked --------------------------------------------------------

LEAKED = "no credential leaves"


def test_a_finding(evidence):
    evidence.report.look("file", "here", b"x not-a-real-secret x")
    assert broken(evidence) == LEAKED


@pytest.mark.parametrize("kind", ["file", "line", "log", "cmdline"])
def test_nothing_read(evidence, kind):
    del evidence.report.read[kind]
    assert broken(evidence) == LEAKED


# ---- unsettled -------------------------------------------------------------

def test_words():
    """As Basecamp and the outbox compare them (operator.md 1.8)."""
    assert promises.words("<p>a &amp;\n b</p>") == "a & b"
    assert promises.words("<div>a<br />b</div>") == "a b"
    assert promises.words("a<b>b</b>c") == "abc"
