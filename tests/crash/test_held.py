"""A held attempt, whose tree nobody can prove gone, keeps its place whatever
dies beside it (dispatch.md 9).
"""

import contextlib
import copy
import ctypes
import os
import pathlib
import signal

import pytest

import harness
import leaks
import processes
import stories
import surroundings
from test_adopt import post_as_agent, row_of

CLONE_NEWCGROUP = 0x2000000
LIMITS = {"recover_grace": "1s", "cancel_grace": "1s"}
OF_NOBODY = "att_%012d%s" % (os.getpid(), "0" * 12)


def held(connector):
    """What the dispatcher counts, or None."""
    status = connector.status()
    return status and next(child["values"].get("held")
                           for child in status["data"]["children"]
                           if child["role"] == "dispatcher")


def grandchild_of(connector):
    """What its only worker has begun, there by now."""
    child = harness.wait_for(lambda: connector.agent_records("grandchild"),
                             what="its grandchild")[0]["child"]
    return processes.read_process(child)


def begin(make_connector, **limits):
    """A worker without a cgroup that has begun a process."""
    connector = stories.begin(
        make_connector, cgroups=False, limits=dict(LIMITS, **limits),
        script={"default": ["get", "ack", "grandchild", "linger"]})
    connector.sim.mention()
    return connector, grandchild_of(connector)


def crash(connector):
    """Supervisor and worker are dead; not what that began."""
    worker = connector.roles()["worker"][0]
    connector.kill("supervisor")
    connector.wait_end()
    processes.send_signal(worker, signal.SIGKILL)


def end_process(process):
    processes.send_signal(process, signal.SIGKILL)
    harness.wait_for(lambda: processes.read_process(process.pid) is None,
                     what="its end")


def start_held(connector):
    connector.start()
    harness.wait_for(lambda: held(connector) == "1", what="the hold")


def test_a_ledger_that_dies_while_it_is_asked_who_lives(
        make_killat, make_connector):
    """It dies with the list half told; its successor is asked to go on, and
    anew: the one must not take the end of the other for an attempt's end.
    """
    follower = make_killat(
        "later:hold@connectd-ledger:write:1~att_[0-9a-f]{24}",
        "later:kill@connectd-ledger:write:1")
    connector, child = begin(make_connector)
    crash(connector)
    connector.follower = follower
    try:
        start_held(connector)
        follower.arm(1)
        connector.kill("ledger")
        follower.wait(what="hold")
        follower.arm(2)
        follower.go(1)
        follower.wait(what="kill")
        event_id = connector.sim.mention()["event_id"]
        connector.wait_event(event_id, "queued")
        attempt, = connector.query("SELECT state FROM attempts")
        assert attempt["state"] != "ended"
        assert held(connector) == "1"
    finally:
        end_process(child)


# ---- what it has on the disk -----------------------------------------------

def directories(connector, attempt):
    """An attempt's session directory and its temp directory, by its id."""
    return [connector.sessions / attempt[4:16],
            pathlib.Path(leaks.worker_folder(attempt))]


def are_there(connector, attempt):
    return [path.is_dir() for path in directories(connector, attempt)]


def say_that_it_is_gone(connector, attempt):
    done = connector.connectctl("settle", attempt, "--gone")
    assert done.returncode == 0, done


def let_it_be_looked_for(connector, _attempt):
    connector.kill("dispatcher")


@pytest.mark.parametrize("end", [say_that_it_is_gone, let_it_be_looked_for])
def test_its_directories_stay(make_connector, end):
    """What runs still may be using them. What else was left is removed beside
    them (dispatch.md trap 17), and they once it is known to be gone.
    """
    connector, child = begin(make_connector)
    attempt = connector.query("SELECT id FROM attempts")[0]["id"]
    crash(connector)
    try:
        for _ in range(2):
            for path in directories(connector, OF_NOBODY):
                path.mkdir()
            start_held(connector)
            harness.wait_for(
                lambda: not any(are_there(connector, OF_NOBODY)),
                what="the removal of what was left")
            assert all(are_there(connector, attempt))
            connector.stop()
        start_held(connector)
    finally:
        end_process(child)
    end(connector, attempt)
    harness.wait_for(lambda: not any(are_there(connector, attempt)),
                     what="the removal")


