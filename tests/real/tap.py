#!/usr/bin/python3
"""Stands between an agent and its MCP server and keeps what goes by.

	tap.py LOG PROGRAM [ARGUMENT...]

Appends to LOG one JSON object a line: `start` with the names in the
environment, `client` and `server` with each message, `signal`, and `end`.
What comes from the agent goes on as it is: bytes, the end of input, INT and
TERM.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time


class Log:
    def __init__(self, path):
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT,
                            0o644)

    def __call__(self, what, **fields):
        record = dict(fields, what=what, at=time.monotonic(), pid=os.getpid())
        os.write(self.file, (json.dumps(record) + "\n").encode())


def relay(source, target, what, log):
    """Line by line, each as soon as it is whole."""
    for line in source:
        try:
            log(what, message=json.loads(line))
        except ValueError:
            log(what, garbage=line.decode("latin-1"))
        try:
            target.write(line)
            target.flush()
        except BrokenPipeError:
            return
    target.close()


def main():
    log = Log(sys.argv[1])
    log("start", environ=sorted(os.environ))
    child = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)

    def pass_on(number, _frame):
        log("signal", number=number)
        child.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, pass_on)
    threading.Thread(target=relay, daemon=True, args=(
        sys.stdin.buffer, child.stdin, "client", log)).start()
    relay(child.stdout, sys.stdout.buffer, "server", log)
    status = child.wait()
    log("end", status=status)
    os._exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
