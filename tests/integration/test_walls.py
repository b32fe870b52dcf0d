"""The walls of each process while a story runs, seen from outside. What they
do from inside is tried by tests/sandbox.
"""

import collections
import os
import pathlib
import pwd

import pytest

import harness
import processes

pytestmark = pytest.mark.walls

COMMENTS = "POST /{a}/recordings/{id}/comments.json"
SPY = """#!/usr/bin/python3
import json, os, resource, sys
told = {"fds": {}, "sid": os.getsid(0), "pid": os.getpid(),
        "core": resource.getrlimit(resource.RLIMIT_CORE)}
for name in os.listdir("/proc/self/fd"):
    try:
        told["fds"][name] = os.readlink("/proc/self/fd/" + name)
    except OSError:
        pass
with open(%r, "w") as file:
    json.dump(told, file)
os.execv(%r, [%r] + sys.argv[1:])
"""

USERS = {
    "ledger": "_connectd-ledger",
    "intake": "_connectd-intake",
    "dispatcher": "_connectd-disp",
    "outbox": "_connectd-outbox",
    "mcpd": "_connectd-mcp",
}

# What each role may have open while one task waits for its answer: least and
# most of a kind. `unix` counts the link to the supervisor, the links to other
# roles, and in mcpd the bridge's stream; curl has a pair of its own.
COMMON = {"null": (3, 3), "epoll": (1, 1), "pipe": (2, 2)}
DESCRIPTORS = {
    "ledger": {"unix": (5, 5), "lock": (1, 1), "ledger.db": (1, 1),
               "ledger.db-wal": (1, 1), "ledger.db-shm": (1, 1)},
    "intake": {"unix": (4, 6), "tcp": (0, 8)},
    "outbox": {"unix": (4, 6), "tcp": (0, 8), "lock": (1, 1)},
    "dispatcher": {"unix": (3, 3), "pipe": (5, 5), "pidfd": (1, 1)},
    "mcpd": {"unix": (4, 4)},
}


def status_of(pid):
    """/proc/PID/status as a dict."""
    text = processes.read_bytes(pid, "status").decode()
    return {line.split(":", 1)[0]: line.split(":", 1)[1].split()
            for line in text.splitlines()}


def socket_families():
    """Inode -> family of every socket there is."""
    found = {}
    for name, column in (("unix", 6), ("tcp", 9), ("tcp6", 9), ("udp", 9),
                         ("udp6", 9), ("netlink", 9), ("packet", 8),
                         ("raw", 9)):
        path = pathlib.Path("/proc/net") / name
        if path.exists():
            for line in path.read_text().splitlines()[1:]:
                found[line.split()[column]] = name.rstrip("6")
    return found


def kind_of(link, families):
    if link == "/dev/null":
        return "null"
    if link.startswith("socket:["):
        return families.get(link[8:-1], "unknown socket")
    if link.startswith("pipe:"):
        return "pipe"
    if link.startswith("anon_inode:"):
        return {"anon_inode:[eventpoll]": "epoll",
                "anon_inode:[pidfd]": "pidfd"}.get(link, link)
    name = os.path.basename(link)
    return "lock" if name.endswith(".lock") else name


def descriptors_of(pid):
    """What the process has open, by kind."""
    links = [os.readlink("/proc/%d/fd/%s" % (pid, name))
             for name in os.listdir("/proc/%d/fd" % pid)]
    families = socket_families()
    return collections.Counter(kind_of(link, families) for link in links)


@pytest.fixture
def waiting(make_connector):
    """A connector in the middle of a task: its answer is being posted, and
    Basecamp takes its time. Returned with the role processes.
    """
    connector = make_connector()
    spy = connector.folder.path / "agents" / "spy"
    agent = connector.config["worker"]["command"][0]
    connector.spied = connector.out / "spied.json"
    spy.write_text(SPY % (str(connector.spied), agent, agent))
    spy.chmod(0o755)
    connector.config["worker"]["command"] = [str(spy)]
    connector.write_config()
    connector.start()
    connector.sim.gate(COMMENTS)
    connector.sim.mention()
    connector.sim.wait("held", 1)
    yield connector
    connector.sim.release(COMMENTS)
    connector.wait_line(type="dispatch", state="ended")
    assert len(connector.sim.messages()) == 2