def test_a_settlement_that_nobody_waits_for(make_killat, make_connector):
    """Of this run, which cannot signal it: the ledger settles it when whoever
    said so has gone, and it is let go all the same.
    """
    follower = make_killat("later:fail=EPERM@connectd:kill:1+",
                           "later:hold@connectd-ledger:tx~local:")
    connector = stories.begin(
        make_connector, cgroups=False, limits=LIMITS, follower=follower,
        script={"default": ["get", "ack", "grandchild", "linger"]})
    connector.sim.mention()
    child = grandchild_of(connector)
    attempt = connector.query("SELECT id FROM attempts")[0]["id"]
    worker = connector.roles()["worker"][0]
    follower.arm(1)
    try:
        processes.send_signal(worker, signal.SIGKILL)
        harness.wait_for(lambda: held(connector) == "1", what="the hold")
        assert all(are_there(connector, attempt))
    finally:
        end_process(child)
    follower.arm(2)
    done = connector.connectctl("settle", attempt, "--gone")
    assert done.returncode != 0 and "no answer yet" in done.stderr, done
    follower.wait(what="hold")
    follower.go(2)
    harness.wait_for(lambda: ends(connector) == ENDED, what="its end")
    harness.wait_for(lambda: not any(are_there(connector, attempt)),
                     what="the removal")
    assert processes.read_process(worker.pid) is None
    assert not held(connector)


# ---- another instance in the same run-time directory -----------------------

OTHER_AGENT = 52007413


def choose_agent(connector):
    """Another person of the same profile."""
    connector.sim.world({
        "people": [{"id": OTHER_AGENT, "name": "Other", "agent": True}],
        "projects": [{"id": harness.PROJECT, "members": [
            harness.OPERATOR, harness.AGENT, OTHER_AGENT]}],
        "clients": [{"client_id": "other-client", "scope": "full",
                     "secret": "not-a-real-secret",
                     "person_id": OTHER_AGENT}]})
    connector.config["agent"]["person_id"] = OTHER_AGENT
    connector.write_config()
    connector.write_credentials(client_id="other-client")
    return connector.state_dir.with_name("999-%d" % OTHER_AGENT)


def choose_state(connector):
    """The same agent with a state of its own elsewhere."""
    home = connector.folder.make("other")
    connector.environ["XDG_STATE_HOME"] = str(home)
    return home / connector.state_dir.relative_to(connector.xdg_state)


@contextlib.contextmanager
def another_instance(connector, choose):
    """What is started meanwhile has another lock and another ledger."""
    before = {name: copy.deepcopy(getattr(connector, name))
              for name in ("config", "environ", "state_dir")}
    connector.state_dir = choose(connector)
    try:
        yield
    finally:
        vars(connector).update(before)
        connector.write_config()
        connector.write_credentials()


def is_swept(connector):
    """What was left is gone, and so is who removes it."""
    return not any(are_there(connector, OF_NOBODY)) and not any(
        process.comm == "connectd-clean"
        for process in processes.descendants(connector.process.pid))


@pytest.mark.parametrize("choose", [choose_agent, choose_state])
def test_another_instance_leaves_its_directories(make_connector, choose):
    """Whose ledger knows nothing of the attempt: its sweep takes what its own
    earlier runs left, not what another's workers still use.
    """
    connector, child = begin(make_connector)
    attempt = connector.query("SELECT id FROM attempts")[0]["id"]
    its = directories(connector, attempt)
    crash(connector)
    try:
        with another_instance(connector, choose):
            connector.sessions.mkdir(0o711, exist_ok=True)
            for path in directories(connector, OF_NOBODY):
                path.mkdir()
            connector.start()
            harness.wait_for(lambda: is_swept(connector),
                             what="the removal of what was left")
            assert [path.is_dir() for path in its] == [True, True]
            assert processes.is_running(child)
            connector.stop()
    finally:
        end_process(child)
    connector.start()
    harness.wait_for(lambda: not any(are_there(connector, attempt)),
                     what="the removal")
    assert ends(connector) == ENDED


# ---- what removes them -----------------------------------------------------

def test_a_removal_keeps_no_stream_open(make_killat, make_connector):
    """It may outlive connectd, whose lines end with it nevertheless."""
    follower = make_killat("hold@connectd/fork:unlinkat:1")
    connector = stories.begin(
        make_connector, cgroups=False, follower=follower,
        script={"default": ["get", "ack", "reply", "complete"]})
    event_id, _ = stories.mention(connector)
    connector.wait_event(event_id, "completed")
    follower.wait(what="hold")
    connector.process.send_signal(signal.SIGTERM)
    assert connector.process.wait(60) == 143
    streams = [connector.lines, connector.logs]
    try:
        for stream in streams:
            stream.wait(lambda line: False, 5)
        assert all(stream.ended for stream in streams)
    finally:
        follower.go(1)
    connector.wait_end()


# ---- what its cgroup shows, and a launcher ---------------------------------

LAUNCHER = {"command": ["/usr/bin/env"]}
# The agent itself may end with its input, before it was asked anything.
STAYING = {"command": ["/bin/sh", "-c", '"$@"; exec sleep 600', "launcher"]}
ENDED = [("ended", "lost")]
UUID = "[0-9a-f]{8}-[0-9a-f]{4}-"


