"""The MCP client of the scripted agents: one stdio server, opened, called and
ended the way Claude Code 2.1 does it (mcp.md 4.2, 4.4 and 6).

The server runs in the client's own process group and gets the client's whole
environment; its stdin, stdout and stderr are socketpairs. A server that died
is started again by the next call, with the opening exchange but without
tools/list.
"""

import json
import os
import signal
import socket
import subprocess
import threading
import time

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
DISCOVER_ID = "server-discover-probe-1"
DISCOVER_WAIT = 3.0
START_WAIT = 30.0
TERM_AFTER = 0.1
KILL_AFTER = 0.4
LINE_MOST = 64 << 20

CLIENT_INFO = {
    "name": "claude-code",
    "title": "Claude Code",
    "version": "2.1.332",
    "description": "Anthropic's agentic coding tool",
    "websiteUrl": "https://claude.com/claude-code",
}
CAPABILITIES = {
    "roots": {"listChanged": True},
    "elicitation": {"form": {}, "url": {}},
}
META = "io.modelcontextprotocol/"


class Closed(Exception):
    """The server is gone; the call may or may not have been carried out."""


class Interrupted(Exception):
    """The turn was interrupted while a call was outstanding."""


class RpcError(Exception):
    """The server answered with a protocol error."""

    def __init__(self, error):
        super().__init__(error.get("message", "error"))
        self.error = error


class Wire:
    """One run of the server process and what is outstanding on it."""

    def __init__(self, entry, environ, cond, log):
        self.cond = cond
        self.log = log
        self.answers = {}
        self.dead = False
        self.next_id = 0
        ours = [socket.socketpair() for _ in range(3)]
        self.stdin, self.stdout, self.stderr = (pair[0] for pair in ours)
        try:
            self.process = subprocess.Popen(
                [entry["command"], *entry.get("args", [])],
                stdin=ours[0][1],
                stdout=ours[1][1],
                stderr=ours[2][1],
                env=environ,
            )
        finally:
            for pair in ours:
                pair[1].close()
        self.log("server_start", pid=self.process.pid)
        threading.Thread(target=self.read_lines, daemon=True).start()
        threading.Thread(target=self.read_stderr, daemon=True).start()

    def send(self, message):
        line = json.dumps(message, separators=(",", ":")) + "\n"
        try:
            self.stdin.sendall(line.encode())
        except OSError as error:
            raise Closed("Connection closed") from error

    def read_lines(self):
        lines = self.stdout.makefile("rb")
        try:
            while True:
                line = lines.readline(LINE_MOST)
                if not line.endswith(b"\n"):
                    break
                self.take_line(line)
        except OSError:
            pass
        with self.cond:
            self.dead = True
            self.cond.notify_all()

    def take_line(self, line):
        try:
            message = json.loads(line)
        except ValueError:
            self.log("server_garbage", line=line[:200].decode("latin-1"))
            return
        if "method" in message and "id" in message:
            self.answer_server(message)
            return
        with self.cond:
            self.answers[message.get("id")] = message
            self.cond.notify_all()

    def answer_server(self, message):
        """Claude answers a server's ping and roots/list, nothing else."""
        result = {}
        if message["method"] == "roots/list":
            result = {"roots": [{"uri": "file://" + os.getcwd()}]}
        try:
            self.send({"jsonrpc": "2.0", "id": message["id"],
                       "result": result})
        except Closed:
            pass

    def read_stderr(self):
        lines = self.stderr.makefile("rb")
        try:
            for line in lines:
                self.log("server_stderr",
                         line=line.decode("utf-8", "replace").rstrip())
        except OSError:
            pass

    def wait_answer(self, ident, deadline, interrupted):
        """The message with this id. Raises Closed, Interrupted, TimeoutError.
        An interrupt is looked for first, however fast the answer came.
        """
        with self.cond:
            while not interrupted():
                if ident in self.answers:
                    return self.answers.pop(ident)
                if self.dead:
                    raise Closed("Connection closed")
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError("Request timed out")
                self.cond.wait(left)
            raise Interrupted()

    def end(self):
        """SIGINT, then SIGTERM, then SIGKILL; stdin stays open meanwhile."""
        start = time.monotonic()
        steps = [(0, signal.SIGINT), (TERM_AFTER, signal.SIGTERM),
                 (KILL_AFTER, signal.SIGKILL)]
        for index, (after, number) in enumerate(steps):
            if self.process.poll() is not None:
                break
            self.process.send_signal(number)
            until = steps[index + 1][0] if index + 1 < len(steps) else 10
            try:
                self.process.wait(max(0, start + until - time.monotonic()))
            except subprocess.TimeoutExpired:
                continue
        self.log("server_end", pid=self.process.pid,
                 status=self.process.returncode)
        self.close()

    def close(self):
        for end in (self.stdin, self.stdout, self.stderr):
            end.close()


