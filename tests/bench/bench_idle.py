"""What a connector takes while nothing happens: memory and wake-ups."""

import pathlib
import time

import house
from house import harness

WATCHED_S = 5
SCRIPT = {"default": ["get", "linger"]}


def pss_mb(pid):
    """Proportional set size; None where this user may not look."""
    try:
        text = pathlib.Path("/proc/%d/smaps_rollup" % pid).read_text()
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return None


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


def measure_memory(pids):
    each = {role: pss_mb(pid) for role, pid in pids.items()}
    if None in each.values():
        house.row("memory_idle", "MB", None, 8, note="only root may look")
        return
    house.row("memory_idle", "MB", round(sum(each.values()), 2), 8,
              **{role: round(mb, 2) for role, mb in each.items()})


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
        home.connector.start()
        pids = pids_of(home.connector)
        await_quiet(pids)
        measure_memory(pids)
        measure_wake_ups(pids)


def measure_mcpd():
    """One more task's mcpd and bridge, the agent lingering."""
    with house.house() as home:
        home.connector.set_script(SCRIPT)
        home.connector.start()
        home.sim.mention()
        home.connector.wait_line(type="dispatch", state="running")
        harness.wait_for(lambda: home.connector.agent_records("answer"),
                         what="the agent's first answer")
        for role, budget in (("mcpd", 0.5), ("bridge", None)):
            found = home.connector.roles()[role][0]
            mb = pss_mb(found.pid)
            house.row(role + "_memory", "MB",
                      None if mb is None else round(mb, 2), budget)


if __name__ == "__main__":
    measure_idle()
    measure_mcpd()