def with_cgroups(make_connector, launcher=None, **arguments):
    connector = make_connector(limits=LIMITS, **arguments)
    if launcher:
        launch_by(connector, launcher)
    connector.start()
    if not stories.has_cgroups(connector):
        pytest.skip("needs cgroups")
    return connector


def launch_by(connector, launcher):
    connector.config["worker"]["launcher"] = launcher
    connector.write_config()


def ends(connector):
    return [tuple(row.values()) for row in connector.query(
        "SELECT state, stop_reason FROM attempts")]


def check_ended(connector, child):
    try:
        harness.wait_for(lambda: ends(connector) == ENDED, what="its end")
        assert not processes.is_running(child)
    finally:
        processes.send_signal(child, signal.SIGKILL)


@pytest.mark.parametrize("before, after", [
    (None, None), (LAUNCHER, LAUNCHER), (None, LAUNCHER)],
    ids=["none", "one", "since"])
def test_what_a_cgroup_shows_is_ended(make_connector, before, after):
    """A launcher voids the proof that nothing runs, not what there is to see;
    and one that has come since says nothing of what was launched before.
    """
    connector = with_cgroups(make_connector, before, script={
        "default": ["get", "ack", "setsid-grandchild", "linger"]})
    connector.sim.mention()
    child = grandchild_of(connector)
    cgroups = cgroups_of(connector)
    assert len(cgroups) == 1
    connector.kill("supervisor")
    connector.wait_end()
    if after and not before:
        launch_by(connector, after)
    connector.start()
    check_ended(connector, child)
    harness.wait_for(lambda: not cgroups_of(connector), what="its removal")


def cgroups_of(connector):
    """Those of its attempts, which are there."""
    base = pathlib.Path(connector.status()["data"]["supervisor"]["cgroup"])
    return [base / row["id"] for row in connector.query(
        "SELECT id FROM attempts") if (base / row["id"]).is_dir()]


def test_a_member_of_its_group_that_was_moved(make_connector):
    """By somebody else, to another cgroup: it is in the worker's group."""
    connector = with_cgroups(make_connector, script={
        "default": ["get", "ack", "grandchild", "linger"]})
    connector.sim.mention()
    child = grandchild_of(connector)
    base = pathlib.Path(connector.status()["data"]["supervisor"]["cgroup"])
    other = base.parent / ("%s-moved" % connector.folder.path.name)
    other.mkdir()
    try:
        (other / "cgroup.procs").write_text(str(child.pid))
        connector.kill("supervisor")
        connector.wait_end()
        connector.start()
        check_ended(connector, child)
    finally:
        harness.wait_for(lambda: remove_cgroup(other), what="its removal")


def test_nobody_recorded_and_a_launcher(make_killat, make_connector):
    """What its cgroup shows is ended; whether that is all, nobody knows."""
    follower = make_killat("later:kill-tree@connectd-ledger:tx~" + UUID)
    connector = with_cgroups(make_connector, STAYING, follower=follower,
                             script={"default": ["get", "ack", "linger"]})
    base = pathlib.Path(connector.status()["data"]["supervisor"]["cgroup"])
    follower.arm(1)
    connector.sim.mention()
    follower.wait(what="kill")
    connector.wait_end()
    attempt, = connector.query("SELECT * FROM attempts")
    assert (attempt["state"], attempt["pid"]) == ("launching", None)
    pids = (base / attempt["id"] / "cgroup.procs").read_text().split()
    left = [processes.read_process(int(pid)) for pid in pids]
    leader, = [process for process in left
               if process and process.pid == process.pgid]
    connector.follower = None
    connector.start()
    try:
        harness.wait_for(lambda: held(connector) == "1", what="the hold")
        assert not processes.is_running(leader)
    finally:
        processes.send_signal(leader, signal.SIGKILL)
    say_that_it_is_gone(connector, attempt["id"])
    assert ends(connector) == ENDED


# ---- what its worker posted by itself --------------------------------------

def leave_with_reply(make_connector, **limits):
    """A worker that has died with its supervisor, not what it began; its
    event, and the reply that it posted of its own.
    """
    connector, child = begin(make_connector, **limits)
    event, = connector.query("SELECT id, reply_recording_id FROM events")
    reply = post_as_agent(connector.sim, event["reply_recording_id"],
                          "<div>It is done.</div>")
    crash(connector)
    return connector, child, event["id"], reply


def wait_adopted(connector, event_id, reply):
    harness.wait_for(lambda: row_of(connector, event_id)["adopted_reply_id"],
                     what="an adopted reply")
    assert row_of(connector, event_id) == {
        "delivery": "completed", "outcome": "unknown",
        "adopted_reply_id": reply}


