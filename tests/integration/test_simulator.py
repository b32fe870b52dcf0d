"""basecamp-sim: the process, access, OAuth, observing, hostile bytes."""
import contextlib
import json
import pathlib
import signal
import socket
import subprocess
import sys
import urllib.parse

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "simulator"))

from simulator_client import (  # noqa: E402
    AGENT, BINARY, DEADLINE, FORM, OPERATOR, OPERATOR_TOKEN, PROJECT, Sim,
    boosts, emit, ids, in_thread, sim)


def test_ready_line_and_end():
    sim = Sim("--account", "41")
    assert sim.ready == {
        "url": sim.url, "account": "41", "agent_id": AGENT,
        "operator_id": OPERATOR, "project_id": PROJECT,
        "client_id": "agent-client", "client_secret": "not-a-real-secret",
        "operator_token": OPERATOR_TOKEN, "token_prefix": "fake-token-"}
    assert sim.call("GET", "/41/projects.json", OPERATOR_TOKEN).status == 200
    assert sim.close() == 0


@pytest.mark.parametrize("signo", [signal.SIGTERM, signal.SIGINT])
def test_ends_on_signal(signo):
    sim = Sim()
    sim.process.send_signal(signo)
    assert sim.process.wait(DEADLINE) == 0
    sim.close()


@pytest.mark.parametrize("options", [
    ["--listen", "0.0.0.0:0"], ["--listen", "192.0.2.1:0"],
    ["--listen", "[::]:0"], ["--listen", "127.0.0.1"],
    ["--page-size", "0"], ["--account", "x"], ["--what"], ["word"]])
def test_refuses_options(options):
    done = subprocess.run([BINARY, *options], capture_output=True,
                          timeout=DEADLINE)
    assert done.returncode == 64 and done.stdout == b"" and done.stderr




def test_user_agent_is_required(sim):
    for path in ("/999/projects.json", "/oauth/tokens"):
        reply = sim.call("GET", path, OPERATOR_TOKEN, agent=None)
        assert reply.status == 400
        assert reply.headers["Content-Type"] == "text/plain"
    with socket.create_connection(sim.host.split(":")) as connection:
        connection.sendall(b"GET /cable HTTP/1.0\r\nUser-Agent:\r\n\r\n")
        assert b" 400 " in connection.recv(64)


def test_account_bearer_and_route(sim):
    assert sim.call("GET", "/998/projects.json", "x").status == 404
    for token in (None, "nonsense"):
        reply = sim.get("/projects.json", token)
        assert (reply.status, reply.raw) == (401, b"")
    assert sim.see("state")["errors"] == []
    assert sim.get("/nothing.json").status == 404
    assert sim.get("/comments/x").status == 404
    assert sim.see("state")["errors"] == [
        "no such route: GET /999/nothing.json",
        "no such route: GET /999/comments/x"]
    assert sim.call("GET", "/cable").status == 404


def test_strangers_see_nothing(sim):
    made = sim.sim("mention", kind="chat_line")
    line, chat = made["recording_id"], made["parent_id"]
    sim.sim("world", people=[{"id": 7, "name": "Stranger"}],
            tokens=[{"token": "s", "person_id": 7}])
    for path in (f"/projects/{PROJECT}", f"/projects/{PROJECT}/people.json",
                 f"/chats/{chat}/lines/{line}", f"/chats/{chat}/lines.json",
                 f"/recordings/{line}/subscription.json",
                 f"/recordings/{line}/events.json",
                 f"/recordings/{line}/comments.json",
                 f"/recordings/{line}/boosts.json"):
        assert sim.get(path).status == 200, path
        assert sim.get(path, "s").status == 404, path
    for path in ("/projects.json", "/chats.json"):
        assert sim.get(path).json and sim.get(path, "s").json == []
    for path in (f"/recordings/{line}/boosts.json",
                 f"/chats/{chat}/lines.json"):
        assert sim.post(path, {"content": "x"}, "s").status == 404
    assert sim.poll("s", since=0).json["events"] == []
    assert sim.poll(since=0).json["events"] != []


