"""What is wrong with files, words, directories and users: each time a clear
error that names it, an exit code of docs/exit-codes.md or a state in
`status`, and nothing made or changed.
"""

import copy
import json
import os
import pathlib
import pwd
import subprocess

import pytest

import harness

# docs/exit-codes.md
FAILED, USAGE, NOT_RUNNING, BUSY, REFUSED, CONFIG = 1, 64, 69, 73, 77, 78

def run(connector, *arguments, environ=None, prefix=()):
    """One `connectd run` that is expected to end by itself."""
    merged = dict(connector.environ, **(environ or {}))
    return subprocess.run(
        [*prefix, str(connector.bin / "connectd"), "run", "--profile",
         connector.profile, *arguments], env=merged, cwd="/",
        stdin=subprocess.DEVNULL, capture_output=True, timeout=30,
        check=False, text=True)


def check_refused(connector, done, code, *words):
    """It ended with the code, one line says why, and nothing was made."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    first = done.stderr.splitlines()[0]
    assert first.startswith("connectd: "), first
    for word in words:
        assert str(word) in first, (word, first)
    assert not connector.state_dir.exists()
    assert not (connector.run_dir / "control.sock").exists()


# ---- connect.json ----------------------------------------------------------

def change(*path, to):
    """A function that sets or (to None) removes one member."""
    def apply(config):
        for name in path[:-1]:
            config = config[name]
        if to is None:
            del config[path[-1]]
        else:
            config[path[-1]] = to
    return apply


# name -> (what is done to it, the words that the error has)
DOCUMENTS = {
    "unknown key": (change("nonsense", to=1), ["nonsense: unknown key"]),
    "unknown key of the worker": (change("worker", "nonsense", to=1),
                                  ["worker.nonsense: unknown key"]),
    "unknown limit": (change("limits", "nonsense", to="1s"),
                      ["limits.nonsense: unknown key"]),
    "limit out of range": (change("limits", "feed_poll", to="1ms"),
                           ["limits.feed_poll", "20ms"]),
    "limit without a unit": (change("limits", "feed_poll", to="1"),
                             ["limits.feed_poll"]),
    "missing key": (change("agent", to=None), ["agent: missing"]),
    "missing operator": (change("trust", "operator_id", to=None),
                         ["trust.operator_id: missing"]),
    "wrong type": (change("concurrency", to="2"), ["concurrency"]),
    "another version": (change("version", to=2), ["version"]),
    "another profile": (change("profile", to="other"), ["profile"]),
    "account with a zero": (change("account_id", to="0999"), ["account_id"]),
    "trust": (change("trust", "mode", to="everybody"), ["trust.mode"]),
    "project": (change("projects", to={"x": {"path": "/tmp"}}),
                ["projects.x"]),
    "relative route": (change("projects", to={"1": {"path": "tmp"}}),
                       ["projects.1.path", "absolute"]),
    "route with dots": (change("projects", to={"1": {"path": "/tmp/../x"}}),
                        ["projects.1.path", "clean"]),
    "driver": (change("worker", "driver", to="nano"), ["worker.driver"]),
    "driver to come": (change("worker", "driver", to="codex"),
                       ["worker.driver", "not in this version"]),
    "engine": (change("engine", to={"enabled": True}), ["engine"]),
    "user": (change("worker", "user", to="no-such-user"), ["worker.user"]),
    "user root": (change("worker", "user", to="root"), ["worker.user"]),
}
AS_ROOT = {
    "no user": (change("worker", "user", to=None), ["worker.user: missing"]),
    "user of a role": (change("worker", "user", to="_connectd-mcp"),
                       ["worker.user"]),
}
AS_A_PERSON = {
    "no wall": (change("worker", "confine", to="none"), ["worker.confine"]),
}
DOCUMENTS.update(AS_ROOT if harness.is_root() else AS_A_PERSON)

TEXTS = {
    "empty": ("", "line 1"),
    "no object": ("[]", "connect.json"),
    "half": ('{"version":1,\n "profile":', "line 2"),
    "no json": ("version = 1\n", "line 1"),
    "something after it": (None, "something after"),
    "a key twice": (None, '"version" is there twice'),
    "not utf-8": ('{"version":1,\n"\udcff":1}', "line 2"),
    "nul": ('{"version":1}\0', "connect.json"),
    "too long": ('{"version":1}' + " " * (2 << 20), "larger than"),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_document(make_connector, name):
    apply, words = DOCUMENTS[name]
    connector = make_connector()
    config = copy.deepcopy(connector.config)
    apply(config)
    connector.write_config(json.dumps(config, indent=1))
    check_refused(connector, run(connector), CONFIG,
                  connector.config_dir / "connect.json", "line ", *words)


@pytest.mark.parametrize("name", TEXTS)
def test_text(make_connector, name):
    text, words = TEXTS[name]
    connector = make_connector()
    good = json.dumps(connector.config)
    if name == "something after it":
        text = good + " x"
    elif name == "a key twice":
        text = good.replace("{", '{"version":1,', 1)
    path = connector.config_dir / "connect.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    check_refused(connector, run(connector), CONFIG, path, words)


def test_routes_of_our_own(make_connector):
    """A worker is not sent into what is connectd's."""
    connector = make_connector()
    for folder in (connector.xdg_state, connector.state_dir.parent,
                   connector.config_dir, connector.run_dir):
        config = copy.deepcopy(connector.config)
        config["projects"]["1"] = {"path": str(folder)}
        connector.write_config(json.dumps(config))
        check_refused(connector, run(connector), CONFIG, "projects.1.path",
                      "connectd's own directory")


