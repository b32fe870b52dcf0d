"""A client of basecamp-sim for the simulator's own tests.

The meson build directory is in CONNECTD_BUILD.
"""
import http.client
import json
import os
import pathlib
import subprocess
import threading
import time
import urllib.parse

import pytest

BINARY = (pathlib.Path(os.environ.get("CONNECTD_BUILD", "build"))
          / "tests/simulator/basecamp-sim")
OPERATOR, AGENT, PROJECT = 26909558, 52007412, 48699913
OPERATOR_TOKEN = "operator-token"
FORM = "application/x-www-form-urlencoded"
JSON = "application/json; charset=utf-8"
DEADLINE = 10


class Reply:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.raw = response.read()

    @property
    def json(self):
        return json.loads(self.raw)

    def link(self):
        """The path and query of rel="next", or None."""
        link = self.headers.get("Link")
        if not link:
            return None
        url = urllib.parse.urlsplit(link[1:link.index(">")])
        return url.path + "?" + url.query


class Sim:
    def __init__(self, *options):
        self.process = subprocess.Popen(
            [BINARY, "--die-with-stdin", *options], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        self.ready = json.loads(self.process.stdout.readline())
        self.url = self.ready["url"]
        self.host = urllib.parse.urlsplit(self.url).netloc

    def close(self):
        self.process.stdin.close()
        try:
            return self.process.wait(DEADLINE)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()

    def call(self, method, path, token=None, body=None, type=JSON, agent="t"):
        headers = {"User-Agent": agent} if agent else {}
        if token:
            headers["Authorization"] = "Bearer " + token
        if body is not None and type:
            headers["Content-Type"] = type
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        connection = http.client.HTTPConnection(self.host, timeout=DEADLINE)
        try:
            connection.request(method, path, body, headers)
            return Reply(connection.getresponse())
        finally:
            connection.close()

    def sim(self, path, **body):
        reply = self.call("POST", "/sim/" + path, body=body)
        assert reply.status == 200, reply.raw
        return reply.json

    def see(self, what):
        reply = self.call("GET", "/sim/" + what)
        assert reply.status == 200, reply.raw
        return reply.json

    def wait(self, what, **query):
        query = urllib.parse.urlencode({"what": what, **query})
        reply = self.call("GET", "/sim/await?" + query)
        assert reply.status == 200, reply.raw
        return reply.json["count"]

    def mint(self, **fields):
        form = {"grant_type": "client_credentials",
                "client_id": "agent-client",
                "client_secret": "not-a-real-secret", **fields}
        return self.call("POST", "/oauth/tokens", type=FORM,
                         body=urllib.parse.urlencode(form))

    def get(self, path, token=OPERATOR_TOKEN):
        return self.call("GET", "/999" + path, token)

    def post(self, path, body, token=None, **kw):
        return self.call("POST", "/999" + path, token or self.agent, body,
                         **kw)

    @property
    def agent(self):
        if not hasattr(self, "_agent"):
            self._agent = self.mint().json["access_token"]
        return self._agent

    def poll(self, token=OPERATOR_TOKEN, **query):
        return self.get("/events.json?" + urllib.parse.urlencode(query),
                        token)


@pytest.fixture
def sim():
    sim = Sim()
    yield sim
    assert sim.close() == 0


def boost_path(sim):
    """Where a boost goes: a fresh comment that mentions the agent."""
    made = sim.sim("mention")
    return f"/recordings/{made['recording_id']}/boosts.json"


def boosts(sim):
    return sim.see("messages")["counts"]["boost"]


def last_status(sim):
    return sim.see("log")["requests"][-1]["status"]


def emit(sim, **event):
    return sim.sim("emit", **{"event_type": "comment.created",
                              "bucket_id": PROJECT, "recording_id": 5,
                              "creator_id": OPERATOR, **event})["event_id"]


def ids(page):
    return [event["id"] for event in page["events"]]


def in_thread(function, *args, **kw):
    """Run FUNCTION aside; the result of join() is what it returned."""
    box = {}

    def run():
        try:
            box["value"] = function(*args, **kw)
        except (OSError, http.client.HTTPException) as error:
            box["value"] = error
    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def join():
        thread.join(DEADLINE)
        assert not thread.is_alive()
        return box["value"]
    return join