class Server:
    """A declared server across its restarts."""

    def __init__(self, name, entry, environ, cond, log):
        self.name = name
        self.entry = entry
        self.environ = dict(environ)
        self.environ.update(entry.get("env", {}))
        self.cond = cond
        self.logger = log
        self.wire = None
        self.modern = False
        self.tools = []
        self.status = "pending"
        self.calls = 0

    def log(self, what, **fields):
        self.logger(what, server=self.name, **fields)

    def open(self, restart=False):
        """Start the process and go through the opening exchange. Sets
        status to connected or failed; never raises.
        """
        deadline = time.monotonic() + START_WAIT
        try:
            self.start(deadline)
            if not restart:
                answer = self.request("tools/list", None, deadline)
                self.tools = [t["name"] for t in answer.get("tools", [])]
            self.status = "connected"
        except (Closed, RpcError, TimeoutError, OSError, KeyError) as error:
            self.status = "failed"
            self.log("server_failed", error=str(error))
        self.log("server_open", status=self.status, modern=self.modern,
                 tools=self.tools, restart=restart)

    def start(self, deadline):
        self.wire = Wire(self.entry, self.environ, self.cond, self.log)
        try:
            self.modern = self.discover()
        except Closed:
            self.wire.end()
            self.wire = Wire(self.entry, self.environ, self.cond, self.log)
            self.modern = False
        if not self.modern:
            self.request("initialize", {
                "protocolVersion": LEGACY,
                "capabilities": CAPABILITIES,
                "clientInfo": CLIENT_INFO,
            }, deadline)
            self.wire.send({"jsonrpc": "2.0",
                            "method": "notifications/initialized"})

    def discover(self):
        """True when the server speaks the stateless revision."""
        self.wire.send({
            "jsonrpc": "2.0",
            "id": DISCOVER_ID,
            "method": "server/discover",
            "params": {"_meta": {
                META + "protocolVersion": MODERN,
                META + "clientInfo": CLIENT_INFO,
                META + "clientCapabilities": CAPABILITIES,
            }},
        })
        try:
            answer = self.wire.wait_answer(
                DISCOVER_ID, time.monotonic() + DISCOVER_WAIT, lambda: False)
        except TimeoutError:
            return False
        versions = answer.get("result", {}).get("supportedVersions", [])
        return MODERN in versions

    def request(self, method, params, deadline, interrupted=lambda: False,
                tool_use=None):
        """Send one request with the next number and wait for its result."""
        wire = self.wire
        ident = wire.next_id
        wire.next_id += 1
        meta = {}
        if self.modern:
            meta = {
                META + "protocolVersion": MODERN,
                META + "clientInfo": {"name": CLIENT_INFO["name"],
                                      "version": CLIENT_INFO["version"]},
                META + "clientCapabilities": CAPABILITIES,
            }
        if tool_use is not None:
            meta["claudecode/toolUseId"] = tool_use
            meta["progressToken"] = ident
        message = {"method": method}
        if params is not None or meta:
            message["params"] = dict(params or {})
            if meta:
                message["params"]["_meta"] = meta
        message.update({"jsonrpc": "2.0", "id": ident})
        wire.send(message)
        try:
            answer = wire.wait_answer(ident, deadline, interrupted)
        except Interrupted:
            self.cancel(ident, "AbortError: remote-cancel")
            raise
        except TimeoutError:
            self.cancel(ident, "SdkError: Request timed out")
            raise
        if "error" in answer:
            raise RpcError(answer["error"])
        result = answer.get("result", {})
        if self.modern and result.get("resultType") != "complete":
            raise RpcError({"message": "result without resultType complete"})
        return result

    def cancel(self, ident, reason):
        params = {"requestId": ident, "reason": reason}
        if self.modern:
            params["_meta"] = {META + "protocolVersion": MODERN,
                               META + "clientCapabilities": {}}
        try:
            self.wire.send({"jsonrpc": "2.0", "params": params,
                            "method": "notifications/cancelled"})
        except Closed:
            pass

    def call(self, tool, arguments, tool_use, deadline, interrupted):
        """(text, is_error) of one tools/call; a dead server is started
        again first. Raises Closed, Interrupted, TimeoutError.
        """
        if self.wire is None or self.wire.dead:
            if self.wire is not None:
                self.wire.end()
            self.open(restart=True)
            if self.status != "connected":
                raise Closed("server failed to start again")
        self.calls += 1
        try:
            result = self.request(
                "tools/call", {"name": tool, "arguments": arguments},
                deadline, interrupted, tool_use)
        except RpcError as error:
            return str(error), True
        texts = [block.get("text", "") for block in result["content"]
                 if block.get("type") == "text"]
        return "".join(texts), bool(result.get("isError"))

    def crash(self):
        """SIGKILL to the server process, as if it had failed by itself. When
        this returns its end has been seen: the next call starts another.
        """
        self.wire.process.kill()
        self.wire.process.wait()
        with self.cond:
            self.cond.wait_for(lambda: self.wire.dead)
        self.log("server_crashed", pid=self.wire.process.pid)

    def close(self):
        if self.wire is not None:
            self.wire.end()