def make_unreadable(path):
    """Root reads what it may not: for root it is a directory."""
    if harness.is_root():
        path.unlink()
        path.mkdir()
    else:
        path.chmod(0)


def make_link(path):
    target = path.with_suffix(".real")
    path.rename(target)
    path.symlink_to(target)


def make_fifo(path):
    path.unlink()
    os.mkfifo(path, 0o600)


def give_away(path):
    """To somebody else, as root; a person can only be given nothing."""
    os.chown(path, pwd.getpwnam(harness.WORKER_USER).pw_uid, -1)


FILES = {
    "missing": (lambda path: path.unlink(), "No such file"),
    "unreadable": (make_unreadable, ""),
    "a link": (make_link, "symbolic link"),
    "a fifo": (make_fifo, "not a regular file"),
    "writable by all": (lambda path: path.chmod(0o666), "mode 0666"),
    "writable by the group": (lambda path: path.chmod(0o620), "mode 0620"),
}
if harness.is_root():
    FILES["of another user"] = (give_away, "belongs to uid")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("file", ["connect.json", "credentials.json"])
def test_file(make_connector, file, name):
    spoil, words = FILES[name]
    connector = make_connector()
    path = connector.config_dir / file
    spoil(path)
    check_refused(connector, run(connector), CONFIG, path, words)


def test_readable_credentials(make_connector):
    """connect.json may be read by others, credentials.json not."""
    connector = make_connector()
    (connector.config_dir / "connect.json").chmod(0o644)
    path = connector.config_dir / "credentials.json"
    path.chmod(0o640)
    check_refused(connector, run(connector), CONFIG, path, "mode 0640")
    path.chmod(0o600)
    connector.start()


def test_directory_of_the_files(make_connector):
    connector = make_connector()
    for folder in (connector.config_dir, connector.config_dir.parent):
        folder.chmod(0o770)
        check_refused(connector, run(connector), CONFIG, folder, "0770")
        folder.chmod(0o700)
    connector.start()


CREDENTIALS = {
    "no id": ({"client_id": None}, "client_id: missing"),
    "empty id": ({"client_id": ""}, "client_id"),
    "no secret": ({"client_secret": None}, "client_secret: missing"),
    "empty secret": ({"client_secret": ""}, "client_secret: empty"),
    "no endpoint": ({"token_endpoint": None}, "token_endpoint: missing"),
    "endpoint elsewhere in clear": (
        {"token_endpoint": "http://example.com/oauth/tokens"},
        "token_endpoint"),
    "endpoint of another kind": ({"token_endpoint": 5}, "token_endpoint"),
    "unknown key": ({"nonsense": 1}, "nonsense: unknown key"),
}


@pytest.mark.parametrize("name", CREDENTIALS)
def test_credentials(make_connector, name):
    """The error has the key, and nothing of what is in the file."""
    changes, words = CREDENTIALS[name]
    connector = make_connector()
    path = connector.config_dir / "credentials.json"
    members = json.loads(path.read_text())
    members.update(changes)
    members = {k: v for k, v in members.items() if v is not None}
    path.write_text(json.dumps(members))
    done = run(connector)
    check_refused(connector, done, CONFIG, path, words)
    assert "not-a-real-secret" not in done.stderr


# ---- words and environment -------------------------------------------------

@pytest.mark.parametrize("arguments, word", [
    (["--nonsense"], "--nonsense"), (["word"], "word"),
    (["--since", "x"], "--since"), (["--project", "0"], "--project"),
    (["--driver", "nano"], "--driver"), (["--profile", "../x"], "--profile"),
    (["--hold"], "--hold"), (["--shadow"], "--shadow")])
