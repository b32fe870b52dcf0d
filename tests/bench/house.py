"""A connector to be measured, over the harness of the integration tests, and
the rows that a bench prints: one JSON object a line, as samples.h says.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(
    0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

import harness

# As an operator has them, where the tests' harness has them short.
NORMAL = {
    "feed_poll": "1h",
    "dispatch_tick": "1s",
    "reconcile_after": "1m",
    "cancel_grace": "30s",
    "guard_delay": "1h",
}


class House:
    """A simulator and a connector in a folder of their own."""

    def __init__(self, folder, **limits):
        self.folder = folder
        self.sim = harness.Sim(folder)
        self.connector = harness.Connector(self.sim, folder, limits=limits)

    def argv(self, *more):
        """How its connectd is started."""
        return [str(self.connector.bin / "connectd"), "run", "--profile",
                self.connector.profile, *more]

    def start(self):
        """Ready, and past the present of the feed: what comes is new."""
        self.connector.start()
        self.sim.wait("answered", 1, route="GET /{a}/events.json")

    def stopwatch(self, what, count, argv):
        """What the stopwatch says: name -> microseconds."""
        done = subprocess.run(
            [str(harness.built("tests", "bench", "stopwatch")), what,
             str(count), "--", *argv],
            env=self.connector.environ, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
            text=True)
        if done.returncode != 0:
            raise harness.HarnessError(done.stderr[-2000:])
        said = [json.loads(line) for line in done.stdout.splitlines()]
        return {line["what"]: line["us"] for line in said}

    def use_bench_agent(self):
        """The agent that takes the time (agent.c)."""
        agent = self.folder.path / "agents" / "bench-agent"
        shutil.copy2(harness.built("tests", "bench", "bench-agent"), agent)
        agent.chmod(0o755)
        worker = self.connector.config["worker"]
        worker["command"] = [str(agent), str(self.connector.out)]
        self.connector.write_config()

    def plan(self, words):
        """What the bench agent does from its next start on."""
        path = self.connector.out / "plan"
        path.write_text(words)
        path.chmod(0o644)

    def run_task(self, words, text="could you take a look?"):
        """One mention, worked on to its end. The pointer's line."""
        self.plan(words)
        start = self.connector.line_count()
        made = self.sim.mention(text)
        line = self.connector.wait_line(start=start, type=None,
                                        event_id=made["event_id"])
        self.connector.wait_line(start=start, timeout=60, type="dispatch",
                                 state="ended", stop_reason="finished")
        return line

    def samples(self):
        """name -> what the bench agents wrote of it, in their order."""
        found = {}
        path = self.connector.out / "samples"
        for line in path.read_text().splitlines():
            name, value = line.split()
            found.setdefault(name, []).append(float(value))
        return found


@contextlib.contextmanager
def house(**limits):
    """A house that is left in order, however it goes."""
    def on_terminate(_number, _frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, on_terminate)
    harness.make_users()
    folder = harness.Folder()
    made = None
    try:
        made = House(folder, **limits)
        yield made
    finally:
        try:
            if made is not None:
                made.connector.close()
                made.sim.close()
        finally:
            folder.remove()


def percentile(values, percent):
    values = sorted(values)
    return values[min(int(percent / 100 * len(values)), len(values) - 1)]


def row(name, unit, value, budget=None, **more):
    """Print a row; a value of None could not be had here."""
    line = {"row": name, "unit": unit, "value": value}
    if budget is not None:
        line["budget"] = budget
    line.update(more)
    line["load"] = round(os.getloadavg()[0], 2)
    print(json.dumps(line, separators=(",", ":")), flush=True)


def times_row(name, us, unit="us", budget=None, **more):
    """The row of a list of times: its value is their median."""
    scale = 1000 if unit == "ms" else 1
    shown = [float("%.4g" % (v / scale)) for v in us]
    row(name, unit, percentile(shown, 50), budget, n=len(shown),
        p99=percentile(shown, 99), max=max(shown), **more)
