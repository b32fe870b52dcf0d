"""mcpd and the bridge in a running connector: whatever of them dies, the agent
sees one server that answers each call once, and each message is posted once.
"""

import json
import pathlib
import signal
import sqlite3

import pytest

import leaks
import processes
from harness import is_root, wait_for

STEPS = ["get", "ack", "read", "work", "reply", "complete"]
POST_COMMENT = "POST /999/recordings/*/comments"
THREAD = "GET /{a}/recordings/{id}/comments.json"


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


def reply_call(content):
    return {"step": "call?", "tool": "basecamp_thread", "arguments": {
        "action": "reply", "params": {"event_id": 1, "content": content}}}


def said_to(connector, action):
    """What the agent was answered to that action, in its order."""
    found = []
    asked = None
    for record in connector.agent_records():
        if record["what"] == "call":
            asked = record["arguments"]["action"]
        elif record["what"] == "answer" and asked == action:
            found.append((json.loads(record["text"]), record["is_error"]))
    return found


def test_a_post_that_waits_is_pending(make_connector):
    """Waiting has its bound; the same content asks for the same message."""
    connector = make_connector(
        limits={"post_wait": "50ms"}, script={"default": [
            "get", "ack", reply_call("Done."), "reply:Done.", "complete"]})
    sim = connector.start().sim
    sim.wait("answered", 1, route="GET /999/events.json")
    sim.gate(POST_COMMENT)
    event_id = sim.mention()["event_id"]
    sim.wait("held", 1)
    wait_for(lambda: said_to(connector, "reply"), what="an answer")
    sim.release(POST_COMMENT)
    assert_told_once(settled(connector, event_id), sim.messages())
    answers = said_to(connector, "reply")
    first, is_error = answers[0]
    assert not is_error and first["state"] == "pending" and "id" not in first
    assert "Ask again with the same content" in first["message"]
    assert answers[-1][0]["state"] == "sent"
    assert answers[-1][0]["id"] == sim.messages()[-1]["id"]


@pytest.mark.parametrize("status", [403, 404, 422])
def test_a_post_that_basecamp_refuses_is_refused(start, status):
    connector = start(["get", "ack", reply_call("Done."), reply_call("Done."),
                       "fail"])
    sim = connector.sim
    sim.fault(POST_COMMENT, times=1, status=status, body={"error": "no"})
    row = settled(connector, sim.mention()["event_id"])
    assert row["outcome"] == "failed"
    for answer, is_error in said_to(connector, "reply"):
        assert is_error
        assert answer["state"] == "refused" and "id" not in answer
        assert "not posted" in answer["message"]
    assert len(said_to(connector, "reply")) == 2
    # Only the connector's own words follow: what was refused is not retried.
    assert all("Done." not in m["content"] for m in sim.messages())


def test_a_post_that_nobody_knows_of_is_in_doubt(start):
    """The request went out and its answer never came, nor is it to be found:
    the agent hears that, twice, and nothing is posted a second time.
    """
    connector = start(["get", "ack", reply_call("Done."), reply_call("Done."),
                       "fail"])
    sim = connector.sim
    fault = sim.fault(POST_COMMENT, times=1, hang=True, when="before")
    event_id = sim.mention()["event_id"]
    sim.wait("hits", 1, fault=fault["fault"])
    connector.kill("outbox")
    row = settled(connector, event_id)
    assert row["outcome"] == "failed"
    answers = said_to(connector, "reply")
    assert len(answers) == 2
    for answer, is_error in answers:
        assert not is_error
        assert answer["state"] == "in_doubt" and "id" not in answer
        assert "Do not post it again" in answer["message"]
    posts = [r for r in sim.log() if r["method"] == "POST"
             and "Done." in str(r.get("body"))]
    assert len(posts) == 1


# ---- what an instruction holds, whom a token serves -------------------------

KEYS = ["event_id", "event_type", "trigger", "class", "recording", "reply_to",
        "requester_id", "acknowledge", "guard_acknowledged", "delivery",
        "content", "content_updated_at"]


