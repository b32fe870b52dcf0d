"""The supervisor killed with SIGKILL. No role is left; a new start takes the
lock, ends and settles what was left, or shows it held where nothing can prove
it gone; nothing is doubled. What the dead run's worker still does, it does to
nobody: its calls have no way any more.
"""

import fcntl
import pathlib
import signal
import subprocess

import pytest

import harness
import processes
import promises
import stories

NOT_RECORDED = "launching"


def kill_supervisor(connector):
    """Kill it; no role is left. Returns those that were there before."""
    found = connector.roles()
    connector.kill()
    roles = [p for role in (*harness.ROLES, "mcpd")
             for p in found.get(role, [])]
    harness.wait_for(lambda: not any(map(processes.is_running, roles)), 10,
                     "the end of every role")
    assert connector.wait_end() == -signal.SIGKILL
    return found


def settle_or_held(connector, needles=None):
    """The settled end; or None when an attempt is held and nothing else
    moves: it was launched and no process of it was recorded (no cgroup).
    """
    needles = needles or stories.new_needles()
    result = []

    def look():
        connector.must_run()
        needles.learn(connector)
        left = promises.unsettled(connector)
        if not stories.all_ready(connector):
            return False
        if len(left) == 2 and stories.is_held(connector):
            result.append(None)
        elif not left:
            result.append(promises.check(connector, needles))
        return bool(result)
    harness.wait_for(look, stories.SETTLE_WAIT, "the end, or what is held",
                     every=0.02)
    return result[0]


def check_held(connector, event_id):
    """Held: shown, nothing posted or run again, and not released."""
    evidence = promises.check(connector)
    attempt, = [a for a in evidence.rows["attempts"]
                if a["state"] != "ended"]
    assert attempt["state"] == NOT_RECORDED and attempt["pid"] is None
    assert attempt["containment"] == ""
    assert evidence.event(event_id)["state"] == "dispatched"
    assert evidence.messages == []
    text = connector.connectctl("status").stdout
    assert attempt["id"] in text, text


def check_same_after_restart(connector, evidence):
    """Another start changes nothing and posts nothing."""
    assert connector.stop() == 143
    connector.start()
    again = stories.settle(connector)
    for table in ("events", "tasks", "task_events", "attempts", "outbox"):
        assert again.rows[table] == evidence.rows[table], table
    assert again.messages == evidence.messages
    assert [r for r in again.agent if r["what"] == "prompt"] == [
        r for r in evidence.agent if r["what"] == "prompt"]


def run_again(connector, event_id, needles=None):
    """A new start and the end it comes to; None when an attempt is held."""
    connector.start()
    evidence = settle_or_held(connector, needles)
    if evidence is None:
        check_held(connector, event_id)
        stories.end_held(connector)
        return None
    end = stories.check_end(evidence, event_id, "supervisor")
    check_same_after_restart(connector, evidence)
    return end


# ---- idle ------------------------------------------------------------------

def test_idle(make_connector):
    connector = stories.begin(make_connector)
    kill_supervisor(connector)
    lock = next(connector.state_dir.parent.glob("*.lock"))
    with open(lock, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert connector.connectctl("status").returncode == 69
    connector.start()
    event_id, _ = stories.mention(connector)
    evidence = stories.settle(connector)
    assert stories.outcome_of(evidence, event_id) == ("succeeded", "finished")


def wait_asleep(connector):
    """It cannot have what it wants, and tries again in a moment."""
    def is_asleep():
        connector.must_run()
        path = pathlib.Path("/proc/%d/wchan" % connector.process.pid)
        return "nanosleep" in path.read_text()
    harness.wait_for(is_asleep, what="a try that was in vain")


@pytest.mark.parametrize("is_left", [True, False], ids=["left", "runs"])
def test_a_lock_without_a_note(make_connector, is_left):
    """Whoever has it has died before its note, and a child of its goes a moment
    later; or goes on, and only the kernel's lock counts (operator.md 3).
    """
    connector = make_connector().start()
    connector.stop()
    lock = next(connector.state_dir.parent.glob("*.lock"))
    with open(lock, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        connector.start(ready=False)
        if is_left:
            wait_asleep(connector)
            fcntl.flock(file, fcntl.LOCK_UN)
            connector.wait_ready()
        else:
            assert connector.wait_end() == 73
            connector.wait_log("another process holds its lock")


def test_what_came_meanwhile(make_connector):
    """What is said while nothing runs is answered by the next start."""
    connector = stories.begin(make_connector)
    first, _ = stories.mention(connector)
    stories.settle(connector)
    kill_supervisor(connector)
    second = connector.sim.mention()["event_id"]
    connector.start()
    evidence = stories.settle(connector)
    for event_id in (first, second):
        assert stories.outcome_of(evidence, event_id) == ("succeeded",
                                                          "finished")


def test_two_starts_at_once(make_connector):
    """The lock of a dead run is taken over by one, not by two."""
    connector = stories.begin(make_connector)
    kill_supervisor(connector)
    connector.start(ready=False)
    with subprocess.Popen(connector.process.args, env=connector.environ,
                          cwd="/", stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE,
                          preexec_fn=harness.end_with_parent) as other:
        try:
            both = (connector.process, other)
            loser = harness.wait_for(
                lambda: next((p for p in both if p.poll() is not None), None),
                what="the end of one of the two")
            assert loser.returncode == 73
            if loser is other:
                assert b"a connector already" in other.stderr.read()
                connector.wait_ready()
            else:
                connector.wait_log("a connector already")
        finally:
            other.terminate()
