"""A shadow run's ledger becomes the connector's: wherever that is killed,
there is an untouched shadow or a held ledger at one of the two places, and
running it again finishes (operator.md 3.7, ledger.md T72).
"""

import fcntl
import json
import os
import pwd
import shutil
import signal
import sqlite3
import subprocess
import tempfile

import pytest

import chance
import harness
import killat

LEDGER_USER = "_connectd-ledger"
NAME = "999-52007412"
STAMP = "2026-01-05T09:00:00.000000000Z"
BY = "local:ann"
FILES = ("ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.db-journal")

needs_root = pytest.mark.skipif(
    not harness.is_root(), reason="only root becomes somebody else")
needs_killat = pytest.mark.skipif(
    not killat.is_here(), reason="killat knows Linux on x86_64 only")


class Cutover:
    """A shadow's ledger and the place where it is to go."""

    def __init__(self, folder, owner=None, person=False):
        self.folder = folder
        self.program = folder.programs() / "connectd-ledger"
        self.entry = pwd.getpwnam(owner) if owner else None
        roots = [folder.make(name, 0o711, owner if person else None)
                 for name in ("connect-shadow", "connect")]
        self.shadow, self.normal = [root / NAME for root in roots]
        self.make(self.shadow)

    def give(self, path):
        if self.entry:
            os.chown(path, self.entry.pw_uid, self.entry.pw_gid)

    def make(self, path):
        path.mkdir(mode=0o700)
        self.give(path)

    def lock(self, place):
        return place.parent / ("instance-%s.lock" % NAME)

    def fill(self, hold=False, with_wal=False):
        """Records in some states; as a crash leaves it, with a WAL."""
        template = self.folder.path / "template"
        if not template.exists():
            template.mkdir()
            self.make_ledger(template, hold, with_wal)
        for path in template.iterdir():
            copy = self.shadow / path.name
            shutil.copy(path, copy)
            copy.chmod(0o600)
            self.give(copy)
        return self

    def make_ledger(self, template, hold, with_wal):
        schema = subprocess.run(
            [self.program, "--print-schema"], check=True,
            stdout=subprocess.PIPE).stdout.decode()
        source = self.folder.path / FILES[0]
        db = sqlite3.connect(source)
        db.executescript("PRAGMA journal_mode = WAL; BEGIN;" + schema)
        db.execute("INSERT INTO schema_migrations VALUES (1, ?)", (STAMP,))
        db.executemany(
            "INSERT INTO events (id, state, lane, event_type, kind, action,"
            " bucket_id, creator_id, recording_id, created_at, seen_at,"
            " updated_at, snapshot, conversation_key, routed) VALUES (?,"
            " 'seen', 'poll', 'x', 'x', 'x', 1, 1, 1, ?, ?, ?, '{}', 'k', 1)",
            [(i, STAMP, STAMP, STAMP) for i in range(1, 5)])
        db.execute("UPDATE events SET state = 'admitted' WHERE id = 2")
        db.execute("UPDATE events SET state = 'discarded', reason = 'x'"
                   " WHERE id = 3")
        db.execute("UPDATE events SET state = 'blocked', reason = 'no_route'"
                   " WHERE id = 4")
        if hold:
            db.execute("INSERT INTO generations VALUES (1, 'hold', 'me', ?)",
                       (STAMP,))
            db.execute("INSERT INTO hold_marker VALUES (1, 1, 'hold', 'me',"
                       " ?)", (STAMP,))
        db.commit()
        if not with_wal:
            db.close()
        for path in source.parent.glob(FILES[0] + "*"):
            if not path.name.endswith("-shm"):
                shutil.copy(path, template)
        db.close()

    def argv(self, shadow=None, normal=None, by=BY):
        return [str(self.program), "--promote", str(shadow or self.shadow),
                str(normal or self.normal), "--by", by]

    def run(self, **places):
        return subprocess.run(self.argv(**places), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)

    def must_run(self):
        done = self.run()
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    # -- what is there ----------------------------------------------------

    def read(self, place, sql):
        """One row of a copy of the ledger there; None without a ledger."""
        if not (place / FILES[0]).exists():
            return None
        with tempfile.TemporaryDirectory(dir=self.folder.path) as copy:
            for name in FILES:
                if (place / name).exists() and not name.endswith("-shm"):
                    shutil.copy(place / name, copy)
            db = sqlite3.connect(os.path.join(copy, FILES[0]))
            try:
                assert db.execute("PRAGMA integrity_check").fetchone() == (
                    "ok",)
                return db.execute(sql).fetchone()
            finally:
                db.close()

    def is_held(self, place):
        row = self.read(place, "SELECT count(*) FROM hold_marker")
        return row and row[0] == 1

    def is_untouched(self):
        """No marker, no generation, no decision, every record as it was."""
        return self.read(
            self.shadow,
            "SELECT (SELECT count(*) FROM hold_marker)"
            " + (SELECT count(*) FROM generations)"
            " + (SELECT count(*) FROM decisions)"
            " + (SELECT sum(review) FROM events),"
            " (SELECT state FROM events WHERE id = 2)") == (0, "admitted")

    def is_in_one_file(self, place):
        """Without a WAL, whatever opens it next."""
        return (place / FILES[0]).read_bytes()[18:20] == b"\1\1" and not any(
            (place / name).exists() for name in FILES[1:])

    def check(self):
        """What must be so at every moment."""
        there = [place for place in (self.shadow, self.normal)
                 if (place / FILES[0]).exists()]
        assert len(there) == 1
        if there == [self.normal]:
            assert self.is_held(self.normal)
            assert not any((self.shadow / name).exists() for name in FILES)
        else:
            assert self.is_held(self.shadow) or self.is_untouched()
            assert not any((self.normal / name).exists() for name in FILES)
        return there[0]


