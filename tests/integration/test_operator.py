"""What an operator is told: the word, the path, and what ends the trouble."""

import json
import os
import socket
import struct
import subprocess
import threading

import pytest

from harness import wait_for


@pytest.mark.parametrize("words, named", [
    (["frob"], "frob"),
    (["-z", "status"], "-z"),
    (["show", "x"], "x"),
    (["show", "9223372036854775808"], "9223372036854775808"),
    (["resolve", "2", "sent", "99999999999999999999"], "POSTED_ID"),
    (["-n", "0", "events"], "-n"),
    (["restart"], "restart"),
    ([], "no command"),
])
def test_wrong_words_as_json(make_connector, words, named):
    """In the form that was asked for, wherever the flag stands."""
    done = make_connector().connectctl(*words, "--json")
    assert done.returncode == 64
    assert done.stderr == ""
    error = json.loads(done.stdout)
    assert error["error"] == "usage"
    assert error["code"] == 64
    assert named in error["text"]


def test_a_token_in_the_environment(make_connector):
    """What may read Basecamp does not act as somebody else; whatever it
    says, and before a connector is looked for.
    """
    connector = make_connector()
    connector.environ["BASECAMP_TOKEN"] = "not-a-real-token"
    done = connector.connectctl("redispatch", "1")
    assert done.returncode == 64
    assert "BASECAMP_TOKEN" in done.stderr
    assert "not-a-real-token" not in done.stderr
    assert connector.connectctl("discard", "1").returncode == 69
    connector.environ["BASECAMP_TOKEN"] = ""
    assert connector.connectctl("redispatch", "1").returncode == 64


def under_shell(connector, words, where):
    return subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" ' + where, "sh",
         str(connector.bin / "connectctl"), "-P", connector.profile, *words],
        env=connector.environ, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=20, check=False)


@pytest.mark.parametrize("where", [">&-", ">/dev/full"])
def test_output_that_goes_nowhere(make_connector, where):
    """What was asked for is done, and it is said that not all was said."""
    connector = make_connector().start()
    done = under_shell(connector, ["version"], where)
    assert done.returncode == 1
    assert "standard output" in done.stderr
    assert connector.connectctl("version").returncode == 0


class Recorder:
    """In a connector's place: one client, one answer, every byte that came
    from it until it closed, and what its standard streams were.
    """

    def __init__(self, path, answer):
        path.parent.mkdir(parents=True)
        self.answer = answer
        self.came = b""
        self.streams = None
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.listener.settimeout(20)
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        peer, _ = self.listener.accept()
        with peer:
            peer.settimeout(20)
            peer.sendall(b'{"connectd":1,"version":"0"}\n')
            while b"\n" not in self.came:
                self.came += peer.recv(65536)
            pid = struct.unpack("3i", peer.getsockopt(
                socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
            self.streams = [os.readlink("/proc/%d/fd/%d" % (pid, fd))
                            for fd in range(3)]
            peer.sendall(json.dumps(self.answer).encode() + b"\n")
            while more := peer.recv(65536):
                self.came += more

    def join(self):
        self.thread.join(30)
        self.listener.close()


DECIDED = {"ok": True, "data": {"state": "admitted", "attempt_id": None}}
REFUSED = {"ok": False, "error": "failed", "text": "it cannot be done"}


@pytest.mark.parametrize("closed", [
    "<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words, answer", [
    (["status"], REFUSED),
    (["redispatch", "1"], DECIDED),
    (["--json", "redispatch", "1"], DECIDED),
    (["redispatch", "1"], REFUSED),
])
def test_what_is_closed_is_not_the_socket(make_connector, words, answer,
                                          closed):
    """A standard stream that was closed would be the number of the control
    socket, and what is printed would be a request.
    """
    connector = make_connector()
    recorder = Recorder(connector.run_dir / "control.sock", answer)
    under_shell(connector, words, closed)
    recorder.join()
    assert json.loads(recorder.came)["command"] in words  # and nothing else
    assert len(recorder.streams) == 3
    assert not [name for name in recorder.streams if name.startswith("socket:")]


def test_directories_are_made(make_connector):
    """Only what lies above connectd's own directories must be there."""
    connector = make_connector()
    run = connector.folder.path / "run-made"
    state = connector.folder.path / "state-made"
    connector.environ["RUNTIME_DIRECTORY"] = str(run)
    connector.environ["STATE_DIRECTORY"] = str(state)
    connector.start()
    assert (run / connector.profile / "control.sock").exists()
    assert list(state.glob("999-*/ledger.db"))


@pytest.mark.parametrize("name", [
    "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
    "STATE_DIRECTORY", "RUNTIME_DIRECTORY", "CACHE_DIRECTORY"])
def test_a_relative_directory(make_connector, name):
    """Not passed over: what was written would quietly lie elsewhere."""
    connector = make_connector()
    connector.environ[name] = "some/where"
    for words in (["connectd", "run", "--profile", "demo"],
                  ["connectctl", "-P", "demo", "status"]):
        done = subprocess.run(
            [str(connector.bin / words[0]), *words[1:]],
            env=connector.environ, capture_output=True, text=True,
            timeout=20, check=False)
        assert done.returncode == 78
        assert name in done.stderr
        assert "some/where" in done.stderr


def check_not_started(connector, text):
    event = connector.sim.mention()["event_id"]
    connector.wait_event(event, "blocked")
    said = [line for line in connector.logs.all if "worker not started" in line]
    assert len(said) == 2  # it was tried twice, and each is said once
    assert all(line.endswith("worker not started: " + text) for line in said)


def test_a_route_that_the_worker_may_not_enter(make_connector):
    connector = make_connector().start()
    connector.route.chmod(0)
    check_not_started(connector, "%s: Permission denied" % connector.route)


def test_a_route_that_is_a_link(make_connector):
    connector = make_connector().start()
    real = connector.route.rename(connector.route.with_name("elsewhere"))
    connector.route.symlink_to(real)
    check_not_started(connector, "%s: a symbolic link; name the directory "
                      "itself" % connector.route)


def test_a_refusal_of_the_wrong_endpoint(make_connector):
    """It says nothing about the right one, and lasts for that one alone."""
    connector = make_connector()
    right = connector.sim.url + "/oauth/tokens"
    connector.write_credentials(token_endpoint=right + "?wrong")
    connector.sim.fault("POST /oauth/tokens", status=401, times=1,
                        body={"error": "invalid_client"})
    connector.start(entered=False)

    def outbox(name):
        return next(child["values"].get(name, "")
                    for child in connector.status()["data"]["children"]
                    if child["role"] == "outbox")

    wait_for(lambda: outbox("credential") == "refused for good",
             what="the refusal")
    assert "client_secret" in outbox("trouble")
    assert connector.connectctl("status").returncode == 1
    connector.write_credentials(token_endpoint=right)
    assert connector.connectctl("reload").returncode == 0
    wait_for(lambda: outbox("credential") == "good", what="a token")
    wait_for(lambda: connector.connectctl("status").returncode == 0,
             what="all being well")
