"""What runs a row of the recovery matrix: it starts a connector that killat
follows, reaches the row's point, kills there, looks at what stands, starts
again, looks again, and once more. The rows themselves are in rows.py.
"""

import dataclasses
import glob
import os
import signal

import harness
import leaks
import lives
import promises
import said
import stories

READ = "GET /{a}/comments/{id}"
BOOSTS = "POST /{a}/recordings/{id}/boosts.json"
LISTING = "GET /{a}/recordings/{id}/comments.json"
COMMENTS = "POST /{a}/recordings/{id}/comments.json"
OTHER_PROJECT = 48699914
UNROUTED_PROJECT = 48699915
STOPPED = 143
PROGRAMS = set(harness.ROLES.values())
# Every worker ends at once when asked to, or is not meant to.
LIMITS = {"recover_grace": "200ms", "close_grace": "200ms",
          "exit_wait": "50ms"}
OUR_KINDS = ("guard_ack", "holding_reply", "still_running", "completion",
             "retraction")
# Only a minted token is written like this, and only mcpd sends one on.
MINTED = "record@connectd-ledger:write:1+~^[A-Za-z0-9_-]{43}.$"
BOUND = "note@connectd-mcpd:send:1+~[A-Za-z0-9_-]{43}"


# ---- points ----------------------------------------------------------------

class Point:
    """Where a row kills. RULES are killat's; ready() comes before the event,
    reach() after it and returns when the connector has ended.
    """

    rules = ()

    def ready(self, run):
        pass

    def reach(self, run):
        run.wait_killed()


class Rule(Point):
    """killat kills the tree, the supervisor first."""

    def __init__(self, rule):
        self.rules = ("kill-tree@" + rule,)


def line(kind, state, **more):
    """The ledger's entry into the write of that line's frame."""
    words = dict(more, state=state)
    if kind != "pointer":
        words = dict({"type": kind}, **words)
    return Rule("connectd-ledger:send/3~" + "[^}]*".join(
        '"%s":"%s"' % pair for pair in words.items()))


def tx(role, text):
    """The role's first write-class call after a read that has this."""
    return Rule("connectd-%s:tx~%s" % (role, text))


class Reading(Point):
    """The recording's read is in flight."""

    def ready(self, run):
        run.sim.gate(READ)

    def reach(self, run):
        run.sim.wait("held", 1)
        run.kill()
        run.sim.release(READ)


class Post(Point):
    """A post is stored or not, and its answer never comes. AFTER is what the
    agent must have logged as well.
    """

    def __init__(self, when, route=COMMENTS, after=None):
        self.when = when
        self.route = route
        self.after = after

    def ready(self, run):
        self.fault = run.sim.fault(self.route, hang=True, times=1,
                                   when=self.when)["fault"]

    def reach(self, run):
        run.sim.wait("hits", 1, fault=self.fault)
        if self.after:
            harness.wait_for(
                lambda: run.connector.agent_records(self.after),
                what="the agent's " + self.after)
        run.kill()


class ByWorker(Point):
    """The worker's script says when."""

    def reach(self, run):
        run.wait_killed()
        assert [a["what"] for a in run.connector.director.asked
                if a["ask"] == "kill"] == ["tree"]


# ---- facts -----------------------------------------------------------------