def test_mint(sim):
    assert sim.mint().json == {
        "access_token": "fake-token-1", "token_type": "bearer",
        "expires_in": 3600, "scope": "full",
        "resource": f"urn:bc:agent:{AGENT}"}
    sim.sim("world", token_lifetime=5)
    assert sim.mint(scope="read").json["expires_in"] == 5
    assert sim.get("/my/profile.json", "fake-token-1").json["id"] == AGENT


@pytest.mark.parametrize("fields, status, code", [
    ({"grant_type": "refresh_token"}, 400, "unsupported_grant_type"),
    ({"client_id": "other"}, 401, "invalid_client"),
    ({"client_secret": ""}, 401, "invalid_client"),
    ({"client_secret": "wrong"}, 401, "invalid_client"),
    ({"scope": "everything"}, 400, "invalid_scope")])
def test_mint_refusals(sim, fields, status, code):
    reply = sim.mint(**fields)
    assert (reply.status, reply.json) == (status, {"error": code})


def test_minted_tokens_are_known_by_their_beginning(sim):
    before = sim.see("state")["minted"]
    tokens = [sim.mint().json["access_token"] for _ in range(2)]
    assert len(set(tokens)) == 2
    assert all(t.startswith(sim.ready["token_prefix"]) for t in tokens)
    assert sim.see("state")["minted"] == before + 2


def test_scope(sim):
    token = sim.mint(scope="read").json["access_token"]
    made = sim.sim("mention")
    path = f"/recordings/{made['recording_id']}/boosts.json"
    assert sim.get(path, token).status == 200
    assert sim.post(path, {"content": "x"}, token).status == 403
    sim.sim("world", clients=[{"client_id": "agent-client",
                               "scope": "read"}])
    assert sim.mint(scope="full").json["error"] == "invalid_scope"
    assert sim.mint().json["scope"] == "read"


def test_tokens_of_a_test(sim):
    sim.sim("world", tokens=[{"token": "t", "person_id": OPERATOR}])
    assert sim.get("/my/profile.json", "t").json["id"] == OPERATOR
    sim.sim("world", tokens=[{"token": "t", "person_id": AGENT,
                              "scope": "read"}])
    assert sim.get("/my/profile.json", "t").json["id"] == AGENT
    assert sim.post("/recordings/1/boosts.json", {"content": "x"},
                    "t").status == 403
    assert sim.see("state")["tokens"] == 2


def test_disconnect_and_revoke(sim):
    token = sim.agent
    sim.sim("world", revoke_tokens=True)
    assert sim.get("/my/profile.json", token).status == 401
    assert sim.get("/my/profile.json").status == 200
    token = sim.mint().json["access_token"]
    assert sim.sim("disconnect", client="agent-client")["revoked"] == 1
    assert sim.get("/my/profile.json", token).status == 401
    assert sim.mint().json == {"error": "invalid_client"}
    assert sim.mint(client_secret="").json == {"error": "invalid_client"}
    sim.sim("world", revoke_tokens=[OPERATOR_TOKEN])
    assert sim.get("/my/profile.json").status == 401


def test_discovery_and_connection(sim):
    server = sim.call("GET", "/.well-known/oauth-authorization-server").json
    assert server["token_endpoint"] == sim.url + "/oauth/tokens"
    assert "client_credentials" in server["grant_types_supported"]
    resource = sim.call("GET", "/.well-known/oauth-protected-resource").json
    assert resource == {"resource": sim.url,
                        "authorization_servers": [sim.url]}

    def form(path, body):
        return sim.call("POST", path, body=body, type=FORM)
    reply = form("/oauth/agent_connections", "scope=read")
    assert (reply.status, reply.json) == (400, {"error": "invalid_request"})
    asked = form("/oauth/agent_connections", "device_name=me&scope=read").json
    assert asked["device_code"] == "fake-device-1" and asked["interval"] == 1
    path = urllib.parse.urlsplit(asked["token_uri"]).path
    assert form(path, "device_code=no").json == {"error": "invalid_grant"}
    got = form(path, "device_code=fake-device-1").json
    assert got == {"client_id": "agent-client", "account_id": "999",
                   "client_secret": "agent-client-secret-1",
                   "scope": "read"}
    assert form(path, "device_code=fake-device-1").status == 400
    assert sim.mint().status == 401
    assert sim.mint(client_secret=got["client_secret"]).status == 200
    sim.sim("world", options={"account_id_number": True})
    form("/oauth/agent_connections", "device_name=me")
    got = form(path, "device_code=fake-device-2").json
    assert (got["account_id"], got["scope"]) == (999, "full")


