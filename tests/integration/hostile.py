#!/usr/bin/python3
"""Says to a socket what nobody should: run by a scripted agent as its child,
or imported by a test. Prints what came back, as one JSON object.

	hostile.py once SOCKET		one line, and a second to hear
	hostile.py orphan SOCKET	the same as an orphan in its own session
	hostile.py every SOCKET		all of WORDS, one connection each
"""

import json
import os
import socket
import sys
import time

WAIT = 5
LINE = b'{"command":"status"}\n'
CALL = (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":'
        b'"basecamp_connect","arguments":{"action":"get_dispatch"}}}\n')

# What is said. None of it is a request that anybody may answer with success.
WORDS = {
    "garbage": bytes(range(256)) * 16 + b"\n",
    "nothing": b"",
    "empty lines": b"\n" * 1000,
    "half": LINE[:-6],
    "half a call": CALL[:-20],
    "two halves": LINE[:7] + b"\n" + LINE[7:-4] + b"\n",
    "huge": b"x" * (2 << 20),
    "huge json": b'{"command":"' + b"x" * (2 << 20) + b'"}\n',
    "deep": b"[" * 50000 + b"\n",
    "wrong types": b'{"command":5}\n[]\n"status"\n7\nnull\n{}\n',
    "surrogates": b'{"command":"\\ud800","event":1}\n',
    "not utf-8": b'{"command":"\xff\xfe"}\n',
    "nul": b'{"command":"sta\\u0000tus"}\n\0\0\0\n',
    "twice": b'{"command":"status","command":"stop"}\n',
    "unknown": b'{"command":"unknown","event":9}\n',
    "big number": b'{"command":"show","event":1' + b"0" * 400 + b"}\n",
}


def open_socket(path, wait=WAIT):
    """Waits for a place in the backlog, which a timeout would not."""
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    peer.connect(path)
    peer.settimeout(wait)
    return peer


def read_end(peer):
    """(all that comes until it is closed or silent for long, was it closed)
    """
    got = b""
    try:
        while True:
            part = peer.recv(65536)
            if not part:
                return got, True
            got += part
    except ConnectionError:
        return got, True
    except TimeoutError:
        return got, False


def say(path, words, wait=WAIT):
    """Say it, end our side, and hear what comes until the end."""
    with open_socket(path, wait) as peer:
        try:
            peer.sendall(words)
            peer.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        return read_end(peer)


def say_slowly(path, words, times):
    """A byte at a time, with pauses; the connection stays open."""
    peer = open_socket(path)
    for at in range(times):
        peer.send(words[at:at + 1])
        time.sleep(0.02)
    return peer


def told(path, words, wait=WAIT):
    try:
        got, is_closed = say(path, words, wait)
    except OSError as error:
        return {"error": error.strerror or str(error)}
    return {"got": got.decode("utf-8", "backslashreplace")[:2000],
            "closed": is_closed}


def become_orphan():
    """A grandchild whose parent is gone, in a session of its own. The first
    process waits for what it writes.
    """
    ends = os.pipe()
    if os.fork() != 0:
        os.close(ends[1])
        os.wait()
        with open(ends[0], encoding="utf-8") as file:
            print(file.read(), end="")
        sys.exit(0)
    os.setsid()
    parent = os.getpid()
    if os.fork() != 0:
        os._exit(0)
    while os.getppid() == parent:
        time.sleep(0.001)
    os.dup2(ends[1], 1)


def main():
    what, path = sys.argv[1:]
    if path == "task":
        # Its directory is called after the attempt, as our temporary one.
        ident = os.environ["TMPDIR"].rsplit("-", 1)[1]
        path = os.path.join(os.environ["HOSTILE_SESSIONS"], ident, "m")
    if what in ("once", "orphan"):
        if what == "orphan":
            become_orphan()
        print(json.dumps(told(path, LINE, 1)), flush=True)
    else:
        print(json.dumps({name: told(path, words)
                          for name, words in WORDS.items()}), flush=True)


if __name__ == "__main__":
    main()