def test_words(make_connector, arguments, word):
    connector = make_connector()
    check_refused(connector, run(connector, *arguments), USAGE, word)


@pytest.mark.parametrize("name, value", [
    ("BASECAMP_TOKEN", "something"),
    ("BASECAMP_BASE_URL", "http://example.com"),
    ("BASECAMP_BASE_URL", "nonsense")])
def test_environment(make_connector, name, value):
    connector = make_connector()
    done = run(connector, environ={name: value})
    check_refused(connector, done, USAGE, name)
    assert "something" not in done.stderr


# ---- directories, lock, users ----------------------------------------------

def test_state_directory_that_is_none(make_connector):
    """Relative, not there, a file, open to all: nothing is made in it."""
    connector = make_connector()
    make = connector.folder.make
    file = connector.folder.path / "a-file"
    file.write_text("")
    wide = make("wide", 0o777)
    for value, code, word in (
            ("state", CONFIG, "XDG_STATE_HOME"),
            (str(connector.folder.path / "not-there"), REFUSED, "not-there"),
            (str(file), REFUSED, "a-file"), (str(wide), REFUSED, wide)):
        done = run(connector, environ={"XDG_STATE_HOME": value})
        check_refused(connector, done, code, word)
    assert list(wide.iterdir()) == []


def prepared_state(connector, name):
    """A state root with a mode that connectd would have given it."""
    root = connector.folder.make(name)
    where = root / "basecamp" / "connect"
    where.mkdir(parents=True)
    for folder in (root / "basecamp", where):
        folder.chmod(0o711 if harness.is_root() else 0o700)
    return root, where / connector.state_dir.name


def test_state_directory_that_is_not_canonical(make_connector):
    """Another place by a link, or open to others: refused by name."""
    connector = make_connector()
    target = connector.folder.make("target", 0o700)
    root = connector.folder.make("linked-root")
    (root / "basecamp").symlink_to(target)
    done = run(connector, environ={"XDG_STATE_HOME": str(root)})
    check_refused(connector, done, REFUSED, root / "basecamp",
                  "not a real directory")
    root, state = prepared_state(connector, "linked-state")
    state.symlink_to(target)
    done = run(connector, environ={"XDG_STATE_HOME": str(root)})
    check_refused(connector, done, REFUSED, state, "not a real directory")
    root, state = prepared_state(connector, "open-state")
    state.mkdir()
    (state / "something").write_text("")
    state.chmod(0o755)
    done = run(connector, environ={"XDG_STATE_HOME": str(root)})
    check_refused(connector, done, REFUSED, state)
    assert list(target.iterdir()) == []


def test_state_directory_by_another_way(make_connector):
    """Dots and slashes are resolved; a link that only a trusted one could
    have made is another name for the same place, with the same lock.
    """
    connector = make_connector()
    link = connector.folder.path / "another-name"
    link.symlink_to(connector.xdg_state)
    connector.start()
    other = connector.folder.make("run2", 0o755 if harness.is_root()
                                  else 0o700)
    for value in (str(link), str(connector.xdg_state) + "/",
                  str(connector.xdg_state / ".." / "state")):
        done = run(connector, environ={"XDG_STATE_HOME": value,
                                       "XDG_RUNTIME_DIR": str(other)})
        assert done.returncode == BUSY, (value, done.stderr)
        assert "pid %d" % connector.process.pid in done.stderr
    assert connector.status()


def test_inspected_directory_that_is_none(make_connector):
    """What is asked of a ledger's file while nothing runs: nothing is made,
    and the directory is named.
    """
    connector = make_connector().start()
    connector.stop()
    connector.process = None
    program = str(connector.bin / "connectd-ledger")
    nowhere = connector.folder.path / "999-5"
    make = connector.folder.make
    for folder, code in ((make("open", 0o755), REFUSED),
                         (make("empty", 0o700), NOT_RUNNING),
                         (nowhere, NOT_RUNNING)):
        done = subprocess.run(
            [program, "--inspect", str(folder), "status"], cwd="/",
            env={name: value for name, value in os.environ.items()
                 if name.endswith("SAN_OPTIONS")},
            capture_output=True, check=False, text=True, timeout=20)
        assert done.returncode == code, done
        assert str(folder) in done.stderr and done.stdout == ""
    assert not nowhere.exists()
    assert list((connector.folder.path / "empty").iterdir()) == []


def test_lock(make_connector):
    """The one that runs goes on, and is named."""
    connector = make_connector().start()
    done = run(connector)
    assert done.returncode == BUSY
    assert "pid %d" % connector.process.pid in done.stderr.splitlines()[-1]
    connector.sim.mention()
    connector.wait_line(type="dispatch", state="ended")


