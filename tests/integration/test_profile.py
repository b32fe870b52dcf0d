"""Whose connector is meant by a command without -P."""

import json
import os
import re
import socket
import subprocess

import pytest

from surroundings import wait_for

SYSTEM = ["/etc/connectd", "/run/connectd"]

pytestmark = pytest.mark.skipif(
    any(os.path.exists(path) for path in SYSTEM),
    reason="a connector of the system has profiles here")


def run(connector, *words):
    return subprocess.run(
        [str(connector.bin / "connectctl"), *words], env=connector.environ,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20,
        check=False)


def test_the_command_of_a_notice(make_connector):
    """What was posted, as it stands there, typed where the connector runs."""
    connector = make_connector(script={"default": ["get", "ack", "exit:1"]})
    connector.start()
    event = connector.sim.mention()["event_id"]
    connector.wait_event(event, "completed")
    ask = re.compile(r"connectctl redispatch \d+")
    posted = wait_for(
        lambda: [found.group() for message in connector.sim.messages()
                 if (found := ask.search(message["content"]))],
        what="the notice")
    assert posted == ["connectctl redispatch %d" % event]
    connector.set_script({"default": ["get", "ack", "reply", "complete"]})
    done = subprocess.run(
        ["/bin/sh", "-c", posted[0]],
        env=dict(connector.environ, PATH=str(connector.bin)),
        capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    connector.wait_event(event, "completed")
    wait_for(lambda: connector.query(
        "SELECT 1 FROM task_events WHERE outcome = 'succeeded'"),
        what="the second run")


def test_a_profile_that_never_ran(make_connector):
    """It is known by its configuration; what nothing is said of is no
    profile.
    """
    connector = make_connector(profile="seldom")
    (connector.xdg_config / "connectd" / "empty").mkdir()
    (connector.xdg_config / "connectd" / "no name").mkdir()
    (connector.xdg_config / "connectd" / "no name" / "connect.json").touch()
    done = run(connector, "status")
    assert done.returncode == 69
    assert "the profile seldom" in done.stderr


def test_no_profile(make_connector):
    connector = make_connector()
    (connector.config_dir / "connect.json").unlink()
    done = run(connector, "--json", "redispatch", "12")
    error = json.loads(done.stdout)
    assert done.returncode == error["code"] == 64
    assert error["error"] == "usage"
    for home in [connector.config_dir.parent, connector.run_dir.parent, *SYSTEM]:
        assert str(home) in error["text"]
    assert "-P PROFILE" in error["text"]


def test_several_profiles(make_connector):
    """One has a configuration, of the other there is a socket alone. A name
    that is given is never doubted.
    """
    connector = make_connector(profile="one")
    other = connector.run_dir.parent / "another"
    other.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as there:
        there.bind(str(other / "control.sock"))
    done = run(connector, "redispatch", "12")
    assert done.returncode == 64
    assert "2 profiles are here, name one with -P PROFILE: another, one" in (
        done.stderr)
    assert run(connector, "-P", "one", "redispatch", "12").returncode == 69
    assert run(connector, "version").returncode == 0
    # Once it is gone nothing is in doubt.
    (other / "control.sock").unlink()
    assert run(connector, "redispatch", "12").returncode == 69


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user's directory")
def test_a_directory_that_anybody_made(make_connector):
    """As for a person in /tmp: it names nothing."""
    connector = make_connector(profile="one")
    other = connector.run_dir.parent / "another"
    other.mkdir(parents=True)
    (other / "control.sock").touch()
    os.chown(connector.run_dir.parent, 65534, 65534)
    done = run(connector, "redispatch", "12")
    assert done.returncode == 69
    assert "the profile one" in done.stderr
