"""connectd-mcpd in its standalone form, driven over stdio by a test that
stands for its MCP client; and the token, taken by `connectctl token`.
"""

import json
import os
import queue
import signal
import socket
import subprocess
import threading

from harness import HarnessError, end_with_parent

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
CLIENT = {"name": "test", "version": "1"}
WAIT = 20


def attempt_of(connector):
    """The one attempt that is running."""
    row, = connector.query("SELECT id FROM attempts WHERE state = 'running'")
    return row["id"]


def connectctl_token(connector, attempt, fd, *words):
    """One run of `connectctl token`, with FD as its descriptor."""
    return subprocess.run(
        [str(connector.bin / "connectctl"), "-P", connector.profile, *words,
         "token", attempt, "--fd", str(fd)],
        env=connector.environ, stdin=subprocess.DEVNULL, capture_output=True,
        timeout=WAIT, check=False, text=True, pass_fds=(fd,))


def take_over(connector, attempt):
    """The read end of a pipe that holds the task's new token."""
    read, write = os.pipe()
    done = connectctl_token(connector, attempt, write)
    os.close(write)
    if done.returncode != 0:
        os.close(read)
        raise HarnessError("connectctl token: %d %s"
                           % (done.returncode, done.stderr))
    return read


class Standalone:
    """A running server; its stdio are pipes, as Codex has it, or sockets,
    as Claude Code has it. A stderr that is given is not read here.
    """

    def __init__(self, connector, token_fd=None, state=None, argv=None,
                 sockets=False, stderr=None):
        fds = () if token_fd is None else (token_fd,)
        pairs = [socket.socketpair() for _ in range(2)] if sockets else []
        ends = [pair[1] for pair in pairs] or [subprocess.PIPE] * 2
        self.process = subprocess.Popen(
            argv or [str(connector.bin / "connectd-mcpd"), "--connect-state",
                     str(state or connector.state_dir),
                     "--connect-token-fd", str(token_fd)],
            stdin=ends[0], stdout=ends[1],
            stderr=subprocess.PIPE if stderr is None else stderr,
            env=connector.environ, pass_fds=fds, preexec_fn=end_with_parent)
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        if sockets:
            self.stdin = pairs[0][0].makefile("wb", 0)
            self.stdout = pairs[1][0].makefile("rb")
        for end in fds if stderr is None else (*fds, stderr):
            os.close(end)
        for end in [end for pair in pairs for end in pair]:
            end.close()
        self.is_modern = False
        self.next_id = 0
        self.answers = queue.Queue()
        self.may_read = threading.Event()
        self.may_read.set()
        self.garbage = []
        self.errors = []
        self.threads = [threading.Thread(target=self.read_answers)]
        if stderr is None:
            self.threads.append(threading.Thread(target=self.read_errors))
        for thread in self.threads:
            thread.start()

    def read_answers(self):
        for line in self.stdout:
            self.may_read.wait()
            try:
                self.answers.put(json.loads(line))
            except ValueError:
                self.garbage.append(line)
        self.answers.put(None)

    def read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line.decode().rstrip("\n"))

    # -- lines ---------------------------------------------------------------

    def send(self, method, params=None, ident=None):
        message = {"jsonrpc": "2.0", "method": method}
        if ident is not None:
            message["id"] = ident
        if self.is_modern:
            params = dict(params or {}, _meta={
                META + "protocolVersion": MODERN,
                META + "clientInfo": CLIENT,
                META + "clientCapabilities": {}})
        if params is not None:
            message["params"] = params
        self.stdin.write(json.dumps(message).encode() + b"\n")
        self.stdin.flush()

    def hear(self):
        answer = self.answers.get(timeout=WAIT)
        if answer is None:
            raise HarnessError("the server ended: %s" % self.errors)
        return answer

    def request(self, method, params=None):
        self.next_id += 1
        self.send(method, params, self.next_id)
        answer = self.hear()
        assert answer["id"] == self.next_id
        return answer

    # -- a session -----------------------------------------------------------

    def open(self, modern=False):
        """The opening of one era or the other."""
        if modern:
            self.is_modern = True
            found = self.request("server/discover")["result"]
            assert MODERN in found["supportedVersions"]
        else:
            answer = self.request("initialize", {
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": CLIENT})
            assert answer["result"]["protocolVersion"] == "2025-11-25"
            self.send("notifications/initialized")
        return self

    def call(self, tool, action, **params):
        """(what the answer's text says, whether it is an error)."""
        answer = self.request("tools/call", {
            "name": tool, "arguments": {"action": action, "params": params}})
        result = answer["result"]
        return (json.loads(result["content"][0]["text"]),
                bool(result.get("isError")))

    def connect(self, action, **params):
        return self.call("basecamp_connect", action, **params)

    def must(self, tool, action, **params):
        answer, is_error = self.call(tool, action, **params)
        assert not is_error, answer
        return answer

    def refused(self, action="get_dispatch", **params):
        """The kind of error that a call of the connect domain gets."""
        answer, is_error = self.connect(action, **params)
        assert is_error, answer
        return answer["error"]

    # -- its end -------------------------------------------------------------

    def wait(self, timeout=WAIT):
        """Its exit status, once it has ended by itself; stdin stays open."""
        status = self.process.wait(timeout)
        for thread in self.threads:
            thread.join(timeout)
            if thread.is_alive():
                raise HarnessError("the server ended, and left its output"
                                   " to somebody")
        return status

    def end(self):
        """End of input."""
        self.stdin.close()
        return self.wait()

    def close(self):
        self.may_read.set()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.wait()
        for pipe in (self.stdin, self.stdout, self.process.stderr):
            if pipe:
                pipe.close()
