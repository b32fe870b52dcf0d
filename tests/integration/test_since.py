"""--since is an entry, and only until the run has saved a position."""

import harness


def test_intake_dies_after_the_first_position(make_connector):
    """Its successor goes on, and does not read all of it again."""
    connector = make_connector(arguments=["--since", "5"])
    connector.start()
    entered = [l for l in connector.logs.all if "entered at" in l]
    assert len(entered) == 1 and "--since" in entered[0], entered
    for role in ("intake", "ledger", "intake"):
        killed = connector.kill(role)
        harness.wait_for(
            lambda role=role, killed=killed: [
                p for p in connector.roles().get(role, [])
                if p.pid != killed], what="another " + role)
    connector.wait_log("entered at the saved position")
    connector.stop()
    connector.start()
    connector.wait_log("entered at --since")
