"""The MCP wire through the real bridge and mcpd of a live task, byte by byte
(mcp.md 1 to 3, 5.3, 7). What is said and heard is tests/agents/wire_client.py;
each check has a task of its own, which is worked to its end afterwards.
"""

import json

import pytest

from harness import AGENTS

EUROS = 30000
READ = "GET /{a}/comments/{id}"


def names():
    scope = {"__name__": "wire_client"}
    exec((AGENTS / "wire_client.py").read_text(), scope)
    return list(scope["CHECKS"])


def mention(sim, check):
    """The event that the check is about, in what it needs around it."""
    if check == "results":
        return sim.mention("\u20ac" * EUROS, kind="message")
    sim.gate(READ)
    made = sim.mention()
    if check == "pages":
        # Of another agent's: they are in the thread, and no work.
        for n in range(40):
            sim.mention("%d %s" % (n, "x" * 900), agent_id=7,
                        recording_id=made["parent_id"])
    sim.release(READ)
    return made


@pytest.mark.parametrize("check", names())
def test_wire(make_connector, folder, sim, check):
    connector = make_connector(script={"default": [
        "get", {"step": "run", "argv": [
            "/usr/bin/python3", "-B",
            str(folder.path / "agents" / "wire_client.py"),
            check, sim.url, "1", "{server}"]},
        "ack", "reply", "complete"]})
    connector.start()
    assert mention(sim, check)["event_id"] == 1
    connector.wait_line(timeout=60, type="dispatch", state="ended")
    done = connector.agent_records("run")[0]
    assert done["status"] == 0, done["stderr"]
    rows = connector.query("SELECT outcome FROM task_events")
    assert [row["outcome"] for row in rows] == ["succeeded"]
    log = json.dumps(connector.logs.all)
    assert "broke the protocol" not in log, log
