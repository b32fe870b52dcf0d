"""The orderly stop: whatever the graces, each live attempt is ended and
settled within limits.stop_bound (traps 31, 33 and 41 of the dispatcher).
"""

import subprocess

import pytest

import processes
from harness import signal, wait_for

STOPPED = 143
BOUND = 8
# Each of them alone is more than the whole stop may take.
GRACES = {"stop_bound": "%ds" % BOUND, "cancel_grace": "5m",
          "close_grace": "1m", "mcpd_drain": "1m", "outbox_flush": "1m"}


def begin(make_connector, *steps, **arguments):
    """A connector, an event and its worker, deaf to all but SIGKILL by now."""
    connector = make_connector(
        script={"default": ["get", "ack", *steps, "linger-deaf"]},
        **arguments).start()
    event_id = connector.sim.mention()["event_id"]
    wait_for(lambda: connector.agent_records("deaf"), what="a deaf agent")
    return connector, event_id, connector.roles()["worker"][0]


def stop(connector):
    connector.process.send_signal(signal.SIGTERM)
    assert connector.wait_end(BOUND + 20) == STOPPED


def ends(connector):
    return [(row["state"], row["stop_reason"]) for row in connector.query(
        "SELECT state, stop_reason FROM attempts")]


@pytest.mark.parametrize("cgroups", [True, False])
def test_a_deaf_worker_has_no_more_grace_than_the_stop(make_connector,
                                                       cgroups):
    connector, _, worker = begin(make_connector, cgroups=cgroups, limits=GRACES)
    stop(connector)
    assert not processes.is_running(worker)
    assert ends(connector) == [("ended", "shutdown")]
    assert not [line for line in connector.logs.all
                if "in time" in line or "took too long" in line]


def test_a_turn_that_was_cut_before_is_hurried(make_connector):
    """A person took its task away: it has five minutes to end by itself."""
    connector, event_id, worker = begin(make_connector, "fail", limits=GRACES)
    with subprocess.Popen(
            [str(connector.bin / "connectctl"), "-P", connector.profile,
             "redispatch", str(event_id)], env=connector.environ,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL):
        connector.wait_log("its turn is interrupted")
        stop(connector)
    assert not processes.is_running(worker)
    assert ends(connector) == [("ended", "lost")]


@pytest.fixture
def stopping(make_connector):
    """By connectctl, not by a signal; and its worker, which is deaf."""
    connector, _, worker = begin(make_connector, limits=dict(
        GRACES, cancel_grace="2s", close_grace="500ms"))
    with subprocess.Popen(
            [str(connector.bin / "connectctl"), "-P", connector.profile,
             "stop"], env=connector.environ, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        connector.wait_log("stopping")
        yield connector, worker
    processes.send_signal(worker, signal.SIGKILL)


def test_a_first_signal_after_connectctl_stop(stopping):
    """None came before it: the stop goes on in order, and is a signal's."""
    connector, worker = stopping
    stop(connector)
    assert not processes.is_running(worker)
    assert ends(connector) == [("ended", "shutdown")]


def test_a_second_signal_after_connectctl_stop(stopping):
    connector, worker = stopping
    connector.process.send_signal(signal.SIGTERM)
    connector.wait_log("stopping: ")
    connector.process.send_signal(signal.SIGINT)
    assert connector.wait_end() == 128 + signal.SIGINT
    assert processes.is_running(worker)
    assert ends(connector) == [("running", "")]


def test_no_time_at_all(make_connector):
    """Nothing can be settled in time: at the least nothing of it runs on."""
    connector, event_id, worker = begin(
        make_connector, limits=dict(GRACES, stop_bound="100ms"))
    stop(connector)
    wait_for(lambda: not processes.is_running(worker), what="the worker's end")
    connector.start()
    connector.wait_event(event_id, "completed")
    assert ends(connector)[0][0] == "ended"
