"""What a connector takes while nothing happens: memory and wake-ups."""

import pathlib
import time

import house
from house import harness

WATCHED_S = 5
OTHER_PROJECT = 48699914
SCRIPT = {"default": ["get", "linger"]}


def memory_mb(pid):
    """(proportional set size, private part of it); None where this user may
    not look.
    """
    found = {}
    try:
        text = pathlib.Path("/proc/%d/smaps_rollup" % pid).read_text()
    except OSError:
        return None
    for line in text.splitlines()[1:]:
        name, _, value = line.partition(":")
        found[name] = int(value.split()[0]) / 1024
    return found["Pss"], found["Private_Clean"] + found["Private_Dirty"]


def wake_ups(pid):
    """How often its threads have gone to sleep so far."""
    count = 0
    for status in pathlib.Path("/proc/%d/task" % pid).glob("*/status"):
        for line in status.read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches:"):
                count += int(line.split()[1])
    return count


def pids_of(connector):
    pids = {"supervisor": connector.process.pid}
    for role, found in connector.roles().items():
        pids[role] = found[0].pid
    return pids


def memory_row(name, pids, budget=None):
    """The sum over some processes. The proportional size is the smaller the
    more others map the same libraries; the private part is ours alone.
    """
    each = {role: memory_mb(pid) for role, pid in pids.items()}
    if None in each.values():
        house.row(name, "MB", None, budget, note="only root may look")
        return
    more = {role: round(pss, 2) for role, (pss, _) in each.items()}
    house.row(name, "MB", round(sum(pss for pss, _ in each.values()), 2),
              budget, private=round(sum(own for _, own in each.values()), 2),
              **(more if len(more) > 1 else {}))


def measure_wake_ups(pids):
    before = {role: wake_ups(pid) for role, pid in pids.items()}
    time.sleep(WATCHED_S)
    each = {role: wake_ups(pid) - before[role] for role, pid in pids.items()}
    house.row("wake_ups_idle", "in 5 s", sum(each.values()), 0, **each)


def await_quiet(pids):
    """Until nobody has woken up for half a second."""
    seen = []

    def is_quiet():
        seen.append(sum(wake_ups(pid) for pid in pids.values()))
        return len(seen) > 5 and seen[-1] == seen[-6]
    harness.wait_for(is_quiet, 30, "quiet", every=0.1)


def measure_idle():
    with house.house(**house.NORMAL) as home:
        home.start()
        pids = pids_of(home.connector)
        await_quiet(pids)
        memory_row("memory_idle", pids, 8)
        measure_wake_ups(pids)


def start_two_tasks(home):
    """In two directories, for in one they would wait for each other."""
    connector = home.connector
    connector.config["projects"][str(OTHER_PROJECT)] = {
        "path": str(home.folder.make("other", 0o755, connector.user))}
    connector.write_config()
    connector.set_script(SCRIPT)
    home.start()
    home.sim.mention()
    home.sim.mention(project_id=OTHER_PROJECT)
    harness.wait_for(lambda: len(connector.agent_records("answer")) == 2,
                     what="the agents' first answers")


def measure_task():
    """What one more task has of ours, beside another one's."""
    with house.house() as home:
        start_two_tasks(home)
        roles = home.connector.roles()
        memory_row("mcpd_memory", {"mcpd": roles["mcpd"][-1].pid}, 0.5)
        memory_row("bridge_memory", {"bridge": roles["bridge"][-1].pid})


if __name__ == "__main__":
    measure_idle()
    measure_task()