def role_pids(connector):
    found = connector.roles()
    return {role: found[role][0].pid for role in USERS}


def check_role(role, pid):
    """Everything that the kernel tells of its walls."""
    status = status_of(pid)
    assert status["Seccomp"] == ["2"], role
    assert status["NoNewPrivs"] == ["1"], role
    assert set(status["CapPrm"] + status["CapEff"] + status["CapInh"] +
               status["CapAmb"]) == {"0000000000000000"}, role
    process = processes.read_process(pid)
    assert process.sid == process.pgid == pid, "a session of its own"
    assert not os.access("/proc/%d/root/" % pid, os.R_OK) or \
        harness.is_root()
    # Of what is not dumpable root owns the files, whoever it runs as.
    if os.geteuid() != 0 or status["Uid"][0] != "0":
        assert os.stat("/proc/%d/environ" % pid).st_uid == 0, role
    limits = processes.read_bytes(pid, "limits").decode().splitlines()
    core, = [line.split() for line in limits if line.startswith("Max core")]
    files, = [line.split() for line in limits
              if line.startswith("Max open files")]
    assert core[4:6] == ["0", "0"], role
    assert int(files[3]) >= 256, role


def check_ids(role, pid):
    entry = pwd.getpwnam(USERS[role])
    status = status_of(pid)
    assert status["Uid"] == [str(entry.pw_uid)] * 4, role
    assert status["Gid"] == [str(entry.pw_gid)] * 4, role
    assert status["Groups"] == [], role
    assert entry.pw_uid != 0


def check_descriptors(role, pid):
    """Exactly what is in its row, once what comes and goes has gone."""
    allowed = dict(COMMON, **DESCRIPTORS[role])
    last = []

    def look():
        last[:] = [descriptors_of(pid)]
        have = last[0]
        return set(have) <= set(allowed) and all(
            least <= have[kind] <= most
            for kind, (least, most) in allowed.items())
    try:
        harness.wait_for(look, 5)
    except harness.HarnessError as error:
        raise AssertionError("%s has %s, not %s" % (
            role, dict(last[0]), allowed)) from error


def test_every_role(waiting):
    for role, pid in role_pids(waiting).items():
        check_role(role, pid)


def test_walls_in_status(waiting):
    status = waiting.status()["data"]
    for child in status["children"]:
        walls = child["walls"]
        assert walls["seccomp"] and walls["no_new_privs"], child
        assert not walls["dumpable"], child
        assert walls["landlock_abi"] >= 2, child
    assert status["supervisor"]["insecure"] is False


def test_supervisor_alone_has_no_filter(waiting):
    status = status_of(waiting.process.pid)
    assert status["Seccomp"] == ["0"] and status["NoNewPrivs"] == ["0"]
    limits = processes.read_bytes(waiting.process.pid, "limits").decode()
    core, = [line.split() for line in limits.splitlines()
             if line.startswith("Max core")]
    assert core[4:6] == ["0", "0"]
    if not harness.is_root():
        assert os.stat("/proc/%d/environ" % waiting.process.pid).st_uid == 0


def test_own_users(waiting):
    """As root each has its own uid; as a person all have that person's."""
    pids = role_pids(waiting)
    if harness.is_root():
        for role, pid in pids.items():
            check_ids(role, pid)
        assert len({status_of(p)["Uid"][0] for p in pids.values()}) == 5
    else:
        for pid in pids.values():
            assert status_of(pid)["Uid"] == [str(os.geteuid())] * 4


def test_descriptors(waiting):
    """Root sees them; a person may not look into what is not dumpable."""
    for role, pid in role_pids(waiting).items():
        if harness.is_root():
            check_descriptors(role, pid)
        else:
            with pytest.raises(PermissionError):
                os.listdir("/proc/%d/fd" % pid)


