"""Who is turned away, and what hostile bytes do: they end whoever sent them,
and nothing else. Meanwhile a story goes on to its good end.
"""

import contextlib
import json
import os
import pathlib
import pwd
import shutil
import signal
import subprocess

import pytest

import harness
import hostile
import processes

COMMENTS = "POST /{a}/recordings/{id}/comments.json"
PYTHON = "/usr/bin/python3"
CLIENTS_MAX = 32


def bring_hostile(connector):
    """The hostile program, where a worker can read it."""
    target = connector.folder.path / "agents" / "hostile.py"
    shutil.copy(pathlib.Path(__file__).parent / "hostile.py", target)
    target.chmod(0o755)
    return str(target)


def run_step(program, what, where, connector):
    return {"step": "run", "argv": [PYTHON, program, what, where],
            "env": {"HOSTILE_SESSIONS": str(connector.sessions)}}


def finish(connector, start=0, restarts=None):
    """The story's good end, and that no process of ours died meanwhile but
    those that the test killed.
    """
    connector.wait_line(start=start, type="dispatch", state="ended")
    rows = connector.query("SELECT * FROM task_events")
    assert [row["outcome"] for row in rows] == ["succeeded"], rows
    assert sorted(m["kind"] for m in connector.sim.messages()) == [
        "boost", "comment"]
    for child in connector.status()["data"]["children"]:
        assert child["restarts"] == (restarts or {}).get(child["role"], 0)
    assert [t["rekeys"] for t in connector.query("SELECT * FROM tasks")] == [0]
    assert "broke the protocol" not in "\n".join(connector.logs.all)


@contextlib.contextmanager
def story(connector, restarts=None):
    """A connector whose worker is in the middle of its task meanwhile."""
    connector.start()
    connector.sim.gate(COMMENTS)
    connector.sim.mention()
    connector.sim.wait("held", 1)
    try:
        yield connector
    finally:
        connector.sim.release(COMMENTS)
    finish(connector, restarts=restarts)


def refusals(connector, text):
    return [line for line in connector.logs.all if text in line]


# ---- a worker is not the operator ------------------------------------------

def check_refused(connector, seen):
    """It was not let in; when it got as far as us, it was told and logged."""
    if "error" in seen:
        # Another user than ours is stopped by the socket's mode.
        assert harness.is_root() and seen["error"] in ("EACCES", "EPERM",
                                                       "Permission denied")
        assert refusals(connector, "control socket: ") == []
        return
    answer = json.loads(seen["got"])
    assert answer["ok"] is False and answer["error"] == "refused"
    assert "worker" in answer["text"]
    assert seen["closed"]
    assert refusals(connector, "refused: it belongs to a worker")


def test_worker_on_the_control_socket(make_connector):
    connector = make_connector(script={"default": [
        "get", "connect-control", "ack", "reply", "complete"]})
    connector.start()
    connector.sim.mention()
    finish(connector)
    record, = connector.agent_records("connect_control")
    seen = {"got": bytes.fromhex(record["received"]).decode(),
            "closed": True}
    if "error" in record and record["error"] != "ECONNRESET":
        seen = {"error": record["error"]}
    check_refused(connector, seen)


def test_orphan_of_a_worker_on_the_control_socket(make_connector):
    """Neither a session of its own nor the loss of its parent hides it."""
    connector = make_connector()
    program = bring_hostile(connector)
    connector.set_script({"default": [
        "get", run_step(program, "orphan",
                        str(connector.run_dir / "control.sock"), connector),
        "ack", "reply", "complete"]})
    connector.start()
    connector.sim.mention()
    finish(connector)
    record, = connector.agent_records("run")
    assert record["status"] == 0, record
    check_refused(connector, json.loads(record["stdout"]))


def enter_cgroup(path):
    with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as f:
        f.write(str(os.getpid()))


def test_in_the_workers_cgroup(make_connector):
    """Even root, when it stands in an attempt's cgroup."""
    with story(make_connector()) as connector:
        row, = connector.query("SELECT containment FROM attempts")
        kind, _, path = row["containment"].partition(":")
        if kind != "cgroup":
            assert not connector.status()["data"]["supervisor"]["cgroup"]
            return
        done = subprocess.run(
            [PYTHON, hostile.__file__, "orphan",
             str(connector.run_dir / "control.sock")],
            preexec_fn=lambda: enter_cgroup(path), capture_output=True,
            check=True, timeout=20, text=True)
        check_refused(connector, json.loads(done.stdout))


