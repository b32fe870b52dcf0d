"""Where a credential must not be, looked for from outside (operator.md 7).

What is looked for: task tokens, of which the ledger tells only the hash (every
run of 43 base64url characters is hashed and compared) and killat the bytes,
and secrets that the test itself handed out. Findings say where, never what.
Nothing read is a failure.
"""

import hashlib
import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import threading

import processes

TOKEN_LENGTH = 43
RUN = re.compile(rb"[A-Za-z0-9_-]{%d,}" % TOKEN_LENGTH)
BOOT = pathlib.Path("/proc/sys/kernel/random/boot_id")
SEARCHER = pathlib.Path(__file__).with_name("search_files.py")
# Longer than any token in a longer word; such a run is data, not words.
RUN_MOST = 64 * 1024


class Needles:
    """What must not be found: task tokens, or their hashes, and named secrets.
    """

    def __init__(self, **secrets):
        self.hashes = set()
        self.tokens = set()
        self.secrets = {name: text.encode() for name, text in secrets.items()}
        self.known = {}

    def learn_access(self, sim):
        """What each access token that the simulator mints begins with."""
        self.secrets.setdefault(
            "access_token", sim.ready["token_prefix"].encode())

    def learn(self, connector):
        """The tokens of all tasks at this moment: a re-key replaces them."""
        self.learn_access(connector.sim)
        for row in connector.query("SELECT token_sha256 FROM tasks"):
            self.hashes.add(row["token_sha256"])

    def is_token(self, word):
        """Is one of these 43 characters' hash a token's?"""
        if word not in self.known:
            self.known[word] = hashlib.sha256(word).hexdigest()
        return self.known[word] in self.hashes

    def search(self, data):
        """The names of what is in these bytes."""
        found = {name for name, secret in self.secrets.items()
                 if secret in data}
        if any(token in data for token in self.tokens):
            found.add("task token")
        for match in RUN.finditer(data):
            run = match.group()[:RUN_MOST]
            if any(self.is_token(run[at:at + TOKEN_LENGTH])
                   for at in range(len(run) - TOKEN_LENGTH + 1)):
                found.add("task token")
        return found


class Report:
    """What was read, by kind, and what was found in it."""

    def __init__(self, needles):
        self.needles = needles
        self.read = {}
        self.found = set()
        self.denied = set()
        self.hidden = set()

    def look(self, kind, where, data):
        self.read[kind] = self.read.get(kind, 0) + 1
        for name in self.needles.search(data):
            self.found.add("%s in %s %s" % (name, kind, where))

    def must_be_clean(self, *kinds):
        """Fails for a finding, for a file that could not be read, and for
        each kind of which nothing was read.
        """
        assert not self.found, sorted(self.found)
        assert not self.denied, sorted(self.denied)
        nothing = [kind for kind in kinds if not self.read.get(kind)]
        assert not nothing, "nothing was read of %s (read: %s)" % (
            nothing, self.read)


def look_at_file(report, path, kind="file"):
    """A file that vanished meanwhile is none; an unreadable one is told."""
    try:
        with open(path, "rb") as file:
            report.look(kind, path, file.read())
    except FileNotFoundError:
        return
    except OSError as error:
        report.denied.add("%s: %s" % (path, error.strerror))


def look_at_folder(report, top, skip=()):
    """Every regular file below, and every name, but for paths to skip."""
    for folder, names, files in os.walk(top):
        names[:] = [n for n in names if os.path.join(folder, n) not in skip]
        for name in names + files:
            report.look("name", folder, os.fsencode(name))
        for name in files:
            path = os.path.join(folder, name)
            if path not in skip and os.path.isfile(path):
                look_at_file(report, path)


def look_at_process(report, process):
    """Its argv and environment. What the kernel hides from us, it hides
    from a worker of the same user too.
    """
    for name in ("cmdline", "environ"):
        path = "/proc/%d/%s" % (process.pid, name)
        try:
            with open(path, "rb") as file:
                data = file.read()
        except PermissionError:
            report.hidden.add("%s of %s" % (name, process.comm))
            continue
        except (FileNotFoundError, ProcessLookupError):
            continue
        if data:
            report.look(name, "of %s (pid %d)" % (process.comm, process.pid),
                        data)


def look_at_processes(report, connector):
    """Every process of the product and of its workers."""
    if connector.is_running():
        own = processes.read_process(connector.process.pid)
        for process in [own] + processes.descendants(own.pid):
            look_at_process(report, process)
    for process in processes.find_belonging(str(connector.folder.path),
                                            connector.folder.marker):
        look_at_process(report, process)


