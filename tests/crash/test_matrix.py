"""The recovery matrix (operator.md 6), for every agent that connectd starts:
the rows of the table, and those that are longer stories.
"""

import contextlib
import datetime
import json
import os
import re
import signal
import subprocess
import urllib.request

import pytest

import drivers
import harness
import killat
import matrix
import processes
import promises
import rows
import stories
from matrix import OTHER_PROJECT, Post, expect, line, tx
from rows import DONE, FAIL, FAILED, LOST, RUNNING

pytestmark = [
    pytest.mark.walls,
    pytest.mark.skipif(not killat.is_here(),
                       reason="killat knows Linux on x86_64 only")]
needs_root = pytest.mark.skipif(
    not harness.is_root(), reason="only root sees what is not dumpable")

# In the project of the first, another conversation.
OTHER_THREAD = 2000000
NOT_FORKED = "ended failed spawn_failed"


@pytest.fixture(params=drivers.ALL, ids=lambda driver: driver.NAME)
def driver(request):
    return request.param


@pytest.fixture
def new_run(make_killat, make_connector, driver):
    """A run whose first event has these steps at its first prompt, and THEN
    at later ones; FOLLOW are those of every other event.
    """
    def make(script, rules=(), then=stories.STEPS, follow=stories.STEPS,
             **more):
        return matrix.Run(
            make_killat, make_connector, driver, rules, script={
                "default": follow, "events": {"1": [script, then]}}, **more)
    return make


@pytest.mark.parametrize("row", [
    pytest.param(row, id=row.name, marks=needs_root if row.point.rules else ())
    for row in rows.ROWS])
def test_row(make_killat, make_connector, driver, row):
    matrix.play(row, make_killat, make_connector, driver)


# ---- R13-R16: an agent that does not start ---------------------------------

@contextlib.contextmanager
def missing_agent(run):
    """While its program is not there."""
    path = run.connector.config["worker"]["command"][0]
    os.rename(path, path + ".away")
    try:
        yield
    finally:
        os.rename(path + ".away", path)


GIVEN_UP = {"record": "blocked", "reason": "spawn_failed",
            "attempts": [NOT_FORKED] * 2, "prompts": 0, "agents": 0,
            "completion": ["sent"], "posted": {"completion": 1}}


def test_r13_two_failed_starts(new_run):
    """One automatic retry, then a person."""
    run = new_run(stories.STEPS)
    run.begin()
    with missing_agent(run):
        event_id = run.mention()
        evidence = run.settle()
    expect(evidence, event_id, GIVEN_UP, "after both")
    run.again(evidence)
    run.close()


def fail_once(new_run):
    """Killed when the first failed start has been settled."""
    run = new_run(stories.STEPS, line("dispatch", "ended").rules)
    run.begin()
    with missing_agent(run):
        event_id = run.mention()
        run.wait_killed()
    expect(run.at_death(), event_id, {
        "record": "admitted", "attempts": [NOT_FORKED], "withdrawn": 1,
        "outcome": None, "completion": [], "agents": 0}, "at death")
    return run, event_id


@needs_root
def test_r14_the_retry_survives_a_restart(new_run):
    run, event_id = fail_once(new_run)
    run.start()
    evidence = run.settle()
    expect(evidence, event_id, dict(
        DONE, attempts=[NOT_FORKED, "ended finished"], withdrawn=1, agents=1),
        "after the restart")
    run.again(evidence)
    run.close()


@needs_root
def test_r15_the_budget_survives_restarts(new_run):
    run, event_id = fail_once(new_run)
    with missing_agent(run):
        run.start()
        evidence = run.settle()
    expect(evidence, event_id, GIVEN_UP, "after the second")
    run.again(evidence)
    run.close()


def test_r16_a_process_that_existed_is_never_retried(new_run, driver):
    run = new_run(driver.WRONG_START)
    run.begin()
    event_id = run.mention()
    evidence = run.settle()
    expect(evidence, event_id, {
        "record": "completed", "outcome": "unknown",
        "attempts": ["ended failed"], "agents": 1, "completion": ["sent"],
        "posted": {"completion": 1}}, "after the first run")
    run.again(evidence)
    run.close()


