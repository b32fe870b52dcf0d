"""The rows of the recovery matrix in which a task has more than one event, a
person decides, or a long turn is told of (operator.md 6.3, 6.8).
"""

import subprocess

import pytest

import drivers
import harness
import killat
import matrix
import promises
import stories
from matrix import Post, expect
from rows import DONE, LOST
from test_matrix import driver, new_run

pytestmark = [
    pytest.mark.walls,
    pytest.mark.skipif(not killat.is_here(),
                       reason="killat knows Linux on x86_64 only")]


# ---- R17-R19: follow-ups ---------------------------------------------------

follow_ups = pytest.mark.parametrize(
    "driver", [one for one in drivers.ALL if one.TAKES_FOLLOW_UPS],
    ids=lambda one: one.NAME)
JOINED = ["get", "ack", "arrive", "await:arrived=dispatched"]


def follow_up_of(run):
    return run.connector.director.arrived


def told_of(evidence, event_id):
    """The notices that have a line about that event."""
    return [r["state"] for r in evidence.rows["outbox"]
            if r["kind"] == "completion" and
            "event %d:" % event_id in promises.words(r["body"]).lower()]


@follow_ups
def test_r17_a_follow_up_joins(new_run):
    """And settles with the task."""
    run = new_run([*JOINED, "reply", "complete"])
    run.begin()
    event_id = run.mention()
    evidence = run.settle()
    for ident in (event_id, follow_up_of(run)):
        expect(evidence, ident, dict(DONE, tasks=1, agents=1), "at the end")
    assert len(evidence.rows["tasks"]) == 1
    run.again(evidence)
    run.close()


@follow_ups
def test_r18_a_sibling_that_was_not_exposed(new_run):
    """It runs separately, and the first is never run again."""
    run = new_run([*JOINED, "kill:tree", "linger"])
    run.begin()
    event_id = run.mention()
    run.wait_killed()
    second = follow_up_of(run)
    expect(run.at_death(), second, {
        "record": "dispatched", "tasks": 1, "prompts": 0,
        "delivery": "admitted"}, "at death")
    run.start()
    evidence = run.settle()
    expect(evidence, event_id, dict(
        LOST, posted={"worker_ack": 1, "completion": 1}), "after the restart")
    expect(evidence, second, dict(
        DONE, attempts=["ended finished", "ended lost"],
        completion=["sent"], posted=dict(DONE["posted"], completion=1)),
        "after the restart")
    assert told_of(evidence, second) == []
    run.again(evidence)
    run.close()


@follow_ups
def test_r19_an_exposed_follow_up(new_run):
    """It is never run again; what was reported of the first stands."""
    run = new_run([*JOINED, "reply", "complete"], follow=[
        "get", "kill:tree", "linger"])
    run.begin()
    event_id = run.mention()
    run.wait_killed()
    second = follow_up_of(run)
    expect(run.at_death(), second, {
        "record": "dispatched", "delivery": "exposed", "prompts": 1},
        "at death")
    run.start()
    evidence = run.settle()
    expect(evidence, event_id, {
        "record": "completed", "outcome": "succeeded", "prompts": 1,
        "attempts": ["ended lost"]}, "after the restart")
    expect(evidence, second, {
        "record": "completed", "outcome": "unknown", "prompts": 1,
        "attempts": ["ended lost"], "completion": ["sent"]},
        "after the restart")
    assert told_of(evidence, event_id) == []
    assert told_of(evidence, second) == ["sent"]
    run.again(evidence)
    run.close()


# ---- R12, G4, G6: what a person decides ------------------------------------

