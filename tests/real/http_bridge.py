#!/usr/bin/python3
"""Puts a stdio MCP server behind streamable HTTP on loopback, for suites that
know no other way to a server.

	http_bridge.py PORT_FILE PROGRAM [ARGUMENT...]

Its messages go both ways as they are, but for ids, which are its own between
it and the server. Each `initialize` starts the program anew, after the one
before was ended; requests of the stateless revision go to what runs. POST
/end ends it.
"""

import http.server
import json
import os
import subprocess
import sys
import threading
import uuid

LIMIT = 60
VERSION = "io.modelcontextprotocol/protocolVersion"
# How the stateless revision's errors show in HTTP; all else is a 200.
STATUSES = {-32601: 404, -32600: 400, -32602: 400, -32020: 400, -32021: 400,
            -32022: 400}


class Server:
    """One run of the program."""

    def __init__(self, argv):
        self.session = str(uuid.uuid4())
        self.cond = threading.Condition()
        self.answers = {}
        self.sent = 0
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            with self.cond:
                self.answers[message.get("id")] = message
                self.cond.notify_all()

    def write(self, message):
        self.process.stdin.write((json.dumps(message) + "\n").encode())
        self.process.stdin.flush()

    def ask(self, message):
        """The answer to a request, under the request's own id."""
        with self.cond:
            self.sent += 1
            number = self.sent
            self.write(dict(message, id=number))
            if not self.cond.wait_for(lambda: number in self.answers, LIMIT):
                raise TimeoutError("no answer to " + message["method"])
            return dict(self.answers.pop(number), id=message["id"])

    def end(self):
        self.process.stdin.close()
        self.process.wait(LIMIT)


class Bridge(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, argv):
        super().__init__(("127.0.0.1", 0), Handler)
        self.argv = argv
        self.running = None
        self.changing = threading.Lock()

    def server_for(self, message):
        with self.changing:
            is_new = message.get("method") == "initialize" and (
                not is_stateless(message))
            if is_new:
                self.end_server()
            if self.running is None:
                self.running = Server(self.argv)
            return self.running

    def end_server(self):
        if self.running is not None:
            self.running.end()
        self.running = None


def is_stateless(message):
    meta = (message.get("params") or {}).get("_meta") or {}
    return VERSION in meta


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments):
        """Nobody reads it."""

    def send(self, status, body=None, **headers):
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.send(405, Allow="POST, DELETE")

    def do_DELETE(self):
        with self.server.changing:
            self.server.end_server()
        self.send(200)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/end":
            self.send(200)
            threading.Thread(target=self.server.shutdown).start()
            return
        message = json.loads(body)
        server = self.server.server_for(message)
        if "id" not in message or "method" not in message:
            server.write(message)
            self.send(202)
            return
        answer = server.ask(message)
        code = answer.get("error", {}).get("code")
        status = 200
        if is_stateless(message) or "Mcp-Session-Id" not in self.headers:
            status = STATUSES.get(code, 200)
        headers = {}
        if message["method"] == "initialize" and code is None:
            headers["Mcp_Session_Id"] = server.session
        self.send(status, answer, **headers)


def main():
    bridge = Bridge(sys.argv[2:])
    port_file = sys.argv[1]
    with open(port_file + ".new", "w", encoding="utf-8") as file:
        file.write(str(bridge.server_port))
    os.rename(port_file + ".new", port_file)
    bridge.serve_forever()
    bridge.end_server()


if __name__ == "__main__":
    main()