def test_another_user_on_the_control_socket(make_connector):
    """As root only: whoever is not in the group does not even get there."""
    with story(make_connector()) as connector:
        info = os.stat(connector.run_dir / "control.sock")
        if not harness.is_root():
            assert info.st_mode & 0o777 == 0o600
            return
        assert info.st_mode & 0o777 == 0o660
        done = subprocess.run(
            [str(connector.bin / "connectctl"), "-P", "demo", "status"],
            user="nobody", group="nogroup", extra_groups=[],
            env=connector.environ, capture_output=True, check=False,
            text=True, timeout=20, cwd="/")
        assert done.returncode in (69, 77), done


# ---- hostile bytes on the control socket -----------------------------------

def lines_of(got):
    return [json.loads(line) for line in got.decode().splitlines()]


@pytest.mark.parametrize("name", hostile.WORDS)
def test_words_on_the_control_socket(make_connector, name):
    """That client gets an error, or is closed; it changes nothing."""
    with story(make_connector()) as connector:
        before = connector.query("SELECT * FROM decisions")
        got, is_closed = hostile.say(
            str(connector.run_dir / "control.sock"), hostile.WORDS[name])
        assert is_closed, "it was left open"
        greeting, *answers = lines_of(got)
        assert greeting["connectd"] == 1
        assert all(answer["ok"] is False for answer in answers), answers
        assert connector.status()["data"]["supervisor"]["state"] == "running"
        assert connector.query("SELECT * FROM decisions") == before


def test_slow_clients_on_the_control_socket(make_connector):
    path = None
    with story(make_connector()) as connector:
        path = str(connector.run_dir / "control.sock")
        slow = [hostile.say_slowly(path, hostile.LINE, 10) for _ in range(3)]
        assert connector.status()
        for peer in slow:
            peer.sendall(hostile.LINE[10:])
            got = b""
            while got.count(b"\n") < 2:
                got += peer.recv(65536)
            assert lines_of(got)[1]["ok"] is True
            peer.close()


def test_forty_clients_on_the_control_socket(make_connector):
    """Of one user 32 are served, the others turned away; then all is well."""
    with story(make_connector()) as connector:
        path = str(connector.run_dir / "control.sock")
        with contextlib.ExitStack() as stack:
            peers = [stack.enter_context(hostile.open_socket(path))
                     for _ in range(40)]
            first = [json.loads(p.recv(65536).splitlines()[0]) for p in peers]
            served = [line for line in first if "connectd" in line]
            refused = [line for line in first if line.get("ok") is False]
            assert len(served) == CLIENTS_MAX and len(refused) == 8
            assert all("too many" in line["text"] for line in refused)
            harness.wait_for(lambda: len(refusals(
                connector, "too many connections")) == 8, what="8 log lines")
        harness.wait_for(connector.status, what="a status again")


# ---- hostile bytes on a task's socket --------------------------------------

def task_socket(connector):
    row, = connector.query("SELECT id FROM attempts")
    return str(connector.sessions / row["id"][4:16] / "m")


def as_worker():
    """Popen's arguments for a process of the worker's user."""
    if not harness.is_root():
        return {}
    entry = pwd.getpwnam(harness.WORKER_USER)
    return {"user": entry.pw_uid, "group": entry.pw_gid,
            "extra_groups": [entry.pw_gid]}


def test_outside_the_tree_on_a_tasks_socket(make_connector):
    """The worker's own user is not enough: it is closed without a byte."""
    with story(make_connector()) as connector:
        program = bring_hostile(connector)
        done = subprocess.run(
            [PYTHON, program, "every", task_socket(connector)],
            capture_output=True, check=True, timeout=120, text=True,
            cwd="/", **as_worker())
        seen = json.loads(done.stdout)
        assert set(seen) == set(hostile.WORDS)
        for name, answer in seen.items():
            assert answer == {"got": "", "closed": True}, (name, answer)
        connector.wait_log("further ones are not logged")
        told = refusals(connector, "refused a connection to its socket")
        assert "not a process of this worker" in told[0]
        assert len(told) == 10


def test_another_user_on_a_tasks_socket(make_connector):
    """As root only: not even the way to it is open."""
    with story(make_connector()) as connector:
        if not harness.is_root():
            info = os.stat(os.path.dirname(task_socket(connector)))
            assert info.st_mode & 0o077 == 0
            return
        done = subprocess.run(
            [PYTHON, bring_hostile(connector), "orphan",
             task_socket(connector)], capture_output=True, check=True,
            timeout=20, text=True, cwd="/", user="nobody", group="nogroup",
            extra_groups=[])
        assert json.loads(done.stdout) == {"error": "Permission denied"}


def test_forty_outsiders_on_a_tasks_socket(make_connector):
    with story(make_connector()) as connector:
        path = task_socket(connector)
        with contextlib.ExitStack() as stack:
            peers = [stack.enter_context(hostile.open_socket(path))
                     for _ in range(40)]
            for peer in peers:
                assert hostile.read_end(peer) == (b"", True)


