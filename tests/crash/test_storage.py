"""The ledger's storage fails in a whole connector: once, at any of its calls,
or for as long as the disk is full. What could not be written is asked again;
status says what is wrong meanwhile; the six promises hold.
"""

import contextlib
import subprocess

import pytest

import harness
import killat
import promises
import stories
import sweep

needs_killat = pytest.mark.skipif(
    not killat.is_here(), reason="killat knows Linux on x86_64 only")
needs_root = pytest.mark.skipif(
    not harness.is_root(), reason="only root can mount a disk that is small")
pytestmark = pytest.mark.walls

LEDGER = "connectd-ledger"
THREAD = "GET /{a}/recordings/{id}/comments.json"

# ---- one call that fails ---------------------------------------------------

# A call, what it fails with, and how many of it there are of these counts.
FAULTS = {
    "full": ("ENOSPC", "pwrite64",
             lambda c: c["write"] - c["send"] - c["name"] - c["sync"]),
    "broken": ("EIO", "pwrite64",
               lambda c: c["write"] - c["send"] - c["name"] - c["sync"]),
    "unsynced": ("EIO", "fdatasync", lambda c: c["sync"]),
    "no-memory": ("ENOMEM", "alloc", lambda c: c["alloc"]),
}
SAMPLE = 2


@needs_killat
@pytest.mark.parametrize("name", FAULTS)
def test_a_call_that_fails(counts, summary, name):
    error, call, number = FAULTS[name]
    sweep.sweep(summary, "fail=" + error, LEDGER, call,
                number(counts[LEDGER]), SAMPLE)


# ---- a disk that is full ---------------------------------------------------

FILL = 64 * 1024


class Disk:
    """A small one of its own, where the state is."""

    def __init__(self, path):
        self.path = path
        self.filler = path / "filler"
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=755",
                        "tmpfs", str(path)], check=True)

    def fill(self):
        """To the last byte that it takes."""
        with open(self.filler, "wb", buffering=0) as file:
            for size in (FILL, 4096, 1):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(size))
        with pytest.raises(OSError, match="No space left"):
            (self.path / "more").write_bytes(bytes(FILL))
        (self.path / "more").unlink()

    def free(self):
        self.filler.unlink()

    def close(self):
        subprocess.run(["umount", str(self.path)], check=True)


@pytest.fixture
def disk(folder):
    made = Disk(folder.make("state"))
    yield made
    made.close()


def wait_trouble(connector):
    """Until status says it. A COMMIT that failed may count: the ledger has
    ended for it, and is tried again after ever longer pauses.
    """
    def is_told():
        said = connector.connectctl("status")
        return said.returncode == 1 and all(
            words in said.stdout for words in (
                "failing", "disk is full", "the ledger does not answer"))
    harness.wait_for(is_told, what="a status that tells of a full disk")


def check_well(connector, before):
    """Nothing is told of it any more, and no other role has ended."""
    shown = connector.connectctl("status")
    assert shown.returncode == 0 and "full" not in shown.stdout, shown.stdout
    after = stories.pids(connector)
    assert {r for r in after if after[r] != before[r]} <= {"ledger"}
    for child in connector.status()["data"]["children"]:
        assert child["own_deaths"] == 0, child


@needs_root
def test_full_when_it_comes(disk, make_connector):
    """What is served meanwhile waits for its record, and no longer."""
    connector = stories.begin(make_connector)
    before = stories.pids(connector)
    disk.fill()
    event_id, _ = stories.mention(connector)
    wait_trouble(connector)
    evidence = promises.Evidence(connector)
    assert evidence.rows["events"] == [] and evidence.messages == []
    disk.free()
    evidence = stories.settle(connector, stories.new_needles())
    assert stories.outcome_of(evidence, event_id) == ("succeeded", "finished")
    check_well(connector, before)


@needs_root
def test_full_while_a_worker_runs(disk, make_connector):
    """Its calls wait or are refused as what may be asked again; nothing that
    it said before is lost, nothing is done twice.
    """
    connector = stories.begin(make_connector)
    before = stories.pids(connector)
    connector.sim.gate(THREAD)
    event_id, _ = stories.mention(connector)
    connector.sim.wait("held", 1)
    disk.fill()
    connector.sim.release(THREAD)
    wait_trouble(connector)
    disk.free()
    evidence = stories.settle(connector, stories.new_needles())
    assert stories.outcome_of(evidence, event_id) == ("succeeded", "finished")
    check_well(connector, before)


@needs_root
def test_full_at_a_start(disk, make_connector):
    """All that ran is settled by a start that cannot write for a while."""
    connector = stories.begin(make_connector)
    connector.sim.gate(THREAD)
    event_id, _ = stories.mention(connector)
    connector.sim.wait("held", 1)
    connector.kill()
    connector.wait_end()
    disk.fill()
    connector.start(ready=False)
    wait_trouble(connector)
    connector.sim.release(THREAD)
    disk.free()
    evidence = stories.settle(connector, stories.new_needles())
    assert stories.outcome_of(evidence, event_id) == ("unknown", "lost")
