"""Content that the operator does not want to keep is dropped by the running
ledger, soon after a start that missed the night.
"""

import sqlite3

from harness import wait_for

COUNT = 300
OLD = "2020-01-01T00:00:00.000000000Z"


def make_old(connector):
    """Records that ended long ago, in a ledger of that age."""
    connection = sqlite3.connect(connector.state_dir / "ledger.db")
    with connection:
        connection.execute("UPDATE schema_migrations SET applied_at = ?",
                           (OLD,))
        connection.executemany(
            "INSERT INTO events (id, state, reason, lane, event_type, kind,"
            " action, bucket_id, creator_id, recording_id, created_at,"
            " seen_at, updated_at, details) VALUES (?, 'seen', '', 'poll',"
            " 'x', 'x', 'x', 1, 1, 1, ?, ?, ?, '{}')",
            [(i, OLD, OLD, OLD) for i in range(1, COUNT + 1)])
        connection.execute("UPDATE events SET state = 'discarded',"
                           " reason = 'not_addressed'")
    connection.close()


def dropped(connector):
    return connector.query("SELECT count(*) AS n FROM events"
                           " WHERE content_dropped = 1"
                           " AND details IS NULL")[0]["n"]


def test_a_missed_night(make_connector):
    connector = make_connector()
    connector.start()
    connector.stop()
    make_old(connector)
    connector.start()
    assert connector.status()["data"]["status"].get("retention") is None
    assert dropped(connector) == 0
    connector.config["retention"] = {"discarded": "24h"}
    connector.write_config()
    assert connector.connectctl("reload").returncode == 0
    wait_for(lambda: dropped(connector) == COUNT, what="the night's work")
    connector.wait_log("the content of %d records was dropped" % COUNT)
    told = connector.status()["data"]["status"]["retention"]
    assert told["cleared"] == COUNT
    connector.stop()
    connector.start()
    again = connector.status()["data"]["status"]["retention"]
    assert again == told
