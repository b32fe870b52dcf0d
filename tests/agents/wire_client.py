"""A client that says to an MCP server exactly what it is told to, byte by
byte: the checks of mcp.md 5.3 and 7 through the real bridge and mcpd.

    wire_client.py CHECK SIM-URL EVENT SERVER...

runs one check, a function of that name below, as a child of the agent. Its
exit status says whether it held, its stderr why not.
"""

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import urllib.request

WAIT = 20
QUIET = 0.15
META = "io.modelcontextprotocol/"
CLAIM = {META + "protocolVersion": "2026-07-28",
         META + "clientCapabilities": {}}
THREAD = "GET /{a}/recordings/{id}/comments.json"
BOOSTS = "POST /{a}/recordings/{id}/boosts.json"
COMMENTS = "POST /{a}/recordings/{id}/comments.json"
LINE_MOST = 4 * 1024 * 1024


class Server:
    """One run of the server; what it says is read line by line."""

    def __init__(self, argv, event_id):
        self.event_id = event_id
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, bufsize=0)
        self.to = self.process.stdin.fileno()
        self.at = self.process.stdout.fileno()
        self.got = b""

    def write(self, data):
        while data:
            data = data[os.write(self.to, data):]

    def say(self, line):
        self.write(line if isinstance(line, bytes) else line.encode())
        self.write(b"\n")

    def send(self, method, ident=None, **params):
        message = {"jsonrpc": "2.0", "method": method}
        if ident is not None:
            message["id"] = ident
        if params:
            message["params"] = params
        self.say(json.dumps(message))

    def call(self, ident, tool, action, **params):
        self.send("tools/call", ident, name="basecamp_" + tool,
                  arguments={"action": action,
                             "params": dict(params,
                                         event_id=self.event_id)})

    def line(self, wait=WAIT):
        """The next line without its LF; None when none comes in time."""
        until = time.monotonic() + wait
        while b"\n" not in self.got:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.at], [], [], left)[0]:
                return None
            data = os.read(self.at, 1 << 16)
            assert data, "the server is gone"
            self.got += data
        line, self.got = self.got.split(b"\n", 1)
        return line

    def hear(self):
        line = self.line()
        assert line is not None, "silence"
        return json.loads(line)

    def expect(self, want):
        line = self.line()
        assert line == want.encode(), line

    def is_quiet(self):
        """Nothing was said: what is asked now is answered first."""
        self.say('{"jsonrpc":"2.0","id":"quiet?","method":"ping"}')
        self.expect('{"jsonrpc":"2.0","id":"quiet?","result":{}}')

    def open(self, version="2025-11-25"):
        self.send("initialize", "open", protocolVersion=version,
                  capabilities={}, clientInfo={"name": "w", "version": "1"})
        assert self.hear()["result"]["protocolVersion"] == version
        self.send("notifications/initialized")

    def end(self):
        """EOF; the exit status."""
        self.process.stdin.close()
        return self.process.wait(WAIT)


def pong(token):
    return '{"jsonrpc":"2.0","id":%s,"result":{}}' % token


def ping(token, more=""):
    return '{"jsonrpc":"2.0","id":%s,"method":"ping"%s}' % (token, more)


def text_of(message):
    return json.loads(message["result"]["content"][0]["text"])


class Sim:
    """The part of the simulator that a client steers."""

    def __init__(self, url):
        self.url = url

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(urllib.request.Request(
                self.url + path, data=data,
                headers={"Content-Type": "application/json"}),
                         timeout=WAIT) as answer:
            return json.loads(answer.read())

    def gate(self, route):
        self.ask("/sim/gate", {"route": route})

    def release(self, route):
        self.ask("/sim/release", {"route": route})

    def held(self, count):
        self.ask("/sim/await?what=held&count=%d&timeout_ms=15000" % count)


# ---- ids and silence -------------------------------------------------------

def ids(server, sim):
    """Echoed byte for byte, whatever they are."""
    for token in ("0", '""', "-1", "9007199254740993", "-0", '"1"', "1",
                  '"\\u0061"', '"\\u0000\\ud800"', '"%s"' % ("x" * 1022),
                  "123456789012345678901234567890", '"\u00e4 \U0001f440"'):
        server.say(ping(token))
        server.expect(pong(token))
    server.say(ping('"%s"' % ("x" * 1023)))
    assert server.hear()["error"]["code"] == -32600


