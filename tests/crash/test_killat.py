"""killat over a toy: each kind of point is hit exactly there, what misses its
point says so, and nothing else is disturbed.
"""

import errno
import os
import signal
import subprocess

import pytest

import harness
import killat
import processes
import surroundings

pytestmark = pytest.mark.skipif(
    not killat.is_here(), reason="killat knows Linux on x86_64 only")

needs_root = pytest.mark.skipif(
    not harness.is_root(), reason="only root sees what is not dumpable")
NOTES_SIZE = 65536


class Toy:
    """The toy's files; run() starts it under a killat, or without."""

    def __init__(self, folder):
        self.program = str(harness.built("tests", "crash", "killat_toy"))
        self.notes_path = folder.path / "notes"
        self.out_path = folder.path / "out"
        self.notes_path.write_bytes(bytes(NOTES_SIZE))
        self.out_path.write_bytes(b"")
        for path in (self.notes_path, self.out_path):
            path.chmod(0o666)
        self.process = None

    def argv(self, *steps, name="toy"):
        return [name, str(self.notes_path), str(self.out_path), *steps]

    def run(self, follower, *steps):
        self.process = subprocess.Popen(
            self.argv(*steps), executable=self.program,
            stdin=subprocess.PIPE, preexec_fn=follower.birth)
        return self

    def end(self):
        """Its exit status, negative for a signal."""
        self.process.stdin.close()
        return self.process.wait(20)

    def notes(self, name="toy"):
        """[(step, errno)] of what is called that, as far as it came."""
        text = self.notes_path.read_bytes()[4:].split(b"\0", 1)[0].decode()
        lines = [line.split(" ") for line in text.splitlines()]
        return [(step, int(error)) for who, step, error in lines
                if who == name]

    def steps(self, name="toy"):
        return "".join(step for step, _ in self.notes(name))

    def wait_steps(self, steps, name="toy"):
        harness.wait_for(lambda: self.steps(name) == steps,
                         what="%s to have done %s" % (name, steps))

    def out(self):
        return self.out_path.read_text()


@pytest.fixture
def toy(folder):
    made = Toy(folder)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.process.kill()
        made.process.wait()


# ---- the point -------------------------------------------------------------

POINTS = {
    "first": ("write", "", 0),
    "third-of-its-class": ("write:3", "wv", 2),
    "sync": ("sync", "wvw", 3),
    "by-name": ("writev:1", "w", 1),
    "bytes-to-streams": ("send:4", "wvws", 3),
    "on-no-such-descriptor": ("write/!0:2", "w", 1),
    "bytes": ("write~^c+$", "wv", 2),
    "over-two-pieces": ("write~^abcd$", "w", 1),
    "second-with-bytes": ("write:2~[ab]", "w", 1),
}


@pytest.mark.parametrize("name", POINTS)
def test_killed_exactly_there(make_killat, toy, name):
    """The call does not happen, and nothing after it."""
    point, steps, written = POINTS[name]
    follower = make_killat("kill@toy:" + point)
    toy.run(follower, "w:a", "v:abcd", "w:ccc", "s", "w:d")
    assert toy.end() == -signal.SIGKILL
    follower.must_be_met()
    assert toy.steps() == steps
    assert toy.out() == "".join(["a", "abcd", "ccc"][:written])
    said = follower.wait(what="kill")
    assert (said["name"], said["pid"]) == ("toy", toy.process.pid)
    assert follower.wait(what="exit")["signal"] == signal.SIGKILL


def test_on_a_descriptor(make_killat, toy):
    """What goes elsewhere is not counted."""
    follower = make_killat("note@toy:write:1")
    toy.run(follower, "w:a")
    toy.end()
    fd = follower.wait(what="note")["fd"]
    follower = make_killat("kill@toy:write/%d:2" % fd)
    toy.run(follower, "m:x", "w:b", "m:x", "w:c")
    assert toy.end() == -signal.SIGKILL
    follower.must_be_met()
    assert toy.out() == "ab"


