"""A process runs out of descriptors in a whole connector: what it cannot do is
told, nothing is done twice or lost for it, and all goes on when it has them
again.
"""

import os
import subprocess

import pytest

import harness
import stories

pytestmark = pytest.mark.walls


def ids_of(pid, name):
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        line, = [x for x in file if x.startswith(name + ":")]
    return int(line.split()[1])


def soft_limit(pid):
    with open("/proc/%d/limits" % pid, encoding="ascii") as file:
        line, = [x for x in file if x.startswith("Max open files")]
    return int(line.split()[3])


def set_limit(pid, count):
    """Of one that runs: as its own user, which needs no privilege."""
    who = {}
    if harness.is_root():
        who = {"user": ids_of(pid, "Uid"), "group": ids_of(pid, "Gid"),
               "extra_groups": []}
    subprocess.run(["prlimit", "--pid", str(pid), "--nofile=%d:" % count],
                   check=True, **who)


def starve(connector, role, spare=0):
    """No more than it has now, and so many; what gives it them back."""
    pid = connector.process.pid
    if role != "supervisor":
        pid = connector.roles()[role][0].pid
    limit = soft_limit(pid)
    set_limit(pid, len(os.listdir("/proc/%d/fd" % pid)) + spare)
    return lambda: set_limit(pid, limit)


def check_another(connector):
    event_id, _ = stories.mention(connector)
    evidence = stories.settle(connector, stories.new_needles())
    assert stories.outcome_of(evidence, event_id) == ("succeeded", "finished")


def test_ledger(make_connector):
    """A launch that found no pipe is asked again, until it finds one."""
    connector = stories.begin(make_connector)
    before = stories.pids(connector)
    feed = starve(connector, "ledger")
    event_id, _ = stories.mention(connector)
    connector.wait_status(lambda s: any(
        "Too many open files" in c["values"].get("trouble", "")
        for c in s["data"]["children"]), what="the ledger's trouble")
    assert connector.agent_records("prompt") == []
    feed()
    evidence = stories.settle(connector, stories.new_needles())
    assert stories.outcome_of(evidence, event_id) == ("succeeded", "finished")
    assert stories.pids(connector) == before
    assert not any(c["values"].get("trouble") for c in
                   connector.status()["data"]["children"])


def test_outbox(make_connector):
    """A request that could not be made is in doubt as any other (operator.md
    1.4), and is shown.
    """
    connector = stories.begin(make_connector)
    before = stories.pids(connector)
    feed = starve(connector, "outbox")
    event_id, _ = stories.mention(connector)
    evidence = stories.settle(connector, stories.new_needles())
    assert stories.check_end(evidence, event_id, "outbox") == ("unknown",
                                                               "finished")
    assert evidence.messages == [] and stories.doubts(evidence)
    feed()
    check_another(connector)
    assert stories.pids(connector) == before


@pytest.mark.parametrize("role", ["intake", "dispatcher"])
def test_a_link_that_is_lost(make_connector, role):
    """Its end does not reach the role, which dies of it: the next one has
    its descriptors, and gets a new link.
    """
    connector = stories.begin(make_connector)
    before = stories.pids(connector)
    starve(connector, role)
    event_id, _ = stories.mention(connector)
    evidence = stories.settle(connector, stories.new_needles())
    assert stories.outcome_of(evidence, event_id) == ("succeeded", "finished")
    after = stories.pids(connector)
    assert {r for r in after if after[r] != before[r]} == {role}
    pid, = before[role]
    told, = [line for line in stories.deaths_logged(connector)
             if "(pid %d)" % pid in line]
    assert "exited with 0" not in told


def test_supervisor(make_connector):
    """Two starts fail, which nobody has seen: the record is blocked, and what
    comes later runs.
    """
    connector = stories.begin(make_connector)
    before = stories.pids(connector)
    feed = starve(connector, "supervisor", 2)
    event_id, _ = stories.mention(connector)
    connector.wait_event(event_id, "blocked")
    connector.wait_log("Too many open files")
    assert connector.agent_records("prompt") == []
    shown = connector.connectctl("status")
    assert "spawn_failed" in shown.stdout, shown.stdout
    feed()
    check_another(connector)
    assert stories.pids(connector) == before


def test_supervisor_without_a_single_one(make_connector):
    """Whoever asks is refused, for nobody can be looked at; the roles work."""
    connector = stories.begin(make_connector)
    before = stories.pids(connector)
    feed = starve(connector, "supervisor")
    made = connector.sim.mention()["event_id"]
    connector.wait_event(made, "blocked")
    assert connector.connectctl("status").returncode != 0
    feed()
    harness.wait_for(connector.status, what="a status")
    check_another(connector)
    assert stories.pids(connector) == before