@pytest.mark.trap("T42")
def test_an_instruction_has_these_keys_only(start):
    connector = start(["get", "linger"])
    made = connector.sim.mention("fix it", kind="comment")
    (answer, is_error), = wait_for(lambda: said_to(connector, "get_dispatch"),
                                   what="an answer")
    assert not is_error and list(answer) == ["instruction"]
    instruction = answer["instruction"]
    assert list(instruction) == KEYS
    assert list(instruction["recording"]) == [
        "bucket_id", "recording_id", "type", "title", "url"]
    assert list(instruction["reply_to"]) == ["kind", "recording_id"]
    assert instruction["reply_to"]["recording_id"] == made["parent_id"]
    assert "fix it" in instruction["content"]
    assert "bc-attachment" not in instruction["content"]
    text = connector.agent_records("answer")[0]["text"].encode()
    needles = leaks.Needles()
    needles.learn(connector)
    assert len(needles.hashes) == 1 and not needles.search(text)
    assert not needles.hashes & {text.decode()}
    assert str(connector.route).encode() not in text
    for row in connector.query("SELECT id FROM attempts"):
        assert row["id"].encode() not in text


SUPERSEDE = "UPDATE tasks SET superseded_at = '2026-01-05T09:00:00.000000000Z'"
EVERY_ACTION = [
    ("basecamp_connect", "get_dispatch", {}),
    ("basecamp_connect", "ack_dispatch", {"ack_id": 7}),
    ("basecamp_connect", "complete_dispatch", {"outcome": "nonsense"}),
    ("basecamp_connect", "complete_dispatch", {"outcome": "succeeded"}),
    ("basecamp_thread", "boost", {"content": "x"}),
    ("basecamp_thread", "reply", {"content": "x"}),
]


@pytest.mark.trap("T38", "I3")
def test_a_superseded_worker_is_told_so_and_served_on(start):
    """From the very next call on, whatever it says; the server goes on, what
    was handed over settles as unknown, and other work is not touched.
    """
    connector = start(["get", "read"] + [
        {"step": "call?", "tool": tool, "arguments": {
            "action": action, "params": dict(params, event_id=1)}}
        for tool, action, params in EVERY_ACTION])
    sim = connector.sim
    sim.gate(THREAD)
    event_id = sim.mention()["event_id"]
    sim.wait("held", 1)
    ledger = sqlite3.connect(connector.state_dir / "ledger.db", timeout=10)
    with ledger:
        ledger.execute(SUPERSEDE)
    ledger.close()
    sim.release(THREAD)
    row = settled(connector, event_id)
    assert (row["outcome"], row["ack_id"], row["reply_id"]) == (
        "unknown", None, None)
    refused = [json.loads(r["text"]) for r in
               connector.agent_records("answer")[2:]]
    assert [r["error"] for r in refused] == (
        ["task_token_refused"] * len(EVERY_ACTION))
    assert len({r["message"] for r in refused}) == 1
    assert len(connector.agent_records("server_start")) == 1
    assert all("posted by connectd" in m["content"] for m in sim.messages())


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


def sleeps_of(process):
    """How often it has gone to sleep."""
    with open("/proc/%d/status" % process.pid, encoding="ascii") as file:
        return int(next(line for line in file if line.startswith(
            "voluntary_ctxt_switches")).split()[1])


def test_a_report_in_its_hands_is_before_the_end(make_connector):
    """The ledger is away for longer than mcpd may drain, and something of the
    dispatcher's waits for it already: its END is in front of the report.
    """
    connector = make_connector(
        script={"default": ["get", "ack", "sleep:1000", "complete"]},
        limits={"close_grace": "500ms", "still_running": "200ms",
                "mcpd_drain": "200ms"}).start()
    event_id = connector.sim.mention()["event_id"]
    wait_for(lambda: connector.query(
        "SELECT 1 FROM task_events WHERE delivery = 'delivered'"), what="ack")
    roles = connector.roles()
    (ledger,), (worker,), (mcpd,) = [
        roles[name] for name in ("ledger", "worker", "mcpd")]
    wait_for(lambda: connector.query(
        "SELECT 1 FROM attempts WHERE still_running > 0"), what="a notice")
    processes.send_signal(ledger, signal.SIGSTOP)
    before = sleeps_of(mcpd)
    try:
        wait_for(lambda: sleeps_of(mcpd) > before, what="a report in its hands")
        processes.send_signal(worker, signal.SIGKILL)
        wait_for(lambda: not processes.is_running(mcpd), what="its end")
    finally:
        processes.send_signal(ledger, signal.SIGCONT)
    assert settled(connector, event_id)["outcome"] == "succeeded"
