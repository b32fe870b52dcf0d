"""What an operator is told: the word, the path, and what ends the trouble."""

import json
import subprocess

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


@pytest.mark.parametrize("where", [">&-", ">/dev/full"])
def test_output_that_goes_nowhere(make_connector, where):
    """It is said; and nothing of it goes into the control socket, whose
    number a closed standard output would have had.
    """
    connector = make_connector().start()
    done = subprocess.run(
        ["/bin/sh", "-c", "exec %s/connectctl -P %s version %s" % (
            connector.bin, connector.profile, where)],
        env=connector.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "standard output" in done.stderr
    assert connector.connectctl("version").returncode == 0


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
    connector = make_connector().start().wait_entered()
    connector.route.chmod(0)
    check_not_started(connector, "%s: Permission denied" % connector.route)


def test_a_route_that_is_a_link(make_connector):
    connector = make_connector().start().wait_entered()
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
    connector.start()

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
