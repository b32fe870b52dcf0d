"""Where a credential must not be, looked for from outside (operator.md 7).

What is looked for: task tokens, of which only the hash is known (every run of
43 base64url characters is hashed and compared), and secrets that the test
itself handed out. Findings say where, never what. Nothing read is a failure.
"""

import hashlib
import os
import re

import processes

TOKEN_LENGTH = 43
RUN = re.compile(rb"[A-Za-z0-9_-]{%d,}" % TOKEN_LENGTH)
# Longer than any token in a longer word; such a run is data, not words.
RUN_MOST = 64 * 1024


class Needles:
    """What must not be found: hashes of task tokens and named secrets."""

    def __init__(self, **secrets):
        self.hashes = set()
        self.secrets = {name: text.encode() for name, text in secrets.items()}
        self.known = {}

    def learn(self, connector):
        """The tokens of all tasks at this moment: a re-key replaces them."""
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


def worker_folders(connector):
    """The private temporary directories of this connector's attempts."""
    ids = [row["id"] for row in connector.query("SELECT id FROM attempts")]
    return ["/var/tmp/connectd-" + ident[4:16] for ident in ids]


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
