"""Credentials stay where they are needed (operator.md 7).

During stories everything that can be read of the product is read again and
again: files, argv and environments of every process, lines, logs, posts. Of a
task's token only the hash is known. As root the memory of every process is
searched as well: only who needs a credential may have it there.
"""

import base64
import contextlib
import hashlib
import os
import re
import secrets
import subprocess
import threading

import pytest

import execs
import harness
import leaks
import lives
import processes
import search_files

BOOSTS = "POST /{a}/recordings/{id}/boosts.json"
COMMENTS = "POST /{a}/recordings/{id}/comments.json"
KINDS = ("file", "name", "cmdline", "line", "log", "post", "request")
STEPS = ["get", "echo-env", "ack", "kill:mcpd", "read", "work", "reply",
         "complete"]


def new_token():
    return base64.urlsafe_b64encode(os.urandom(32)).rstrip(b"=").decode()


class Vault:
    """A credential and an access token that only this test has given out."""

    def __init__(self, connector):
        self.secret = "secret-" + secrets.token_hex(16)
        self.access = "access-" + secrets.token_hex(16)
        sim = connector.sim
        sim.world({
            "clients": [{"client_id": "agent-client", "secret": self.secret,
                         "person_id": harness.AGENT, "scope": "full"}],
            "tokens": [{"token": self.access, "person_id": harness.AGENT,
                        "scope": "full"}]})
        sim.fault("POST /oauth/tokens", times=0, status=200, body={
            "access_token": self.access, "token_type": "Bearer",
            "expires_in": 3600, "scope": "full"})
        connector.write_credentials(client_secret=self.secret)
        self.needles = leaks.Needles(client_secret=self.secret,
                                     access_token=self.access)


class Watch:
    """Looks around again and again, until it is stopped; then once more."""

    def __init__(self, connector, needles):
        self.connector = connector
        self.needles = needles
        self.report = leaks.Report(needles)
        self.rounds = 0
        self.error = None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        try:
            while not self.over.is_set():
                self.look()
        except Exception as error:  # told by the one who waits for us
            self.error = error

    def look(self):
        """First the tokens, then where they must not be."""
        self.needles.learn(self.connector)
        leaks.look_around(self.report, self.connector)
        self.rounds += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join(60)
        if self.error is not None:
            raise self.error
        self.look()


@contextlib.contextmanager
def held(connector, route):
    """While Basecamp keeps back its answer to that."""
    connector.sim.gate(route)
    try:
        yield lambda: connector.sim.wait("held", 1)
    finally:
        connector.sim.release(route)


@pytest.fixture
def guarded(make_connector):
    """A connector with a credential of its own, not yet started."""
    connector = make_connector(script={"default": STEPS})
    connector.vault = Vault(connector)
    return connector


def tell_story(connector, watch):
    """A mention to its end; the tokens are learnt before the re-key too."""
    with held(connector, BOOSTS) as wait:
        connector.sim.mention()
        wait()
        watch.needles.learn(connector)
    connector.wait_line(type="dispatch", state="ended")


def tokens_counted(connector):
    """How many were minted, launches and re-keys."""
    row, = connector.query(
        "SELECT COUNT(*) + SUM(rekeys) AS n FROM tasks")
    return row["n"]


# ---- the stories -----------------------------------------------------------

def test_nothing_leaks(guarded):
    """One story, with a re-key in its middle, watched all the time."""
    connector = guarded.start()
    with Watch(connector, connector.vault.needles) as watch:
        tell_story(connector, watch)
    assert connector.stop() == 143
    watch.look()
    watch.report.must_be_clean(*KINDS, "environ")
    assert tokens_counted(connector) == 2 == len(watch.needles.hashes)
    assert watch.rounds >= 3
    if harness.is_root():
        assert not watch.report.hidden, watch.report.hidden
    print("rounds %d, read %s, hidden from this user: %s" % (
        watch.rounds, watch.report.read, sorted(watch.report.hidden)))


