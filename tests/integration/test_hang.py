"""A role that hangs while nothing is outstanding is ended once somebody needs
it, without that anybody asks for status; and idle means idle.
"""

import pathlib
import time

import pytest

import harness
from harness import signal, wait_for

LIMITS = {"watchdog": "1s"}
# Some ticks of the watchdog, which comes three times in its bound.
QUIET_S = 1.5


def sleeps(pid):
    """How often it has gone to sleep so far."""
    text = pathlib.Path("/proc/%d/status" % pid).read_text()
    return int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0])


def wait_idle(connector):
    """The supervisor is not woken any more."""
    seen = [None, 0]

    def is_quiet():
        now = sleeps(connector.process.pid)
        if now != seen[0]:
            seen[:] = now, time.monotonic()
        return time.monotonic() - seen[1] > QUIET_S
    wait_for(is_quiet, 30, "an idle supervisor", every=0.05)


def hang(connector, role):
    wait_idle(connector)
    connector.kill(role, signal.SIGSTOP)


def wait_ended(connector, role):
    wait_for(lambda: [line for line in connector.logs.all
                      if "connectd-%s (" % role in line and
                      "does not answer" in line], what="its end")


@pytest.mark.parametrize("role", ["ledger", "dispatcher"])
def test_a_mention_needs_it(make_connector, role):
    """intake waits for the ledger. What the ledger tells the dispatcher is
    not answered, but a record has moved.
    """
    connector = make_connector(limits=LIMITS).start()
    hang(connector, role)
    event_id = connector.sim.mention()["event_id"]
    wait_ended(connector, role)
    connector.wait_event(event_id, "completed")


def without_route(make_connector):
    """The connector, not started, and the projects it should have had."""
    connector = make_connector(limits=LIMITS)
    projects = connector.config["projects"]
    connector.config["projects"] = {"777": projects[str(harness.PROJECT)]}
    connector.write_config()
    return connector, projects


def test_a_holding_reply_needs_the_outbox(make_connector):
    connector, _ = without_route(make_connector)
    connector.start()
    hang(connector, "outbox")
    event_id = connector.sim.mention()["event_id"]
    connector.wait_event(event_id, "blocked")
    wait_ended(connector, "outbox")
    wait_for(lambda: connector.query(
        "SELECT 1 FROM outbox WHERE state = 'sent'"), what="the reply")


def test_a_redispatch_needs_intake(make_connector):
    """A blocked record is decided anew."""
    connector, projects = without_route(make_connector)
    connector.start()
    event_id = connector.sim.mention()["event_id"]
    connector.wait_event(event_id, "blocked")
    connector.config["projects"] = projects
    connector.write_config()
    connector.wait_log("in force, generation 2")
    hang(connector, "intake")
    connector.connectctl("redispatch", str(event_id))
    wait_ended(connector, "intake")
    connector.wait_event(event_id, "completed")