def test_transmission_after_a_read(make_killat, toy):
    """The first write after the read that fits, and no other read's."""
    follower = make_killat("kill@toy:tx~^wanted$")
    toy.run(follower, "m:other", "r", "w:a", "m:wanted", "w:b", "r", "w:c")
    assert toy.end() == -signal.SIGKILL
    follower.must_be_met()
    assert toy.steps() == "mrwmwr" and toy.out() == "ab"


@pytest.mark.parametrize("rule", [
    "kill@toy:write:3", "kill@toy:write~never", "kill@other:write",
    "hold@toy-child:exec", "fail=EIO@toy:sync", "kill@toy:tx~w",
    "later:kill@toy:write"])
def test_a_missed_point_fails(make_killat, toy, rule):
    follower = make_killat("record@toy:write", rule)
    toy.run(follower, "w:a", "w:b")
    assert toy.end() == 0
    assert follower.wait_end() == 1
    assert follower.wait(what="end")["missed"] == [2]


@pytest.mark.parametrize("rule", [
    "kill", "kill@toy", "kill@toy:", "kill@toy:nothing", "maim@toy:write",
    "kill@toy:write:0", "kill@toy:write:x", "kill@toy:write/x",
    "kill@toy:write~(", "fail=ENOTHING@toy:write", "fail=EIO@toy:exec",
    "kill@" + "x" * 64 + ":write"])
def test_a_wrong_rule_is_refused(make_killat, rule):
    follower = make_killat(rule)
    assert follower.wait_end() == 2 and follower.said() == []


def test_armed_later(make_killat, toy):
    """What was before does not count."""
    follower = make_killat("later:kill@toy:write:2")
    toy.run(follower, "w:a", "w:b", "w:c", "i", "w:d", "w:e", "w:f")
    toy.wait_steps("www")
    follower.arm(1)
    assert toy.end() == -signal.SIGKILL
    follower.must_be_met()
    assert toy.out() == "abcd"


# ---- counting --------------------------------------------------------------

STORY = ["w:a", "v:bc", "s", "m:x", "r", "t:d", "a", "c:toy-child:w:e,s",
         "f:w:f", "W"]


def counted(make_killat, toy):
    follower = make_killat(count=True)
    toy.run(follower, *STORY)
    assert toy.end() == 0
    follower.must_be_met()
    return follower.wait(what="counts")["names"]


def test_counts_are_exact_and_repeatable(make_killat, toy):
    first = counted(make_killat, toy)
    assert {name: (c["write"], c["send"], c["sync"], c["name"])
            for name, c in first.items()} == {
        "toy": (5, 4, 1, 0), "toy-child": (2, 1, 1, 0),
        "toy/fork": (1, 1, 0, 0)}
    assert counted(make_killat, toy) == first


def test_only_whom_a_rule_names_is_counted(make_killat, toy):
    follower = make_killat("record@toy-child:write")
    toy.run(follower, *STORY)
    assert toy.end() == 0
    follower.must_be_met()
    assert list(follower.wait(what="counts")["names"]) == ["toy-child"]


def test_counts_so_far(make_killat, toy):
    follower = make_killat(count=True)
    toy.run(follower, "w:a", "w:b", "i", "w:c")
    toy.wait_steps("ww")
    assert follower.counts()["toy"]["write"] == 2
    assert toy.end() == 0
    follower.wait_end()
    assert follower.said(what="counts")[-1]["names"]["toy"]["write"] == 3


# ---- holding ---------------------------------------------------------------

def test_held_at_its_exec(make_killat, toy):
    follower = make_killat("hold@toy-child:exec")
    toy.run(follower, "c:toy-child:w:a", "w:b", "W")
    follower.wait(what="hold")
    toy.wait_steps("cw")
    assert toy.out() == "b"
    follower.go(1)
    assert toy.end() == 0
    follower.must_be_met()
    assert toy.steps("toy-child") == "w" and toy.out() == "ba"


def test_held_at_a_call(make_killat, toy):
    """The call has not happened, and happens when it is let go."""
    follower = make_killat("hold@toy-child:write:2")
    toy.run(follower, "c:toy-child:w:a,w:b,w:c", "w:-", "W")
    follower.wait(what="hold")
    toy.wait_steps("cw")
    assert toy.steps("toy-child") == "w"
    follower.go(1)
    assert toy.end() == 0
    assert toy.steps("toy-child") == "www"
    assert toy.out().replace("-", "") == "abc"


