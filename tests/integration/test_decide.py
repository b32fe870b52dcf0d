"""What a person decides, from the command to the end of what it changed."""

import json
import os
import re
import signal
import subprocess

import processes
import pytest
from surroundings import wait_for

GOOD = ["get", "ack", "reply", "complete"]
LINGERS = ["get", "ack", "linger"]
IMPOSSIBLE = 1


def rows_of(connector, event_id):
    return [(row["delivery"], row["outcome"]) for row in connector.query(
        "SELECT delivery, outcome FROM task_events WHERE event_id = ?"
        " ORDER BY task_id", event_id)]


def decide(connector, *words, code=0):
    done = connector.connectctl(*words)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout if code == 0 else done.stderr


def mentioned(make_connector, steps):
    connector = make_connector(script={"default": steps}).start()
    connector.sim.wait("answered", 1, route="GET /999/events.json")
    return connector, connector.sim.mention()["event_id"]


def wait_rows(connector, event_id, *rows):
    wait_for(lambda: rows_of(connector, event_id) == list(rows),
             what="rows of event %d as %r" % (event_id, rows))


def wait_idle(connector):
    wait_for(lambda: not connector.query(
        "SELECT 1 FROM attempts WHERE state <> 'ended'"), what="its end")


def test_a_failure_runs_again(make_connector):
    """As a task of its own, once; and a success does not."""
    connector, event_id = mentioned(make_connector, ["get", "ack", "fail"])
    connector.wait_event(event_id, "completed")
    wait_idle(connector)
    connector.set_script({"default": GOOD})
    assert decide(connector, "redispatch", str(event_id)) == (
        "event %d is admitted\n" % event_id)
    wait_rows(connector, event_id, ("completed", "failed"),
              ("completed", "succeeded"))
    wait_idle(connector)
    assert "(succeeded)" in decide(connector, "redispatch", str(event_id),
                                   code=IMPOSSIBLE)
    assert len(rows_of(connector, event_id)) == 2


def failed_and_alive(make_connector, *left):
    """It reported a failure, and its process goes on."""
    connector, event_id = mentioned(
        make_connector, ["get", "ack", "fail", *left, "linger"])
    connector.wait_event(event_id, "completed")
    connector.set_script({"default": GOOD})
    return connector, event_id


def test_a_live_attempt_is_ended_first(make_connector):
    """Its tree is gone before the record runs again."""
    connector, event_id = failed_and_alive(make_connector)
    worker = connector.roles()["worker"][0]
    said = decide(connector, "redispatch", str(event_id))
    assert "runs again when task 1 has ended\n" in said
    assert re.search(r"^att_\S+ is (gone|stopped|ended)$", said, re.M), said
    assert not processes.is_running(worker)
    wait_rows(connector, event_id, ("completed", "failed"),
              ("completed", "succeeded"))
    replies = [m for m in connector.sim.messages() if m["kind"] == "comment"
               and "failed" not in m["content"]]
    assert len(replies) == 1, replies


def answers(connector, *words):
    """Each answer's data, of a decision that was made."""
    done = connector.connectctl("--json", *words, timeout=60)
    assert done.returncode == 0, (done.stdout, done.stderr)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(line["ok"] for line in lines), lines
    return [line["data"] for line in lines]


@pytest.mark.parametrize("left, is_signaled", [
    ([], False), (["grandchild"], True)], ids=["asked", "signaled"])
def test_how_its_worker_ended_as_json(make_connector, left, is_signaled):
    """Asked to, by its own wire, or by a signal to what it leaves behind."""
    connector, event_id = failed_and_alive(make_connector, *left)
    if left:
        wait_for(lambda: connector.agent_records("grandchild"), what=left)
    attempt = connector.query("SELECT id FROM attempts")[0]["id"]
    decision, worker = answers(connector, "redispatch", str(event_id))
    assert decision["event_id"] == event_id
    assert decision["from_outcome"] == "failed"
    assert decision["pending"] is True
    assert decision["admitted"] is False
    assert worker == {"worker": {"attempt_id": attempt, "task_id": 1},
                      "worker_state": "stopped", "worker_signaled": is_signaled,
                      "worker_note": None}


def test_a_worker_that_nobody_can_end_as_json(make_connector):
    """Its leader is gone, what it left behind is not: nobody signals that."""
    connector = make_connector(cgroups=False, script={"default": [
        "get", "ack", "fail", "grandchild", "kill", "exit:0"]}).start()
    connector.sim.wait("answered", 1, route="GET /999/events.json")
    event_id = connector.sim.mention()["event_id"]
    assert connector.wait_end() == -signal.SIGKILL
    connector.start()
    wait_for(lambda: "is held" in connector.tail(30), what="held")
    try:
        _, worker = answers(connector, "redispatch", str(event_id))
    finally:
        os.kill(connector.agent_records("grandchild")[0]["child"],
                signal.SIGKILL)
    assert worker["worker_state"] == "held"
    assert worker["worker_signaled"] is None
    assert "`connectctl settle`" in worker["worker_note"]