def test_authorization(sim):
    assert sim.call("GET", "/authorization.json",
                    OPERATOR_TOKEN).status == 401
    sim.sim("world", people=[{"id": OPERATOR, "identity_id": 12}])
    shown = sim.call("GET", "/authorization.json", OPERATOR_TOKEN).json
    assert shown["identity"]["id"] == 12
    assert shown["accounts"][0]["product"] == "bc3"
    assert shown["accounts"][0]["id"] == 999


def test_stream_ticket(sim):
    reply = sim.call("POST", "/999/events/stream_ticket.json", sim.agent)
    assert reply.json == {
        "ticket": "fake-ticket-1", "expires_in": 120,
        "url": f"ws://{sim.host}/cable?ticket=fake-ticket-1"}
    assert sim.see("state")["tickets_issued"] == 1
    assert sim.call("POST", "/999/events/stream_ticket.json").status == 401


def test_log(sim):
    sim.mint(client_secret="hidden-words")
    sim.poll(sim.agent, since=0, types="a.b")
    sim.post("/recordings/1/boosts.json",
             {"content": "x", "client_secret": "hidden-words"})
    log = sim.see("log")
    assert log["last"] == 4 and "hidden-words" not in json.dumps(log)
    token, _, poll, boost = log["requests"]
    assert token["form"] == {
        "grant_type": "client_credentials", "client_id": "agent-client",
        "client_secret": "***"}
    assert (token["status"], token["caller"], token["agent"]) == \
        (401, None, False)
    assert (poll["route"], poll["path"]) == (
        "GET /{a}/events.json", "/999/events.json")
    assert poll["query"] == {"since": "0", "types": "a.b"}
    assert (poll["caller"], poll["agent"], poll["status"]) == \
        (AGENT, True, 200)
    assert boost["body"] == {"content": "x", "client_secret": "***"}
    assert [r["n"] for r in sim.see("log?after=2&limit=1")["requests"]] == [3]
    route = urllib.parse.quote("GET /{a}/events")
    assert [r["n"] for r in sim.see("log?route=" + route)["requests"]] == [3]


def test_await(sim):
    route = "GET /999/projects.json"
    join = in_thread(sim.wait, "requests", route=route, count=2)
    sim.get("/projects.json")
    sim.get("/projects.json")
    assert join() == 2
    last = sim.see("log")["last"]
    query = urllib.parse.urlencode({
        "what": "answered", "route": route, "after": last,
        "timeout_ms": 100})
    reply = sim.call("GET", "/sim/await?" + query)
    assert (reply.status, reply.json) == (408, {"ok": False, "count": 0})
    join = in_thread(sim.wait, "served", count=2)
    emit(sim)
    emit(sim)
    sim.poll(since=0)
    assert join() == 2
    for query in ("", "what=moon", "what=requests&route=x",
                  "what=held&timeout_ms=x", "what=held&count=-1"):
        assert sim.call("GET", "/sim/await?" + query).status == 400, query


def test_await_survives_a_client_that_leaves(sim):
    for count in (1, 2, 3):
        with socket.create_connection(sim.host.split(":")) as connection:
            connection.sendall(
                b"GET /sim/await?what=requests&count=%d HTTP/1.1\r\n\r\n"
                % count)
            sim.see("state")
    for _ in range(4):
        sim.get("/projects.json")
    assert sim.see("state")["requests"] == 4