def facts(evidence, event_id):
    """All that a row may expect of an event, from everything there is."""
    found = [e for e in evidence.rows["events"] if e["id"] == event_id]
    rows = evidence.of_event("task_events", event_id)
    tasks = {r["task_id"] for r in rows}
    attempts = [a for a in evidence.rows["attempts"] if a["task_id"] in tasks]
    own = [r for r in evidence.rows["outbox"] if r["event_id"] == event_id or
           r["attempt_id"] in {a["id"] for a in attempts}]
    standing = [r for r in rows if not r["withdrawn_at"]]
    return {
        "record": found[0]["state"] if found else None,
        "reason": found[0]["reason"] if found else None,
        "tasks": len(tasks),
        "withdrawn": len(rows) - len(standing),
        "delivery": standing[-1]["delivery"] if standing else None,
        "pulled": bool(standing and standing[-1]["pulled_at"]),
        "outcome": standing[-1]["outcome"] if standing else None,
        "attempts": sorted(attempt_words(a) for a in attempts),
        "prompts": sum(r["what"] == "prompt" and r["event_id"] == event_id
                       for r in evidence.agent),
        "agents": sum(r["what"] == "start" for r in evidence.agent),
        "posted": said.count(evidence, event_id,
                             {a["id"] for a in attempts}),
        **{kind: sorted(r["state"] for r in own if r["kind"] == kind)
           for kind in OUR_KINDS},
    }


def attempt_words(attempt):
    words = [attempt["state"], attempt["stop_reason"],
             "spawn_failed" * attempt["spawn_failed"]]
    return " ".join(filter(None, words))


def post_requests(sim):
    """What Basecamp was asked to create, answered or not."""
    return [r["n"] for r in sim.log() if r["method"] == "POST" and
            any(pattern.fullmatch(r["path"]) for pattern, _ in promises.POSTS)]


def expect(evidence, event_id, wanted, when):
    have = facts(evidence, event_id)
    wrong = {name: (have[name], want) for name, want in wanted.items()
             if have[name] != want}
    assert not wrong, "event %d %s, (is, should be): %s" % (
        event_id, when, wrong)


def check_status(evidence):
    """Status says what the ledger has, no more and no less."""
    told = evidence.status["data"]["status"]
    states = [e["state"] for e in evidence.rows["events"]]
    assert told["queues"] == {s: states.count(s) for s in set(states) if
                              s not in ("completed", "discarded")}
    attempts = {a["id"]: a for a in evidence.rows["attempts"]}
    assert {a["attempt_id"] for a in told["live_tasks"]} == {
        ident for ident, a in attempts.items() if a["state"] != "ended"}
    assert {d["attempt_id"] for d in told["dispatches"]} == set(attempts)
    for shown in told["dispatches"]:
        attempt = attempts[shown["attempt_id"]]
        assert (shown["state"], shown.get("stop_reason", "")) == (
            attempt["state"], attempt["stop_reason"])
        assert {(e["event_id"], e["outcome"]) for e in shown["events"]} == {
            (r["event_id"], r["outcome"]) for r in evidence.rows["task_events"]
            if r["task_id"] == attempt["task_id"]}
    assert {i["id"] for i in told["indeterminate_intents"]} == {
        r["id"] for r in evidence.rows["outbox"]
        if r["state"] == "indeterminate"}


# ---- the kill --------------------------------------------------------------

def check_killed(follower, rule, may_end):
    """The tree died of the row's kill alone, and all of it, but for what MAY
    have ended in order before.
    """
    kill, = follower.said(what="kill")
    assert kill["rule"] == rule
    exits = follower.said(what="exit")
    dead = {r["name"] for r in exits if r["signal"] == signal.SIGKILL}
    assert "connectd" in dead and dead >= PROGRAMS - may_end, dead
    for record in exits:
        assert record["signal"] == signal.SIGKILL or (
            is_an_end_in_order(record, may_end)), record


def is_an_end_in_order(record, may_end):
    """A task's server that is not needed any more, or a fork of no name: it
    cleans, and finds nothing, or it could not exec the worker.
    """
    if record["name"].endswith("/fork"):
        return record["signal"] == 0
    return record["status"] == 0 and (
        record["name"] in may_end | {"connectd-mcpd"})


def check_stopped(follower, may_end):
    """All ended in order."""
    for record in follower.said(what="exit"):
        if record["name"] == "connectd":
            assert record["status"] == STOPPED, record
        else:
            assert record["status"] == 0 or (
                is_an_end_in_order(record, may_end)), record