# ---- R20-R22: whom nobody can identify -------------------------------------

HELD = {"record": "dispatched", "outcome": "", "completion": [], "posted": {}}
WAITS = {"record": "admitted", "tasks": 0, "prompts": 0}


def without_cgroups(run):
    """As on a host that offers none, or none to a person."""
    assert not stories.has_cgroups(run.connector)
    return run


def need_cgroups(run):
    if not stories.has_cgroups(run.connector):
        run.close()
        pytest.skip("this host has no cgroups that we may make")
    return run


def restart_beside_held(run, says):
    """Other work goes on beside what is held; what stands then."""
    run.start()
    other = run.mention(project_id=OTHER_PROJECT)
    run.connector.wait_event(other, "completed")
    run.connector.wait_log(says)

    def is_quiet():
        held = [a["attempt_id"] for a in run.connector.status()["data"][
            "status"]["live_tasks"]]
        return len(held) == 1 and stories.all_ready(run.connector)
    harness.wait_for(is_quiet, what="only what is held to be live")
    evidence = promises.check(run.connector, run.needles)
    matrix.check_status(evidence)
    expect(evidence, other, DONE, "beside what is held")
    return evidence


def settle_by_hand(run):
    attempt = run.connector.query(
        "SELECT id FROM attempts WHERE state <> 'ended'")[0]["id"]
    return run.connector.connectctl("settle", attempt, "--gone")


def check_not_settled(run):
    """A person's word does not outweigh a group that has members."""
    done = settle_by_hand(run)
    assert done.returncode == 1 and "group holds" in done.stderr, done.stderr


def check_held_twice(run, event_id, waits, held, says, look=None):
    """Through every restart, and nothing of it is run or told; LOOK before
    it is stopped again.
    """
    for start in ("first", "second"):
        evidence = restart_beside_held(run, says)
        expect(evidence, event_id, held, "after the %s restart" % start)
        expect(evidence, waits, WAITS, "after the %s restart" % start)
        if look is not None:
            look(run)
        run.stop()


@needs_root
def test_r20_nothing_recorded(new_run):
    """An attempt that nobody can identify is held through every restart, and
    other work goes on. Its token was never written: the tree died before.
    """
    run = new_run(stories.STEPS, line("dispatch", "launching").rules,
                  cgroups=False)
    run.lost_tokens = 1
    without_cgroups(run.begin())
    event_id = run.mention()
    run.wait_killed()
    held = dict(HELD, attempts=["launching"], prompts=0)
    expect(run.at_death(), event_id, held, "at death")
    waits = run.mention(recording_id=OTHER_THREAD)
    check_held_twice(run, event_id, waits, held,
                     "its process was never recorded")
    # Somebody has looked: it is settled, once, and what waited for it runs.
    run.start()
    assert settle_by_hand(run).returncode == 0
    run.connector.wait_event(event_id, "completed")
    run.connector.wait_event(waits, "completed")
    assert [row["outcome"] for row in run.connector.query(
        "SELECT outcome FROM task_events WHERE event_id = ?", event_id)
        ] == ["unknown"]
    run.check_credentials()


@needs_root
def test_r20_with_a_cgroup(new_run):
    """There it is proved that nothing runs: settled, and the next one runs.
    """
    run = new_run(stories.STEPS, line("dispatch", "launching").rules)
    run.lost_tokens = 1
    need_cgroups(run.begin())
    event_id = run.mention()
    run.wait_killed()
    expect(run.at_death(), event_id,
           dict(HELD, attempts=["launching"], prompts=0), "at death")
    waits = run.mention(recording_id=OTHER_THREAD)
    run.start()
    evidence = run.settle()
    expect(evidence, event_id, dict(LOST, prompts=0), "after the restart")
    expect(evidence, waits, DONE, "after the restart")
    run.again(evidence)
    run.close()


LEADERLESS = ["get", "grandchild", "kill:tree", "exit:0"]