@pytest.mark.parametrize("end", [say_that_it_is_gone, let_it_be_looked_for])
def test_its_reply_is_adopted(make_connector, end):
    """Whoever settled it (operator.md 2.8)."""
    connector, child, event_id, reply = leave_with_reply(make_connector)
    attempt, = connector.query("SELECT id FROM attempts")
    try:
        start_held(connector)
    finally:
        end_process(child)
    end(connector, attempt["id"])
    wait_adopted(connector, event_id, reply)


def test_its_reply_is_adopted_before_it_was_looked_for(
        make_killat, make_connector):
    """A dispatcher that still waits for the outbox has not listed it, and
    never will: a person settles it meanwhile.
    """
    follower = make_killat("hold@connectd-outbox:exec:1")
    connector, child, event_id, reply = leave_with_reply(
        make_connector, outbox_start="1m", ready_deadline="1m")
    attempt, = connector.query("SELECT id FROM attempts")
    end_process(child)
    connector.follower = follower
    connector.start(ready=False)
    follower.wait(what="hold")
    connector.wait_status(lambda s: {
        child["role"] for child in s["data"]["children"]
        if child["state"] == "ready"} >= {"ledger", "dispatcher"})
    say_that_it_is_gone(connector, attempt["id"])
    follower.go(1)
    wait_adopted(connector, event_id, reply)


# ---- what only seems to be -------------------------------------------------

def test_what_is_being_launched(make_killat, make_connector):
    """The ledger has its attempt, the supervisor was not asked for it yet: it
    is nobody's to settle, and goes on.
    """
    follower = make_killat("hold@connectd-dispatcher:tx~/comments/1000")
    connector = stories.begin(make_connector, follower=follower)
    event_id, _ = stories.mention(connector)
    follower.wait(what="hold")
    attempt, = connector.query("SELECT id, state FROM attempts")
    assert attempt["state"] == "launching"
    done = connector.connectctl("settle", attempt["id"], "--gone")
    assert done.returncode == 1, done
    assert "it is being launched" in done.stderr
    follower.go(1)
    evidence = stories.settle(connector)
    assert stories.outcome_of(evidence, event_id) == ("succeeded", "finished")


# ---- a restart that sees other cgroups -------------------------------------

def enter_namespace(point, cgroup):
    """As a container does: below a cgroup of its own, in a cgroup namespace
    and with a mount at the same place.
    """
    (cgroup / "cgroup.procs").write_text(str(os.getpid()))
    libc = surroundings.libc
    if (libc.unshare(CLONE_NEWCGROUP | surroundings.CLONE_NEWNS) == -1
            or libc.mount(b"none", b"/", None, surroundings.MS_REC |
                          surroundings.MS_PRIVATE, None) == -1
            or libc.umount2(point, surroundings.MNT_DETACH) == -1
            or libc.mount(b"cgroup2", point, b"cgroup2", 0, None) == -1):
        raise OSError(ctypes.get_errno(), "another namespace")
    harness.end_with_parent()


def test_a_cgroup_that_is_missing_in_another_namespace(make_connector):
    """It is there, with its worker, where nobody looks."""
    connector = stories.begin(
        make_connector, script={"default": ["get", "ack", "linger"]})
    if not (surroundings.is_root() and stories.has_cgroups(connector)):
        pytest.skip("needs root and cgroups")
    stories.mention(connector)
    harness.wait_for(lambda: connector.query(
        "SELECT 1 FROM task_events WHERE delivery = 'delivered'"), what="ack")
    attempt, = connector.query("SELECT containment FROM attempts")
    point = next(above for above in pathlib.Path(
        attempt["containment"].partition(":")[2]).parents if above.is_mount())
    cgroup = point / ("%s-other" % connector.folder.path.name)
    worker = connector.roles()["worker"][0]
    connector.kill("supervisor")
    connector.wait_end()
    cgroup.mkdir()
    connector.birth = lambda: enter_namespace(bytes(point), cgroup)
    try:
        connector.start()
        connector.wait_log("its cgroup cannot be seen from here", timeout=20)
        attempt, = connector.query("SELECT state FROM attempts")
        assert attempt["state"] != "ended"
        assert processes.is_running(worker)
        connector.stop()
    finally:
        if processes.is_running(worker):
            processes.send_signal(worker, 9)
        harness.wait_for(lambda: remove_cgroup(cgroup), what="its removal")


def remove_cgroup(cgroup):
    """True once no process is in it any more."""
    try:
        for below, _, _ in os.walk(cgroup, topdown=False):
            os.rmdir(below)
    except OSError:
        return False
    return True
