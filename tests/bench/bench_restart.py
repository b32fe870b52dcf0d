"""A restart of the whole connector over ten thousand records (past.py): its
ledger is there, the processes of its attempts are gone.

The time counts from the exec of connectd. The order is fixed: READY=1; the
outbox lists what was being sent and sends what is due; each old attempt is
proved gone and settled; the first pass launches. Meanwhile intake reads what
was seen. Each run has the ledger as it was, and threads in which nobody has
written since.
"""

import datetime
import mmap
import os
import socket
import struct
import time

import house
import past
from house import harness

RUNS = 7
PATIENCE = 120
# As an operator has them, but for the ends, which are not measured.
LIMITS = dict(house.NORMAL, feed_poll="1m", guard_delay="30s",
              cancel_grace="50ms", close_grace="50ms", outbox_flush="0s")


def stamp(minutes):
    """So many minutes from now."""
    at = datetime.datetime.now(datetime.timezone.utc)
    at += datetime.timedelta(minutes=minutes)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f000Z")


def configure(home):
    """Directories for the projects: project id -> path."""
    connector = home.connector
    directories = {
        past.PROJECT + i: str(home.folder.make("project%d" % i, 0o755,
                                               connector.user))
        for i in range(past.PROJECTS)}
    connector.config["concurrency"] = past.TASKS
    connector.config["projects"].update(
        (str(project), {"path": path, "class": "web"})
        for project, path in directories.items())
    connector.write_config()
    return directories


def copies(row, changes):
    """A row of the simulator's world with other members, each time."""
    kept = {name: value for name, value in row.items() if value is not None}
    kept.pop("events", None)
    return [dict(kept, **change) for change in changes]


def fill_world(home, ledger):
    """The projects, the threads, and what is asked for in these."""
    world = home.sim.get("/sim/world")
    thread, comment = world["recordings"][:2]
    home.sim.world({
        "options": {"write_events": False},
        "projects": copies(world["projects"][0], [
            {"id": past.PROJECT + i} for i in range(past.PROJECTS)]),
        "recordings": copies(thread, [
            {"id": past.THREAD + i,
             "bucket_id": past.PROJECT + i % past.PROJECTS}
            for i in range(past.THREADS)])})
    asked = ledger.db.execute(
        "SELECT id, bucket_id FROM events WHERE id < ? AND (state IN"
        " ('seen', 'admitted', 'queued', 'dispatched')"
        " OR next_retry_at <= ?)", [past.MODEL, ledger.then])
    home.sim.world({"recordings": copies(comment, [
        {"id": past.COMMENT + event, "bucket_id": project,
         "parent_id": ledger.threads[event]} for event, project in asked])})


def prepare(home):
    """The ledger of a connector that ran one task, and then all the others."""
    connector = home.connector
    home.use_bench_agent()
    directories = configure(home)
    # Behind a present that comes after all that is made up.
    home.sim.post("/sim/emit", {
        "id": past.MODEL - 1, "event_type": "comment.created",
        "bucket_id": harness.PROJECT, "recording_id": 1000000,
        "creator_id": harness.OPERATOR})
    home.start()
    home.plan("get ack complete")
    home.sim.mention()
    connector.wait_line(type="dispatch", state="ended")
    connector.stop()
    path = connector.state_dir / "ledger.db"
    ledger = past.Past(path, directories, stamp(-10), stamp(60))
    ledger.fill()
    fill_world(home, ledger)
    ledger.db.close()
    home.plan("linger")
    connector.config["limits"] = LIMITS
    connector.write_config()
    return path.read_bytes()


def restore(home, ledger):
    """The ledger as it was, on the disk; what was posted since is gone."""
    path = home.connector.state_dir / "ledger.db"
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    with open(path, "r+b") as file:
        file.truncate()
        file.write(ledger)
        file.flush()
        os.fsync(file.fileno())
    home.sim.world({"remove": {"recordings": [
        said["id"] for said in home.sim.messages()
        if said["kind"] != "boost"]}})


def start(connector):
    """When connectd was executed, and when it was ready."""
    executed = mmap.mmap(-1, 8)

    def birth():
        harness.Connector.birth(connector)
        executed[:] = struct.pack("d", time.monotonic())

    connector.birth = birth
    name = "connectd-bench-" + connector.folder.marker
    connector.environ["NOTIFY_SOCKET"] = "@" + name
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as said:
        said.bind("\0" + name)
        said.settimeout(PATIENCE)
        connector.start(ready=False)
        while not said.recv(4096).startswith(b"READY=1"):
            continue
        return struct.unpack("d", executed)[0], time.monotonic()


def measure(connector):
    """Milliseconds since the exec: stage -> when it was reached."""
    began, ready = start(connector)
    line, settled = {"_index": -1}, []
    for _ in range(past.TASKS):
        line = connector.wait_line(PATIENCE, line["_index"] + 1,
                                   type="dispatch", state="ended")
        settled.append(line["_time"])
    running = connector.wait_line(PATIENCE, type="dispatch", state="running")
    at = {"ready": ready, "first_settled": settled[0], "settled": settled[-1],
          "dispatched": running["_time"]}
    return {stage: (moment - began) * 1e3 for stage, moment in at.items()}


def main():
    took = []
    with house.house() as home:
        ledger = prepare(home)
        for _ in range(RUNS):
            restore(home, ledger)
            took.append(measure(home.connector))
            home.connector.stop()
    stages = {}
    for stage in took[0]:
        ms = [round(run[stage], 1) for run in took]
        stages[stage] = {"median": house.percentile(ms, 50), "min": min(ms),
                         "max": max(ms)}
    house.row("restart_whole", "ms", stages["dispatched"]["median"], n=RUNS,
              records=sum(past.RECORDS.values()), attempts=past.TASKS,
              **stages)


if __name__ == "__main__":
    main()
