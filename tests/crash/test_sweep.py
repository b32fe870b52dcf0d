"""Each role killed at its write-class system calls, and the whole tree there:
whatever the call, the six promises hold and the story comes to its end.
A sample of the calls by chance, or with CONNECTD_SWEEP all of them.
"""

import pytest

import killat
import sweep

pytestmark = [
    pytest.mark.skipif(not killat.is_here(),
                       reason="killat knows Linux on x86_64 only"),
    pytest.mark.walls]

SAMPLE = 2


@pytest.mark.parametrize("action", ["kill", "kill-tree"])
@pytest.mark.parametrize("role", sweep.ROLES)
def test_killed_at_a_write(counts, summary, role, action):
    sweep.sweep(summary, action, role, "write", counts[role]["write"], SAMPLE)