def test_nothing_leaks_when_it_goes_wrong(guarded):
    """A worker that never calls, one that is killed, and roles that die."""
    connector = guarded
    steps = ["get", "kill:mcpd", "kill:ledger", "kill:outbox", "denied",
             "crash-server", "fail"]
    # The first one's notice is an event as well, before the second or after.
    connector.set_script({"default": ["exit:3"],
                          "events": {"2": [steps], "3": [steps]}})
    connector.start()
    with Watch(connector, connector.vault.needles) as watch:
        connector.sim.mention()
        connector.wait_line(type="dispatch", state="ended")
        second = connector.sim.mention()["event_id"]
        connector.wait_event(second, "completed", timeout=40)
    watch.report.must_be_clean(*KINDS, "environ")
    # Two launches and one re-key; asked again of a new ledger it mints anew.
    assert tokens_counted(connector) in (3, 4)


def test_worker_has_no_credential(guarded):
    """Nothing of Basecamp in the agent's environment, declaration or argv."""
    connector = guarded.start()
    connector.sim.mention()
    connector.wait_line(type="dispatch", state="ended")
    path = next(connector.out.glob("env-*.json"))
    seen = harness.json.loads(path.read_text())
    assert seen["environ"] and seen["argv"]
    for name in seen["environ"]:
        assert not re.search("BASECAMP|SECRET|TOKEN|CREDENTIAL", name, re.I)
    for entry in seen["mcp_config"].values():
        assert not any(entry["env"].get(n) for n in entry["env"]
                       if n.startswith("BASECAMP"))
    needles = connector.vault.needles
    needles.learn(connector)
    assert len(needles.hashes) == 1
    assert needles.search(path.read_bytes()) == set()


def test_a_credential_in_a_workers_words_is_not_posted(guarded):
    """What holds a credential that the outbox knows is refused, not sent."""
    connector = guarded
    connector.set_script({"default": [
        "get", "reply?:see %s here" % connector.vault.secret,
        "reply?:or %s there" % connector.vault.access,
        "reply:all is well", "complete"]})
    connector.start()
    event_id = connector.sim.mention()["event_id"]
    connector.wait_event(event_id, "completed")
    connector.wait_line(type="dispatch", state="ended")
    said = [m["content"] for m in connector.sim.messages()]
    assert said == ["<p>all is well</p>"]
    rows = connector.query("SELECT state FROM outbox WHERE kind ="
                           " 'worker_reply' ORDER BY id")
    assert [r["state"] for r in rows] == ["canceled", "canceled", "sent"]


def test_a_credential_is_found_in_what_became_html(make_connector):
    """The body that is posted is compared in every form of it, and the
    worker is told why it is not posted.
    """
    secret = "s3cr&t-\"and\"-<more>"
    connector = make_connector(script={"default": [
        "get", "ack-id", "reply?:see `%s` here" % secret,
        "reply:all is well", "complete"]})
    connector.sim.world({"clients": [{"client_id": "agent-client",
                                      "secret": secret}]})
    connector.write_credentials(client_secret=secret)
    connector.start()
    event_id = connector.sim.mention()["event_id"]
    connector.wait_event(event_id, "completed")
    connector.wait_line(type="dispatch", state="ended")
    assert [m["content"] for m in connector.sim.messages()] == [
        "<p>all is well</p>"]
    told = [r["text"] for r in connector.agent_records("answer")
            if '"refused"' in r["text"]]
    assert len(told) == 1
    assert "credential" in told[0] and "Basecamp" not in told[0]


# ---- memory, as root -------------------------------------------------------

def memory_of(pid):
    """The bytes of every readable mapping, piece by piece."""
    with open("/proc/%d/maps" % pid, encoding="utf-8") as file:
        lines = file.read().splitlines()
    with open("/proc/%d/mem" % pid, "rb", 0) as memory:
        for line in lines:
            span, rights = line.split()[:2]
            start, end = (int(n, 16) for n in span.split("-"))
            if "r" not in rights or "[v" in line:
                continue
            try:
                memory.seek(start)
                yield memory.read(end - start)
            except OSError:
                continue


def memory_holds(pid, needles):
    found = set()
    for piece in memory_of(pid):
        found |= needles.search(piece)
    return found


MAY_HOLD = {
    "supervisor": set(),
    "ledger": {"task token"},
    "intake": {"access_token"},
    "dispatcher": set(),
    "outbox": {"access_token", "client_secret"},
    "mcpd": {"task token"},
    "bridge": set(),
    "worker": set(),
}
MUST_HOLD = {"outbox": {"client_secret"}, "intake": {"access_token"},
             "mcpd": {"task token"}}