def silence(server, sim):
    """Responses, errors, notifications and blank lines have no answer."""
    server.open()
    for line in ('{"jsonrpc":"2.0","id":1,"result":{}}',
                 '{"jsonrpc":"2.0","error":{"code":-32600,"message":"x"}}',
                 '{"jsonrpc":"2.0","id":null,"error":{"code":1}}',
                 '{"jsonrpc":"2.0","method":"notifications/nobody_knows"}',
                 '{"jsonrpc":"2.0","method":"tools/call","params":3}',
                 '{"jsonrpc":"2.0","method":"notifications/cancelled"}',
                 '{"jsonrpc":"2.0","method":"notifications/cancelled",'
                 '"params":{"requestId":{}}}',
                 "", "  \t", "\r"):
        server.say(line)
        server.is_quiet()


def nothing_kept(server, sim):
    """More of what has no answer under its id than the bridge keeps lines."""
    server.open()
    for n in range(1100):
        server.say('{"jsonrpc":"2.0","id":%d,"method":7,"result":{}}' % n)
        server.say('{"jsonrpc":"2.0","id":%d,"method":"ping",' % n)
        answer = server.hear()
        assert answer["error"]["code"] == -32700 and "id" not in answer
    server.is_quiet()


# ---- eras ------------------------------------------------------------------

def eras(server, sim):
    """Both on one pipe, in any order, and neither forgets itself."""
    def listed(**params):
        server.send("tools/list", 1, **params)
        return server.hear()

    server.send("server/discover", "server-discover-probe-1", _meta=CLAIM)
    found = server.hear()["result"]
    assert found["supportedVersions"] == ["2026-07-28"]
    assert found["resultType"] == "complete"
    assert listed()["error"]["code"] == -32602
    modern = listed(_meta=CLAIM)
    server.open("2025-06-18")
    legacy = listed()
    assert legacy["result"]["tools"] == modern["result"]["tools"]
    assert "resultType" not in legacy["result"]
    assert listed(_meta=CLAIM) == modern
    server.send("tools/call", 2, name="basecamp_connect", _meta=CLAIM,
                arguments={"action": "get_dispatch"})
    answer = server.hear()["result"]
    assert answer["resultType"] == "complete"
    assert json.loads(answer["content"][0]["text"])["instruction"]
    server.send("ping", 3, _meta=CLAIM)
    assert server.hear()["error"]["code"] == -32601
    server.say(ping("4"))
    server.expect(pong("4"))
    server.open("2024-11-05") # negotiated again, to one without such errors
    server.say("this is not JSON")
    server.is_quiet()


# ---- cancelling, order, how many -------------------------------------------

def cancelling(server, sim):
    """Before the answer: silence. After it: nothing changes."""
    server.open()
    sim.gate(THREAD)
    server.call(7, "thread", "read")
    server.call("7", "thread", "read")
    sim.held(2)
    server.send("notifications/cancelled", requestId=7, reason="x")
    server.is_quiet()
    sim.release(THREAD)
    assert server.hear()["id"] == "7"
    server.send("notifications/cancelled", requestId="7")
    server.is_quiet()
    server.call(7, "connect", "get_dispatch")
    assert server.hear()["id"] == 7


def order(server, sim):
    """Two slow calls are answered as they end."""
    server.open()
    sim.gate(THREAD)
    sim.gate(BOOSTS)
    server.call(1, "thread", "read")
    server.call(2, "thread", "boost", content="On it")
    sim.held(2)
    server.is_quiet()
    sim.release(BOOSTS)
    assert server.hear()["id"] == 2
    sim.release(THREAD)
    assert server.hear()["id"] == 1


