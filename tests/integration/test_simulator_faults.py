"""basecamp-sim: faults and gates."""
import http.client
import pathlib
import socket
import sys
import time
import urllib.parse

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "simulator"))

from simulator_client import (  # noqa: E402
    AGENT, DEADLINE, JSON, OPERATOR_TOKEN, PROJECT, boost_path, boosts,
    in_thread, last_status, sim)


BOOSTS = "POST /{a}/recordings/{id}/boosts.json"


def test_fault_answers_instead(sim):
    path = boost_path(sim)
    fault = sim.sim("fault", route=BOOSTS, times=2, status=503,
                    headers={"Retry-After": "1", "X-Odd": "y"},
                    body={"error": "busy"})["fault"]
    newest = sim.sim("fault", route="POST /999/*", times=1, status=302,
                     headers={"Location": "http://x.test/", "Content-Type":
                              "text/html"}, body="moved")["fault"]
    reply = sim.post(path, {"content": "x"})
    assert (reply.status, reply.raw) == (302, b"moved")
    assert reply.headers["Content-Type"] == "text/html"
    for _ in range(2):
        reply = sim.post(path, {"content": "x"})
        assert (reply.status, reply.json) == (503, {"error": "busy"})
        assert reply.headers["Retry-After"] == "1"
    assert boosts(sim) == 0
    assert sim.post(path, {"content": "x"}).status == 201
    state = sim.see("state")
    assert {f["fault"]: f["hits"] for f in state["faults"]} == {
        fault: 2, newest: 1}
    assert state["fault_hits"] == 3
    assert sim.wait("hits", fault=fault, count=2) == 2


def test_fault_until_removed(sim):
    fault = sim.sim("fault", route="GET /999/projects", status=500)["fault"]
    for _ in range(3):
        assert sim.get("/projects.json").status == 500
    assert sim.call("DELETE", f"/sim/fault/{fault}").status == 200
    assert sim.get("/projects.json").status == 200
    assert sim.call("DELETE", f"/sim/fault/{fault}").status == 404
    for method in ("POST", "DELETE"):
        sim.sim("fault", routes=["GET /x", "GET /999/projects"], status=500)
        assert sim.get("/projects.json").status == 500
        sim.call(method, "/sim/fault/clear")
        assert sim.get("/projects.json").status == 200


def test_fault_for_agents_only(sim):
    sim.sim("fault", route="GET /*", agents=True, status=403)
    assert sim.get("/projects.json").status == 200
    assert sim.get("/projects.json", sim.agent).status == 403


@pytest.mark.parametrize("when, stored", [("before", 0), ("after", 1)])
@pytest.mark.parametrize("effect", [
    {}, {"drop": True}, {"status": 502}, {"garbage": True},
    {"garbage": "wire"}])
def test_fault_before_and_after(sim, effect, when, stored):
    path = boost_path(sim)
    sim.sim("fault", route=BOOSTS, times=1, when=when, **effect)
    join = in_thread(sim.post, path, {"content": "x"})
    outcome = join()
    if effect.get("status"):
        assert (outcome.status, outcome.raw) == (502, b"")
        assert last_status(sim) == 502
    elif effect.get("garbage") is True:
        assert outcome.status == 200
        with pytest.raises(ValueError):
            outcome.json
    else:
        assert isinstance(outcome, (http.client.HTTPException, OSError))
        assert last_status(sim) == 0
    assert boosts(sim) == stored
    assert sim.post(path, {"content": "y"}).status == 201


def test_fault_half(sim):
    path = boost_path(sim)
    sim.sim("fault", route=BOOSTS, times=1, half=True)
    outcome = in_thread(sim.post, path, {"content": "x"})()
    assert isinstance(outcome, http.client.IncompleteRead)
    assert outcome.partial.startswith(b'{"id":')
    assert boosts(sim) == 1
    sim.sim("fault", route=BOOSTS, times=1, half=True, status=500,
            body={"error": "long enough"})
    outcome = in_thread(sim.post, path, {"content": "x"})()
    assert isinstance(outcome, http.client.IncompleteRead)
    assert boosts(sim) == 1


def test_fault_pad(sim):
    sim.sim("fault", route="GET /999/projects", times=1, pad=1000000)
    reply = sim.get("/projects.json")
    assert len(reply.raw) > 1000000 and reply.json[0]["id"] == PROJECT