@pytest.fixture
def cutover(folder):
    return Cutover(folder, LEDGER_USER if harness.is_root() else None)


# ---- whole -----------------------------------------------------------------

@pytest.mark.parametrize("with_wal", [False, True])
def test_a_shadow_becomes_the_connectors(cutover, with_wal):
    cutover.fill(with_wal=with_wal)
    told = cutover.must_run()
    assert told["already"] is False
    assert told["hold"]["cause"] == "shadow_promote"
    assert told["hold"]["held_by"] == BY
    assert (told["hold"]["generation"], told["tagged"], told["held"]) == (
        1, 3, 1)
    assert told["ledger"] == str(cutover.normal / FILES[0])
    assert cutover.check() == cutover.normal
    assert cutover.read(
        cutover.normal, "SELECT group_concat(state) FROM (SELECT state FROM"
        " events ORDER BY id)") == ("seen,held,discarded,blocked",)
    assert cutover.read(
        cutover.normal, "SELECT action, decided_by FROM decisions") == (
            "shadow_promote", BY)
    ledger, folder = [os.stat(p) for p in (cutover.normal / FILES[0],
                                           cutover.normal)]
    assert (ledger.st_mode & 0o7777, folder.st_mode & 0o7777) == (0o600,
                                                                 0o700)
    assert ledger.st_uid == folder.st_uid == os.stat(cutover.shadow).st_uid


def test_again_it_is_done_already(cutover):
    """Also with the shadow's directory removed, as a person would."""
    first = cutover.fill().must_run()
    again = cutover.must_run()
    assert again == dict(first, already=True)
    shutil.rmtree(cutover.shadow)
    assert cutover.must_run() == again
    assert cutover.is_held(cutover.normal)


@pytest.mark.parametrize("by", [b"local:\xff", b"local:\x01", b"a\nb"])
def test_a_name_that_cannot_be_told_is_usage(cutover, by):
    """Found before anything is held or moved."""
    cutover.fill()
    assert cutover.run(by=by).returncode == 64
    assert cutover.read(
        cutover.shadow, "SELECT COUNT(*) FROM hold_marker")[0] == 0


def test_one_held_before_keeps_its_cause(cutover):
    """And is known again all the same."""
    told = cutover.fill(hold=True).must_run()
    assert told["hold"]["cause"] == "hold"
    assert told["hold"]["held_by"] == "me"
    assert told["hold"]["generation"] == 2
    assert cutover.must_run()["already"] is True