def test_worker_in_place_of_its_bridge(make_connector):
    """Its own child may connect once the bridge is gone. What it says ends
    that connection, or is answered with an error; mcpd lives on, and the
    agent's next call starts the bridge again.
    """
    connector = make_connector()
    program = bring_hostile(connector)
    connector.set_script({"default": [
        "crash-server:read", run_step(program, "every", "task", connector),
        "get", "ack", "reply", "complete"]})
    connector.start()
    connector.sim.mention()
    finish(connector)
    record, = connector.agent_records("run")
    assert record["status"] == 0, record
    seen = json.loads(record["stdout"])
    assert set(seen) == set(hostile.WORDS)
    for name, answer in seen.items():
        assert answer["closed"], name
        for line in answer["got"].splitlines():
            assert '"result"' not in line, (name, line)
    assert any('"error"' in answer["got"] for answer in seen.values())


def test_second_bridge_waits_for_the_first(make_connector):
    """A child of the worker beside the bridge gets nothing, and takes
    nothing from it.
    """
    connector = make_connector()
    program = bring_hostile(connector)
    connector.set_script({"default": [
        "get", run_step(program, "once", "task", connector), "ack",
        "reply", "complete"]})
    connector.start()
    connector.sim.mention()
    finish(connector)
    record, = connector.agent_records("run")
    assert json.loads(record["stdout"]) == {"got": "", "closed": False}


def test_worker_floods_its_socket(make_connector):
    """Sixty connections of one child: the newest replaces the one before."""
    connector = make_connector()
    flood = connector.folder.path / "agents" / "flood.py"
    flood.write_text(
        "import sys, os\n"
        "sys.path.insert(0, os.path.dirname(__file__))\n"
        "import hostile\n"
        "ident = os.environ['TMPDIR'].rsplit('-', 1)[1]\n"
        "path = os.path.join(os.environ['HOSTILE_SESSIONS'], ident, 'm')\n"
        "peers = [hostile.open_socket(path) for _ in range(60)]\n"
        "for peer in peers:\n"
        "    try:\n"
        "        peer.sendall(b'[' * 100)\n"
        "    except OSError:\n"
        "        pass\n"
        "print(len(peers))\n")
    bring_hostile(connector)
    step = run_step(str(flood), "", "", connector)
    connector.set_script({"default": ["get", step, "ack", "reply",
                                      "complete"]})
    connector.start()
    connector.sim.mention()
    finish(connector)
    record, = connector.agent_records("run")
    assert record["stdout"] == "60\n", record


ORPHANS = 300
LEAVE_ORPHANS = """
import os
for fd in range(3):
    os.dup2(os.open("/dev/null", os.O_RDWR), fd)
for _ in range(%d):
    if os.fork() == 0:
        if os.fork() == 0:
            os.execv("/usr/bin/sleep", ["sleep", "120"])
        os._exit(0)
    os.wait()
""" % ORPHANS


def test_orphans_of_a_worker(make_connector):
    """However many processes a worker leaves behind, deaths are seen."""
    connector = make_connector(script={"default": [
        {"step": "run", "argv": [PYTHON, "-c", LEAVE_ORPHANS]},
        "get", "ack", "reply", "complete"]})
    with story(connector, restarts={"intake": 2}):
        for _ in range(2):
            killed = connector.kill("intake")
            harness.wait_for(
                lambda: [p for p in connector.roles().get("intake", [])
                         if p.pid != killed], what="another intake")
            connector.wait_status(
                lambda s: all(c["state"] == "ready"
                              for c in s["data"]["children"]))


def test_signals_of_a_worker(make_connector):
    """As root it is another user; under Landlock it signals nobody of ours
    from ABI 6 on. Whatever it tries, no process of ours dies.
    """
    connector = make_connector()
    connector.start()
    if connector.status()["data"]["supervisor"]["landlock_abi"] < 6 and \
            not harness.is_root():
        return
    pids = [p.pid for found in connector.roles().values() for p in found]
    pids.append(connector.process.pid)
    code = ("import os\nfor pid in %r:\n    try:\n        os.kill(pid, %d)\n"
            "        print('killed', pid)\n    except OSError as error:\n"
            "        print(error.errno)\n" % (pids, signal.SIGKILL))
    connector.set_script({"default": [
        "get", {"step": "run", "argv": [PYTHON, "-c", code]}, "ack", "reply",
        "complete"]})
    connector.sim.mention()
    finish(connector)
    record, = connector.agent_records("run")
    assert record["stdout"].split() == ["1"] * len(pids), record
    assert all(processes.read_process(pid) for pid in pids)