def test_a_connector_that_ends_before_the_worker(make_connector):
    """How it ended is not known; what was decided is."""
    connector, event_id = failed_and_alive(make_connector)
    connector.kill("dispatcher", signal.SIGSTOP)
    with subprocess.Popen(
            [str(connector.bin / "connectctl"), "-P", connector.profile,
             "redispatch", str(event_id)], env=connector.environ, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as asking:
        assert "runs again when task 1" in asking.stdout.readline()
        connector.kill()
        assert "not heard of: the connector ended\n" in asking.stdout.read()
    assert asking.returncode == 0
    connector.wait_end()
    connector.start()
    wait_rows(connector, event_id, ("completed", "failed"),
              ("completed", "succeeded"))


@pytest.mark.parametrize("words", [
    ["redispatch", "1"], ["discard", "1"], ["resolve", "1", "abandon"],
    ["settle", "att_" + 24 * "0", "--gone"]], ids=lambda words: words[0])
def test_no_connector_decides_nothing(make_connector, words):
    """It is said what to do for it."""
    connector = make_connector()
    said = decide(connector, *words, code=69)
    assert "connectd run --profile %s" % connector.profile in said
    assert "nothing is decided" in said


def elsewhere(connector):
    route = connector.folder.make("elsewhere", 0o755, connector.user)
    return {project: dict(there, path=str(route))
            for project, there in connector.config["projects"].items()}


def nowhere(_connector):
    return {}


@pytest.mark.parametrize("routes, why", [
    (nowhere, "no route for project"), (elsewhere, "another path for project")])
def test_nothing_runs_again_without_its_route(make_connector, routes, why):
    """It would be admitted for good, and the person told that it runs."""
    connector, event_id = mentioned(make_connector, ["get", "ack", "fail"])
    connector.wait_event(event_id, "completed")
    wait_idle(connector)
    there = connector.config["projects"]
    connector.config["projects"] = routes(connector)
    connector.write_config()
    assert connector.connectctl("reload").returncode == 0
    said = decide(connector, "redispatch", str(event_id), code=IMPOSSIBLE)
    assert "event %d is completed (failed): " % event_id in said
    assert why in said and "48699913" in said
    assert connector.event_state(event_id) == "completed"
    assert not connector.query("SELECT 1 FROM outbox"
                               " WHERE kind = 'retraction'")
    connector.config["projects"] = there
    connector.write_config()
    assert connector.connectctl("reload").returncode == 0
    decide(connector, "redispatch", str(event_id))


def test_nothing_runs_again_while_the_configuration_is_broken(make_connector):
    connector, event_id = mentioned(make_connector, ["get", "ack", "fail"])
    connector.wait_event(event_id, "completed")
    wait_idle(connector)
    connector.write_config("{")
    assert connector.connectctl("reload").returncode == 1
    assert "connect.json does not load" in decide(
        connector, "redispatch", str(event_id), code=IMPOSSIBLE)
    assert connector.event_state(event_id) == "completed"


def test_the_dispatcher_is_killed_before_it_ends_the_attempt(make_connector):
    """What it was to do is in the ledger."""
    connector, event_id = failed_and_alive(make_connector)
    connector.kill("dispatcher", signal.SIGSTOP)
    with subprocess.Popen(
            [str(connector.bin / "connectctl"), "-P", connector.profile,
             "redispatch", str(event_id)], env=connector.environ,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as asking:
        wait_for(lambda: connector.query(
            "SELECT 1 FROM tasks WHERE superseded_at IS NOT NULL"),
            what="the decision")
        connector.kill("dispatcher")
        asking.wait(60)
    wait_rows(connector, event_id, ("completed", "failed"),
              ("completed", "succeeded"))


def test_what_nobody_will_do_is_discarded(make_connector):
    """Unknown work; and not what waits or runs."""
    connector, event_id = mentioned(make_connector, LINGERS)
    wait_rows(connector, event_id, ("delivered", ""))
    second = connector.sim.mention(recording_id=55)["event_id"]
    connector.wait_event(second, "admitted", "queued")
    for ident in (event_id, second):
        assert "event %d is " % ident in decide(
            connector, "discard", str(ident), code=IMPOSSIBLE)
    connector.set_script({"default": GOOD})
    connector.kill("worker")
    connector.wait_event(event_id, "completed")
    assert decide(connector, "discard", str(event_id)) == (
        "event %d is discarded\n" % event_id)
    assert decide(connector, "discard", str(event_id)) == (
        "event %d is discarded already\n" % event_id)
    wait_rows(connector, second, ("completed", "succeeded"))
    assert rows_of(connector, event_id) == [("completed", "unknown")]


def test_what_runs_is_not_settled(make_connector):
    """A person's word does not outweigh a process that is there."""
    connector, event_id = mentioned(make_connector, LINGERS)
    wait_rows(connector, event_id, ("delivered", ""))
    attempt = connector.query("SELECT id FROM attempts")[0]["id"]
    assert "--gone" in decide(connector, "settle", attempt, code=64)
    assert attempt in decide(connector, "settle", attempt, "--gone",
                             code=IMPOSSIBLE)
    assert connector.event_state(event_id) == "dispatched"
