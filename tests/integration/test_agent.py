"""The scripted agent by itself: its argv, its two wires, its steps.

The MCP server behind it is a stub that keeps what it received in a file and
misbehaves on demand.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading

import pytest

import harness

LIMIT = 30
SESSION = "3251eb1d-2c61-4d8a-b3a9-ddd6fae38ea7"
PROMPT = ("You work as the agent. This is task 4, event 101. Call get_dispatch "
          "with event_id 101 first.")

STUB = r'''
import json, os, sys, time
log = open(os.environ["STUB_LOG"], "a", buffering=1)
mode = os.environ.get("STUB_MODE", "modern")
posts = {}
def note(**fields):
    log.write(json.dumps(dict(fields, pid=os.getpid())) + "\n")
def answer(ident, result, modern):
    if modern:
        result = dict(result, resultType="complete")
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": ident,
                                 "result": result}) + "\n")
    sys.stdout.flush()
def refuse(ident, code, text):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": ident, "error":
                                 {"code": code, "message": text}}) + "\n")
    sys.stdout.flush()
def call(params):
    args = params["arguments"]
    action, given = args["action"], args["params"]
    if mode == "refuse" and action == "get_dispatch":
        return {"error": "not_on_task", "message": "no"}, True
    if action == "get_dispatch":
        return {"instruction": {"event_id": given.get("event_id", 101),
                "acknowledge": mode != "unasked",
                "guard_acknowledged": False}}, False
    if action in ("boost", "reply"):
        key = json.dumps(args, sort_keys=True)
        posts[key] = posts.get(key, 0) + 1
        if posts[key] < 3:
            return {"state": "pending"}, False
        return {"state": "sent", "id": 7 if action == "boost" else 8}, False
    return dict(given, delivery="x"), False
note(ev="start", environ=sorted(os.environ), pgid=os.getpgrp(),
     ppid=os.getppid(), fds=[os.readlink("/proc/self/fd/%d" % n)
                             for n in range(3)])
for line in sys.stdin:
    m = json.loads(line)
    note(ev="recv", msg=m)
    meta = m.get("params", {}).get("_meta", {})
    modern = "io.modelcontextprotocol/protocolVersion" in meta
    if "id" not in m:
        continue
    if m["method"] == "server/discover":
        if mode == "dies":
            if not os.path.exists(os.environ["STUB_LOG"] + ".died"):
                open(os.environ["STUB_LOG"] + ".died", "w").close()
                sys.exit(1)
        if mode in ("legacy", "dies"):
            refuse(m["id"], -32601, "Method not found: server/discover")
        else:
            answer(m["id"], {"supportedVersions": ["2026-07-28"],
                             "capabilities": {"tools": {}}}, True)
    elif m["method"] == "initialize":
        answer(m["id"], {"protocolVersion": "2025-11-25",
                         "capabilities": {"tools": {}}}, False)
    elif m["method"] == "tools/list":
        answer(m["id"], {"tools": [{"name": "basecamp_connect"},
                                   {"name": "basecamp_thread"}]}, modern)
    elif m["method"] == "tools/call":
        if mode == "hang" or m["params"]["arguments"]["action"] == "hang":
            continue
        text, failed = call(m["params"])
        answer(m["id"], {"content": [{"type": "text",
               "text": json.dumps(text)}], "isError": failed}, modern)
'''


class Session:
    """One run of the agent with the stub behind it."""

    def __init__(self, folder, script=None, mode="modern", stub=STUB):
        self.folder = folder
        self.stub_log = folder / "stub.log"
        self.log = folder / "agent.log"
        (folder / "stub.py").write_text(stub)
        members = dict({"log": str(self.log), "out": str(folder)},
                       **(script or {}))
        (folder / "script.json").write_text(json.dumps(members))
        (folder / "mcp.json").write_text(json.dumps({"mcpServers": {
            "basecamp": {
                "type": "stdio",
                "command": sys.executable,
                "args": [str(folder / "stub.py")],
                "env": {"STUB_LOG": str(self.stub_log), "STUB_MODE": mode},
            }}}))
        self.argv = argv_of(folder / "mcp.json")
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            self.argv,
            cwd=self.folder,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.folder),
                 "TMPDIR": str(self.folder), "A_KEY": "dummy",
                 "CONNECTD_AGENT_SCRIPT": str(self.folder / "script.json")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.limit = threading.Timer(LIMIT, self.process.kill)
        self.limit.start()
        return self

    def send(self, frame):
        self.process.stdin.write((json.dumps(frame) + "\n").encode())
        self.process.stdin.flush()

    def prompt(self, text=PROMPT):
        self.send({"type": "user",
                   "message": {"role": "user", "content": text}})

    def interrupt(self):
        self.send({"type": "control_request", "request_id": "r1",
                   "request": {"subtype": "interrupt"}})

    def read_until(self, kind):
        events = []
        while True:
            line = self.process.stdout.readline()
            assert line, "stdout ended before %s: %s" % (kind, events)
            events.append(json.loads(line))
            if events[-1]["type"] == kind:
                return events

    def close(self):
        """EOF on stdin; the exit status and what was still on stdout."""
        self.process.stdin.close()
        rest = self.process.stdout.read()
        status = self.process.wait(20)
        return status, [json.loads(line) for line in rest.splitlines()]

    def records(self, path):
        return [json.loads(line) for line in path.read_text().splitlines()]

    def steps(self):
        return [record["name"] for record in self.records(self.log)
                if record["what"] == "step"]

    def received(self):
        return [record["msg"] for record in self.records(self.stub_log)
                if record["ev"] == "recv"]

    def calls(self):
        return [message["params"]["arguments"]["action"]
                for message in self.received()
                if message["method"] == "tools/call"]


def argv_of(mcp_config):
    return [str(harness.AGENTS / "claude"), "-p",
            "--input-format", "stream-json",
            "--output-format", "stream-json",
            "--verbose",
            "--setting-sources", "",
            "--permission-mode", "acceptEdits",
            "--permission-prompts", "none",
            "--tools", "Edit,Write,NotebookEdit,Read,Glob,Grep,TodoWrite",
            "--allowed-tools", "mcp__basecamp",
            "--strict-mcp-config",
            "--mcp-config", str(mcp_config),
            "--session-id", SESSION]


@pytest.fixture
def session(tmp_path):
    made = []

    def make(**arguments):
        folder = tmp_path / ("s%d" % len(made))
        folder.mkdir()
        made.append(Session(folder, **arguments))
        return made[-1].start()

    yield make
    for one in made:
        try:
            os.killpg(one.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        one.process.wait(10)
        one.limit.cancel()
        for pipe in (one.process.stdin, one.process.stdout,
                     one.process.stderr):
            pipe.close()


def run_argv(argv):
    return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=20, check=False)


def test_version():
    done = run_argv([str(harness.AGENTS / "claude"), "--version"])
    assert done.returncode == 0
    assert b"(Claude Code)" in done.stdout


@pytest.mark.parametrize("change, text", [
    (lambda a: a + ["--dangerously-skip-permissions"], "unknown option"),
    (lambda a: a + ["fix it"], "unknown option"),
    (lambda a: a + ["--verbose"], "given twice"),
    (lambda a: a[:-1], "needs a value"),
    (lambda a: a[:-2], "one of --session-id"),
    (lambda a: a + ["--resume", SESSION], "one of --session-id"),
    (lambda a: a[:-1] + [SESSION.upper()], "cannot be"),
    (lambda a: [w if w != "stream-json" else "text" for w in a], "cannot be"),
    (lambda a: [w for w in a if w != "--verbose"], "is missing"),
    (lambda a: [w for w in a if w != "-p"], "is missing"),
    (lambda a: [w for w in a if w != "--strict-mcp-config"], "is missing"),
    (lambda a: [w if not w.endswith("mcp.json") else "/none" for w in a],
     "Invalid MCP configuration"),
])
def test_argv_refused(tmp_path, change, text):
    (tmp_path / "mcp.json").write_text('{"mcpServers":{}}')
    done = run_argv(change(argv_of(tmp_path / "mcp.json")))
    assert done.returncode == 2
    assert text.encode() in done.stderr
    assert done.stdout == b""


@pytest.mark.parametrize("mode", ["modern", "legacy", "dies"])
def test_default_script(session, mode):
    agent = session(mode=mode)
    agent.prompt()
    events = agent.read_until("result")
    assert events[0]["subtype"] == "init"
    assert events[0]["session_id"] == SESSION
    assert events[0]["permissionMode"] == "acceptEdits"
    assert events[0]["mcp_servers"][0]["status"] == "connected"
    assert "mcp__basecamp__basecamp_thread" in events[0]["tools"]
    assert events[-1]["subtype"] == "success"
    assert not events[-1]["is_error"]
    status, rest = agent.close()
    assert (status, rest) == (0, [])
    assert agent.calls() == [
        "get_dispatch", "boost", "boost", "boost", "ack_dispatch", "read",
        "reply", "reply", "reply", "complete_dispatch"]
    last = agent.received()[-1]["params"]["arguments"]["params"]
    assert last == {"event_id": 101, "outcome": "succeeded", "reply_id": 8}
    assert (agent.folder / "answer-101.txt").exists()


def test_modern_wire(session):
    agent = session()
    agent.prompt()
    agent.read_until("result")
    agent.close()
    messages = agent.received()
    assert messages[0]["id"] == "server-discover-probe-1"
    assert [m["id"] for m in messages[1:]] == list(range(len(messages) - 1))
    assert messages[1]["method"] == "tools/list"
    for message in messages:
        meta = message["params"]["_meta"]
        key = "io.modelcontextprotocol/protocolVersion"
        assert meta[key] == "2026-07-28"
        if message["method"] == "tools/call":
            assert meta["progressToken"] == message["id"]
            assert meta["claudecode/toolUseId"].startswith("toolu_")


def test_legacy_wire(session):
    agent = session(mode="legacy")
    agent.prompt()
    agent.read_until("result")
    agent.close()
    messages = agent.received()
    assert [m["method"] for m in messages[:4]] == [
        "server/discover", "initialize", "notifications/initialized",
        "tools/list"]
    assert messages[1]["id"] == 0
    assert "params" not in messages[2] and "params" not in messages[3]


def test_server_surroundings(session):
    agent = session()
    agent.prompt()
    agent.read_until("result")
    agent.close()
    start = agent.records(agent.stub_log)[0]
    assert start["pgid"] == agent.process.pid
    assert all(name.startswith("socket:") for name in start["fds"])
    assert {"A_KEY", "CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "STUB_LOG",
            "HOME"} <= set(start["environ"])


def test_nothing_before_prompt(session):
    agent = session()
    harness.wait_for(lambda: agent.stub_log.exists() and agent.received(),
                     what="the server's first message")
    assert agent.close() == (0, [])


def test_scripts_by_event_and_prompt(session):
    agent = session(script={"events": {"101": [["get"], ["complete"]]},
                            "default": ["read"]})
    for text in (PROMPT, "Event 102 came", PROMPT, PROMPT):
        agent.prompt(text)
        agent.read_until("result")
    agent.close()
    assert agent.steps() == ["get", "read", "complete", "complete"]


def test_prompts_counted_across_processes(session, tmp_path):
    script = {"events": {"101": [["get"], ["read"]]},
              "log": str(tmp_path / "shared.log")}
    for _ in range(2):
        agent = session(script=script)
        agent.prompt()
        agent.read_until("result")
        agent.close()
    assert agent.calls() == ["read"]


def test_unasked_acknowledgement(session):
    agent = session(mode="unasked", script={"default": ["get", "ack"]})
    agent.prompt()
    agent.read_until("result")
    agent.close()
    assert agent.calls() == ["get_dispatch"]


@pytest.mark.parametrize("step, ran", [("get", ["get"]),
                                       ("get?", ["get", "read"])])
def test_refused_call(session, step, ran):
    agent = session(mode="refuse", script={"default": [step, "read"]})
    agent.prompt()
    assert agent.read_until("result")[-1]["subtype"] == "success"
    agent.close()
    assert agent.steps() == ran


def test_interrupt(session):
    agent = session(mode="hang", script={"default": ["get"]})
    agent.prompt()
    harness.wait_for(lambda: agent.stub_log.exists() and agent.calls(),
                     what="the call to hang")
    agent.interrupt()
    events = agent.read_until("control_response")
    assert events[-1]["response"]["request_id"] == "r1"
    assert agent.read_until("result")[-1]["subtype"] == "error_during_execution"
    # The server is ended by a signal: before that it is to have read this.
    harness.wait_for(lambda: agent.received()[-1]["method"]
                     == "notifications/cancelled", what="the cancellation")
    assert agent.close()[0] == 0
    last = agent.received()[-1]
    assert last["method"] == "notifications/cancelled"
    assert last["params"]["reason"] == "AbortError: remote-cancel"


def test_session_goes_on_after_interrupt(session):
    agent = session(script={"events": {"101": [["linger"]]},
                            "default": ["get"]})
    agent.prompt()
    agent.read_until("system")
    agent.interrupt()
    agent.read_until("result")
    agent.prompt("event 102")
    assert agent.read_until("result")[-1]["subtype"] == "success"
    assert agent.close()[0] == 0


def test_interrupt_without_turn(session):
    agent = session()
    agent.interrupt()
    agent.read_until("control_response")
    agent.prompt()
    assert agent.read_until("result")[-1]["subtype"] == "success"
    assert agent.close()[0] == 0


def test_server_crash(session):
    agent = session(script={"default": [
        "get", "crash-server:hang", "read"]})
    agent.prompt()
    agent.read_until("result")
    agent.close()
    messages = agent.received()
    second = [m["method"] for m in messages].index("server/discover", 1)
    assert [m["method"] for m in messages[second:]] == [
        "server/discover", "tools/call"]
    assert messages[second + 1]["id"] == 0


@pytest.mark.parametrize("deaf, number", [(set(), signal.SIGINT),
                                          ({"INT"}, signal.SIGTERM),
                                          ({"INT", "TERM"}, signal.SIGKILL)])
def test_server_end(session, deaf, number):
    mask = "import signal\n" + "".join(
        "signal.signal(signal.SIG%s, signal.SIG_IGN)\n" % name
        for name in sorted(deaf))
    if "INT" not in deaf:
        mask += "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
    agent = session(script={"default": ["get"]}, stub=mask + STUB)
    agent.prompt()
    agent.read_until("result")
    assert agent.close()[0] == 0
    end = [r for r in agent.records(agent.log) if r["what"] == "server_end"]
    assert end[0]["status"] == -number


@pytest.mark.parametrize("number, status", [(signal.SIGTERM, 143),
                                            (signal.SIGHUP, 129),
                                            (signal.SIGINT, 0)])
def test_signals(session, number, status):
    agent = session(script={"default": ["linger"]})
    agent.prompt()
    agent.read_until("system")
    agent.process.send_signal(number)
    assert agent.process.wait(20) == status
    results = [json.loads(line)["subtype"]
               for line in agent.process.stdout.read().splitlines()
               if b'"result"' in line]
    expected = ["error_during_execution"] if number == signal.SIGINT else []
    assert results == expected


@pytest.mark.parametrize("step, check", [
    ("wrong-mode", lambda e: e["permissionMode"] != "acceptEdits"),
    ("wrong-session", lambda e: e["session_id"] != SESSION),
    ("no-server", lambda e: e["mcp_servers"][0]["status"] == "failed"),
])
def test_false_claims(session, step, check):
    agent = session(script={"default": [step]})
    agent.prompt()
    assert check(agent.read_until("system")[0])
    agent.read_until("result")
    agent.close()


def test_exit_step(session):
    agent = session(script={"default": ["exit:7"]})
    agent.prompt()
    assert agent.process.wait(20) == 7
    assert b'"result"' not in agent.process.stdout.read()


@pytest.mark.parametrize("step", ["grandchild", "setsid-grandchild"])
def test_grandchild(session, step):
    agent = session(script={"default": [step]})
    agent.prompt()
    agent.read_until("result")
    assert agent.close()[0] == 0
    child = [r for r in agent.records(agent.log)
             if r["what"] == "grandchild"][0]["child"]
    try:
        assert os.path.samefile("/proc/%d/cwd" % child, agent.folder)
        in_group = os.getpgid(child) == agent.process.pid
        assert in_group == (step == "grandchild")
    finally:
        os.kill(child, signal.SIGKILL)


def test_harness_steps(session, tmp_path):
    path = str(tmp_path / "h")
    asked = []
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen()
    listener.settimeout(20)

    def answer():
        for _ in range(3):
            peer, _ = listener.accept()
            with peer, peer.makefile("rw") as file:
                asked.append(json.loads(file.readline()))
                file.write('{"ok":true}\n')

    thread = threading.Thread(target=answer)
    thread.start()
    agent = session(script={"harness": path, "default": [
        "kill:outbox", "arrive:more", "await:arrived=completed|blocked"]})
    agent.prompt()
    agent.read_until("result")
    agent.close()
    thread.join(20)
    listener.close()
    assert [(a["ask"], a["event_id"]) for a in asked] == [
        ("kill", 101), ("arrive", 101), ("await", 101)]
    assert asked[0]["what"] == "outbox"
    assert asked[0]["pid"] == agent.process.pid
    assert asked[1]["text"] == "more"
    assert asked[2]["id"] == "arrived"
    assert asked[2]["states"] == ["completed", "blocked"]


def test_echo_env(session):
    agent = session(script={"default": ["echo-env"]})
    agent.prompt()
    agent.read_until("result")
    agent.close()
    seen = json.loads((agent.folder / ("env-%d.json" % agent.process.pid))
                      .read_text())
    assert seen["argv"][1:] == agent.argv[1:]
    assert seen["environ"]["A_KEY"] == "dummy"
    assert "basecamp" in seen["mcp_config"]


def test_connect_control(session, tmp_path):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(tmp_path / "c"))
    listener.listen()
    agent = session(script={"control": str(tmp_path / "c"),
                            "default": ["connect-control"]})
    agent.prompt()
    peer, _ = listener.accept()
    peer.close()
    listener.close()
    agent.read_until("result")
    agent.close()
    seen = json.loads((agent.folder / ("control-%d.json" % agent.process.pid))
                      .read_text())
    assert seen["connected"] and seen["closed"]


def test_try_steps(session, tmp_path):
    agent = session(script={"default": [
        "try-read:/proc/self/status", "try-read:%s/none" % tmp_path,
        "try-write:%s/new" % tmp_path]})
    agent.prompt()
    agent.read_until("result")
    agent.close()
    outcomes = [r["outcome"] for r in agent.records(agent.log)
                if r["what"].startswith("try-")]
    assert outcomes == ["ok", "ENOENT", "ok"]


def test_eof_lets_turn_finish(session):
    agent = session(script={"default": ["get", "sleep:200", "read"]})
    agent.prompt()
    status, events = agent.close()
    assert status == 0
    assert events[-1]["type"] == "result"
    assert agent.calls() == ["get_dispatch", "read"]


@pytest.mark.parametrize("text, ids", [
    ("event 101", [101]),
    ("Event id: 9223372036854775807 of task 3", [9223372036854775807]),
    ('get_dispatch {"event_id": 77}; event 78 later', [77, 78]),
    ("task 5 ... originating event (id 12)", [12]),
    ("nothing but 44 here", [44]),
])
def test_event_ids(text, ids):
    sys.path.insert(0, str(harness.AGENTS))
    try:
        import script
    finally:
        sys.path.pop(0)
    assert script.find_event_ids(text) == ids
