"""A connector under test: connectd with its files, its scripted agent, and
eyes on what it says and what it is. The rest of what tests use is in
surroundings.py and reachable from here.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import tempfile
import threading
import time

import processes
from surroundings import (
    AGENTS, MARKER, ROOT, WORKER_USER, Folder, HarnessError, Sim, built,
    end_with_parent, is_root, leave_cgroups, make_users, sanitizer_environ,
    stop_process, wait_for)

__all__ = [
    "AGENTS", "MARKER", "ROOT", "WORKER_USER", "Connector", "Folder",
    "HarnessError", "Sim", "built", "end_with_parent", "is_root",
    "make_users", "sanitizer_lines", "wait_for"]

PROJECT = 48699913
OPERATOR = 26909558
AGENT = 52007412

# The roles that a running connector always has, by their process names, which
# the kernel cuts at 15 characters.
ROLES = {
    "ledger": "connectd-ledger",
    "intake": "connectd-intake",
    "dispatcher": "connectd-dispatcher",
    "outbox": "connectd-outbox",
}
OTHER_COMMS = {"mcpd": "connectd-mcpd", "bridge": "connect-bridge",
               "worker": "claude"}

# Short where a test would otherwise wait, long where it must not fire.
FAST = {
    "feed_poll": "50ms",
    "dispatch_tick": "20ms",
    "reconcile_after": "200ms",
    "cancel_grace": "5s",
    "guard_delay": "1h",
}


class Lines:
    """What a process writes to a pipe, read in a thread, kept whole."""

    def __init__(self, pipe, keep):
        self.cond = threading.Condition()
        self.all = []
        self.times = []
        self.ended = False
        self.pipe = pipe
        self.keep = open(keep, "ab")
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.pipe:
            self.keep.write(line)
            self.keep.flush()
            with self.cond:
                self.all.append(line.decode("utf-8", "replace").rstrip("\n"))
                self.times.append(time.monotonic())
                self.cond.notify_all()
        with self.cond:
            self.ended = True
            self.cond.notify_all()

    def wait(self, matches, timeout, start=0):
        """(index, what matches returned) of the first line from start for
        which it is true; None when the time is over or the pipe ended.
        """
        deadline = time.monotonic() + timeout
        index = start
        with self.cond:
            while True:
                while index < len(self.all):
                    found = matches(self.all[index])
                    if found:
                        return index, found
                    index += 1
                left = deadline - time.monotonic()
                if self.ended or left <= 0:
                    return None
                self.cond.wait(left)

    def close(self):
        self.thread.join(10)
        self.pipe.close()
        self.keep.close()


class Director:
    """Does what a scripted agent asks of the harness: kill, arrive, await."""

    def __init__(self, connector, path):
        self.connector = connector
        self.asked = []
        self.arrived = None
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(path))
        os.chmod(path, 0o777)
        self.listener.listen()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(peer,),
                             daemon=True).start()

    def answer(self, peer):
        # Whoever asked may be gone when it is answered.
        with contextlib.suppress(OSError), peer, \
                peer.makefile("rw", encoding="utf-8") as file:
            request = json.loads(file.readline())
            self.asked.append(request)
            try:
                answer = getattr(self, "do_" + request["ask"])(request)
            except (HarnessError, KeyError, ValueError) as error:
                answer = {"error": str(error)}
            file.write(json.dumps(answer) + "\n")
            file.flush()

    def do_kill(self, request):
        return {"killed": self.connector.kill(request["what"])}

    def do_arrive(self, request):
        thread = self.connector.query(
            "SELECT reply_recording_id FROM events WHERE id = ?",
            request["event_id"])[0]["reply_recording_id"]
        made = self.connector.sim.mention(request["text"],
                                          recording_id=thread)
        self.arrived = made["event_id"]
        return made

    def do_await(self, request):
        event_id = request["id"]
        if event_id == "arrived":
            event_id = self.arrived
        self.connector.wait_event(int(event_id), *request["states"])
        return {"reached": self.connector.event_state(int(event_id))}

    def close(self):
        """The thread first: one that waits in accept() would take what comes
        to the next socket of the same number.
        """
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join(10)
        self.listener.close()


class Connector:
    """A connectd with its files, its agent's script, and eyes on it. It may
    be started, killed and started again over the same state. A follower sees
    its processes from birth: its birth() is called between fork and exec, its
    go_all() before an end in order is asked for. Without cgroups it runs as
    on a host that has none, which takes root.
    """

    def __init__(self, sim, folder, profile="demo", script=None, limits=None,
                 config=None, environ=None, arguments=(), follower=None,
                 cgroups=True):
        self.sim = sim
        self.follower = follower
        self.cgroups = cgroups
        self.folder = folder
        self.profile = profile
        self.arguments = list(arguments)
        self.bin = folder.programs()
        self.process = None
        self.lines = None
        self.logs = None
        self.user = WORKER_USER if is_root() else None
        self.make_folders()
        self.environ = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "XDG_CONFIG_HOME": str(self.xdg_config),
            "XDG_STATE_HOME": str(self.xdg_state),
            "XDG_RUNTIME_DIR": str(self.xdg_run),
            "BASECAMP_BASE_URL": sim.url,
            MARKER: folder.marker,
        }
        self.environ.update(sanitizer_environ())
        self.environ.update(environ or {})
        self.config = self.default_config(limits or {})
        self.config.update(config or {})
        self.write_config()
        self.write_credentials()
        self.director = Director(self, self.out / "harness")
        self.set_script(script or {})

    def make_folders(self):
        make = self.folder.make
        self.home = make("home", 0o700)
        self.xdg_config = make("config")
        self.xdg_state = make("state")
        self.xdg_run = make("run", 0o755 if is_root() else 0o700)
        self.route = make("route", 0o755, self.user)
        self.out = make("out", 0o755, self.user)
        self.agent_log = self.out / "agent.log"
        self.config_dir = self.xdg_config / "connectd" / self.profile
        self.config_dir.mkdir(parents=True, mode=0o700)
        self.config_dir.parent.chmod(0o700)
        self.run_dir = self.xdg_run / "connectd" / self.profile
        self.state_dir = (self.xdg_state / "basecamp" / "connect" /
                          ("999-%d" % AGENT))

    @property
    def sessions(self):
        """Where its attempts have their session directories: of the run-time
        directory, which other instances may share, its own part.
        """
        digest = hashlib.sha256(bytes(self.state_dir)).hexdigest()
        return self.run_dir / ("s-" + digest[:8])

    def default_config(self, limits):
        worker = {
            "driver": "claude",
            "command": [str(self.folder.path / "agents" / "claude")],
            "confine": "landlock",
            "read": [str(self.folder.path / "agents")],
            "write": [str(self.out)],
            "env": {
                "CONNECTD_AGENT_SCRIPT": str(self.out / "script.json"),
                MARKER: self.folder.marker,
            },
        }
        if self.user:
            worker["user"] = self.user
        return {
            "version": 1,
            "profile": self.profile,
            "account_id": "999",
            "agent": {"person_id": AGENT, "kind": "agent"},
            "trust": {"mode": "operator", "operator_id": OPERATOR},
            "projects": {str(PROJECT): {"path": str(self.route),
                                        "class": "web"}},
            "concurrency": 2,
            "deadline": "1h0m0s",
            "worker": worker,
            "limits": dict(FAST, **limits),
        }

    def write_config(self, text=None):
        path = self.config_dir / "connect.json"
        path.write_text(text or json.dumps(self.config, indent=1))
        path.chmod(0o600)

    def write_credentials(self, **changes):
        path = self.config_dir / "credentials.json"
        members = {
            "client_id": "agent-client",
            "client_secret": "not-a-real-secret",
            "token_endpoint": self.sim.url + "/oauth/tokens",
            "scope": "full",
        }
        members.update(changes)
        path.write_text(json.dumps(members))
        path.chmod(0o600)

    def set_script(self, script):
        """The agent's script, for the processes that start from now on."""
        members = {
            "log": str(self.agent_log),
            "out": str(self.out),
            "harness": str(self.out / "harness"),
            "control": str(self.run_dir / "control.sock"),
        }
        members.update(script)
        path = self.out / "script.json"
        path.write_text(json.dumps(members))
        path.chmod(0o644)

    # -- its life ---------------------------------------------------------

    def start(self, *more, ready=True, entered=True):
        """Run connectd; ready: and wait for all roles and for the feed's
        position, or without entered for the roles alone.
        """
        self.process = subprocess.Popen(
            [str(self.bin / "connectd"), "run", "--profile", self.profile,
             *self.arguments, *more],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=self.environ, cwd="/",
            start_new_session=True, preexec_fn=self.birth)
        self.lines = Lines(self.process.stdout,
                           self.folder.path / "connectd.stdout")
        self.logs = Lines(self.process.stderr,
                          self.folder.path / "connectd.stderr")
        if ready:
            self.wait_ready()
        if ready and entered:
            self.wait_entered()
        return self

    def birth(self):
        """In the process that is to be the supervisor, before its exec."""
        if not self.cgroups:
            leave_cgroups()
        if self.follower:
            self.follower.birth()
        else:
            end_with_parent()

    def wait_ready(self, timeout=20):
        """All roles are up and the ledger answers."""
        def is_ready():
            self.must_run()
            return set(self.roles()) >= set(ROLES) and self.status()
        return wait_for(is_ready, timeout, "every role: " + self.tail())

    def wait_entered(self):
        """Intake has a position: what comes from now on will be served. A
        feed that is entered at the present serves nothing older.
        """
        self.wait_status(
            lambda s: any(p["has_position"] for p in
                          s["data"]["status"].get("positions", [])),
            what="a position of the feed")
        return self

    def must_run(self):
        if self.process.poll() is not None:
            raise HarnessError("connectd ended with %d: %s"
                               % (self.process.returncode, self.tail()))

    def stop(self, timeout=60):
        """SIGTERM; the exit status."""
        self.folder.note(self.process.pid)
        self.process.send_signal(signal.SIGTERM)
        return self.wait_end(timeout)

    def wait_end(self, timeout=60):
        """The exit status of a connectd that is ending."""
        status = stop_process(self.process, timeout)
        self.lines.close()
        self.logs.close()
        return status

    def kill(self, what="supervisor", number=signal.SIGKILL):
        """Kill the supervisor or one process of a role, whose identity was
        read just before; or the whole tree by its follower. Returns its pid.
        """
        self.folder.note(self.process.pid)
        if what == "tree":
            self.follower.kill()
            return self.process.pid
        if what == "supervisor":
            self.process.send_signal(number)
            return self.process.pid
        found = self.roles().get(what)
        if not found or not processes.send_signal(found[0], number):
            raise HarnessError("no %s to kill" % what)
        return found[0].pid

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def pid(self):
        """The supervisor's, until its end was noticed; None without one."""
        process = self.process
        return process.pid if process and process.returncode is None else None

    def worker_comms(self):
        """What the kernel calls a worker and its bridge."""
        command = self.config["worker"]["command"][0]
        return os.path.basename(command), OTHER_COMMS["bridge"]

    def close(self):
        """End it, however the test left it."""
        self.director.close()
        if self.process is None:
            return
        if self.is_running():
            if self.follower:
                self.follower.go_all()
            self.stop()
        else:
            self.lines.close()
            self.logs.close()

    # -- what it says -----------------------------------------------------

    def tail(self, count=15):
        return "\n".join(self.logs.all[-count:]) if self.logs else ""

    def wait_line(self, timeout=20, start=0, **fields):
        """The first line from index start with these members; a value may
        be a function. A pointer line has no type: type=None.
        """
        def matches(text):
            line = json.loads(text)
            for name, want in fields.items():
                have = line.get(name)
                if not (want(have) if callable(want) else have == want):
                    return None
            return line

        found = self.lines.wait(matches, timeout, start)
        if found is None:
            raise HarnessError("no line %r in %s\n%s" % (
                fields, self.lines.all, self.tail()))
        return dict(found[1], _index=found[0],
                    _time=self.lines.times[found[0]])

    def has_line(self, start, **fields):
        """Is there a line from index start on with these members by now?"""
        return any(
            all(line.get(name) == want for name, want in fields.items())
            for line in map(json.loads, self.lines.all[start:]))

    def line_count(self):
        return len(self.lines.all)

    def wait_log(self, text, timeout=20):
        if self.logs.wait(lambda line: text in line, timeout) is None:
            raise HarnessError("no %r in the log:\n%s" % (text, self.tail()))

    def connectctl(self, *arguments, timeout=20):
        """One run of connectctl, text form."""
        return subprocess.run(
            [str(self.bin / "connectctl"), "-P", self.profile, *arguments],
            env=self.environ, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=timeout, check=False, text=True)

    def control(self, *arguments):
        """connectctl --json: what it printed, or None when it failed."""
        done = self.connectctl("--json", *arguments)
        if done.returncode != 0:
            return None
        return json.loads(done.stdout)

    def status(self):
        """What a running connector and its ledger say, be all well (0) or not
        (1); None when one of them says nothing.
        """
        done = self.connectctl("--json", "status")
        if done.returncode not in (0, 1):
            return None
        said = json.loads(done.stdout)
        return said if said["ok"] and said["data"]["status"] else None

    def wait_status(self, condition, timeout=20, what="a status"):
        """The first status for which the condition is true."""
        last = []

        def look():
            status = self.status()
            last[:] = [status]
            return status if status and condition(status) else None
        try:
            return wait_for(look, timeout, what, every=0.02)
        except HarnessError as error:
            raise HarnessError("%s; last: %s\n%s" % (
                error, json.dumps(last[0]), self.tail())) from error

    def agent_records(self, what=None):
        """What the scripted agents logged."""
        if not self.agent_log.exists():
            return []
        text = self.agent_log.read_text(encoding="utf-8")
        records = [json.loads(line) for line in text.splitlines(True)
                   if line.endswith("\n")]
        return [r for r in records if what is None or r["what"] == what]

    # -- what it is -------------------------------------------------------

    def roles(self):
        """Role -> its processes, from the supervisor's own tree. Bridges and
        workers are there too, as `bridge` and `worker`.
        """
        names = {comm[:15]: role
                 for role, comm in {**ROLES, **OTHER_COMMS}.items()}
        found = {}
        for process in processes.descendants(self.process.pid):
            self.folder.seen.add(process)
            role = names.get(process.comm)
            if role is not None and process.state not in "ZX":
                found.setdefault(role, []).append(process)
        return found

    @contextlib.contextmanager
    def ledger(self):
        """A copy of the ledger to read, taken between two writes."""
        with tempfile.TemporaryDirectory(dir=self.folder.path) as folder:
            copy = wait_for(lambda: copy_ledger(self.state_dir, folder),
                            what="a quiet moment of the ledger")
            connection = sqlite3.connect(copy)
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA synchronous = OFF")  # it is a copy
            try:
                yield connection
            finally:
                connection.close()

    def query(self, sql, *values):
        """Rows as dicts from a copy of the ledger."""
        with self.ledger() as connection:
            return [dict(row) for row in connection.execute(sql, values)]

    def event_state(self, event_id):
        rows = self.query("SELECT state FROM events WHERE id = ?", event_id)
        return rows[0]["state"] if rows else None

    def wait_event(self, event_id, *states, timeout=20):
        """Wait until a record is in one of the states."""
        return wait_for(lambda: self.event_state(event_id) in states, timeout,
                        "event %s in %s: %s" % (event_id, states, self.tail()))


def ledger_stamp(path):
    try:
        info = os.stat(path)
    except FileNotFoundError:
        return None
    return (info[stat.ST_INO], info.st_size, info.st_mtime_ns)


def copy_ledger(state_dir, folder):
    """The copy's path, or None when the ledger was written meanwhile."""
    names = ["ledger.db", "ledger.db-wal"]
    before = [ledger_stamp(state_dir / name) for name in names]
    if before[0] is None:
        return None
    for name, stamp in zip(names, before):
        target = pathlib.Path(folder) / name
        target.unlink(missing_ok=True)
        if stamp is not None:
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(state_dir / name, target)
    after = [ledger_stamp(state_dir / name) for name in names]
    return os.path.join(folder, names[0]) if before == after else None


def sanitizer_lines(text):
    """The lines of a log in which a sanitizer speaks."""
    return [line for line in text.splitlines()
            if "Sanitizer" in line or "runtime error:" in line]