def test_fault_delay(sim):
    path = boost_path(sim)
    begin = time.monotonic()
    sim.sim("fault", route=BOOSTS, times=1, delay_ms=300)
    assert sim.post(path, {"content": "x"}).status == 201
    assert time.monotonic() - begin >= 0.3
    sim.sim("fault", route=BOOSTS, times=1, delay_ms=60000, when="after")
    join = in_thread(sim.post, path, {"content": "x"})
    sim.wait("messages", kind="boost", count=2)
    assert last_status(sim) == 0
    sim.call("POST", "/sim/fault/clear")
    assert join().status == 201


@pytest.mark.parametrize("when, stored", [("before", 0), ("after", 1)])
def test_fault_hang(sim, when, stored):
    path = boost_path(sim)
    sim.sim("fault", route=BOOSTS, times=1, hang=True, when=when)
    join = in_thread(sim.post, path, {"content": "x"})
    sim.wait("requests", route=BOOSTS)
    assert boosts(sim) == stored and last_status(sim) == 0
    query = urllib.parse.urlencode({"what": "answered", "route": BOOSTS,
                                    "timeout_ms": 0})
    assert sim.call("GET", "/sim/await?" + query).json["count"] == 0
    sim.call("POST", "/sim/fault/clear")
    assert isinstance(join(), (http.client.HTTPException, OSError))
    assert last_status(sim) == 0


def test_fault_refusals(sim):
    ok = {"route": "GET /x", "status": 500}
    for bad in ({"route": "x"}, {"route": None}, {"status": 99},
                {"status": 700}, {"when": "now"}, {"headers": {"a": 1}},
                {"headers": {"a": "b\r\nc: d"}}, {"headers": {"a b:": "c"}},
                {"garbage": "what"}, {"delay_ms": 10 ** 9}, {"times": -1},
                {"status": 0, "body": "x"}, {"routes": [1]}, {"odd": 1},
                {"routes": ["x"]}, {"pad": 2 ** 40}):
        reply = sim.call("POST", "/sim/fault", body={**ok, **bad})
        assert reply.status == 400 and reply.json["error"], bad
    assert sim.see("state")["faults"] == []


def test_gates(sim):
    path = boost_path(sim)
    wide = sim.sim("gate", route="POST /*")["gate"]
    sim.sim("gate", route=BOOSTS)
    join = in_thread(sim.post, path, {"content": "x"}, OPERATOR_TOKEN)
    assert sim.wait("held") == 1
    assert sim.get("/projects.json").status == 200
    assert sim.see("state")["waiting"] == 1
    assert len(sim.see("state")["gates"]) == 2
    assert sim.sim("release", gate=wide)["opened"] == 1
    assert boosts(sim) == 0 and sim.see("state")["waiting"] == 1
    # The world may change while a request stands at a gate.
    sim.sim("world", projects=[{"id": PROJECT, "members": [AGENT]}])
    assert sim.sim("release", route=BOOSTS)["opened"] == 1
    assert join().status == 404
    sim.sim("gate", route=BOOSTS)
    sim.sim("gate", route=BOOSTS)
    joins = [in_thread(sim.post, path, {"content": str(n)})
             for n in range(2)]
    assert sim.wait("held", count=2) == 2
    assert sim.sim("release")["opened"] == 2
    assert [join().status for join in joins] == [201, 201]
    assert sim.call("POST", "/sim/gate", body={"route": "no"}).status == 400


def test_client_leaves_a_gate(sim):
    path = boost_path(sim)
    sim.sim("gate", route=BOOSTS)
    with socket.create_connection(
            sim.host.split(":"), timeout=DEADLINE) as connection:
        connection.sendall(
            f"POST /999{path} HTTP/1.1\r\nHost: x\r\nUser-Agent: x\r\n"
            f"Content-Type: {JSON}\r\nAuthorization: Bearer {OPERATOR_TOKEN}"
            '\r\nContent-Length: 15\r\n\r\n{"content":"x"}'.encode())
        sim.wait("held")
    sim.wait("answered", route=BOOSTS)
    assert sim.see("state")["waiting"] == 0
    assert last_status(sim) == 503
    sim.sim("release")
    assert boosts(sim) == 0