def in_flight(server, sim):
    """Sixty-four, and the one more is told so; what is inline never counts."""
    server.open()
    sim.gate(COMMENTS)
    for n in range(64):
        server.call(n, "thread", "reply", content="Done.")
    sim.held(1)
    server.is_quiet()
    server.call("more", "thread", "reply", content="Done.")
    more = server.hear()
    assert (more["id"], more["error"]["code"]) == ("more", -32603)
    server.send("tools/list", "list")
    assert server.hear()["id"] == "list"
    sim.release(COMMENTS)
    answers = [server.hear() for _ in range(64)]
    assert sorted(a["id"] for a in answers) == list(range(64))
    assert len({text_of(a)["id"] for a in answers}) == 1


def many_reads(server, sim):
    """As many as may be in flight are answered, a few at a time."""
    server.open()
    sim.gate(THREAD)
    for n in range(64):
        server.call(n, "thread", "read")
    sim.held(1)
    server.is_quiet()
    sim.release(THREAD)
    answers = [server.hear() for _ in range(64)]
    assert sorted(a["id"] for a in answers) == list(range(64))
    assert all("comments" in text_of(a) for a in answers), answers


def batches(server, sim):
    server.open("2025-03-26")
    calls = [{"jsonrpc": "2.0", "id": n, "method": "tools/call",
              "params": {"name": "basecamp_connect",
                         "arguments": {"action": "get_dispatch"}}}
             for n in range(32)]
    server.say(json.dumps(calls))
    answer = server.hear()
    assert sorted(a["id"] for a in answer) == list(range(32))
    server.say(json.dumps(calls + [json.loads(ping("32"))]))
    server.say("[]")
    server.is_quiet()
    server.open("2025-06-18")
    server.say("[%s]" % ping("1"))
    server.is_quiet()
    server.open("2025-11-25")
    server.say("[%s]" % ping("1"))
    assert server.hear()["error"]["code"] == -32600


# ---- lines -----------------------------------------------------------------

def torn_lines(server, sim):
    """A MiB in one-byte writes; the LF a while after its line."""
    line = ping('"slow"', ',"x":"%s"' % ("y" * (1 << 20)))
    for byte in line.encode() + b"\r\n":
        os.write(server.to, bytes([byte]))
    server.expect(pong('"slow"'))
    server.write(ping("1").encode())
    assert server.line(QUIET) is None
    server.write(b"\n" + ping("2").encode() + b"\n")
    server.expect(pong("1"))
    server.expect(pong("2"))


def long_lines(server, sim):
    """To the limit, over it, far over it; and a good line behind each."""
    frame = len(ping("1", ',"x":""'))
    for length, code in ((LINE_MOST, None), (LINE_MOST + 1, -32600),
                         (3 * LINE_MOST, -32600)):
        server.say(ping("1", ',"x":"%s"' % ("y" * (length - frame))))
        answer = server.hear()
        assert answer["id"] == 1
        assert answer.get("error", {}).get("code") == code
        server.is_quiet()
    server.say('{"x":"%s","id":1}' % ("y" * LINE_MOST))
    answer = server.hear()
    assert answer["error"]["code"] == -32600 and "id" not in answer
    server.is_quiet()


def nesting(server, sim):
    """Depth and number of members, at their limits and one above."""
    for depth, is_good in ((63, True), (64, False), (100000, False)):
        server.say(ping("1", ',"x":%s%s' % ("[" * depth, "]" * depth)))
        answer = server.hear()
        assert answer["id"] == 1 and ("result" in answer) == is_good, depth
        server.is_quiet()
    for count, is_good in ((9996, True), (9997, False), (200000, False)):
        server.say(ping("2", ',"x":[%s]' % ",".join("0" * count)))
        answer = server.hear()
        assert answer["id"] == 2 and ("result" in answer) == is_good, count


def strange_bytes(server, sim):
    server.open()
    server.say('{"jsonrpc":"2.0","id":1,"method":"a\\u0000b\\ud800c"}')
    assert server.hear()["error"]["message"] == \
        "Method not found: a\0b\N{REPLACEMENT CHARACTER}c"
    for line in (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
                 b'\xef\xbb\xbf' + ping("1").encode(), b"\xff", b"\x00",
                 b'{"jsonrpc":"2.0","id":1,'):
        server.say(line)
        answer = server.hear()
        assert answer["error"]["code"] == -32700 and "id" not in answer
    server.call(2, "thread", "reply", content="a\0b\ud800c")
    assert text_of(server.hear())["state"] == "sent"
    long_name = "x" * 5000
    server.send(long_name, 3)
    assert server.hear()["error"]["code"] == -32601
    server.send("tools/call", 4, name=long_name)
    answer = server.hear()["error"]
    assert answer["code"] == -32602 and len(answer["message"]) < 300
    server.send("tools/list", 5, cursor=long_name)
    assert server.hear()["error"]["code"] == -32602


