"""What a test stands on: the build, the users, a folder of its own below
/tmp, the simulator, and waiting.

Nothing here waits by sleeping for a time that is hoped to be enough: every
wait is for a condition, with a deadline.
"""

import ctypes
import json
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

import processes

ROOT = pathlib.Path(__file__).resolve().parents[2]
AGENTS = ROOT / "tests" / "agents"
MARKER = "CONNECTD_TEST_RUN"
WORKER_USER = "connectd-worker"
PR_SET_PDEATHSIG = 1
CLONE_NEWNS = 0x20000
MS_REC = 0x4000
MS_PRIVATE = 1 << 18
MNT_DETACH = 2

# Where the build leaves each program.
PROGRAMS = {
    "connectd": "supervisor",
    "connectd-ledger": "ledger",
    "connectd-intake": "intake",
    "connectd-dispatcher": "dispatcher",
    "connectd-outbox": "outbox",
    "connectd-mcpd": "mcpd",
    "connect-bridge": "mcpd",
    "connectctl": "connectctl",
}
SIMULATOR = ("tests", "simulator", "basecamp-sim")

libc = ctypes.CDLL(None, use_errno=True)


class HarnessError(Exception):
    """A condition did not come true, or something ended that must not."""


def wait_for(condition, timeout=20, what="a condition", every=0.01):
    """What the condition returns once that is true."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise HarnessError("waited %g s for %s" % (timeout, what))
        time.sleep(every)


def build_dir():
    named = os.environ.get("CONNECTD_BUILD")
    return pathlib.Path(named) if named else ROOT / "build"


def built(*names):
    """The path of something built."""
    path = build_dir().joinpath(*names)
    if not path.exists():
        raise HarnessError("%s is not built (CONNECTD_BUILD names the build)"
                           % path)
    return path


def is_root():
    return os.geteuid() == 0


def sanitizer_environ():
    """What ./check tells sanitizers, for programs with an environment of
    their own.
    """
    return {name: value for name, value in os.environ.items()
            if name in ("ASAN_OPTIONS", "UBSAN_OPTIONS")}


def make_users():
    """As root: the role users and the worker's account, where missing."""
    if is_root():
        subprocess.run([str(ROOT / "tests" / "prepare.sh"), "users"],
                       check=True, stdout=subprocess.DEVNULL)


def end_with_parent():
    """Between fork and exec: an orderly stop should the test run be killed.
    """
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def leave_cgroups():
    """Between fork and exec, as root: a mount namespace in which no cgroup of
    version 2 is mounted, as on a host without.
    """
    if libc.unshare(CLONE_NEWNS) == -1 or libc.mount(
            b"none", b"/", None, MS_REC | MS_PRIVATE, None) == -1:
        raise OSError(ctypes.get_errno(), "no mount namespace")
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        points = [line.split()[4] for line in file if " - cgroup2 " in line]
    for point in points:
        if libc.umount2(point.encode(), MNT_DETACH) == -1:
            raise OSError(ctypes.get_errno(), "cannot unmount " + point)


def stop_process(popen, timeout):
    """Wait for a process that was asked to end; kill it when it does not."""
    try:
        return popen.wait(timeout)
    except subprocess.TimeoutExpired as error:
        popen.kill()
        popen.wait()
        raise HarnessError("%s did not end within %g s"
                           % (popen.args[0], timeout)) from error


def link_or_copy(source, target):
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