@pytest.mark.walls
def test_memory(guarded):
    """In the middle of a task: who holds what. A person may not look into
    any of ours, which is what keeps it from the worker there.
    """
    connector = guarded.start()
    with held(connector, COMMENTS) as wait:
        connector.sim.mention()
        wait()
        found = connector.roles()
        pids = {role: found[role][0].pid for role in MAY_HOLD
                if role != "supervisor"}
        pids["supervisor"] = connector.process.pid
        needles = connector.vault.needles
        needles.learn(connector)
        if not harness.is_root():
            for role in set(MAY_HOLD) - {"worker", "bridge"}:
                with pytest.raises(PermissionError):
                    next(memory_of(pids[role]))
            return
        holds = {role: memory_holds(pid, needles)
                 for role, pid in pids.items()}
    for role, have in holds.items():
        assert have <= MAY_HOLD[role], (role, have)
        assert have >= MUST_HOLD.get(role, set()), (role, have)


# ---- that the check can fail -----------------------------------------------

@pytest.fixture
def finished(make_connector):
    """After a story without a leak; needles with a made-up token besides."""
    connector = make_connector().start()
    connector.sim.mention()
    connector.wait_line(type="dispatch", state="ended")
    connector.planted = new_token()
    connector.needles = leaks.Needles()
    connector.needles.learn(connector)
    connector.needles.hashes.add(
        hashlib.sha256(connector.planted.encode()).hexdigest())
    clean = leaks.Report(connector.needles)
    leaks.look_around(clean, connector)
    clean.must_be_clean(*KINDS, "environ")
    return connector


def found_now(connector):
    report = leaks.Report(connector.needles)
    leaks.look_around(report, connector)
    with pytest.raises(AssertionError):
        report.must_be_clean(*KINDS)
    assert not any(connector.planted in text for text in report.found)
    return {text.split(" in ", 1)[1].split()[0] for text in report.found}


def test_planted_in_a_file(finished):
    (finished.route / "found.txt").write_text("x" + finished.planted + "--")
    assert found_now(finished) == {"file"}


def test_planted_in_a_name(finished):
    (finished.route / ("a." + finished.planted)).touch()
    assert found_now(finished) == {"name"}


def test_planted_in_a_temporary_file(finished):
    folder = leaks.worker_folders(finished)[0]
    os.mkdir(folder)
    path = os.path.join(folder, "found")
    try:
        with open(path, "wb") as file:
            file.write(b"\0" + finished.planted.encode() + b"\0")
        assert found_now(finished) == {"file"}
    finally:
        os.unlink(path)
        os.rmdir(folder)


@pytest.mark.parametrize("name", ["line", "log"])
def test_planted_in_what_it_printed(finished, name):
    target = {"line": "stdout", "log": "stderr"}[name]
    with open(finished.folder.path / ("connectd." + target), "a",
              encoding="utf-8") as file:
        file.write(finished.planted + "\n")
    assert found_now(finished) == {"file", name}


@pytest.mark.parametrize("name", ["cmdline", "environ"])
def test_planted_in_a_process(finished, name):
    """A process of the worker's that has it where others can see it."""
    environ = {harness.MARKER: finished.folder.marker}
    if name == "environ":
        environ["SOMETHING"] = "a" + finished.planted + "z"
    argv = ["/bin/sh", "-c", "read x; : " +
            (finished.planted if name == "cmdline" else "")]
    with subprocess.Popen(argv, env=environ, cwd="/",
                          stdin=subprocess.PIPE) as child:
        try:
            harness.wait_for(
                lambda: processes.has_become(child.pid, "sh"),
                what="the child's program")
            assert found_now(finished) == {name}
        finally:
            child.kill()


def test_planted_in_a_post(finished):
    """By a worker, in a reply: its script and its log have it then too."""
    finished.set_script({"default": ["get", "reply:" + finished.planted,
                                     "complete"]})
    start = finished.line_count()
    finished.sim.mention()
    finished.wait_line(start=start, type="dispatch", state="ended")
    assert {"post", "request", "file"} == found_now(finished)


