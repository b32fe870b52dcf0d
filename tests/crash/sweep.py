"""The story of a sweep: a mention, a follow-up while its worker runs, and a
mention whose worker fails, from a first start to an order to stop. killat
follows it from birth and interferes once; whatever has died then is started
again, and the story is told to its end.
"""

import collections
import concurrent.futures
import functools
import multiprocessing
import os
import signal
import sqlite3

import chance
import harness
import killat
import leaks
import lives
import promises
import stories

FIRST, FAILING = 1, 2
OTHER_THREAD = 55
SCRIPT = {
    "default": ["get", "ack", "reply", "complete"],
    "events": {
        str(FIRST): [["get", "ack", "arrive",
                      "await:arrived=queued|dispatched|completed", "read",
                      "work", "reply", "complete"]],
        str(FAILING): [["get", "ack-id", "fail"]],
    },
}
# A poll is some writes of intake's: rarely, so that few points are idle ones.
# The scripted agent ends at once when asked to.
LIMITS = {"feed_poll": "1s", "recover_grace": "1s", "cancel_grace": "2s"}
FEED = "GET /{a}/events.json"
# Each by its name for killat: what a supervisor forked and has not exec'd yet
# is one too, perhaps a worker: that one's death before its exec is no start
# that failed for certain, so what it was to see stays unknown. Of those that
# are UNNOTICED no worker hears when they die alone.
ROLES = ("connectd", "connectd/fork", "connectd-ledger", "connectd-intake",
         "connectd-dispatcher", "connectd-outbox", "connectd-mcpd")
UNNOTICED = ("connectd-ledger", "connectd-intake", "connectd-mcpd")
COUNTED = 3
# Several stories share the machine, and each has some seconds.
WATCHED_EVERY = 0.02
WAIT = 60
STOPPED = 143

Outcome = collections.namedtuple("Outcome", "rule reached at is_held evidence")


def is_ended_by_hand(status):
    """By the kill, or because the supervisor's processes are gone."""
    return status == -signal.SIGKILL


class Telling:
    """One connector, once through the story."""

    def __init__(self, rules, count):
        self.folder = harness.Folder()
        self.closes = [self.folder.remove]
        self.sim = harness.Sim(self.folder)
        self.closes.append(self.sim.close)
        self.follower = killat.Killat(self.folder, *rules, count=count)
        self.closes.append(self.follower.close)
        self.connector = harness.Connector(
            self.sim, self.folder, script=SCRIPT, limits=LIMITS,
            follower=self.follower)
        self.closes.append(self.connector.close)
        self.needles = stories.new_needles()
        self.processes = lives.Lives(self.connector.pid, WATCHED_EVERY)
        self.closes.append(self.processes.stop)
        self.is_held = False
        self.left = None

    def close(self):
        """Everything, whatever of it fails; the first failure is raised."""
        failure = None
        for close in reversed(self.closes):
            try:
                close()
            except harness.HarnessError as error:
                failure = failure or error
        if failure:
            raise failure

    # -- waiting, while anything may be killed ----------------------------

    def keep_up(self):
        """A supervisor that was killed is started again, unfollowed."""
        if self.connector.is_running():
            return
        status = self.connector.wait_end()
        if not is_ended_by_hand(status):
            raise harness.HarnessError("connectd ended with %d: %s" % (
                status, self.connector.tail()))
        self.connector.follower = None
        self.connector.start(ready=False)

    def until(self, condition, what):
        def look():
            self.keep_up()
            return condition()
        try:
            return harness.wait_for(look, WAIT, what, every=0.03)
        except harness.HarnessError as error:
            raise harness.HarnessError("%s; left: %s\n%s" % (
                error, self.left, self.connector.tail(40))) from error

    # What a look at the status would cost is calls of the story's own: the
    # ledger's file is looked at as long as that will do.

    def has_entered(self):
        try:
            return (self.connector.state_dir / "ledger.db").exists() and \
                self.connector.query(
                    "SELECT position FROM checkpoints WHERE position <> ''")
        except sqlite3.OperationalError:
            return False  # its tables are not there yet

    def is_settled(self):
        """Nothing moves any more; or what does is held for a person."""
        self.needles.learn(self.connector)
        self.left = promises.unsettled(self.connector)
        if self.left:
            self.is_held = stories.is_held(self.connector)
            if self.is_held:
                needless = stories.held_for_nothing(self.connector)
                assert not needless, needless
            return self.is_held
        return stories.all_ready(self.connector)

    def settle(self):
        self.until(self.is_settled, "the end")
        promises.check(self.connector, self.needles)

    # -- the story --------------------------------------------------------

    def tell(self):
        """The evidence of its end, after the order to stop."""
        self.connector.start(ready=False)
        self.until(self.has_entered, "a position of the feed")
        self.sim.gate(FEED)
        made = [self.sim.mention(**more)["event_id"] for more in
                ({}, {"recording_id": OTHER_THREAD})]
        assert made == [FIRST, FAILING]
        self.sim.release(FEED)
        self.settle()
        if self.connector.director.arrived is None:
            # Its worker had no time for it.
            self.connector.director.do_arrive(
                {"event_id": FIRST, "text": "and one thing more"})
            self.settle()
        self.check_deaths()
        self.stop()
        if self.is_held:
            stories.end_held(self.connector)
        return self.check_at_rest()

    def check_deaths(self):
        """No role has ended but by the rule: an end that was not asked for is
        logged, with its pid. That may be read before what killat says of it.
        """
        try:
            harness.wait_for(lambda: not self.unasked_ends())
        except harness.HarnessError:
            assert not self.unasked_ends(), self.unasked_ends()

    def unasked_ends(self):
        acted = {record["pid"] for record in self.follower.said(rule=1)}
        return [line for line in stories.deaths_logged(self.connector)
                if not any("(pid %d)" % pid in line for pid in acted)]

    def stop(self):
        """As ordered; or killed while it was stopping, and then it starts,
        settles, and stops.
        """
        status = self.connector.stop()
        if is_ended_by_hand(status):
            self.connector.follower = None
            self.connector.start(ready=False)
            self.settle()
            status = self.connector.stop()
        assert status == STOPPED, self.connector.tail()

    def check_processes(self, evidence):
        """No credential in argv or environment of any, however short a time
        it was there; and those that there were have been read alive.
        """
        self.processes.stop()
        report = leaks.Report(self.needles)
        self.processes.search(report)
        report.must_be_clean("cmdline", "environ")
        if any(r["what"] == "start" for r in evidence.agent):
            self.processes.must_have_read("connectd-mcpd")
            self.processes.must_have_read(*self.connector.worker_comms())

    def check_at_rest(self):
        """The same of a connector that has stopped, and what a story without
        doubts comes to.
        """
        evidence = promises.check(self.connector, self.needles)
        self.check_processes(evidence)
        if self.is_held:
            return evidence
        caused = promises.caused_events(self.sim)
        assert {FIRST, FAILING, self.connector.director.arrived} <= caused
        for ident in caused:
            assert evidence.event(ident)["state"] == "completed", ident
        return evidence


