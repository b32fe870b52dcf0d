"""The wall clock steps while a connector runs. What has been told once is not
told again, waiting goes by the monotonic clock, and what the clock makes
doubtful is shown as a doubt.
"""

import os
import shutil
import struct
import subprocess

import pytest

import harness
import killat
import stories
import surroundings
from test_kill_role import COMMENTS, THREAD, hold_post

pytestmark = [
    pytest.mark.skipif(not killat.is_here() or not shutil.which("patchelf"),
                       reason="needs patchelf, on Linux and x86_64"),
    pytest.mark.walls]

LIBRARY = "libclock_shift.so"
HOUR = 3600
DAY = 24 * HOUR
STEPS = {"back": -HOUR, "far-back": -400 * DAY, "forth": HOUR,
         "far-forth": 20 * DAY}


class Clock:
    """Programs of this test's own that take the time from it. An agent's
    clock is not theirs.
    """

    def __init__(self, folder):
        self.folder = folder
        programs = folder.programs()
        self.file = programs / "clock_shift"
        self.file.write_bytes(bytes(8))
        self.file.chmod(0o644)
        library = programs / LIBRARY
        shutil.copy2(surroundings.built("tests", "crash", LIBRARY), library)
        for name in surroundings.PROGRAMS:
            self.add(programs / name, library)

    @staticmethod
    def add(program, library):
        """The program is a link to what was built: to a copy of it."""
        copy = program.with_suffix(".copy")
        shutil.copy2(program, copy)
        subprocess.run(["patchelf", "--add-needed", str(library), str(copy)],
                       check=True)
        os.replace(copy, program)

    def step(self, seconds):
        """The clock is off by so much from now on."""
        self.folder.clock_shift = seconds
        with open(self.file, "r+b", buffering=0) as file:
            file.write(struct.pack("=q", seconds * 1000000000))


@pytest.fixture
def clock(folder):
    return Clock(folder)


def test_the_clock_is_ours(clock, make_connector):
    """Or nothing below would mean anything."""
    connector = stories.begin(make_connector)
    clock.step(400 * DAY)
    stories.mention(connector)
    evidence = stories.settle(connector, stories.new_needles())
    year = int(evidence.rows["events"][0]["created_at"][:4])
    assert int(evidence.rows["events"][0]["seen_at"][:4]) > year
    assert int(evidence.rows["attempts"][0]["ended_at"][:4]) > year
    assert int(evidence.rows["outbox"][-1]["sending_at"][:4]) > year


@pytest.mark.parametrize("name", STEPS)
def test_while_a_worker_runs(clock, make_connector, name):
    """Its deadline is not the clock's; nothing ends or is posted again."""
    connector = stories.begin(make_connector)
    before = stories.pids(connector)
    connector.sim.gate(THREAD)
    event_id, _ = stories.mention(connector)
    connector.sim.wait("held", 1)
    clock.step(STEPS[name])
    connector.sim.release(THREAD)
    evidence = stories.settle(connector, stories.new_needles())
    assert stories.outcome_of(evidence, event_id) == ("succeeded", "finished")
    assert connector.connectctl("status").returncode == 0
    clock.step(0)
    second, _ = stories.mention(connector)
    evidence = stories.settle(connector, stories.new_needles())
    assert stories.outcome_of(evidence, second) == ("succeeded", "finished")
    assert stories.pids(connector) == before


@pytest.mark.parametrize("name", STEPS)
def test_over_a_restart(clock, make_connector, name):
    """What the next run finds is from another time, and is settled."""
    connector = stories.begin(make_connector)
    connector.sim.gate(THREAD)
    event_id, _ = stories.mention(connector)
    connector.sim.wait("held", 1)
    connector.kill()
    connector.wait_end()
    clock.step(STEPS[name])
    connector.start()
    connector.sim.release(THREAD)
    evidence = stories.settle(connector, stories.new_needles())
    assert stories.check_end(evidence, event_id, "supervisor") == ("unknown",
                                                                   "lost")
    second, _ = stories.mention(connector)
    evidence = stories.settle(connector, stories.new_needles())
    assert stories.outcome_of(evidence, second) == ("succeeded", "finished")


# Looked for from two minutes before the claim on, by Basecamp's own clock.
FOUND = {"back": "sent", "far-back": "sent", "forth": "indeterminate",
         "far-forth": "indeterminate"}


@pytest.mark.parametrize("name", STEPS)
def test_a_message_without_its_receipt(clock, make_connector, name):
    """It was posted, by a clock that was off: found, or in doubt and shown.
    """
    connector = stories.begin(make_connector, script={
        "default": ["get", "ack-id", "fail"]})
    fault = hold_post(connector, COMMENTS, "after")
    clock.step(STEPS[name])
    event_id, _ = stories.mention(connector)
    connector.sim.wait("hits", 1, fault=fault)
    connector.kill("outbox")
    evidence = stories.settle(connector, stories.new_needles())
    notice, = stories.notices(evidence, event_id)
    assert notice["state"] == FOUND[name]
    assert len(evidence.messages) == 1


@pytest.mark.parametrize("name", STEPS)
def test_a_decision_after_the_step(clock, make_connector, name):
    """It is never dated before the outcome that it decides (T64), so what it
    answers stays answered, and what it has run is told of once more.
    """
    connector = stories.begin(make_connector, script={
        "default": ["get", "ack-id", "fail"]})
    event_id, _ = stories.mention(connector)
    first = stories.settle(connector, stories.new_needles())
    clock.step(STEPS[name])
    decided = connector.connectctl("redispatch", str(event_id))
    assert decided.returncode == 0, decided.stderr
    harness.wait_for(lambda: len(connector.query(
        "SELECT 1 FROM attempts WHERE state = 'ended'")) == 2,
        what="the second attempt's end")
    evidence = stories.settle(connector, stories.new_needles())
    decision, = evidence.rows["decisions"]
    old, = first.of_event("task_events", event_id)
    assert decision["decided_at"] >= old["completed_at"]
    assert [r["outcome"] for r in evidence.of_event(
        "task_events", event_id)] == ["failed", "failed"]
    told = [(r["kind"], r["state"]) for r in evidence.rows["outbox"]]
    assert told == [("guard_ack", "canceled"), ("completion", "sent"),
                    ("retraction", "sent"), ("completion", "sent")]