def orphan_of(run):
    """The grandchild, once its leader is gone."""
    child = run.connector.agent_records("grandchild")[0]["child"]
    grandchild = processes.read_process(child)
    harness.wait_for(
        lambda: processes.read_process(grandchild.pgid) is None,
        what="the leader's end")
    return grandchild


def test_r21_r22_a_group_without_its_leader(new_run):
    """Neither signalled nor released around; settled and released only once
    the tree is gone.
    """
    run = new_run(LEADERLESS, cgroups=not harness.is_root())
    without_cgroups(run.begin())
    event_id = run.mention()
    run.wait_killed()
    grandchild = orphan_of(run)
    held = dict(HELD, attempts=["running"], prompts=1)
    expect(run.at_death(), event_id, held, "at death")
    waits = run.mention(recording_id=OTHER_THREAD)
    check_held_twice(run, event_id, waits, held, "nobody may be signalled",
                     check_not_settled)
    assert processes.is_running(grandchild)
    assert processes.send_signal(grandchild, signal.SIGKILL)
    harness.wait_for(lambda: processes.read_process(grandchild.pid) is None,
                     what="the grandchild to be reaped")
    run.start()
    evidence = run.settle()
    expect(evidence, event_id, LOST, "once the tree is gone")
    expect(evidence, waits, DONE, "once the tree is gone")
    run.again(evidence)
    run.close()


def test_r21_with_a_cgroup(new_run):
    run = new_run(LEADERLESS)
    need_cgroups(run.begin())
    event_id = run.mention()
    run.wait_killed()
    grandchild = orphan_of(run)
    assert processes.is_running(grandchild)
    waits = run.mention(recording_id=OTHER_THREAD)
    run.start()
    evidence = run.settle()
    assert not processes.is_running(grandchild)
    expect(evidence, event_id, LOST, "after the restart")
    expect(evidence, waits, DONE, "after the restart")
    run.again(evidence)
    run.close()


# ---- R25: messages before anything new -------------------------------------

def wait_older(stamp, seconds):
    """Until that moment, as the ledger writes it, is so long ago."""
    at = datetime.datetime.fromisoformat(stamp[:26] + "+00:00")
    harness.wait_for(
        lambda: (datetime.datetime.now(datetime.timezone.utc) - at
                 ).total_seconds() > seconds, what="an older intent")


def test_r25_messages_are_settled_first(new_run):
    """Reconciliation happens before anything new is dispatched."""
    run = new_run(FAIL)
    run.begin()
    point = Post("after")
    point.ready(run)
    event_id = run.mention()
    point.reach(run)
    evidence = run.at_death()
    row, = [r for r in evidence.rows["outbox"] if r["kind"] == "completion"]
    assert row["state"] == "sending"
    wait_older(row["sending_at"], 0.3)
    other = run.mention(project_id=OTHER_PROJECT)
    # The listing takes until the other event could have been started: the
    # ledger has been asked three times since.
    run.sim.gate(matrix.LISTING)
    run.start()
    run.sim.wait("held", 1)
    run.connector.wait_event(other, "admitted")
    for _ in range(3):
        harness.wait_for(lambda: stories.all_ready(run.connector))
    run.sim.release(matrix.LISTING)
    evidence = run.settle()
    settled = run.connector.wait_line(type="outbox", kind="completion",
                                      state="sent")
    launched = run.connector.wait_line(type="dispatch", state="launching",
                                       event_ids=[other])
    assert settled["_index"] < launched["_index"]
    expect(evidence, event_id, dict(FAILED, posted={"completion": 1}),
           "after the restart")
    expect(evidence, other, DONE, "after the restart")
    run.again(evidence)
    run.close()


# ---- R26: the prompt -------------------------------------------------------

