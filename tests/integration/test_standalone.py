"""The standalone form of connectd-mcpd (design 6.1, ledger.md 7): an operator
takes a running task over with `connectctl token` and serves it elsewhere.
"""

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import struct
import subprocess
import termios
import threading

import pytest

import leaks
import processes
from harness import ROOT, is_root, wait_for
from standalone import (
    Standalone, attempt_of, connectctl_token, take_over)

CONNECT = "basecamp_connect"
THREAD = "basecamp_thread"
GET_AGAIN = {"step": "call?", "tool": CONNECT,
             "arguments": {"action": "get_dispatch", "params": {}}}


@pytest.fixture
def serve(request):
    """Makes standalone servers that end with the test."""
    made = []

    def serve(connector, *token_fd, **more):
        made.append(Standalone(connector, *token_fd, **more))
        return made[-1]

    yield serve
    for server in made:
        server.close()
        assert server.garbage == []


@pytest.fixture
def working(make_connector):
    """A connector with mcp.socket whose worker has begun event 1 and does
    the steps that are given once that is completed, by whomever.
    """
    def working(steps=(), **arguments):
        connector = make_connector(
            script={"default": ["get", "await:1=completed", *steps,
                                "linger"]},
            config={"mcp": {"socket": True}}, **arguments).start()
        assert connector.sim.mention()["event_id"] == 1
        wait_for(lambda: connector.agent_records("answer"),
                 what="the worker's first answer")
        connector.attempt = attempt_of(connector)
        return connector
    return working


def mcpd_answers(connector):
    return [json.loads(r["text"]) for r in connector.agent_records("answer")]


def wait_all_ready(connector):
    connector.wait_status(
        lambda s: all(c["state"] == "ready" for c in s["data"]["children"]),
        what="every child")


# ---- a task, taken over ----------------------------------------------------

@pytest.mark.parametrize("modern", [False, True])
def test_a_task_is_served_elsewhere(working, serve, modern):
    """get, read, ack, reply, complete over stdio, in both eras; the worker's
    own server is out from the next call on.
    """
    connector = working([GET_AGAIN])
    server = serve(connector, take_over(connector, connector.attempt),
                   sockets=modern)
    server.open(modern)
    tools = server.request("tools/list")["result"]["tools"]
    assert [t["name"] for t in tools] == [CONNECT, THREAD]
    got = server.must(CONNECT, "get_dispatch")["instruction"]
    assert got["event_id"] == 1 and got["delivery"] == "exposed"
    assert server.must(THREAD, "read", event_id=1)["recording"]
    boost = server.must(THREAD, "boost", event_id=1, content="On it")
    ack = server.must(CONNECT, "ack_dispatch", event_id=1,
                      ack_id=boost["id"])
    assert ack["delivery"] == "delivered"
    reply = server.must(THREAD, "reply", event_id=1, content="*Done*")
    done = server.must(CONNECT, "complete_dispatch", event_id=1,
                       outcome="succeeded", reply_id=reply["id"])
    assert done["outcome"] == "succeeded"
    posted = connector.sim.messages()
    assert sorted(m["id"] for m in posted) == sorted(
        [boost["id"], reply["id"]])
    wait_for(lambda: len(mcpd_answers(connector)) == 2,
             what="the worker's next answer")
    assert mcpd_answers(connector)[1]["error"] == "task_token_refused"
    assert server.end() == 0
    row, = connector.query("SELECT rekeys, taken_at FROM tasks")
    assert row["rekeys"] == 1 and row["taken_at"]


def test_status_names_who_serves(working, serve):
    connector = working()
    server = serve(connector, take_over(connector, connector.attempt)).open()
    guests = connector.status()["data"]["guests"]
    assert [g["attempt_id"] for g in guests] == [connector.attempt]
    server.end()
    connector.wait_status(lambda s: s["data"]["guests"] == [],
                          what="an empty list of guests")


