"""mcpd and the bridge in a running connector: whatever of them dies, the agent
sees one server that answers each call once, and each message is posted once.
"""

import json
import pathlib

import pytest

import processes
from harness import is_root, wait_for

STEPS = ["get", "ack", "read", "work", "reply", "complete"]
POST_COMMENT = "POST /999/recordings/*/comments"


def settled(connector, event_id):
    """The event's row once its task is over."""
    connector.wait_line(type="dispatch", state="ended")
    rows = connector.query(
        "SELECT t.ack_id, t.reply_id, t.outcome, e.state FROM task_events t"
        " JOIN events e ON e.id = t.event_id WHERE t.event_id = ?", event_id)
    assert len(rows) == 1
    return rows[0]


def tell(connector):
    """One mention and its story to the end: the row and what was posted."""
    event_id = connector.sim.mention()["event_id"]
    return settled(connector, event_id), connector.sim.messages()


def assert_told_once(row, posted):
    assert row["outcome"] == "succeeded"
    assert sorted(m["kind"] for m in posted) == ["boost", "comment"]
    assert {m["id"] for m in posted} == {row["ack_id"], row["reply_id"]}


@pytest.fixture
def start(make_connector):
    """A connector with these steps that hears of what is mentioned now."""
    def start(steps):
        connector = make_connector(script={"default": steps}).start()
        connector.sim.wait("answered", 1, route="GET /999/events.json")
        return connector
    return start


@pytest.mark.parametrize("role", ["mcpd", "ledger", "intake", "outbox"])
def test_deaths_between_calls_are_not_seen(start, role):
    script = [word for step in STEPS for word in (step, "kill:" + role)]
    connector = start(script[:-1])
    assert_told_once(*tell(connector))
    assert len(connector.agent_records("server_start")) == 1
    # Not each time: the next death may be asked for before the next life.
    killed = [r for r in connector.agent_records("harness")
              if "killed" in json.loads(r["answer"])]
    assert len(killed) >= 2
    assert not connector.agent_records("step_failed")


def test_death_while_a_reply_is_out(start):
    """The post is held at Basecamp while mcpd dies under the waiting call."""
    connector = start(STEPS)
    sim = connector.sim
    sim.gate(POST_COMMENT)
    event_id = sim.mention()["event_id"]
    sim.wait("held", 1)
    killed = connector.kill("mcpd")
    wait_for(lambda: [p for p in connector.roles().get("mcpd", [])
                      if p.pid != killed], what="another mcpd")
    sim.release(POST_COMMENT)
    assert_told_once(settled(connector, event_id), sim.messages())
    assert len(connector.agent_records("server_start")) == 1


@pytest.mark.parametrize("action", ["get", "read", "boost", "reply"])
def test_a_bridge_dies_with_a_call_out(start, action):
    """The agent starts its server again, without tools/list, and repeats."""
    script = ["get", "crash-server:" + action] + STEPS
    script[script.index("reply")] = "reply:Done: event 1."
    connector = start(script)
    assert_told_once(*tell(connector))
    assert len(connector.agent_records("server_start")) == 2


# In the bridge's place: opens a session, reports, and is gone before the answer.
REPORT_AND_GO = """
import glob, json, os, signal, socket
def parent(path):
    try:
        return int(open(path + "/stat").read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0
def words(path):
    return open(path + "/cmdline").read().split("\\0")
bridge = next(path for path in glob.glob("/proc/[0-9]*")
              if parent(path) == os.getppid() and
              words(path)[0].endswith("connect-bridge"))
address = words(bridge)[1]
os.kill(int(bridge[6:]), signal.SIGKILL)
stream = socket.socket(socket.AF_UNIX)
stream.connect(address)
def say(ident, method, params):
    stream.sendall(json.dumps({"jsonrpc": "2.0", "id": ident,
                               "method": method, "params": params}
                              ).encode() + b"\\n")
say(0, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                      "clientInfo": {"name": "t", "version": "1"}})
stream.recv(65536)
say(1, "tools/call", {"name": "basecamp_connect", "arguments": {
    "action": "complete_dispatch",
    "params": {"event_id": 1, "outcome": "succeeded"}}})
"""


def test_a_report_counts_though_its_worker_is_gone(start):
    """What was written is in the ledger before the task is settled."""
    connector = start(["get", {"step": "run", "argv": [
        "/usr/bin/python3", "-c", REPORT_AND_GO]}, "exit:1"])
    event_id = connector.sim.mention()["event_id"]
    assert event_id == 1
    assert settled(connector, event_id)["outcome"] == "succeeded"


def test_the_bridge_has_no_environment(start):
    connector = start(["get", "linger"])
    connector.sim.mention()
    bridge = wait_for(lambda: connector.roles().get("bridge"),
                      what="a bridge")[0]
    wait_for(lambda: connector.agent_records("answer"), what="its answer")
    environ = processes.read_bytes(bridge.pid, "environ")
    assert environ.strip(b"\0") == b""
    worker = connector.roles()["worker"][0]
    assert b"PATH=" in processes.read_bytes(worker.pid, "environ")


@pytest.mark.skipif(not is_root(), reason="it is not dumpable: a person may"
                    " not look into it")
def test_what_mcpd_holds_open(start):
    """Links, the worker's connection, and what a loop needs: no file."""
    connector = start(["get", "linger"])
    connector.sim.mention()
    wait_for(lambda: connector.agent_records("answer"), what="its answer")
    mcpd = connector.roles()["mcpd"][0]
    targets = [entry.readlink() for entry in
               pathlib.Path("/proc/%d/fd" % mcpd.pid).iterdir()]
    kinds = {str(target).split(":")[0] for target in targets}
    assert kinds <= {"socket", "/dev/null", "anon_inode", "pipe"}
    assert sum(str(t).startswith("socket") for t in targets) <= 6


@pytest.mark.parametrize("arguments, kind", [
    ({"action": "ack_dispatch", "params": {"event_id": 999}}, "not_on_task"),
    ({"action": "get_dispatch", "params": {"event_id": 2 ** 53 + 1}},
     "invalid_params"),
    ({"action": "complete_dispatch", "params": {
        "event_id": 1, "outcome": "meh"}}, "invalid_report"),
    ({"action": "complete_dispatch", "params": {
        "event_id": 1, "outcome": "failed", "links": ["ftp://x"]}},
     "invalid_report"),
    ({"action": "complete_dispatch", "params": {
        "event_id": 1, "outcome": "failed", "links": ["http://x"] * 21}},
     "invalid_report"),
])
def test_refusals_reach_the_agent(start, arguments, kind):
    connector = start([
        "get", {"step": "call?", "tool": "basecamp_connect",
                "arguments": arguments}, *STEPS[1:]])
    row, _ = tell(connector)
    assert row["outcome"] == "succeeded"
    answer = connector.agent_records("answer")[1]
    assert answer["is_error"]
    assert '"error": "%s"' % kind in answer["text"]


def test_an_event_not_pulled_is_not_read(start):
    connector = start([
        {"step": "call?", "tool": "basecamp_thread", "arguments": {
            "action": name, "params": dict(params, event_id=1)}}
        for name, params in (("read", {}), ("boost", {"content": "x"}),
                             ("reply", {"content": "x"}))])
    event_id = connector.sim.mention()["event_id"]
    assert event_id == 1
    connector.wait_line(type="dispatch", state="ended")
    answers = connector.agent_records("answer")
    assert len(answers) == 3
    assert all('"error": "not_exposed"' in a["text"] for a in answers)
    # But for the connector's own notice that nothing was reported.
    assert all("posted by connectd" in m["content"]
               for m in connector.sim.messages())