def worker_folder(attempt):
    """The private temporary directory of an attempt of this boot."""
    return "/var/tmp/connectd-%s-%s" % (
        BOOT.read_text(encoding="ascii")[:8], attempt[4:16])


def worker_folders(connector):
    """Those of this connector's attempts."""
    return [worker_folder(row["id"])
            for row in connector.query("SELECT id FROM attempts")]


def look_around(report, connector):
    """Everything that can be read of a connector now: its directories, the
    agent's, what it printed, what Basecamp was sent, and all processes.
    """
    top = connector.folder.path
    skip = {str(connector.config_dir / "credentials.json"), str(top / "bin"),
            str(top / "agents")}
    look_at_folder(report, top, skip)
    for folder in worker_folders(connector):
        look_at_folder(report, folder)
    look_at_processes(report, connector)
    for kind, name in (("line", "stdout"), ("log", "stderr")):
        look_at_file(report, str(top / ("connectd." + name)), kind)
    for message in connector.sim.messages():
        report.look("post", message["kind"], repr(message).encode())
    for request in connector.sim.log():
        report.look("request", "%s %s" % (request["method"], request["path"]),
                    repr(request).encode())


# ---- files, in a process of its own ----------------------------------------

def search_files(report, folders, skip=()):
    """Every file below these. None read, or one that cannot be, fails."""
    needles = report.needles
    told = {
        "hashes": sorted(needles.hashes),
        "tokens": sorted(token.decode() for token in needles.tokens),
        "secrets": {name: secret.decode()
                    for name, secret in needles.secrets.items()},
        "skip": [str(path) for path in skip],
    }
    done = subprocess.run(
        [sys.executable, "-B", str(SEARCHER), *map(str, folders)],
        input=json.dumps(told), capture_output=True, text=True, check=False,
        errors="surrogateescape")
    assert done.returncode == 0, done.stderr[-400:]
    count = None
    for line in done.stdout.split("\n")[:-1]:
        what, *rest = line.split("\t")
        if what == "found":
            report.found.add("%s in file %s" % tuple(rest))
        elif what == "unreadable":
            report.denied.add(": ".join(rest))
        else:
            assert what == "read" and count is None, what
            count = int(rest[0])
    assert count, "no file was read below %s" % (folders,)
    report.read["file"] = report.read.get("file", 0) + count


# ---- at any moment ---------------------------------------------------------

class Watcher:
    """Looks for tokens, and named secrets, in every file below some folders,
    every 5 ms, however briefly it is there. It is the test's own: a worker
    that is ended by its tree reports nothing. FOLDERS and TOKENS are asked
    again in each round.
    """

    EVERY = 0.005

    def __init__(self, folders, tokens, secrets=()):
        self.folders = folders
        self.tokens = tokens
        self.secrets = dict(secrets)
        self.seen = {}
        self.known = frozenset()
        self.found = set()
        self.denied = set()
        self.rounds = self.files = 0
        self.error = None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while not self.over.wait(self.EVERY):
                self.look()
        except Exception as error:  # told by stop()
            self.error = error

    def look(self):
        tokens = frozenset(self.tokens())
        if tokens != self.known:
            self.known = tokens
            self.seen = {}
        is_on = bool(tokens or self.secrets)
        for folder in self.folders() if is_on else []:
            self.look_below(folder)
        self.rounds += is_on

    def search(self, data, where):
        if any(token in data for token in self.known):
            self.found.add("task token in " + where)
        for name, secret in self.secrets.items():
            if secret in data:
                self.found.add("%s in %s" % (name, where))

    def look_below(self, folder):
        """What vanishes between two looks is none; else it must be read."""
        try:
            entries = list(os.scandir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self.denied.add("%s: %s" % (folder, error.strerror))
            return
        for entry in entries:
            self.search(os.fsencode(entry.name), "a name in " + str(folder))
            if entry.is_dir(follow_symlinks=False):
                self.look_below(entry.path)
            else:
                self.look_at(entry.path)

    def look_at(self, path):
        try:
            info = os.lstat(path)
            stamp = (info.st_ino, info.st_size, info.st_mtime_ns)
            if not stat.S_ISREG(info.st_mode) or self.seen.get(path) == stamp:
                return
            with open(path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return
        except OSError as error:
            self.denied.add("%s: %s" % (path, error.strerror))
            return
        self.seen[path] = stamp
        self.files += 1
        self.search(data, "file " + path)

    def stop(self):
        """No round is under way any more; then one more, the last."""
        self.over.set()
        self.thread.join(60)
        if self.error is not None:
            raise self.error
        assert not self.thread.is_alive()
        self.look()