def test_the_next_token_ends_the_one_before(working, serve):
    """It keeps running, and every action says that the token is refused."""
    connector = working()
    first = serve(connector, take_over(connector, connector.attempt)).open()
    first.must(CONNECT, "get_dispatch")
    second = serve(connector, take_over(connector, connector.attempt)).open()
    assert first.refused() == "task_token_refused"
    assert first.refused("ack_dispatch", event_id=1) == "task_token_refused"
    assert first.refused("complete_dispatch", event_id=1,
                         outcome="meh") == "task_token_refused"
    answer, is_error = first.call(THREAD, "reply", event_id=1, content="x")
    assert is_error and answer["error"] == "task_token_refused"
    assert first.request("ping")["result"] == {}
    second.must(CONNECT, "ack_dispatch", event_id=1)
    row, = connector.query("SELECT delivery, outcome FROM task_events")
    assert row == {"delivery": "delivered", "outcome": ""}
    assert first.end() == 0


def test_the_dispatcher_does_not_take_it_back(working, serve):
    """The task's own mcpd dies: nobody re-keys, and its socket is closed."""
    connector = working()
    bridge = connector.roles()["bridge"][0]
    path = processes.read_bytes(bridge.pid, "cmdline").split(b"\0")[1]
    server = serve(connector, take_over(connector, connector.attempt)).open()

    def is_listening():
        with open("/proc/net/unix", "rb") as file:
            return any(line.endswith(b" " + path + b"\n") and
                       b" 00010000 " in line for line in file)

    assert is_listening()
    connector.kill("mcpd")
    wait_for(lambda: not is_listening(), what="a closed listener")
    server.must(CONNECT, "get_dispatch")
    row, = connector.query("SELECT rekeys FROM tasks")
    assert row["rekeys"] == 1


def test_the_script_of_the_documentation(working, serve):
    """docs/operating.md shows how; here it is run."""
    connector = working()
    text = (ROOT / "docs" / "operating.md").read_text()
    lines = text[text.index("    #!/bin/bash"):].split("\n\n")[0]
    script = connector.folder.path / "serve-task"
    script.write_text(lines.replace("    ", "").replace(
        "/var/lib/connectd/999-52007412", str(connector.state_dir)))
    script.chmod(0o755)
    connector.environ["PATH"] = "%s:/usr/bin:/bin" % connector.bin
    server = serve(connector, argv=[str(script), connector.attempt]).open()
    assert server.must(CONNECT, "get_dispatch")["instruction"]
    assert server.end() == 0


# ---- deaths of others ------------------------------------------------------

@pytest.mark.parametrize("role", ["ledger", "intake", "outbox"])
def test_a_death_between_calls_is_not_seen(working, serve, role):
    connector = working()
    server = serve(connector, take_over(connector, connector.attempt)).open()
    server.must(CONNECT, "get_dispatch")
    for _ in range(2):
        connector.kill(role)
        server.must(THREAD, "read", event_id=1)
        server.must(CONNECT, "ack_dispatch", event_id=1)
        server.must(THREAD, "reply", event_id=1, content="once")
        wait_all_ready(connector)
    assert len([m for m in connector.sim.messages()
                if m["kind"] == "comment"]) == 1


def test_it_outlives_the_connector(working, serve):
    """Away it says so; come back it is asked by the very next call."""
    connector = working()
    server = serve(connector, take_over(connector, connector.attempt)).open()
    server.must(CONNECT, "get_dispatch")
    connector.kill()
    connector.wait_end()
    for _ in range(3):
        answer, is_error = server.connect("get_dispatch")
        assert is_error and answer["error"] == "unavailable"
        assert "not running" in answer["message"]
    assert server.request("ping")["result"] == {}
    connector.start()
    # What was lost with the run is superseded by its settlement.
    connector.wait_line(type="dispatch", state="ended")
    assert server.refused() == "task_token_refused"
    assert server.end() == 0


# ---- who may, and what it says ---------------------------------------------

def refused_start(serve, connector, token_fd, **more):
    server = serve(connector, token_fd, **more)
    status = server.wait()
    assert server.answers.get() is None
    return status, "\n".join(server.errors)


def test_a_superseded_token_does_not_start(working, serve):
    connector = working()
    old = take_over(connector, connector.attempt)
    os.close(take_over(connector, connector.attempt))
    status, said = refused_start(serve, connector, old)
    assert status == 77
    assert "names no current task in %s" % connector.state_dir in said


def token_pipe(text=b"0" * 43 + b"\n"):
    read, write = os.pipe()
    os.write(write, text)
    os.close(write)
    return read


