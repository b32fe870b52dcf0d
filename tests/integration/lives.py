"""The argv and environment of every process of a connector, read at its exec
and again and again to its end (operator.md 7): a token that stands there only
while a task runs is seen by nobody who looks when the task is over.

What was read is kept, and searched at the end, when every token is known.
"""

import contextlib
import os
import threading
import time

import execs
import processes

NAMES = ("environ", "cmdline")
STOP_WITHIN = 0.1  # seconds, however seldom it looks


class Lives:
    """Follows all below a root, and whatever of it outlives the root. ROOT is
    asked in each round: the pid of the supervisor that runs, or None.
    """

    def __init__(self, root, every=0.005):
        self.root = root
        self.every = every
        self.top = None
        self.members = {}       # pid -> Process
        self.strangers = set()  # pids that are none of ours
        self.texts = {}         # (name, bytes) -> of whom it was first
        self.read = set()       # (name, comm) of which a living one was read
        self.hidden = set()
        self.rounds = 0
        self.error = None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        ears = execs.listen()
        try:
            if ears:
                self.be_urgent()
            while not self.over.is_set():
                self.look()
                self.attend(ears)
        except Exception as error:  # told by stop()
            self.error = error
        finally:
            if ears:
                ears.close()

    @staticmethod
    def be_urgent():
        """This thread: what execs must not be over before it is read, and on
        a loaded machine others come first.
        """
        with contextlib.suppress(OSError):
            os.sched_setscheduler(
                0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))

    def attend(self, ears):
        """Until the next round, look at those that exec."""
        if ears is None:
            self.over.wait(self.every)
            return
        until = time.monotonic() + self.every
        while (left := until - time.monotonic()) > 0 and (
                not self.over.is_set()):
            pids = ears.wait(min(left, STOP_WITHIN))
            if pids is None:
                return
            for pid in pids:
                self.look_at_new(pid)

    # -- who ---------------------------------------------------------------

    def look(self):
        root = self.root()
        if root is not None and root != self.top:
            # What it forked before it was known to us is not strange.
            self.top = root
            self.strangers.clear()
        there = {int(name) for name in os.listdir("/proc") if name.isdigit()}
        self.strangers &= there
        self.meet(there - self.strangers - self.members.keys())
        for pid, member in list(self.members.items()):
            now = processes.read_process(pid) if pid in there else None
            if now is None or now.started != member.started:
                del self.members[pid]
            elif now.state not in "ZX":
                self.look_at(now)
        self.rounds += 1

    def meet(self, pids):
        """A parent may have a greater number than its child."""
        new = list(filter(None, map(processes.read_process, sorted(pids))))
        while True:
            ours = [p for p in new if p.pid == self.top or
                    p.ppid in self.members or p.sid in self.members]
            if not ours:
                break
            self.members.update((p.pid, p) for p in ours)
            new = [p for p in new if p.pid not in self.members]
        self.strangers.update(p.pid for p in new)

    def look_at_new(self, pid):
        """Its parent is known, for that has exec'd before it; if not, the next
        round knows whose it is.
        """
        process = processes.read_process(pid)
        if process and (pid in self.members or process.ppid in self.members
                        or process.sid in self.members):
            self.members[pid] = process
            self.look_at(process)

    # -- what --------------------------------------------------------------

    def look_at(self, process):
        """Only of one that lives is its argv not empty; what it was read of
        is read then.
        """
        read = {}
        for name in NAMES:
            try:
                with open("/proc/%d/%s" % (process.pid, name), "rb") as file:
                    read[name] = file.read()
            except PermissionError:
                self.hidden.add((name, process.comm))
            except (FileNotFoundError, ProcessLookupError):
                return
        if not read.get("cmdline"):
            return
        for name, data in read.items():
            self.read.add((name, process.comm))
            self.texts.setdefault((name, data), "%s (pid %d)" % (
                process.comm, process.pid))

    # -- at the end --------------------------------------------------------

    def stop(self):
        self.over.set()
        self.thread.join(60)
        assert not self.thread.is_alive()
        if self.error is not None:
            raise self.error

    def search(self, report):
        """All that was read goes into the report of one who knows what must
        not be found; what the kernel hides from root is a finding of its own.
        """
        for (name, data), whose in self.texts.items():
            report.look(name, "of " + whose, data)
        if os.geteuid() == 0:
            report.denied.update("%s of %s" % one for one in self.hidden)

    def must_have_read(self, *comms):
        """One of these, alive, its argv and its environment; the latter is
        hidden from a person, as from a worker of the same user.
        """
        cut = {comm[:15] for comm in comms}
        for name in NAMES:
            seen = self.read | self.hidden
            assert any((name, comm) in seen for comm in cut), (
                "no %s was read of a living %s" % (name, " or ".join(comms)))