class Folder:
    """A private folder for one test, and the marker of what it starts."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="cd", dir="/tmp"))
        self.path.chmod(0o755)
        self.marker = uuid.uuid4().hex
        self.seen = set()
        self.clock_shift = 0  # seconds by which its programs' clock is off

    def make(self, name, mode=0o755, owner=None):
        path = self.path / name
        path.mkdir(exist_ok=True)
        path.chmod(mode)
        if owner is not None and is_root():
            entry = pwd.getpwnam(owner)
            os.chown(path, entry.pw_uid, entry.pw_gid)
        return path

    def programs(self):
        """The programs under names that every user may execute, all in one
        directory: the source tree may lie where a worker cannot look.
        """
        target = self.path / "bin"
        if not target.exists():
            self.make("bin")
            for name in PROGRAMS:
                link_or_copy(built(PROGRAMS[name], name), target / name)
            agents = self.make("agents")
            for source in AGENTS.iterdir():
                if source.is_file():
                    shutil.copy2(source, agents / source.name)
                    (agents / source.name).chmod(
                        0o755 if os.access(source, os.X_OK) else 0o644)
        return target

    def note(self, pid):
        """Remember a process and all below it, to find what it leaves."""
        process = processes.read_process(pid)
        if process is not None:
            self.seen.add(process)
            self.seen.update(processes.descendants(pid))

    def left_running(self):
        left = {(p.pid, p.started): p for p in self.seen
                if processes.is_running(p)}
        for process in processes.find_belonging(str(self.path), self.marker):
            left[(process.pid, process.started)] = process
        return sorted(left.values())

    def remove(self, timeout=5):
        """Assert that nothing runs any more, end what does, and remove."""
        deadline = time.monotonic() + timeout
        left = self.left_running()
        while left and time.monotonic() < deadline:
            time.sleep(0.02)
            left = self.left_running()
        for process in left:
            processes.send_signal(process, signal.SIGKILL)
        shutil.rmtree(self.path, ignore_errors=True)
        if left:
            raise HarnessError("left running: " + ", ".join(
                "%s (pid %d)" % (p.comm, p.pid) for p in left))


class Sim:
    """A basecamp-sim of this test's own."""

    def __init__(self, folder, *arguments):
        self.folder = folder
        self.errors = open(folder.path / "sim.stderr", "wb")
        self.process = subprocess.Popen(
            [str(built(*SIMULATOR)), "--listen",
             "127.0.0.1:0", "--die-with-stdin", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.errors, start_new_session=True,
            env=dict(sanitizer_environ(), PATH="/usr/bin:/bin",
                     **{MARKER: folder.marker}))
        line = self.process.stdout.readline()
        if not line:
            raise HarnessError("basecamp-sim: " + self.stderr())
        self.ready = json.loads(line)
        self.url = self.ready["url"]

    def stderr(self):
        return (self.folder.path / "sim.stderr").read_text(errors="replace")

    def request(self, method, path, body=None, timeout=20):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data=data, method=method,
            headers={"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=timeout) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise HarnessError("%s %s: %d %s" % (
                method, path, error.code, error.read()[:400])) from error
        return json.loads(text) if text else None

    def get(self, path):
        return self.request("GET", path)

    def post(self, path, body=None):
        return self.request("POST", path, body or {})

    def mention(self, text="could you take a look?", **more):
        """A comment that mentions the agent; what was made of it."""
        return self.post("/sim/mention", dict(more, text=text))

    def fault(self, route, **more):
        return self.post("/sim/fault", dict(more, route=route))

    def clear_faults(self):
        return self.post("/sim/fault/clear")

    def gate(self, route):
        return self.post("/sim/gate", {"route": route})

    def release(self, route):
        return self.post("/sim/release", {"route": route})

    def world(self, changes):
        return self.post("/sim/world", changes)

    def messages(self):
        return self.get("/sim/messages")["messages"]

    def log(self, route=None):
        """The requests so far, or those that a route pattern matches."""
        query = "?" + urllib.parse.urlencode({"route": route}) if route else ""
        return self.get("/sim/log" + query)["requests"]

    def wait(self, what, count, timeout=20, **more):
        """Until so many of: requests, answered (both with route=), messages
        (kind=), held, hits (fault=); or served up to an event's id.
        """
        query = urllib.parse.urlencode(dict(
            more, what=what, count=count, timeout_ms=int(timeout * 1000)))
        return self.request("GET", "/sim/await?" + query,
                            timeout=timeout + 5)["count"]

    def state(self):
        return self.get("/sim/state")

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        try:
            return stop_process(self.process, 10)
        finally:
            self.errors.close()