@pytest.mark.parametrize("text", [b"0" * 43, b"short", b"x" * 4000])
def test_any_other_token_does_not_start(working, serve, text):
    connector = working()
    status, said = refused_start(serve, connector, token_pipe(text))
    assert status == 77 and "names no current task" in said
    assert text.decode() not in said


@pytest.mark.trap("T85")
def test_what_follows_the_newline_is_not_the_token(working, serve):
    connector = working()
    with open(take_over(connector, connector.attempt), "rb") as pipe:
        line = pipe.read()
    serve(connector, token_pipe(b" " + line + b"rest")).open().must(
        CONNECT, "get_dispatch")


@pytest.mark.trap("T86")
def test_the_descriptor_is_closed_before_anything_is_asked(
        make_connector, serve):
    """A connector that takes the connection and then leaves: by then there
    is no reader of the token's pipe any more, and none comes back.
    """
    connector = make_connector()
    connector.state_dir.mkdir(parents=True, mode=0o700)
    (connector.state_dir / "ledger.db").touch(0o600)
    connector.run_dir.mkdir(parents=True)
    note = connector.state_dir.with_name(
        "instance-%s.lock.json" % connector.state_dir.name)
    note.touch(0o600)
    note.write_text(json.dumps({"runtime_dir": str(connector.run_dir)}))
    read, write = os.pipe()
    with open(write, "wb", 0) as writer, socket.socket(socket.AF_UNIX) as listener:
        writer.write(b"0" * 43 + b"\n")
        listener.bind(str(connector.run_dir / "ledger.sock"))
        listener.listen()
        listener.settimeout(20)
        server = serve(connector, read)
        peer, _ = listener.accept()
        ready = select.poll()
        ready.register(write, 0)
        assert ready.poll(0) == [(write, select.POLLERR)]
        assert server.process.poll() is None
        peer.close()
        assert server.wait() == 69
    assert "did not let this process in" in server.errors[0]


def test_without_a_connector(make_connector, serve, tmp_path):
    connector = make_connector(config={"mcp": {"socket": True}})
    status, said = refused_start(serve, connector, token_pipe())
    assert status == 69 and "no connector ledger in" in said
    connector.start().stop()
    status, said = refused_start(serve, connector, token_pipe())
    assert status == 69 and "the connector is not running" in said
    # A killed one leaves its note and its socket's path.
    connector.start().kill()
    connector.wait_end()
    status, said = refused_start(serve, connector, token_pipe())
    assert status == 69 and "the connector is not running" in said


def of_another_build(connector):
    """A connectd-mcpd that only calls its build otherwise."""
    said = subprocess.run([str(connector.bin / "connectd"), "--version"],
                          stdout=subprocess.PIPE, check=True).stdout
    build = said.split()[1] + b"\0"
    program = (connector.bin / "connectd-mcpd").read_bytes()
    assert program.count(build) == 1
    other = connector.folder.path / "connectd-mcpd-other"
    other.write_bytes(program.replace(build, build[:-2] + b"~\0"))
    other.chmod(0o755)
    return other


def test_one_of_another_build_is_turned_away(working, serve):
    """By name, before it has shown its token or asked anything."""
    connector = working()
    token = take_over(connector, connector.attempt)
    server = serve(connector, token, argv=[
        str(of_another_build(connector)), "--connect-state",
        str(connector.state_dir), "--connect-token-fd", str(token)])
    assert server.wait() == 69
    assert server.errors == ["connectd-mcpd: warn: the connector is of another"
                             " build than this connectd-mcpd"]
    connector.wait_status(
        lambda status: status["data"]["guests"] == [], what="no guest")
    assert connector.query("SELECT state FROM attempts")[0]["state"] == (
        "running")
    serve(connector, take_over(connector, connector.attempt)).open().must(
        CONNECT, "get_dispatch")


def test_a_client_that_does_not_read_stderr(working, serve):
    """What is said there waits for nobody: calls are answered."""
    connector = working()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    server = serve(connector, take_over(connector, connector.attempt),
                   stderr=writer).open()
    server.must(CONNECT, "get_dispatch")
    connector.stop()
    for _ in range(3):
        assert server.refused() == "unavailable"
    assert server.end() == 0
    os.close(reader)