def test_r26_the_prompt_is_within_its_budget(new_run):
    """As it came through the wire, with ids as Basecamp's are: by the upper
    bound of two bytes a token it is below 500; it is ours in full, and has
    nothing that a person wrote.
    """
    run = new_run(stories.STEPS)
    run.begin()
    run.sim.post("/sim/emit", {
        "id": 10719154680, "event_type": "comment.created",
        "bucket_id": harness.PROJECT, "recording_id": 1,
        "creator_id": harness.AGENT})
    event_id = run.mention(text="zebra crossing", recording_id=10694797660)
    evidence = run.settle()
    assert event_id > 10719154680
    prompt, = [r["text"] for r in evidence.agent if r["what"] == "prompt"]
    size = len(prompt.encode())
    tokens = -(-size // 2)
    print("%d bytes, at most %d tokens" % (size, tokens))
    assert 100 < tokens < 500
    assert "zebra" not in prompt and str(event_id) in prompt
    run.close()


# As many digits as any has; the simulator takes none that is much longer.
LONGEST_ID = 4611686018427387000
URL = "https://3.basecamp.com/195539477/buckets/2085958499/messages/"


def say_again(run, recording_id, event_id, app_url):
    """An event of that id about a recording, which is there."""
    sim = run.sim
    again = urllib.request.Request(
        "%s/999/comments/%d.json" % (sim.url, recording_id),
        headers={"User-Agent": "test", "Authorization":
                 "Bearer " + sim.ready["operator_token"]})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(again, timeout=20) as answer:
        body = dict(json.loads(answer.read()), app_url=app_url)
    sim.fault(matrix.READ, times=0, status=200, body=body)
    sim.post("/sim/emit", {
        "id": event_id, "event_type": "comment.created",
        "bucket_id": harness.PROJECT, "recording_id": recording_id,
        "creator_id": harness.OPERATOR})


@pytest.mark.parametrize("length, is_there", [(120, True), (121, False)])
def test_r26_the_longest_prompt(new_run, length, is_there):
    """With the longest ids and the longest URL it is within its budget too,
    and a longer URL is not in it, nor a part of one.
    """
    run = new_run(stories.STEPS)
    run.begin()
    made = run.sim.mention()
    run.settle()
    url = URL + "1" * (length - len(URL))
    say_again(run, made["recording_id"], LONGEST_ID, url)
    run.connector.wait_event(LONGEST_ID, "completed")
    prompt, = [r["text"] for r in run.connector.agent_records("prompt")
               if r["event_id"] == LONGEST_ID]
    task, = re.findall(r"Task (\d+), ", prompt)
    size = len(prompt.encode()) + len(str(LONGEST_ID)) - len(task)
    print("%d bytes" % size)
    assert -(-size // 2) < 500
    assert (url in prompt) == is_there
    assert ("://" in prompt) == is_there
    run.close()


# ---- G1, G3, G5 ------------------------------------------------------------

@needs_root
def test_g1_killed_while_one_waits(new_run):
    """What waits in a conversation is neither lost nor run twice."""
    run = new_run(["get", "arrive", "linger"], line("event", "queued").rules)
    run.begin()
    event_id = run.mention()
    run.wait_killed()
    second = run.connector.director.arrived
    evidence = run.at_death()
    expect(evidence, event_id, RUNNING, "at death")
    expect(evidence, second, {"record": "queued", "tasks": 0, "prompts": 0},
           "at death")
    run.start()
    evidence = run.settle()
    expect(evidence, event_id, LOST, "after the restart")
    expect(evidence, second, dict(DONE, tasks=1), "after the restart")
    run.again(evidence)
    run.close()


# A CLAIM's frame: its body's length, the request, the nonce.
CLAIM = r"\+([^+]|\+){11} ([^+]|\+)[0-9a-f]{32}"


@needs_root
def test_g3_killed_inside_the_claim(new_run):
    """The row stays pending, and is sent once later."""
    run = new_run(FAIL, line("dispatch", "ended").rules)
    run.begin()
    event_id = run.mention()
    run.wait_killed()
    run.start(tx("ledger", CLAIM).rules, ready=False)
    run.wait_killed()
    expect(run.at_death(), event_id,
           dict(FAILED, completion=["pending"], posted={}), "in the claim")
    asked = matrix.post_requests(run.sim)
    run.start()
    evidence = run.settle()
    expect(evidence, event_id,
           dict(FAILED, completion=["sent"], posted={"completion": 1}),
           "after the restart")
    assert len(matrix.post_requests(run.sim)) == len(asked) + 1
    run.again(evidence)
    run.close()


@needs_root
def test_g3_killed_before_a_refusal_is_recorded(new_run):
    """It was refused, and nobody knows any more: in doubt, never resent."""
    run = new_run(FAIL, tx("ledger", "nothing was created").rules)
    run.begin()
    run.sim.fault(matrix.COMMENTS, status=403, times=1)
    event_id = run.mention()
    run.wait_killed()
    expect(run.at_death(), event_id,
           dict(FAILED, completion=["sending"], posted={}), "at death")
    asked = matrix.post_requests(run.sim)
    run.start()
    evidence = run.settle()
    expect(evidence, event_id,
           dict(FAILED, completion=["indeterminate"], posted={}),
           "after the restart")
    assert matrix.post_requests(run.sim) == asked
    run.again(evidence)
    run.close()


SHUT_DOWN = {"record": "completed", "outcome": "unknown", "prompts": 1,
             "attempts": ["ended shutdown"]}


def stop_into_the_flush(new_run, when):
    """Told to stop, its worker is ended and settled, and the notice of that
    hangs in Basecamp.
    """
    run = new_run(["get", "linger"])
    run.begin()
    event_id = run.mention()
    harness.wait_for(lambda: run.connector.query(
        "SELECT 1 FROM task_events WHERE pulled_at IS NOT NULL"),
        what="the pull")
    fault = run.sim.fault(matrix.COMMENTS, hang=True, times=1,
                          when=when)["fault"]
    run.may_end.update(matrix.PROGRAMS)
    run.connector.process.send_signal(signal.SIGTERM)
    run.sim.wait("hits", 1, fault=fault)
    return run, event_id


@pytest.mark.parametrize("how", ["killed", "second signal"])
@pytest.mark.parametrize("when, state", [("before", "indeterminate"),
                                         ("after", "sent")])
def test_g5_during_the_flush(new_run, how, when, state):
    run, event_id = stop_into_the_flush(new_run, when)
    run.kill() if how == "killed" else run.leave()
    posted = {"completion": 1} if when == "after" else {}
    expect(run.at_death(), event_id,
           dict(SHUT_DOWN, completion=["sending"], posted=posted), "at death")
    asked = matrix.post_requests(run.sim)
    run.start()
    evidence = run.settle()
    expect(evidence, event_id,
           dict(SHUT_DOWN, completion=[state], posted=posted),
           "after the restart")
    assert matrix.post_requests(run.sim) == asked
    run.again(evidence)
    run.close()


def test_g5_second_signal_with_a_live_worker(new_run):
    """It ends at once and leaves it to the next start, which settles it."""
    run = new_run(["get", "linger-deaf"], limits={"cancel_grace": "30s"})
    run.begin()
    event_id = run.mention()
    harness.wait_for(lambda: run.connector.agent_records("deaf"),
                     what="a deaf worker")
    run.connector.process.send_signal(signal.SIGTERM)
    run.connector.wait_log("stopping: ")
    run.leave()
    expect(run.at_death(), event_id, RUNNING, "at the second signal")
    run.start()
    evidence = run.settle()
    expect(evidence, event_id, LOST, "after the restart")
    run.again(evidence)
    run.close()


# ---- the list of agents ----------------------------------------------------

def test_every_agent_is_in_the_matrix(make_connector):
    """Each driver that the run command can start, and no other."""
    connector = make_connector()
    usage = subprocess.run(
        [str(connector.bin / "connectd"), "--help"], capture_output=True,
        text=True, check=True).stdout
    starts = set()
    for name in usage.split("--driver ", 1)[1].split("]", 1)[0].split("|"):
        connector.arguments = ["--driver", name]
        connector.start(ready=False)
        index, _ = connector.logs.wait(
            lambda text: "ready after" in text or
            "is not in this version" in text, 20)
        if "ready after" in connector.logs.all[index]:
            starts.add(name)
            connector.stop()
        else:
            connector.wait_end()
    assert starts == {one.NAME for one in drivers.ALL}
