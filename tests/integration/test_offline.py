"""connectctl when nothing runs: the ledger's file answers, read-only, through
`connectd-ledger --inspect`, and nothing is made that was not there.
"""

import json
import os
import shutil
import subprocess

import pytest


def seen(connector):
    state = connector.state_dir
    return sorted((entry.name, entry.stat().st_size, entry.stat().st_mtime_ns)
                  for entry in os.scandir(state))


def worked_connector(make_connector):
    connector = make_connector().start()
    event = connector.sim.mention()["event_id"]
    connector.wait_event(event, "completed")
    connector.wait_line(type="dispatch", state="ended")
    return connector, event


def check_answers(connector, event):
    before = seen(connector)
    done = connector.connectctl("--json", "status")
    assert done.returncode == 69
    status = json.loads(done.stdout)["data"]["status"]
    assert status["dispatches"][0]["events"][0]["event_id"] == event
    assert status["dispatches"][0]["events"][0]["outcome"] == "succeeded"
    assert connector.connectctl("events").returncode == 0
    shown = connector.connectctl("--json", "show", str(event))
    assert shown.returncode == 0
    assert str(event) in shown.stdout
    missing = connector.connectctl("--json", "show", "424242")
    assert missing.returncode == 1
    assert missing.stderr == ""
    assert json.loads(missing.stdout)["error"] == "not_found"
    assert connector.connectctl("stop").returncode == 69
    assert connector.connectctl("restart", "intake").returncode == 69
    assert seen(connector) == before


def test_after_an_orderly_stop(make_connector):
    connector, event = worked_connector(make_connector)
    connector.stop()
    check_answers(connector, event)


def test_after_a_crash(make_connector):
    """What was committed last stands in the write-ahead log alone."""
    connector, event = worked_connector(make_connector)
    connector.kill()
    connector.wait_end()
    assert any(name.endswith("-wal") and size > 0
               for name, size, _ in seen(connector))
    check_answers(connector, event)


def check_copy(connector, event, names):
    copy = connector.folder.make("copy", 0o700)
    for name in names:
        shutil.copy(connector.state_dir / name, copy)
        (copy / name).chmod(0o600)
    done = subprocess.run(
        [str(connector.bin / "connectd-ledger"), "--inspect", str(copy),
         "show", str(event)], stdout=subprocess.PIPE, check=False)
    assert done.returncode == 0
    assert str(event).encode() in done.stdout
    assert sorted(os.listdir(copy)) == sorted(names)


@pytest.mark.skipif(os.geteuid() != 0, reason="SQLite chowns as root")
def test_by_root_after_a_crash_of_roots_own(make_connector):
    """A WAL that root only reads is not chowned, and that is no death."""
    connector, event = worked_connector(make_connector)
    connector.kill()
    connector.wait_end()
    check_copy(connector, event, ["ledger.db", "ledger.db-wal",
                                  "ledger.db-shm"])


def test_of_a_copy_without_its_index(make_connector):
    """What is in the log is shown, and the -shm is not made for that."""
    connector, event = worked_connector(make_connector)
    connector.kill()
    connector.wait_end()
    check_copy(connector, event, ["ledger.db", "ledger.db-wal"])


READS = [["status"], ["events"], ["show", "1"]]
OTHERS = [["events", "-f"], ["stop"], ["restart", "intake"], ["reload"],
          ["version"]]
DECISIONS = [["redispatch", "1"], ["discard", "1"],
             ["resolve", "1", "abandon"], ["settle", "att_1", "--gone"]]


def check_refused(connector, commands, code, text):
    """Each of the commands with that code and those words, and as JSON."""
    for words in commands:
        done = connector.connectctl(*words)
        assert (done.returncode, done.stdout) == (code, "")
        assert done.stderr == "connectctl: %s\n" % text
        done = connector.connectctl("--json", *words)
        said = json.loads(done.stdout)
        assert done.returncode == said["code"] == code
        assert said["text"] == text


def nobody(connector):
    return ("no connector of the profile demo answers: %s/control.sock: No "
            "such file or directory" % connector.run_dir)


def check_needs_connector(connector):
    """What is refused for want of one; a decision says that none was made."""
    check_refused(connector, OTHERS, 69, nobody(connector))
    check_refused(connector, DECISIONS, 69, "%s; nothing is decided: start the"
                  " connector (connectd run --profile demo, or its service) and"
                  " ask again" % nobody(connector))


def test_before_the_first_start(make_connector):
    connector = make_connector()
    check_refused(connector, READS, 69, "%s; it has not run yet: %s: No such "
                  "file or directory" % (nobody(connector),
                                         connector.state_dir))
    check_needs_connector(connector)
    assert not connector.state_dir.exists()


def test_without_a_configuration(make_connector):
    """It is missed by those that need it: to find the ledger's file."""
    connector = make_connector()
    connect_json = connector.config_dir / "connect.json"
    connect_json.unlink()
    check_refused(connector, READS, 78, "%s; %s: No such file or directory" % (
        nobody(connector), connect_json))
    check_needs_connector(connector)


def test_without_the_ledgers_program(make_connector):
    """An exit code, whatever went wrong below."""
    connector = make_connector().start()
    connector.stop()
    (connector.bin / "connectd-ledger").unlink()
    for words in READS:
        done = connector.connectctl(*words)
        assert done.returncode == 77
        assert "connectd-ledger" in done.stderr


def spoil(path, name):
    """The file so that it cannot be read."""
    if name == "loose":
        path.chmod(0o644)
        return
    whole = path.read_bytes()
    kept = whole[:4096] if name == "damaged" else b""
    path.write_bytes(kept + b"\x55" * (len(whole) - len(kept)))


@pytest.mark.parametrize("name, code, words", [
    ("garbage", 77, "ledger.db"), ("loose", 77, "ledger.db"),
    ("damaged", 75, "malformed")])
def test_a_ledger_that_cannot_be_read(make_connector, name, code, words):
    """Why is said where everything is: also in the JSON."""
    connector, _ = worked_connector(make_connector)
    connector.stop()
    spoil(connector.state_dir / "ledger.db", name)
    for read in READS:
        done = connector.connectctl("--json", *read)
        said = json.loads(done.stdout)
        assert (done.returncode, said["code"], done.stderr) == (code, code, "")
        why = said["text"].split("the ledger could not be read: ")[1]
        assert words in why, said
        done = connector.connectctl(*read)
        assert done.stderr == "connectctl: %s\n" % said["text"]