def test_each_life_is_held(make_killat, toy):
    follower = make_killat("hold@toy-child:exec:1+")
    toy.run(follower, "c:toy-child:w:a", "c:toy-child:w:b", "W")
    harness.wait_for(lambda: len(follower.said(what="hold")) == 2)
    follower.go_all()
    assert toy.end() == 0
    assert sorted(toy.out()) == ["a", "b"]


def test_killed_while_it_is_held(make_killat, toy):
    follower = make_killat("hold@toy:write")
    toy.run(follower, "w:a")
    follower.wait(what="hold")
    toy.process.kill()
    assert toy.end() == -signal.SIGKILL
    follower.must_be_met()
    assert toy.out() == ""


# ---- failing ---------------------------------------------------------------

FAILURES = {
    "write": ("ENOSPC", "write:2", ["w:a", "w:b", "w:c"], "ac"),
    "sync": ("EIO", "fdatasync", ["w:a", "s", "s"], "a"),
    "in-a-thread": ("EIO", "write:2", ["w:a", "t:b", "w:c"], "ac"),
    "receive": ("ECONNRESET", "recvmsg", ["m:a", "r", "r"], ""),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_call_fails(make_killat, toy, name):
    """The program sees the error, the call did not happen, the next one does.
    """
    error, point, steps, out = FAILURES[name]
    follower = make_killat("fail=%s@toy:%s" % (error, point))
    toy.run(follower, *steps)
    assert toy.end() == 0
    follower.must_be_met()
    assert [code for _, code in toy.notes()] == [
        0, getattr(errno, error), 0]
    assert toy.out() == out


@pytest.mark.parametrize("call, step", [("mmap", "a"), ("brk", "b")])
def test_memory_runs_out(make_killat, toy, call, step):
    """brk(2) has no errno of its own; libc finds one."""
    follower = make_killat("later:fail=ENOMEM@toy:" + call)
    toy.run(follower, step, "i", step, step)
    toy.wait_steps(step)
    follower.arm(1)
    assert toy.end() == 0
    follower.must_be_met()
    assert toy.notes() == [(step, 0), ("i", 0), (step, errno.ENOMEM),
                           (step, 0)]


def test_every_call_from_there_on_fails(make_killat, toy):
    follower = make_killat("fail=ENOSPC@toy:write:2+")
    toy.run(follower, "w:a", "w:b", "s", "w:c")
    assert toy.end() == 0
    follower.must_be_met()
    full = errno.ENOSPC
    assert toy.notes() == [("w", 0), ("w", full), ("s", full), ("w", full)]
    assert toy.out() == "a"


# ---- behind walls ----------------------------------------------------------

def test_behind_walls(make_killat, toy):
    """Another user, not dumpable, no_new_privs and a filter: a call fails or
    is counted as before, and the filter lets what takes its place pass.
    """
    follower = make_killat("fail=ENOSPC@toy:write:2", "fail=EIO@toy:sync",
                           "kill@toy:write:4")
    toy.run(follower, "x", "w:a", "w:b", "s", "w:c", "w:d")
    assert toy.end() == -signal.SIGKILL
    follower.must_be_met()
    assert toy.notes() == [("x", 0), ("w", 0), ("w", errno.ENOSPC),
                           ("s", errno.EIO)]


@needs_root
def test_bytes_behind_walls(make_killat, toy):
    follower = make_killat("kill@toy:write~^b", "record@toy:write")
    toy.run(follower, "x", "w:a", "w:bc")
    assert toy.end() == -signal.SIGKILL
    follower.must_be_met()
    assert toy.out() == "a"
    assert follower.wait(what="record")["text"] == "a"


@needs_root
def test_says_when_it_cannot_see(folder, toy):
    """Counting works as any user; bytes of what is not dumpable do not."""
    tools = folder.make("tools")
    paths = [tools / name for name in ("killat", "killat_toy")]
    for path in paths:
        surroundings.link_or_copy(
            harness.built("tests", "crash", path.name), path)
    argv = toy.argv("w:a", "x", "w:b", "w:c", name=str(paths[1]))
    done = subprocess.run(
        [str(paths[0]), "kill@killat_toy:write~c", "record@killat_toy:write:2",
         "--", *argv], user=65534, group=65534, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1, done
    assert '"what":"blind","rule":1' in done.stdout
    assert '"missed":[1]' in done.stdout
    assert '"write":3' in done.stdout
    assert toy.out() == "abc"


# ---- the tree --------------------------------------------------------------

LIVE_ON = {
    "kill": {"toy", "toy/fork", "stranger"},
    "kill-root": {"toy-child", "toy/fork", "stranger"},
    "kill-tree": {"stranger"},
}


@pytest.mark.parametrize("action", LIVE_ON)
def test_who_lives_on(make_killat, toy, action):
    """A root, a fork of it and a stranger wait; a child comes to its point.
    The stranger is let go at its exec, whatever happens.
    """
    follower = make_killat("hold@toy-child:exec", action + "@toy-child:write")
    toy.run(follower, "f:i", "c:stranger:i", "c:toy-child:w:1,i", "i", "w:2")
    pids = {"toy": toy.process.pid,
            "stranger": follower.wait(what="let_go", name="stranger")["pid"],
            "toy-child": follower.wait(what="hold")["pid"]}
    fork, = {p.pid for p in processes.descendants(toy.process.pid)
             } - set(pids.values())
    pids["toy/fork"] = fork
    found = {name: processes.read_process(pid) for name, pid in pids.items()}
    follower.go(1)
    follower.wait(what="kill")
    for name in set(pids) - LIVE_ON[action]:
        assert follower.wait(what="exit", pid=pids[name])["signal"] == 9
    assert {name for name, process in found.items()
            if processes.is_running(process)} == LIVE_ON[action]
    assert toy.end() == (0 if action == "kill" else -signal.SIGKILL)
    follower.must_be_met()
    assert toy.out() == {"kill": "2", "kill-root": "1", "kill-tree": ""}[action]
    assert not follower.said(what="exit", pid=pids["stranger"])


def test_who_lives_on_when_told(make_killat, toy):
    """All of the tree is killed wherever it is, and nobody else."""
    follower = make_killat()
    toy.run(follower, "c:toy-child:i", "c:stranger:i", "i")
    child = follower.wait(what="exec", name="toy-child")["pid"]
    stranger = processes.read_process(
        follower.wait(what="let_go", name="stranger")["pid"])
    follower.kill()
    for pid in (toy.process.pid, child):
        assert follower.wait(what="exit", pid=pid)["signal"] == 9
    assert processes.is_running(stranger)
    assert toy.end() == -signal.SIGKILL
    follower.must_be_met()


def test_the_tree_dies_with_its_tracer(make_killat, toy):
    """Nothing goes on unwatched."""
    follower = make_killat("kill@toy:write")
    toy.run(follower, "c:toy-child:i", "c:stranger:i", "i")
    stranger = follower.wait(what="let_go", name="stranger")["pid"]
    found = processes.read_process(stranger)
    child = processes.read_process(
        follower.wait(what="exec", name="toy-child")["pid"])
    follower.process.kill()
    assert toy.process.wait(20) == -signal.SIGKILL
    harness.wait_for(lambda: not processes.is_running(child))
    assert processes.is_running(found)
    toy.end()


def test_a_stop_is_still_a_stop(make_killat, toy):
    follower = make_killat(count=True)
    toy.run(follower, "w:a", "S", "w:b")
    harness.wait_for(
        lambda: toy.steps() == "w" and
        processes.read_process(toy.process.pid).state in "Tt",
        what="the toy to stop")
    os.waitid(os.P_PID, toy.process.pid, os.WSTOPPED | os.WNOWAIT)
    toy.process.send_signal(signal.SIGCONT)
    assert toy.end() == 0
    follower.must_be_met()
    assert toy.out() == "ab"


def test_with_a_command_of_its_own(toy):
    """As it is used by hand."""
    done = subprocess.run(
        [str(harness.built("tests", "crash", "killat")),
         "kill-root@killat_toy:write:2", "--",
         *toy.argv("w:a", "w:b", name=toy.program)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20,
        check=False)
    assert done.returncode == 0, done
    assert toy.out() == "a"