def unread_answers(server, sim):
    """Who does not read loses nothing, and no line is torn."""
    server.open()
    count = 1500
    lines = "".join('{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n' % n
                    for n in range(count))
    writer = threading.Thread(target=server.write, args=(lines.encode(),))
    writer.start()
    writer.join(QUIET) # so that answers pile up before we read
    for n in range(count):
        assert server.hear()["id"] == n
    writer.join(WAIT)
    server.is_quiet()


def unread_complaints(server, sim):
    """Nobody reads our stderr, and nothing stops for that."""
    for _ in range(20000):
        server.say(b"\xff not JSON")
        assert b'"code":-32700' in server.line()
    server.is_quiet()


# ---- results ---------------------------------------------------------------

def results(server, sim):
    """Cut to 48000 bytes, at a character, and it is said; read has the rest.
    The event's message has 30000 euro signs.
    """
    server.open()
    server.call(1, "connect", "get_dispatch")
    line = server.line()
    assert len(line) < 1 << 20
    text = json.loads(line)["result"]["content"][0]["text"]
    assert 40000 < len(text.encode()) <= 48000
    instruction = json.loads(text)["instruction"]
    assert instruction["content_truncated"] is True
    assert "\N{REPLACEMENT CHARACTER}" not in text
    whole = read_whole(server)
    assert whole.count("\u20ac") == 30000, whole.count("\u20ac")
    assert "\N{REPLACEMENT CHARACTER}" not in whole


def read_whole(server):
    """The recording's content, piece by piece."""
    whole = ""
    params = {}
    for n in range(100):
        server.call(n, "thread", "read", **params)
        recording = text_of(server.hear())["recording"]
        whole += recording["content"]
        if "more" not in recording:
            return whole
        params = {"cursor": recording["more"]}
    raise AssertionError("it has no end")


def pages(server, sim):
    """A thread from its newest comments to its oldest, each once, oldest
    first on a page. There are 41, the event's own among them.
    """
    server.open()
    found = []
    params = {}
    for n in range(50):
        server.call(n, "thread", "read", **params)
        page = text_of(server.hear())
        ids_here = [comment["id"] for comment in page["comments"]]
        assert ids_here == sorted(ids_here)
        found = ids_here + found
        if page.get("older") is None:
            break
        params = {"cursor": page["older"]}
    assert found == sorted(set(found)), found
    assert len(found) == 41, len(found)
    server.call("x", "thread", "read", cursor="t.1.x")
    assert text_of(server.hear())["error"] == "invalid_params"


# ---- ends ------------------------------------------------------------------

def end_of_input(server, sim):
    """In the middle of a line, and with an answer under way."""
    server.open()
    sim.gate(THREAD)
    server.call(1, "thread", "read")
    server.write(b'{"jsonrpc":"2.0","id":2,')
    sim.held(1)
    assert server.end() == 0
    sim.release(THREAD)


def interrupt(server, sim):
    server.open()
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(WAIT) == 0


def terminate(server, sim):
    server.open()
    server.call(1, "connect", "get_dispatch")
    server.hear()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(WAIT) == 0


CHECKS = {check.__name__: check for check in (
    ids, silence, nothing_kept, eras, cancelling, order, in_flight,
    many_reads, batches, torn_lines, long_lines, nesting, strange_bytes,
    unread_answers, unread_complaints, results, pages, end_of_input,
    interrupt, terminate)}


def main(name, url, event_id, *argv):
    server = Server(argv, event_id)
    try:
        CHECKS[name](server, Sim(url))
        if server.process.poll() is None:
            assert server.end() == 0
    finally:
        if server.process.poll() is None:
            server.process.kill()


if __name__ == "__main__":
    main(*sys.argv[1:])
