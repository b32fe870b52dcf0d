"""Each role killed at its write-class system calls, and the whole tree there:
whatever the call, the six promises hold and the story comes to its end.
A sample of the calls by chance, or with CONNECTD_SWEEP all of them.
"""

import pytest

import chance
import harness
import killat
import sweep

pytestmark = [
    pytest.mark.skipif(not killat.is_here(),
                       reason="killat knows Linux on x86_64 only"),
    pytest.mark.walls]

# Counts differ a little from run to run, by what happened to come together.
MISSED_MOST = 0.1
SAMPLE = 2


@pytest.fixture(scope="module")
def counts():
    found = sweep.count()
    assert set(found) == set(sweep.ROLES)
    return found


@pytest.mark.parametrize("action", ["kill", "kill-tree"])
@pytest.mark.parametrize("role", sweep.ROLES)
def test_killed_at_a_write(counts, summary, role, action):
    points = range(1, counts[role]["write"] + 1)
    chosen = chance.some("%s %s" % (role, action), points, SAMPLE)
    missed, broken = [], []
    for n in sorted(chosen):
        try:
            outcome = sweep.run(action, role, "write", n)
        except (AssertionError, harness.HarnessError) as error:
            broken.append("%s:%s:write:%d: %s" % (action, role, n, error))
            continue
        if not outcome.reached:
            missed.append(n)
    summary("%s %s: %d of %d points, %d not reached, %d broken" % (
        action, role, len(chosen), len(points), len(missed), len(broken)))
    assert not broken, "\n\n".join(broken)
    assert len(missed) <= max(1, len(chosen) * MISSED_MOST), missed