def lock_holders(path):
    """The processes that hold a POSIX lock on the file."""
    inode = os.stat(path).st_ino
    device = os.stat(path).st_dev
    want = "%02x:%02x:%d" % (os.major(device), os.minor(device), inode)
    lines = pathlib.Path("/proc/locks").read_text().splitlines()
    return {int(line.split()[-4]) for line in lines
            if line.split()[-3] == want}


def test_only_the_ledger_has_the_file(waiting):
    """Every connection to it holds a lock on its shared memory; and as root,
    no process of the machine has any of its files open but the ledger.
    """
    ledger = role_pids(waiting)["ledger"]
    database = waiting.state_dir / "ledger.db"
    assert lock_holders(str(database) + "-shm") == {ledger}
    if not harness.is_root():
        return
    holders = set()
    for process in processes.all_processes():
        try:
            for name in os.listdir("/proc/%d/fd" % process.pid):
                link = processes.read_link(process.pid, "fd/" + name)
                if link.startswith(str(database)):
                    holders.add(process.pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
    assert holders == {ledger}


def test_successors_have_the_same_walls(waiting):
    """A role that was killed, and an mcpd that was re-keyed."""
    before = role_pids(waiting)
    for role in ("intake", "mcpd", "ledger"):
        waiting.kill(role)

    def other():
        found = waiting.roles()
        now = {role: found[role][0].pid for role in USERS if role in found}
        status = waiting.status()
        return len(now) == 5 and status and all(
            c["state"] == "ready" for c in status["data"]["children"]) and all(
            now[r] != before[r] for r in ("intake", "mcpd", "ledger")) and now
    pids = harness.wait_for(other, what="the successors")
    harness.wait_for(lambda: status_of(pids["mcpd"])["Seccomp"] == ["2"],
                     what="the walls of the new mcpd")
    for role, pid in pids.items():
        check_role(role, pid)
        if harness.is_root():
            check_ids(role, pid)


def test_worker(waiting):
    """It has its three pipes and nothing of ours, a session of its own, its
    own user, no capability and no way to more.
    """
    worker = waiting.roles()["worker"][0]
    told = harness.json.loads(waiting.spied.read_text())
    own = {n: k for n, k in told["fds"].items()
           if not k.startswith("/proc/%d/fd" % told["pid"])}
    assert sorted(own) == ["0", "1", "2"]
    assert all(link.startswith("pipe:") for link in own.values())
    assert told["sid"] == told["pid"] == worker.pid
    status = status_of(worker.pid)
    assert status["NoNewPrivs"] == ["1"]
    assert status["CapEff"] == status["CapPrm"] == ["0000000000000000"]
    if harness.is_root():
        entry = pwd.getpwnam(harness.WORKER_USER)
        assert status["Uid"] == [str(entry.pw_uid)] * 4
        assert status["Gid"] == [str(entry.pw_gid)] * 4
        taken = {pwd.getpwnam(name).pw_uid for name in USERS.values()}
        assert entry.pw_uid not in taken | {0}


def test_worker_cannot_read_ours(make_connector):
    """Under Landlock: neither configuration, state nor the control socket's
    directory; its own directory it can write.
    """
    connector = make_connector()
    config = connector.config_dir / "credentials.json"
    ledger = connector.state_dir / "ledger.db"
    mine = connector.route / "mine.txt"
    other = connector.folder.make("elsewhere", 0o777) / "file"
    other.write_text("x")
    other.chmod(0o666)
    connector.set_script({"default": [
        "try-read:%s" % config, "try-read:%s" % ledger,
        "try-read:%s" % other, "try-write:%s" % other,
        "try-write:%s" % mine, "get", "ack", "reply", "complete"]})
    connector.start()
    connector.sim.mention()
    connector.wait_line(type="dispatch", state="ended")
    found = {r["path"]: r["outcome"] for what in ("try-read", "try-write")
             for r in connector.agent_records(what)}
    assert found.pop(str(mine)) == "ok"
    assert set(found) == {str(config), str(ledger), str(other)}
    assert set(found.values()) == {"EACCES"}