@pytest.mark.walls
def test_the_real_token_is_recognised(guarded):
    """The one that mcpd has, written where a worker could have put it."""
    if not harness.is_root():
        pytest.skip("only root can read it where it is")
    connector = guarded.start()
    needles = connector.vault.needles
    with held(connector, COMMENTS) as wait:
        connector.sim.mention()
        wait()
        needles.learn(connector)
        pid = connector.roles()["mcpd"][0].pid
        runs = {run[at:at + leaks.TOKEN_LENGTH]
                for piece in memory_of(pid) for run in leaks.RUN.findall(piece)
                for at in range(len(run) - leaks.TOKEN_LENGTH + 1)}
        token, = filter(needles.is_token, runs)
        (connector.route / "found.txt").write_bytes(token)
        report = leaks.Report(needles)
        leaks.look_around(report, connector)
        assert report.found == {"task token in file %s" % (
            connector.route / "found.txt")}
    connector.wait_line(type="dispatch", state="ended")


def test_nothing_read_is_a_failure(finished):
    report = leaks.Report(finished.needles)
    with pytest.raises(AssertionError, match="nothing was read of"):
        report.must_be_clean("file")
    report.look("file", "here", b"nothing")
    report.must_be_clean("file")
    with pytest.raises(AssertionError, match="line"):
        report.must_be_clean("file", "line")


def test_unreadable_is_a_failure(finished):
    report = leaks.Report(finished.needles)
    leaks.look_at_file(report, str(finished.route / "not there"))
    assert not report.denied
    leaks.look_at_file(report, str(finished.route))
    with pytest.raises(AssertionError, match="directory"):
        report.must_be_clean()


# ---- files in a process of its own, and at any moment ----------------------

@pytest.fixture
def planted(folder):
    """A report that looks for one token, and a folder with a file in it."""
    report = leaks.Report(leaks.Needles(secret="not-this-one"))
    report.token = new_token().encode()
    report.needles.tokens.add(report.token)
    report.top = folder.make("searched")
    (report.top / "other").write_bytes(b"nothing")
    return report


def test_files_are_searched_elsewhere(planted):
    leaks.search_files(planted, [planted.top])
    planted.must_be_clean("file")
    assert planted.read == {"file": 1}
    below = planted.top / "below"
    below.mkdir()
    (below / "file").write_bytes(b"\0" + planted.token + b"\n")
    (planted.top / "skipped").write_bytes(planted.token)
    leaks.search_files(planted, [planted.top], [planted.top / "skipped"])
    assert planted.found == {"task token in file %s" % (below / "file")}


def test_a_hash_is_enough_elsewhere(planted):
    needles = planted.needles
    needles.hashes.add(hashlib.sha256(planted.token).hexdigest())
    needles.tokens.clear()
    (planted.top / "file").write_bytes(planted.token)
    leaks.search_files(planted, [planted.top])
    assert planted.found == {"task token in file %s" % (planted.top / "file")}


def test_no_file_read_is_a_failure(planted):
    (planted.top / "other").unlink()
    os.symlink("nowhere", planted.top / "other")
    with pytest.raises(AssertionError, match="no file was read"):
        leaks.search_files(planted, [planted.top])


def test_unreadable_elsewhere_is_a_failure(planted, monkeypatch, capsys):
    """What the other process says of it, and what is made of that."""
    def no(*_):
        raise PermissionError(13, "Permission denied")
    monkeypatch.setattr(search_files, "open", no, raising=False)
    assert search_files.search(planted.needles, planted.top, ()) == 0
    said = capsys.readouterr().out
    assert said == "unreadable\t%s\tPermission denied\n" % (
        planted.top / "other")
    search_files.denied(PermissionError(13, "no", str(planted.top)))
    assert capsys.readouterr().out == "unreadable\t%s\tno\n" % planted.top
    teller = planted.top / "teller"
    teller.write_text("print('unreadable\\tfile\\tno\\nread\\t1')")
    monkeypatch.setattr(leaks, "SEARCHER", teller)
    leaks.search_files(planted, [planted.top])
    with pytest.raises(AssertionError, match="file: no"):
        planted.must_be_clean("file")


