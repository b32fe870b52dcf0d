"""killat beside a connector, or beside anything else that a test starts: it
follows what calls birth() between fork and exec. tests/crash/killat.h says how
rules are written and what is said of them.
"""

import json
import os
import signal
import subprocess

import harness
import surroundings

PR_SET_PTRACER = 0x59616d61


def is_here():
    """It knows the registers of one machine only."""
    machine = os.uname()
    return (machine.sysname, machine.machine) == ("Linux", "x86_64")


class Killat:
    """One killat and its one tree."""

    def __init__(self, folder, *rules, count=False):
        self.errors = open(folder.path / "killat.stderr", "ab")
        self.process = subprocess.Popen(
            [str(harness.built("tests", "crash", "killat")),
             *["-c"] * count, *rules],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.errors, preexec_fn=harness.end_with_parent)
        # What it records may be a secret: that is kept in no file.
        keeps = not any("record@" in rule for rule in rules)
        self.lines = harness.Lines(
            self.process.stdout,
            folder.path / "killat.stdout" if keeps else os.devnull)

    def birth(self):
        """In the process that is to be the root, before its exec."""
        harness.end_with_parent()
        surroundings.libc.prctl(PR_SET_PTRACER, self.process.pid, 0, 0, 0)
        self.tell("seize %d" % os.getpid())
        os.kill(os.getpid(), signal.SIGSTOP)

    def tell(self, command):
        os.write(self.process.stdin.fileno(), command.encode() + b"\n")

    # -- what it says -----------------------------------------------------

    def said(self, **fields):
        """All that it has said so far with these members."""
        return [record for record in map(json.loads, list(self.lines.all))
                if fields.items() <= record.items()]

    def wait(self, timeout=20, start=0, **fields):
        """The first that it says with these members, from line start on."""
        def matches(text):
            record = json.loads(text)
            return record if fields.items() <= record.items() else None

        found = self.lines.wait(matches, timeout, start)
        if found is None:
            raise harness.HarnessError("killat did not say %r but %s" % (
                fields, self.lines.all))
        return found[1]

    # -- what it is told --------------------------------------------------

    def ask(self, command, **fields):
        start = len(self.lines.all)
        self.tell(command)
        return self.wait(start=start, **fields)

    def arm(self, rule):
        """A `later` rule counts from now on."""
        return self.ask("arm %d" % rule, what="armed", rule=rule)

    def go(self, rule):
        """What that rule holds goes on."""
        return self.ask("go %d" % rule, what="go", rule=rule)

    def kill(self):
        """All of the tree, now."""
        return self.ask("kill", what="kill", rule=0)

    def go_all(self):
        if self.process.poll() is None:
            self.tell("go all")

    def counts(self):
        """Name -> class -> how many calls so far."""
        return self.ask("counts", what="counts")["names"]

    # -- its end ----------------------------------------------------------

    def wait_end(self, timeout=20):
        """Its exit status, once nothing of the tree is left."""
        try:
            status = self.process.wait(timeout)
            self.lines.thread.join(timeout)  # all that it said is heard
            return status
        except subprocess.TimeoutExpired as error:
            raise harness.HarnessError("killat goes on: %s" % (
                self.lines.all,)) from error

    def must_be_met(self, timeout=20):
        """The tree has ended, and every rule was met."""
        status = self.wait_end(timeout)
        missed = self.wait(what="end")["missed"]
        assert (status, missed) == (0, []), self.lines.all

    def close(self):
        """Whatever is still followed dies with it."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()
        self.process.stdin.close()
        self.lines.close()
        self.errors.close()