def test_lock_that_is_no_file_of_ours(make_connector):
    connector = make_connector().start()
    connector.stop()
    connector.process = None
    path = next(connector.state_dir.parent.glob("*.lock"))
    path.chmod(0o644)
    done = run(connector)
    assert done.returncode == REFUSED and str(path) in done.stderr
    path.unlink()
    path.symlink_to("/dev/null")
    done = run(connector)
    assert done.returncode == REFUSED and str(path) in done.stderr


if harness.is_root():  # as a person there are no role users
    @pytest.mark.parametrize("user", [
        "_connectd-ledger", "_connectd-intake", "_connectd-disp",
        "_connectd-outbox", "_connectd-mcp"])
    def test_missing_role_user(make_connector, user):
        """In a mount namespace whose passwd does not have it."""
        connector = make_connector()
        lines = pathlib.Path("/etc/passwd").read_text().splitlines(True)
        passwd = connector.folder.path / "passwd"
        passwd.write_text("".join(line for line in lines
                                  if not line.startswith(user + ":")))
        done = run(connector, prefix=[
            "/usr/bin/unshare", "--mount", "/bin/sh", "-c",
            '/bin/mount --bind "$0" /etc/passwd && exec "$@"', str(passwd)])
        check_refused(connector, done, CONFIG, user,
                      "sysusers.d/connectd.conf")


# ---- a file that becomes wrong while it runs -------------------------------

def test_document_that_goes_bad(make_connector):
    """Shown by file, line and key; nothing new is admitted; put right, what
    had come meanwhile is worked.
    """
    connector = make_connector(limits={"config_cache": "10ms",
                                       "blocked_retry": "200ms"})
    connector.start()
    connector.write_config('{"version": 1,\n "nonsense": 2}')
    status = connector.wait_status(
        lambda s: s["data"]["supervisor"]["config"]["unreadable"])
    error = status["data"]["supervisor"]["config"]["error"]
    assert str(connector.config_dir / "connect.json") in error
    assert "line 2" in error and "nonsense" in error
    shown = connector.connectctl("status")
    assert shown.returncode == FAILED and error in shown.stdout
    done = connector.connectctl("reload")
    assert done.returncode == FAILED and error in done.stderr
    event_id = connector.sim.mention()["event_id"]
    connector.wait_event(event_id, "blocked")
    assert connector.query("SELECT reason FROM events") == [
        {"reason": "config_unreadable"}]
    for table in ("tasks", "attempts", "outbox"):
        assert connector.query("SELECT * FROM " + table) == []
    assert connector.sim.log("GET /{a}/comments/{id}") == []
    connector.write_config()
    connector.wait_line(type="dispatch", state="ended")
    assert len(connector.sim.messages()) == 2


def parked(connector, role):
    """A child's status once it waits for somebody to put something right."""
    def look():
        done = connector.connectctl("--json", "status")
        child = next(c for c in json.loads(done.stdout)["data"]["children"]
                     if c["role"] == role)
        return child if child["state"] == "parked" else None
    return harness.wait_for(look, what="a parked " + role)


def test_credentials_that_go_bad(make_connector):
    """The ones before stay in use. An outbox that dies meanwhile waits, and
    is shown with the file's name, until they are put right and reloaded.
    """
    connector = make_connector().start()
    path = connector.config_dir / "credentials.json"
    path.chmod(0o644)
    done = connector.connectctl("reload")
    assert done.returncode == FAILED and str(path) in done.stderr
    connector.sim.mention()
    connector.wait_line(type="dispatch", state="ended")
    connector.kill("outbox")
    assert str(path) in parked(connector, "outbox")["last_words"]
    assert connector.connectctl("status").returncode == FAILED
    path.chmod(0o600)
    assert connector.connectctl("reload").returncode == 0
    start = connector.line_count()
    connector.sim.mention()
    connector.wait_line(start=start, type="dispatch", state="ended")
    assert len(connector.sim.messages()) == 4


@pytest.mark.trap("T77")
def test_chain_that_others_may_write(make_connector):
    """Somebody opens a directory above the ledger's to all while it runs: a
    ledger that starts then opens nothing, and waits to be started again.
    """
    connector = make_connector().start()
    above = connector.state_dir.parent
    mode = above.stat().st_mode & 0o7777
    above.chmod(0o777)
    connector.kill("ledger")
    child = parked(connector, "ledger")
    assert "%s is writable by others" % above in child["last_words"]
    above.chmod(mode)
    assert connector.connectctl("restart", "ledger").returncode == 0
    start = connector.line_count()
    connector.sim.mention()
    connector.wait_line(start=start, type="dispatch", state="ended")
    assert len(connector.sim.messages()) == 2