def test_a_brief_file_is_seen(planted):
    """It is there until the watcher has looked twice, and then no more."""
    watcher = leaks.Watcher(lambda: [planted.top], planted.needles.tokens.copy)
    path = planted.top / "brief"
    path.write_bytes(b"x" + planted.token)
    rounds = watcher.rounds + 2
    harness.wait_for(lambda: watcher.rounds >= rounds, what="two looks")
    path.unlink()
    watcher.stop()
    assert watcher.found == {"task token in file %s" % path}
    assert watcher.files and not watcher.denied


def test_a_file_from_before_its_token_is_known(planted):
    """A token that is learnt late was in a file that has been read."""
    known = {b"another one, forty-three characters in all."}
    watcher = leaks.Watcher(lambda: [planted.top], known.copy)
    (planted.top / "early").write_bytes(planted.token)
    harness.wait_for(lambda: watcher.files >= 2, what="a look at both")
    known.add(planted.token)
    watcher.stop()
    assert watcher.found


def test_a_watcher_that_fails_says_so(planted):
    """Also when it would be well again by then."""
    failed = []

    def fail_once():
        if not failed:
            failed.append(True)
            raise ValueError("no folders")
        return []
    watcher = leaks.Watcher(fail_once, planted.needles.tokens.copy)
    harness.wait_for(lambda: watcher.error, what="the failure")
    with pytest.raises(ValueError, match="no folders"):
        watcher.stop()


# ---- argv and environment while they are there ------------------------------

class Rewriter:
    """A process below us that has a word in its argv, until it is told to
    end, and a child that outlives it.
    """

    def __init__(self, word):
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", "sleep 600 & read x; : " + word], cwd="/",
            env={"SOME": "thing"}, stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL)

    def pid(self):
        return (self.process.pid if self.process.returncode is None else None)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def child_of(pid):
    return next(iter(processes.descendants(pid)), None)


def test_a_process_is_read_while_it_lives(planted):
    """What it had in its argv is found when it is long gone; and what its
    end left is read on.
    """
    one = Rewriter(planted.token.decode())
    child = harness.wait_for(lambda: child_of(one.pid()), what="its child")
    watch = lives.Lives(one.pid)
    harness.wait_for(lambda: ("environ", "sh") in watch.read, what="a look")
    one.end()
    try:
        harness.wait_for(lambda: ("environ", "sleep") in watch.read,
                         what="a look at what it left")
        rounds = watch.rounds
        harness.wait_for(lambda: watch.rounds > rounds, what="one more")
        assert set(watch.members) == {child.pid}
    finally:
        processes.send_signal(child, harness.signal.SIGKILL)
    watch.stop()
    watch.search(planted)
    assert {text.split(" (")[0] for text in planted.found} == {
        "task token in cmdline of sh"}
    watch.must_have_read("sh")
    watch.must_have_read("nobody", "sleep")


def test_a_process_is_read_at_its_exec(planted):
    """However seldom one looks otherwise."""
    ears = execs.listen()
    if ears is None:
        pytest.skip("the kernel tells nobody of execs, or not this user")
    ears.close()
    watch = lives.Lives(os.getpid, every=60)
    harness.wait_for(lambda: watch.rounds, what="a round")
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, env={
            "A": planted.token.decode()}):
        harness.wait_for(lambda: ("environ", "cat") in watch.read,
                         what="a look at its exec")
    assert watch.rounds == 1
    watch.stop()
    watch.search(planted)
    assert {text.split(" (")[0] for text in planted.found} == {
        "task token in environ of cat"}


def test_no_living_process_read_is_a_failure():
    watch = lives.Lives(lambda: None)
    harness.wait_for(lambda: watch.rounds, what="a round")
    watch.stop()
    with pytest.raises(AssertionError, match="read of a living"):
        watch.must_have_read("connectd-mcpd")
    watch.read.add(("cmdline", "connectd-mcpd"))
    with pytest.raises(AssertionError, match="no environ"):
        watch.must_have_read("connectd-mcpd")


def test_secrets_in_parts(finished):
    """A word of other characters around it does not hide it; a part of it is
    nothing.
    """
    needles = finished.needles
    token = finished.planted.encode()
    assert needles.search(b"=" + token + b"=") == {"task token"}
    assert needles.search(b"A" * 50 + token + b"-" * 50) == {"task token"}
    assert needles.search(token[:-1]) == set()
    assert needles.search(token[:20] + b"." + token[20:]) == set()