def tell(*rules, count=False):
    """The story under these rules of killat's: (Telling, Evidence), closed.
    """
    telling = Telling(rules, count)
    try:
        evidence = telling.tell()
        telling.follower.wait_end()
    except BaseException:
        # What the story failed for says more than what could not end.
        try:
            telling.close()
        except harness.HarnessError:
            pass
        raise
    telling.close()
    return telling, evidence


def check_undisturbed(telling, evidence):
    """Each mention came to the end that its worker gave it."""
    follow_up = telling.connector.director.arrived
    ends = {ident: stories.standing_end(evidence, ident)
            for ident in (FIRST, FAILING, follow_up)}
    assert ends == {FIRST: ("succeeded", "finished"),
                    FAILING: ("failed", "finished"),
                    follow_up: ("succeeded", "finished")}
    assert not stories.doubts(evidence)


def run(action, role, call, n):
    """The story, interfered with at one point."""
    rule = "%s@%s:%s:%d" % (action, role, call, n)
    telling, evidence = tell(rule)
    acted = telling.follower.said(rule=1)
    if action == "kill" and role in UNNOTICED:
        check_undisturbed(telling, evidence)
    return Outcome(rule, bool(acted), acted[0] if acted else {},
                   telling.is_held, evidence)


def count_once():
    telling, evidence = tell(count=True)
    check_undisturbed(telling, evidence)
    names = telling.follower.wait(what="counts")["names"]
    assert set(names) == set(ROLES)
    return names


def count():
    """Role -> class -> how many calls an undisturbed story has: the least of
    some. What others had more is what came of their taking longer.
    """
    found = [count_once() for _ in range(COUNTED)]
    return {role: {name: min(names[role][name] for names in found)
                   for name in found[0][role]} for role in ROLES}


# ---- many points -----------------------------------------------------------

# Counts differ a little from run to run, by what happened to come together: of
# all points a tenth may be missed, after they were tried so many times. For
# one of a sample that is missed another one is taken.
MISSED_MOST = 0.1
ROUNDS = 5
# A story waits for five times as long as it computes.
JOBS = 6 * (os.cpu_count() or 1)

Tried = collections.namedtuple("Tried", "is_reached is_held broken")


def try_point(action, role, call, n):
    """What became of it; what was broken is in words."""
    try:
        outcome = run(action, role, call, n)
        return Tried(outcome.reached, outcome.is_held, "")
    except (AssertionError, harness.HarnessError) as error:
        return Tried(True, False, "%s@%s:%s:%d: %s" % (
            action, role, call, n, error))


def try_points(action, role, call, chosen):
    """The same of many, several at a time, each in a process of its own."""
    pool = concurrent.futures.ProcessPoolExecutor(
        min(JOBS, len(chosen)), multiprocessing.get_context("fork"))
    try:
        return list(pool.map(functools.partial(try_point, action, role, call),
                             chosen))
    finally:
        pool.shutdown(cancel_futures=True)


def reach(order, want, tries):
    """n -> what became of it, of points that were reached: WANT of them, or
    fewer when no round is left. Points come in their ORDER, what was missed
    at last once more. TRIES takes some and returns as many.
    """
    queue = list(order)
    reached = {}
    for _ in range(ROUNDS):
        chosen = queue[:want - len(reached)]
        if not chosen:
            break
        tried = dict(zip(chosen, tries(chosen)))
        reached.update((n, one) for n, one in tried.items() if one.is_reached)
        queue = queue[len(chosen):] + [n for n in chosen if n not in reached]
    return reached


def sweep(summary, action, role, call, count, sample):
    """A sample of the points, or all of them; SUMMARY hears how it went."""
    points = range(1, count + 1)
    order = chance.order("%s %s %s" % (action, role, call), points)
    want = count if chance.SWEEP else min(count, sample)
    reached = reach(order, want, functools.partial(
        try_points, action, role, call))
    broken = [one.broken for _, one in sorted(reached.items()) if one.broken]
    missed = want - len(reached)
    summary("%s@%s:%s: %d of %d points, %d not reached, %d held, %d broken" % (
        action, role, call, want, count, missed,
        sum(one.is_held for one in reached.values()), len(broken)))
    assert not broken, "\n\n".join(broken)
    assert want and missed <= may_miss(want), "%d of %d not reached" % (
        missed, want)


def may_miss(want):
    """Of a sample none."""
    return int(want * MISSED_MOST) if chance.SWEEP else 0