def test_world_refusals_change_nothing(sim):
    before = sim.see("world")
    for bad in ({"people": [{"name": "no id"}]}, {"people": [{"id": "7"}]},
                {"people": {"7": {"id": 8}}}, {"people": 5},
                {"people": [{"id": 7, "odd": 1}]},
                {"projects": [{"id": 1, "members": [0]}]},
                {"recordings": [{"id": 1, "events": [5]}]},
                {"clients": [{"secret": "x"}]}, {"tokens": [{}]},
                {"token_lifetime": -1}, {"revoke_tokens": "x"},
                {"options": {"page_size": 0}}, {"options": {"x": 1}},
                {"remove": {"moons": []}}, {"moons": []}):
        body = {"options": {"page_size": 7}, **bad,
                "boosts": [{"id": 1}]}
        reply = sim.call("POST", "/sim/world", body=body)
        assert reply.status == 400 and reply.json["error"], bad
    assert sim.see("world") == before


def test_cable_controls_answer(sim):
    for path in ("drop_cable", "stop_pings"):
        assert sim.sim(path) == {"ok": True, "sockets": 0}


HOSTILE = [
    b"\x00\xff\xfe\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
    b"POST /sim/emit HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"POST /sim/emit HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\nx",
    b"POST /sim/emit HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /999/events.json?%00=%ff&=&&a=%zz&types=%ff HTTP/1.1\r\n"
    b"User-Agent: \xff\r\nAuthorization: Bearer operator-token\r\n\r\n",
    b"GET /\xff\xfe/%ff%00 HTTP/1.1\r\nUser-Agent: x\r\n\r\n",
    b"GET //../..//sim/// HTTP/1.1\r\nUser-Agent: x\r\n\r\n",
    b"GET * HTTP/1.1\r\nUser-Agent: x\r\n\r\n",
    b"GET http:// HTTP/1.1\r\nUser-Agent: x\r\n\r\n",
    b"CONNECT a:1 HTTP/1.1\r\n\r\n", b"TRACE / HTTP/1.1\r\n\r\n",
    b"HEAD /999/projects.json HTTP/1.1\r\nUser-Agent: x\r\n\r\n",
    b"GET /sim/log HTTP/1.0\r\n\r\n",
    b"POST /sim/world HTTP/1.1\r\nContent-Length: 4\r\n\r\n{{{{",
    b"POST /sim/fault HTTP/1.1\r\nContent-Length: 4000\r\n\r\n"
    + b"[" * 4000,
    b"POST /oauth/tokens HTTP/1.1\r\nUser-Agent: x\r\nContent-Type: "
    b"application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\n"
    b"%00=%ff&\x00",
    b"GET /a HTTP/1.1\r\nX: " + b"y" * 200000 + b"\r\n\r\n",
]


@pytest.mark.parametrize("request_bytes", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_bytes(sim, request_bytes):
    for half in (request_bytes, request_bytes[:len(request_bytes) // 2]):
        with socket.create_connection(sim.host.split(":"),
                                      timeout=DEADLINE) as connection:
            # The server may have closed before all of it has been sent.
            with contextlib.suppress(ConnectionError):
                connection.sendall(half)
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                while connection.recv(65536):
                    pass
    assert sim.get("/projects.json").status == 200
    assert sim.see("log")["requests"]
    assert sim.see("state")["options"]["page_size"] == 100


def test_keep_alive_and_pipelining(sim):
    request = (b"GET /999/projects.json HTTP/1.1\r\nHost: x\r\n"
               b"User-Agent: x\r\nAuthorization: Bearer operator-token"
               b"\r\n\r\n")
    sim.sim("fault", route="GET /999/projects.json", times=1, delay_ms=50)
    with socket.create_connection(sim.host.split(":"),
                                  timeout=DEADLINE) as connection:
        connection.sendall(request * 3)
        got = b""
        while got.count(b"200 OK") < 3 or not got.endswith(b"]"):
            got += connection.recv(65536)
    assert [r["status"] for r in sim.see("log")["requests"]] == [200] * 3
