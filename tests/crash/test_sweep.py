"""Each role killed at its write-class system calls, and the whole tree there:
whatever the call, the six promises hold and the story comes to its end.
A sample of the calls by chance, or with CONNECTD_SWEEP all of them.
"""

import os

import pytest

import chance
import killat
import processes
import stories
import sweep

pytestmark = [
    pytest.mark.skipif(not killat.is_here(),
                       reason="killat knows Linux on x86_64 only"),
    pytest.mark.walls]

SAMPLE = 2


# ---- what is not reached ----------------------------------------------------

def tries(reached):
    """What reaches these points, whenever they are tried, and says which."""
    asked = []

    def each(chosen):
        asked.append(list(chosen))
        return [sweep.Tried(n in reached, False, "") for n in chosen]
    return asked, each


def test_another_point_for_one_that_is_missed():
    asked, each = tries({2, 5})
    assert sorted(sweep.reach([1, 2, 3, 5, 4], 2, each)) == [2, 5]
    assert asked == [[1, 2], [3], [5]]


def test_the_missed_ones_once_more_when_there_are_no_others():
    asked, each = tries({2})
    assert sorted(sweep.reach([1, 2], 2, each)) == [2]
    assert asked == [[1, 2]] + [[1]] * (sweep.ROUNDS - 1)


@pytest.mark.parametrize("reached, is_whole, is_good", [
    (range(1, 30), False, True), ([], False, False), ([4], False, False),
    (range(1, 19), True, True), (range(1, 18), True, False)])
def test_a_sample_is_reached_whole(monkeypatch, reached, is_whole, is_good):
    """And of a whole sweep of twenty, all but two."""
    monkeypatch.setattr(chance, "SWEEP", is_whole)
    _, each = tries(reached)
    monkeypatch.setattr(sweep, "try_points", lambda a, r, c, ns: each(ns))
    told = []
    try:
        sweep.sweep(told.append, "kill", "role", "write", 20, SAMPLE)
    except AssertionError:
        assert not is_good
    else:
        assert is_good
    assert len(told) == 1


def test_held_is_counted(monkeypatch):
    monkeypatch.setattr(sweep, "try_points", lambda a, r, c, ns: [
        sweep.Tried(True, True, "") for _ in ns])
    told = []
    sweep.sweep(told.append, "kill", "role", "write", SAMPLE, SAMPLE)
    assert told[0].endswith("0 not reached, %d held, 0 broken" % SAMPLE)


# ---- what may be held -------------------------------------------------------

def attempt(**changes):
    """Of this very process, which lives and leads a group or is in one."""
    own = processes.read_process(os.getpid())
    return dict({"containment": "", "pid": own.pid, "pgid": own.pgid,
                 "started_ticks": own.started}, **changes)


@pytest.mark.parametrize("changes, why", [
    ({"containment": "cgroup:/sys/fs/cgroup/x", "pid": None}, "cgroup tells"),
    ({}, "leader is there"),
    ({"started_ticks": 1, "pgid": 2 ** 30}, "nothing of its group"),
    ({"started_ticks": 1}, None),
    ({"pid": None}, None)])
def test_held_without_doubt(changes, why):
    said = stories.against_holding(attempt(**changes))
    assert why in said if why else said is None


# ---- the sweep --------------------------------------------------------------


@pytest.mark.parametrize("action", ["kill", "kill-tree"])
@pytest.mark.parametrize("role", sweep.ROLES)
def test_killed_at_a_write(counts, summary, role, action):
    sweep.sweep(summary, action, role, "write", counts[role]["write"], SAMPLE)
