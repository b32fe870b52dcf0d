"""The real Claude Code as the worker: under the supervisor, as the workers'
account behind its walls, with the declaration it is given and nothing else.
"""

import os
import pwd
import re

import pytest

import processes
import story
from harness import WORKER_USER, is_root
from model import Fail, Hang

pytestmark = pytest.mark.real_agents

POST_COMMENT = "POST /999/recordings/*/comments"
META = "io.modelcontextprotocol/"
# An agent that is interrupted is not ended before it goes by itself.
PATIENT = {"cancel_grace": "40s", "close_grace": "40s"}


@pytest.fixture
def start(make_claude):
    def start(**arguments):
        return story.begin(make_claude(**arguments))
    return start


def of_client(records):
    """What the agent wrote, in order."""
    return [r["message"] for r in records if r["what"] == "client"]


def test_the_whole_story(start, model):
    model.script = story.whole()
    connector = start()
    event = connector.sim.mention()["event_id"]
    story.assert_told_once(connector, event)
    story.assert_no_call_failed(model)
    assert [r.step for r in model.steps()] == list(range(len(model.script)))
    assert not connector.agent_records()


def test_the_wire(start, model, tap):
    """The stateless revision: probe, list, calls, and no more."""
    model.script = story.whole()
    connector = start()
    event = connector.sim.mention()["event_id"]
    story.assert_told_once(connector, event)
    records = tap.records()
    assert [r["what"] for r in records].count("start") == 1
    messages = of_client(records)
    assert messages[0]["id"] == "server-discover-probe-1"
    assert [m["method"] for m in messages] == (
        ["server/discover", "tools/list"] +
        ["tools/call"] * len(story.ACTIONS))
    assert [m["id"] for m in messages[1:]] == list(range(len(messages) - 1))
    assert [m["params"]["arguments"]["action"]
            for m in messages[2:]] == story.ACTIONS
    for message in messages:
        assert message["params"]["_meta"][META + "protocolVersion"] == (
            "2026-07-28")
    answers = {r["message"]["id"]: r["message"] for r in records
               if r["what"] == "server"}
    assert set(answers) == {m["id"] for m in messages}
    assert all(a["result"]["resultType"] == "complete"
               for a in answers.values())


# The tools that connectd asks for leave none to search with; an operator's own
# arguments may bring it.
@pytest.mark.parametrize("arguments", [[], ["--tools", "ToolSearch"]])
def test_tools_are_not_hidden(start, model, arguments):
    """They are offered in the first request; nothing need be searched for."""
    model.script = story.whole()
    connector = start(arguments=arguments)
    event = connector.sim.mention()["event_id"]
    story.assert_told_once(connector, event)
    first = model.steps()[0].conversation
    assert "mcp__basecamp__basecamp_connect" in first.tools
    assert "mcp__basecamp__basecamp_thread" in first.tools
    assert not [name for name in first.hidden if "basecamp" in name]
    assert "Bash" not in first.tools


def environ(process):
    text = processes.read_bytes(process.pid, "environ").decode()
    return dict(row.split("=", 1) for row in text.split("\0") if "=" in row)


def test_what_is_in_the_environments(start, model):
    """The agent has its model's key and nothing of Basecamp's; its MCP server
    has been given that key, and has wiped it.
    """
    seen = {}

    def look():
        roles = connector.roles()
        seen["worker"] = environ(roles["worker"][0])
        seen["bridge"] = processes.read_bytes(roles["bridge"][0].pid,
                                              "environ")
        seen["owners"] = {os.stat("/proc/%d" % roles[role][0].pid).st_uid
                          for role in ("worker", "bridge")}

    model.script = story.whole()
    model.script[3].after(look)
    connector = start()
    event = connector.sim.mention()["event_id"]
    story.assert_told_once(connector, event)
    assert seen["worker"]["ANTHROPIC_API_KEY"] == "dummy-key"
    assert not seen["bridge"].strip(b"\0")
    names = [n for n in seen["worker"] if re.search("BASECAMP|CONNECTD", n)]
    assert names == ["CONNECTD_TEST_RUN"]
    text = "\n".join(seen["worker"].values())
    assert "not-a-real-secret" not in text
    assert connector.sim.url not in text
    if is_root():
        assert seen["owners"] == {pwd.getpwnam(WORKER_USER).pw_uid}