def unread(pipe):
    """Bytes in it that its reader has left there."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"1234"))[0]


def test_a_client_that_pipelines(working, serve):
    """More lines than there may be answers, and it reads late: the server
    stops reading until then, and loses no line.
    """
    connector = working()
    server = serve(connector, take_over(connector, connector.attempt)).open()
    server.may_read.clear()
    lines = b"".join(
        b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n' % n
        for n in range(4000))
    writer = threading.Thread(
        target=lambda: (server.stdin.write(lines), server.stdin.flush()))
    writer.start()
    wait_for(lambda: unread(server.stdin) > 60000 or not writer.is_alive(),
             what="input that waits")
    server.may_read.set()
    assert [server.hear()["id"] for _ in range(4000)] == list(range(4000))
    writer.join()
    assert server.end() == 0


def test_without_leave_in_the_configuration(make_connector, serve):
    """Off by default; `reload` turns it on and off, and everybody out."""
    connector = make_connector().start()
    path = connector.run_dir / "ledger.sock"
    status, said = refused_start(serve, connector, token_pipe())
    assert status == 69 and "mcp.socket" in said
    for wanted in (True, False, True):
        connector.config["mcp"] = {"socket": wanted}
        connector.write_config()
        assert connector.connectctl("reload").returncode == 0
        assert path.exists() == wanted
    assert path.stat().st_mode & 0o777 == 0o600
    path.unlink()
    wait_for(path.exists, what="the socket, made again")
    connector.stop()
    assert not path.exists()


def test_a_state_directory_is_vetted(working, serve):
    connector = working()
    state = connector.state_dir
    link = connector.folder.path / "link"
    link.symlink_to(state)
    status, said = refused_start(serve, connector, token_pipe(), state=link)
    assert status == 77 and "not a real directory" in said
    mode = state.parent.stat().st_mode & 0o7777
    state.parent.chmod(0o777)
    status, said = refused_start(serve, connector, token_pipe())
    state.parent.chmod(mode)
    assert status == 77 and "writable by others" in said
    mode = connector.run_dir.stat().st_mode & 0o7777
    connector.run_dir.chmod(0o777)
    status, said = refused_start(serve, connector, token_pipe())
    connector.run_dir.chmod(mode)
    assert status == 77 and "writable by others" in said


def test_a_worker_does_not_come_in(make_connector):
    """Of another user it is not let through; of our own it is turned away."""
    connector = make_connector(
        script={"default": ["get", "connect-control", "complete"]},
        config={"mcp": {"socket": True}})
    connector.set_script({
        "default": ["get", "connect-control", "complete"],
        "control": str(connector.run_dir / "ledger.sock")})
    connector.start()
    connector.sim.mention()
    connector.wait_line(type="dispatch", state="ended")
    seen, = connector.agent_records("connect_control")
    if is_root():
        assert seen["error"] == "EACCES" and not seen["connected"]
    else:
        assert seen["connected"] and seen["received"] == ""
        connector.wait_log("ledger.sock: pid")


def test_only_so_many_at_once(working, serve):
    connector = working()
    servers = []
    for _ in range(16):
        servers.append(serve(
            connector, take_over(connector, connector.attempt)).open())
    status, said = refused_start(
        serve, connector, take_over(connector, connector.attempt))
    assert status == 69 and "did not let this process in" in said
    connector.wait_log("too many at once")
    assert servers[-1].end() == 0
    serve(connector, take_over(connector, connector.attempt)).open()


# ---- its end ---------------------------------------------------------------

@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it(working, serve, number):
    """Also while a call waits to be posted; what it asked for stands."""
    connector = working()
    server = serve(connector, take_over(connector, connector.attempt)).open()
    server.must(CONNECT, "get_dispatch")
    connector.sim.gate("POST /999/recordings/*/comments")
    server.send("tools/call", {"name": THREAD, "arguments": {
        "action": "reply", "params": {"event_id": 1, "content": "late"}}}, 7)
    connector.sim.wait("held", 1)
    server.process.send_signal(number)
    assert server.wait() == 0
    connector.sim.release("POST /999/recordings/*/comments")
    connector.wait_line(type="outbox", kind="worker_reply", state="sent")


def test_what_was_read_counts_though_input_ends(working, serve):
    """The report is in the ledger before the server is gone, though the
    ledger is away when it comes: its second death is followed by a pause.
    """
    connector = working()
    server = serve(connector, take_over(connector, connector.attempt)).open()
    server.must(CONNECT, "get_dispatch")
    connector.kill("ledger")
    wait_all_ready(connector)
    connector.kill("ledger")
    server.send("tools/call", {"name": CONNECT, "arguments": {
        "action": "complete_dispatch",
        "params": {"event_id": 1, "outcome": "failed"}}}, 77)
    assert server.end() == 0
    row, = connector.query("SELECT outcome FROM task_events")
    assert row["outcome"] == "failed"


# ---- connectctl token ------------------------------------------------------

def test_connectctl_token_says_what_is_wrong(working, tmp_path):
    connector = working()
    read, write = os.pipe()
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, read)
        stack.callback(os.close, write)
        file = stack.enter_context(open(tmp_path / "f", "wb"))
        for attempt, fd, code, words in (
                ("att_" + "0" * 24, write, 1, "no attempt"),
                ("x", write, 64, "no id"),
                (connector.attempt, file.fileno(), 64, "neither a pipe")):
            done = connectctl_token(connector, attempt, fd)
            assert done.returncode == code, done.stderr
            assert words in done.stderr
        for words in (["token", connector.attempt], ["token", "--fd", "5"],
                      ["token", connector.attempt, "--fd", "2"],
                      ["token", connector.attempt, "--fd", "99"],
                      ["status", "--fd", "5"]):
            assert connector.connectctl(*words).returncode == 64
        os.set_blocking(read, False)
        with pytest.raises(BlockingIOError):
            os.read(read, 1)
    row, = connector.query("SELECT rekeys FROM tasks")
    assert row["rekeys"] == 0
    assert file.closed and (tmp_path / "f").read_bytes() == b""


def test_connectctl_token_hands_one_line_over(working):
    connector = working()
    read, write = os.pipe()
    done = connectctl_token(connector, connector.attempt, write, "--json")
    os.close(write)
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"ok": True, "data": {"task_id": 1}}
    with open(read, "rb") as pipe:
        line = pipe.read()
    needles = leaks.Needles()
    needles.learn(connector)
    assert len(line) == 44 and line.endswith(b"\n")
    assert needles.search(line) == {"task token"}
    assert not needles.search((done.stdout + done.stderr).encode())


# ---- nothing of it stays ---------------------------------------------------

def memory_of(pid):
    """Everything readable of a process, and nothing where it may not be."""
    found = b""
    with open("/proc/%d/maps" % pid) as maps, \
            open("/proc/%d/mem" % pid, "rb", 0) as mem:
        for line in maps:
            words = line.split()
            low, high = (int(x, 16) for x in words[0].split("-"))
            if "rw" in words[1]:
                with contextlib.suppress(OSError, ValueError):
                    mem.seek(low)
                    found += mem.read(high - low)
    return found


@pytest.mark.walls
@pytest.mark.skipif(not is_root(), reason="they are not dumpable")
def test_the_server_is_walled_and_its_helper_knows_nothing(working, serve):
    """As _connectd-mcp behind a filter; the one that connects for it has a
    socket to it, and no token.
    """
    connector = working()
    server = serve(connector, take_over(connector, connector.attempt)).open()
    pid = server.process.pid
    status = dict(line.split(":\t", 1) for line in open(
        "/proc/%d/status" % pid).read().splitlines())
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    assert len(set(status["Uid"].split())) == 1
    assert status["Uid"].split()[0] != "0"
    helper, = processes.descendants(pid)
    fds = {int(f): os.readlink("/proc/%d/fd/%s" % (helper.pid, f))
           for f in os.listdir("/proc/%d/fd" % helper.pid)}
    assert set(fds) == {0, 1, 2, 3}
    assert fds[0] == fds[1] == "/dev/null"
    assert fds[3].startswith("socket:")
    needles = leaks.Needles()
    needles.learn(connector)
    assert needles.search(memory_of(pid)) == {"task token"}
    assert not needles.search(memory_of(helper.pid))
    report = leaks.Report(needles)
    leaks.look_around(report, connector)
    for process in (pid, helper.pid):
        for name in ("cmdline", "environ"):
            report.look(name, str(process), processes.read_bytes(
                process, name))
    report.must_be_clean("file", "cmdline", "log", "line")
    server.process.kill()
    wait_for(lambda: not processes.is_running(helper), what="its end")