# ---- a run -----------------------------------------------------------------

@dataclasses.dataclass
class Followed:
    follower: object
    rules: int
    is_killed: bool = False


class Run:
    """One row's connector, through all its starts."""

    def __init__(self, make_killat, make_connector, driver, rules=(),
                 **arguments):
        self.make_killat = make_killat
        self.lives = []
        self.needles = stories.new_needles()
        self.lost_tokens = 0
        self.may_end = set()
        config = dict(driver.CONFIG, **arguments.pop("config", {}))
        limits = dict(LIMITS, **arguments.pop("limits", {}))
        self.connector = make_connector(
            config=config, limits=limits, follower=self.follow(rules),
            **arguments)
        self.sim = self.connector.sim
        self.add_project()
        self.needles.learn_access(self.sim)
        self.watcher = leaks.Watcher(self.folders, self.tokens,
                                     self.needles.secrets)
        self.processes = lives.Lives(self.connector.pid)

    def add_project(self):
        """A second directory, and a project without any."""
        folder = self.connector.folder.make("other", 0o755,
                                            self.connector.user)
        self.connector.config["projects"][str(OTHER_PROJECT)] = {
            "path": str(folder), "class": "other"}
        self.connector.write_config()

    def follow(self, rules=()):
        # Whoever is not root sees no bytes.
        seen = (MINTED, BOUND) if harness.is_root() else ()
        follower = self.make_killat(*rules, *seen)
        self.lives.append(Followed(follower, len(rules)))
        return follower

    # -- its life ---------------------------------------------------------

    def start(self, rules=(), ready=True):
        """Again, over what there is."""
        self.connector.follower = self.follow(rules)
        self.connector.start(ready=ready)

    def begin(self):
        self.connector.start()
        return self

    def mention(self, **more):
        return self.sim.mention(**more)["event_id"]

    def kill(self):
        self.connector.kill("tree")
        self.wait_killed()

    def leave(self):
        """The second signal: it ends at once, and leaves what runs."""
        self.connector.process.send_signal(signal.SIGTERM)
        assert self.connector.wait_end(5) == STOPPED
        self.lives[-1].follower.wait_end()

    def wait_killed(self):
        """Wait for the end of all of it; what stands then."""
        assert self.connector.wait_end() == -signal.SIGKILL, (
            self.connector.tail())
        self.lives[-1].is_killed = True
        self.end_life()

    def stop(self):
        assert self.connector.stop() == STOPPED
        self.end_life()

    def end_life(self):
        """Every rule of the row was met, and all ended as it should."""
        life = self.lives[-1]
        life.follower.wait_end()
        missed = life.follower.wait(what="end")["missed"]
        assert not [n for n in missed if n <= life.rules], missed
        if life.is_killed:
            check_killed(life.follower, min(life.rules, 1), self.may_end)
        else:
            check_stopped(life.follower, self.may_end)
        assert stories.deaths_logged(self.connector) == []

    def at_death(self):
        """What stands when everything is dead; the promises hold then too."""
        return promises.check(self.connector, self.needles)

    def settle(self):
        evidence = stories.settle(self.connector, self.needles)
        check_status(evidence)
        return evidence

    def again(self, evidence):
        """Another start changes nothing, posts nothing and runs nothing."""
        asked = post_requests(self.sim)
        self.stop()
        self.start()
        after = self.settle()
        for table in ("events", "tasks", "task_events", "attempts", "outbox"):
            assert after.rows[table] == evidence.rows[table], table
        assert after.messages == evidence.messages
        assert post_requests(self.sim) == asked
        started = [[r for r in e.agent if r["what"] in ("start", "prompt")]
                   for e in (evidence, after)]
        assert started[0] == started[1]
        return after

    def close(self):
        """The end of a row: an orderly stop, and the credential check."""
        self.stop()
        left = [folder for folder in leaks.worker_folders(self.connector)
                if os.path.exists(folder)]
        assert not left, "not removed: %s" % left
        self.check_credentials()

    # -- credentials (operator.md 7) --------------------------------------

    def folders(self):
        """Where a worker, a server or a session may leave a file."""
        return [self.connector.route, self.connector.folder.path / "other",
                self.connector.out, self.connector.run_dir,
                *glob.glob("/var/tmp/connectd-*")]

    def tokens(self):
        """All that were minted so far, from the ledger's write itself."""
        return {r["text"].strip().encode() for life in self.lives
                for r in life.follower.said(what="record")}

    def check_credentials(self):
        minted = [r["text"] for life in self.lives
                  for r in life.follower.said(what="record")]
        tokens = self.tokens()
        self.watcher.stop()
        self.processes.stop()
        if harness.is_root():
            row, = self.connector.query(
                "SELECT COUNT(*) + COALESCE(SUM(rekeys), 0) AS n FROM tasks")
            assert len(minted) == len(tokens) == row["n"] - self.lost_tokens
            self.check_servers()
        if not tokens | self.needles.hashes:
            assert not self.connector.agent_records("start")
            print("no token was minted: none was looked for")
        self.needles.tokens |= tokens
        report = leaks.Report(self.needles)
        self.processes.search(report)
        leaks.look_around(report, self.connector)
        top = self.connector.folder.path
        leaks.search_files(
            report, [top, *leaks.worker_folders(self.connector)],
            [self.connector.config_dir / "credentials.json", top / "bin",
             top / "agents"])
        report.must_be_clean("file", "name", "line", "log", "request",
                             "cmdline", "environ")
        self.check_seen_alive()
        assert self.sim.state()["minted"], "no access token was minted"
        assert self.watcher.rounds and (self.watcher.files or not tokens)
        assert not self.watcher.found, sorted(self.watcher.found)
        assert not self.watcher.denied, sorted(self.watcher.denied)
        print("%d tokens, %s read, watched %d times %d files, %d times"
              " processes" % (len(tokens), report.read, self.watcher.rounds,
                              self.watcher.files, self.processes.rounds))

    def check_seen_alive(self):
        """Each of those that may have had a token was read while it lived."""
        self.processes.must_have_read("connectd")
        for role in PROGRAMS - {"connectd"}:
            self.processes.must_have_read(role)
        if any(life.follower.said(what="exec", name="connectd-mcpd")
               for life in self.lives):
            self.processes.must_have_read("connectd-mcpd")
        if self.connector.agent_records("start"):
            self.processes.must_have_read(*self.connector.worker_comms())

    def check_servers(self):
        """Every mcpd that was started sent its token to the ledger, or died
        of the row's kill.
        """
        for life in self.lives:
            bound = {r["pid"] for r in life.follower.said(what="note")}
            for record in life.follower.said(what="exec",
                                             name="connectd-mcpd"):
                end, = life.follower.said(what="exit", pid=record["pid"])
                assert record["pid"] in bound or end["signal"] == (
                    signal.SIGKILL), record


# ---- a row of the table ----------------------------------------------------

def play(row, make_killat, make_connector, driver):
    script = row.script
    if callable(script):
        script = script(driver)
    run = Run(make_killat, make_connector, driver, row.point.rules,
              limits=row.limits, script={
                  "default": stories.STEPS, "events": {"1": [script]}})
    run.lost_tokens = row.lost_tokens
    run.begin()
    row.point.ready(run)
    event_id = run.mention(**row.mention)
    row.point.reach(run)
    expect(run.at_death(), event_id, row.dead, "at death")
    asked = post_requests(run.sim)
    run.start()
    evidence = run.settle()
    expect(evidence, event_id, row.then, "after the restart")
    assert len(post_requests(run.sim)) - len(asked) == row.posts
    run.again(evidence)
    run.close()