def test_mcpd_dies_between_calls(start, model, tap):
    """Before each call of the model there is another mcpd."""
    model.script = story.whole()
    for step in model.script[1:-1]:
        step.after(lambda: story.another_mcpd(connector))
    connector = start()
    event = connector.sim.mention()["event_id"]
    story.assert_told_once(connector, event)
    story.assert_no_call_failed(model)
    messages = of_client(tap.records())
    assert len(messages) == 2 + len(story.ACTIONS)


def test_mcpd_dies_under_a_call(start, model, tap):
    """The reply is held at Basecamp while mcpd dies under the waiting call."""
    model.script = story.whole()
    connector = start()
    sim = connector.sim
    sim.gate(POST_COMMENT)
    event = sim.mention()["event_id"]
    sim.wait("held", 1, timeout=60)
    story.another_mcpd(connector)
    story.another_mcpd(connector)
    sim.release(POST_COMMENT)
    story.assert_told_once(connector, event)
    story.assert_no_call_failed(model)
    assert len(of_client(tap.records())) == 2 + len(story.ACTIONS)


def test_the_bridge_dies_under_a_call(start, model, tap):
    """Claude sees that call fail, starts its server again without asking for
    the tools, and the model says the same thing again: it is posted once.
    """
    model.script = story.whole()
    model.script.insert(4, model.script[4])
    connector = start()
    sim = connector.sim
    sim.gate(POST_COMMENT)
    event = sim.mention()["event_id"]
    sim.wait("held", 1, timeout=60)
    connector.kill("bridge")
    model.wait(lambda r: r.step == 5)
    sim.release(POST_COMMENT)
    story.assert_told_once(connector, event)
    last = model.steps()[-1].conversation
    assert last.errors == [4]
    assert "Connection closed" in last.results[4]
    starts = [n for n, r in enumerate(tap.records()) if r["what"] == "start"]
    assert len(starts) == 2
    again = of_client(tap.records()[starts[1]:])
    assert [m["method"] for m in again][:2] == ["server/discover",
                                                "tools/call"]


def is_given_up(request):
    """The model waits in vain: the agent has hung up."""
    return isinstance(request.script_step, Hang) and request.left


def test_deadline(start, model):
    """A model that hangs: after the shortest deadline there is, the turn is
    interrupted, and Claude goes by itself long before it would be made to.
    """
    model.script = story.whole()[:4] + [Hang()]
    connector = start(config={"deadline": "1m0s"}, limits=PATIENT)
    event = connector.sim.mention()["event_id"]
    line = story.wait_ended(connector, timeout=90)
    assert line["stop_reason"] == "deadline"
    connector.wait_log("its turn is interrupted")
    model.wait(is_given_up)
    told = story.row(connector, event)
    assert (told["state"], told["outcome"]) == ("completed", "unknown")


@pytest.mark.parametrize("reached", [0, 2])
def test_a_stop_while_the_model_hangs(start, model, reached):
    """The connector is stopped: the turn is interrupted, nothing stays."""
    model.script = story.whole()[:reached] + [Hang()]
    connector = start(limits=PATIENT)
    connector.sim.mention()
    model.wait(lambda r: r.step == reached)
    assert connector.stop(timeout=20) == 143
    model.wait(is_given_up)


def test_a_stop_in_a_call(start, model, tap):
    """The reply is out when the turn is interrupted: Claude cancels the call,
    and nothing more is said about it.
    """
    model.script = story.whole()
    connector = start(limits=dict(PATIENT, outbox_flush="100ms"))
    connector.sim.gate(POST_COMMENT)
    connector.sim.mention()
    connector.sim.wait("held", 1, timeout=60)
    assert connector.stop(timeout=30) == 143
    last = of_client(tap.records())[-1]
    assert last["method"] == "notifications/cancelled"
    assert last["params"]["requestId"] == 5
    assert 5 not in [r["message"]["id"] for r in tap.records()
                     if r["what"] == "server"]


@pytest.mark.parametrize("retries", [0, 1])
def test_a_refused_key(start, model, retries):
    """It is a failure that a person is told of, not a wait."""
    model.script = [Fail(401, "authentication_error")]
    connector = start(env={"CLAUDE_CODE_MAX_RETRIES": str(retries)})
    event = connector.sim.mention()["event_id"]
    assert story.wait_ended(connector)["stop_reason"] == "failed"
    connector.wait_log("the turn ended in an error (success)")
    assert len(model.steps()) == 1 + retries
    told = story.row(connector, event)
    assert (told["state"], told["outcome"]) == ("completed", "unknown")
    connector.sim.wait("messages", 1, kind="comment")
    assert "redispatch" in connector.sim.messages()[0]["content"]