def test_beside_a_reader(cutover):
    """What the WAL still has for it cannot be left behind."""
    cutover.fill(with_wal=True)
    reader = sqlite3.connect(cutover.shadow / FILES[0], isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM events").fetchone()
    done = cutover.run()
    assert (done.returncode, done.stdout) == (75, b""), done.stderr
    assert cutover.check() == cutover.shadow
    reader.close()
    assert cutover.must_run()["already"] is False
    assert cutover.check() == cutover.normal


@needs_root
def test_of_a_person_by_root(folder):
    """Root makes no lock of its own where a person's connector looks."""
    cutover = Cutover(folder, harness.WORKER_USER, person=True).fill()
    assert cutover.must_run()["already"] is False
    for place in (cutover.shadow, cutover.normal):
        assert os.stat(cutover.lock(place)).st_uid == cutover.entry.pw_uid


# ---- refused ---------------------------------------------------------------

def check_refused(cutover, done, code, text):
    assert done.returncode == code, done.stderr
    assert text in done.stderr.decode(), done.stderr
    assert done.stdout == b""
    assert cutover.is_untouched()


@pytest.mark.parametrize("which", ["shadow", "normal"])
def test_a_held_lock(cutover, which):
    """Nothing is touched, and let go it works."""
    cutover.fill()
    path = cutover.lock(getattr(cutover, which))
    path.touch(0o600)
    with open(path, "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        check_refused(cutover, cutover.run(), 73, "a connector runs")
        assert not cutover.normal.exists()
    cutover.must_run()


@pytest.mark.parametrize("name", FILES)
def test_a_ledger_there_already(cutover, name):
    cutover.fill()
    cutover.make(cutover.normal)
    (cutover.normal / name).write_bytes(b"")
    check_refused(cutover, cutover.run(), 77, name)
    assert (cutover.normal / name).read_bytes() == b""
    assert not (cutover.shadow / "ledger.db-wal").exists()


@pytest.mark.parametrize("make, text", [
    (lambda c: {"normal": c.shadow}, "the same directory"),
    (lambda c: {"normal": c.normal.with_name("999-1")}, "different agents"),
    (lambda c: {"normal": c.normal.with_name("999-0052007412")}, "misnamed"),
    (lambda c: {"shadow": c.shadow.with_name("999-x")}, "misnamed"),
])
def test_places_of_another_kind(cutover, make, text):
    cutover.fill()
    check_refused(cutover, cutover.run(**make(cutover)), 77, text)


def test_what_others_can_reach(cutover):
    cutover.fill()
    cutover.shadow.chmod(0o755)
    check_refused(cutover, cutover.run(), 77, "others have access")
    cutover.shadow.chmod(0o700)
    cutover.must_run()


def test_the_same_directory_by_a_link(cutover):
    cutover.fill()
    cutover.normal.parent.rmdir()
    cutover.normal.parent.symlink_to(cutover.shadow.parent)
    check_refused(cutover, cutover.run(), 77, "the same directory")


def test_no_shadow(cutover):
    """And nothing is made on the way."""
    done = cutover.run()
    assert (done.returncode, done.stdout) == (69, b"")
    assert b"no shadow ledger" in done.stderr
    assert not cutover.normal.exists()


def test_a_ledger_that_was_not_promoted(cutover):
    """It is no sign of an earlier promotion."""
    cutover.fill()
    cutover.shadow.rename(cutover.normal)
    done = cutover.run()
    assert (done.returncode, done.stdout) == (69, b"")
    assert b"no shadow ledger" in done.stderr


@pytest.mark.parametrize("words", [
    ["--promote"], ["--promote", "A"], ["--promote", "A", "B"],
    ["--promote", "A", "B", "--by"], ["--promote", "A", "B", "--by", ""],
    ["--promote", "A", "", "--by", "x"], ["--promote", "", "B", "--by", "x"],
    ["--promote", "A", "B", "--by", "x", "y"],
    ["--promote", "A", "B", "--as", "x"],
    ["--promote", "A", "B", "--by", "x" * 129],
])
def test_wrong_words(cutover, words):
    done = subprocess.run([cutover.program, *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stdout) == (64, b"")
    assert b"--promote SHADOW_DIR" in done.stderr


# ---- killed ----------------------------------------------------------------

def kill_at(make_killat, cutover, number):
    """The state behind a kill at that write-class call."""
    follower = make_killat("kill@connectd-ledger:write:%d" % number)
    process = subprocess.Popen(
        cutover.argv(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        preexec_fn=follower.birth)
    status = process.wait(30)
    return status, follower


@needs_killat
@pytest.mark.trap("T72")
@pytest.mark.parametrize("with_wal", [False] + [True] * chance.SWEEP)
def test_killed_at_every_write(make_killat, folder, with_wal):
    """An untouched shadow, or a held ledger at one place; again, it is done.
    """
    owner = LEDGER_USER if harness.is_root() else None
    places, folded = [], []
    for number in range(1, 1000):
        for name in ("connect", "connect-shadow"):
            shutil.rmtree(folder.path / name, ignore_errors=True)
        cutover = Cutover(folder, owner).fill(with_wal=with_wal)
        status, follower = kill_at(make_killat, cutover, number)
        if status == 0:
            break
        assert status == -signal.SIGKILL
        follower.must_be_met()
        place = cutover.check()
        places.append("moved" if place == cutover.normal else
                      "held" if cutover.is_held(place) else "untouched")
        folded.append(cutover.is_in_one_file(place))
        told = cutover.must_run()
        assert cutover.check() == cutover.normal
        assert told["already"] == (place == cutover.normal)
        assert cutover.must_run()["already"] is True
        assert cutover.read(cutover.normal, "SELECT state FROM events"
                            " WHERE id = 2") == ("held",)
    # It went through all three, in their order.
    assert places == sorted(places, key=["untouched", "held", "moved"].index)
    assert {"untouched", "held", "moved"} == set(places)
    assert folded[places.index("moved") - 1], "what is moved is all of it"