def decide(run, *words):
    done = run.connector.connectctl(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def lost_and_told(new_run):
    """Event 1 is unknown, and a notice asks a person about it. Its second
    prompt would be worked on as ever.
    """
    run = new_run(["get", "ack", "kill:tree", "linger"], then=stories.STEPS)
    run.begin()
    event_id = run.mention()
    run.wait_killed()
    run.start()
    evidence = run.settle()
    expect(evidence, event_id, dict(
        LOST, posted={"worker_ack": 1, "completion": 1}), "after the restart")
    notice, = [m for m in evidence.messages if m["kind"] == "comment"]
    assert ("Event {0}: no outcome was reported; what was done is not known."
            " To run it again: connectctl redispatch {0}").format(
                event_id) in promises.words(notice["content"])
    return run, event_id, evidence


def test_r12_redispatch_runs_exactly_once(new_run):
    """As a new task; unknown was told once."""
    run, event_id, _ = lost_and_told(new_run)
    decide(run, "redispatch", str(event_id))
    evidence = run.settle()
    expect(evidence, event_id, {
        "record": "completed", "outcome": "succeeded", "prompts": 2,
        "tasks": 2, "attempts": ["ended finished", "ended lost"],
        "completion": ["sent"], "retraction": ["sent"]}, "after it")
    run.again(evidence)
    run.close()


def test_g4_a_redispatch_that_waits(new_run):
    """It waits for a task that is alive, and runs once when that has ended.
    """
    run = new_run(["get", "ack-id", "fail", "linger-deaf"],
                  then=stories.STEPS, limits={"cancel_grace": "30s"})
    run.begin()
    event_id = run.mention()
    harness.wait_for(lambda: run.connector.agent_records("deaf"),
                     what="a deaf worker")
    # It says what became of the worker, and for that it waits.
    with subprocess.Popen(
            [str(run.connector.bin / "connectctl"), "-P",
             run.connector.profile, "redispatch", str(event_id)],
            env=run.connector.environ, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        harness.wait_for(lambda: run.connector.query(
            "SELECT 1 FROM decisions WHERE event_id = ?", event_id),
            what="the decision")
        run.kill()
    expect(run.at_death(), event_id, {
        "record": "completed", "attempts": ["running"], "prompts": 1},
        "at death")
    run.start()
    evidence = run.settle()
    expect(evidence, event_id, {
        "record": "completed", "outcome": "succeeded", "prompts": 2,
        "tasks": 2, "attempts": ["ended finished", "ended lost"]},
        "after the restart")
    run.again(evidence)
    run.close()


@pytest.mark.parametrize("when, state", [("before", "indeterminate"),
                                         ("after", "sent")])
def test_g6_a_retraction(new_run, when, state):
    run, event_id, before = lost_and_told(new_run)
    point = Post(when)
    point.ready(run)
    decide(run, "discard", str(event_id))
    point.reach(run)
    posted = {"worker_ack": 1, "completion": 1}
    if when == "after":
        posted["retraction"] = 1
    expect(run.at_death(), event_id, {
        "record": "discarded", "retraction": ["sending"], "posted": posted},
        "at death")
    asked = matrix.post_requests(run.sim)
    run.start()
    evidence = run.settle()
    expect(evidence, event_id, {
        "record": "discarded", "retraction": [state], "posted": posted},
        "after the restart")
    assert matrix.post_requests(run.sim) == asked
    run.again(evidence)
    run.close()


def test_g6_a_retraction_waits_for_its_record(new_run):
    """A person decided, and what the notice says is still true: nothing takes
    it back, through a kill either, before the record has moved.
    """
    run = new_run(stories.STEPS)
    run.begin()
    event_id = run.mention(project_id=matrix.UNROUTED_PROJECT)
    blocked = {"record": "blocked", "reason": "no_route", "tasks": 0,
               "holding_reply": ["sent"], "posted": {"holding_reply": 1}}
    expect(run.settle(), event_id, dict(blocked, retraction=[]), "at first")
    decided, = run.connector.query("SELECT decided_at FROM events")
    decide(run, "redispatch", str(event_id))
    harness.wait_for(lambda: run.connector.query(
        "SELECT decided_at FROM events") != [decided],
        what="the same verdict again")
    waits = dict(blocked, retraction=["pending"])
    run.kill()
    expect(run.at_death(), event_id, waits, "at death")
    # What is due and may go does: the outbox is at work.
    run.start()
    other = run.mention()
    run.connector.wait_event(other, "completed")
    expect(promises.check(run.connector, run.needles), event_id, waits,
           "after the restart")
    run.connector.config["projects"][str(matrix.UNROUTED_PROJECT)] = {
        "path": str(run.connector.folder.make("late", 0o755,
                                              run.connector.user)),
        "class": "late"}
    run.connector.write_config()
    decide(run, "reload")
    decide(run, "redispatch", str(event_id))
    evidence = run.settle()
    expect(evidence, event_id, dict(
        DONE, holding_reply=["sent"], retraction=["sent"],
        posted=dict(DONE["posted"], holding_reply=1, retraction=1)),
        "when it was run")
    run.again(evidence)
    run.close()


# ---- G2: a long turn is told of --------------------------------------------

@pytest.mark.parametrize("when, state, messages", [
    ("before", "indeterminate", 0), ("after", "sent", 1)])
def test_g2_still_running(new_run, when, state, messages):
    """Adopted, or in doubt; never told again for that tick."""
    run = new_run(["get", "linger"], limits={"still_running": "1s"})
    run.begin()
    point = Post(when)
    point.ready(run)
    event_id = run.mention()
    point.reach(run)

    def first(evidence):
        row, = [r for r in evidence.rows["outbox"]
                if r["kind"] == "still_running" and r["occurrence"] == 1]
        return row["state"], sum(
            promises.words(m["content"]) == promises.words(row["body"])
            for m in evidence.messages)
    assert first(run.at_death()) == ("sending", messages)
    run.start()
    evidence = run.settle()
    assert first(evidence) == (state, messages)
    expect(evidence, event_id, {
        "record": "completed", "outcome": "unknown", "prompts": 1,
        "attempts": ["ended lost"], "completion": ["sent"]},
        "after the restart")
    run.again(evidence)
    run.close()
