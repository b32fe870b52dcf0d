"""Bounds that an operator may set, where only whole processes show them."""

import harness


def test_start_without_an_outbox(make_connector):
    """A dispatcher that starts beside an outbox which cannot waits for it
    limits.outbox_start, and not for ever.
    """
    connector = make_connector(limits={"outbox_start": "300ms"})
    connector.start()
    (connector.config_dir / "credentials.json").chmod(0o644)
    connector.kill("outbox")
    connector.wait_log("connectd-outbox: not started")
    killed = connector.kill("dispatcher")
    harness.wait_for(
        lambda: [p for p in connector.roles().get("dispatcher", [])
                 if p.pid != killed], what="another dispatcher")
    connector.sim.mention()
    connector.wait_line(type="dispatch", state="launching", timeout=10)


def test_nobody_is_to_be_told_of_a_long_turn(make_connector):
    """Every role takes a limits.still_running of 0, which disables it."""
    connector = make_connector(
        limits={"still_running": "0s"},
        script={"default": ["get", "ack", "reply", "complete"]}).start()
    event = connector.sim.mention()["event_id"]
    connector.wait_event(event, "completed")


def test_a_turn_that_is_told_of_after_all(make_connector):
    """The limit is set while the turn runs: it begins then."""
    connector = make_connector(
        limits={"still_running": "0s"},
        script={"default": ["get", "ack", "linger"]}).start()
    connector.sim.mention()
    connector.wait_line(type="dispatch", state="running")
    connector.config["limits"]["still_running"] = "50ms"
    connector.write_config()
    assert connector.connectctl("reload").returncode == 0
    harness.wait_for(lambda: connector.query(
        "SELECT 1 FROM attempts WHERE still_running > 0"), what="a notice")
