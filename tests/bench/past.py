"""What a dead run leaves: ten thousand records in a ledger, moved there by its
own triggers. The first record, task and attempt are a real connector's; the
others are like them. As many tasks are at work as `concurrency` may be, each
in a project and a directory of its own; some have a second record that their
worker has not seen.
"""

import sqlite3

from bench_feed import STRANGER
from house import harness

RECORDS = {
    "held": 800,
    "completed": 5000,
    "discarded": 1500,
    "blocked": 1500,
    "dispatched": 50,
    "waiting": 900,  # admitted, or queued behind what is
    "seen": 250,
}
TASKS = 32
PROJECTS = 40
THREADS = 200
# The simulator's ids; those of the records begin at 1.
PROJECT = 50000000
THREAD = 2000000
COMMENT = 3000000
MODEL = 1000001

# A record's life, a statement a step; the parameters are those of record().
FEED = "lane, event_type, kind, action, actor_type"
RULED = ("trigger_name, acknowledge, reply_kind, routed, class,"
         " recording_url, requester_id, snapshot")
SEEN = (
    "INSERT INTO events (id, state, bucket_id, creator_id, recording_id,"
    " created_at, seen_at, updated_at, " + FEED + ") SELECT :id, 'seen',"
    " :project, :who, :comment, :then, :then, :then, " + FEED +
    " FROM events WHERE id = :model")
ADMITTED = (
    "INSERT INTO events (id, state, bucket_id, creator_id, recording_id,"
    " created_at, seen_at, updated_at, decided_at, conversation_key,"
    " reply_recording_id, route, " + FEED + ", " + RULED + ") SELECT :id,"
    " 'seen', :project, :who, :comment, :then, :then, :then, :then, :key,"
    " :thread, :route, " + FEED + ", " + RULED +
    " FROM events WHERE id = :model")
MOVE = (
    "UPDATE events SET state = :state, reason = :reason, decided_at = :then,"
    " revision = revision + 1, next_retry_at = :due, blocked_at = CASE"
    " WHEN :state = 'blocked' THEN :then END, retry_since = CASE"
    " WHEN :state = 'blocked' THEN :then END WHERE id = :id")
MESSAGE = (
    "INSERT INTO outbox (intent_key, kind, event_id, task_id, bucket_id,"
    " argument_sha256, message_kind, recording_id, body, created_at,"
    " not_before) SELECT :kind || ':event:' || :id, :kind, :id, :of_task,"
    " :project, CASE :kind WHEN 'guard_ack' THEN '' ELSE printf('%064x', :id)"
    " END, :form, CASE :form WHEN 'boost' THEN :comment ELSE :thread END,"
    " body, :then, :then FROM outbox WHERE kind = 'guard_ack' LIMIT 1")
OF_KIND = " WHERE intent_key = :kind || ':event:' || :id"
SENDING = (
    "UPDATE outbox SET state = 'sending', sending_at = :then,"
    " nonce = printf('%032x', id)" + OF_KIND)
SENT = (
    "UPDATE outbox SET state = 'sent', finished_at = :then,"
    " receipt_id = 900000000 + id" + OF_KIND)
DOUBT = (
    "UPDATE outbox SET state = 'indeterminate', finished_at = :then"
    + OF_KIND)
MESSAGE_STEPS = {"pending": [MESSAGE], "sending": [MESSAGE, SENDING],
                 "sent": [MESSAGE, SENDING, SENT],
                 "indeterminate": [MESSAGE, SENDING, DOUBT]}
TASK = (
    "INSERT INTO tasks (id, token_sha256, created_at, conversation_key, route,"
    " work_dir, driver, originating_event_id, deadline_at) SELECT :task,"
    " printf('%064x', :task), :then, :key, :route, :route, driver, :id,"
    " deadline_at FROM tasks ORDER BY id LIMIT 1")
JOIN = (
    "INSERT INTO task_events (task_id, event_id, conversation_key, guard)"
    " VALUES (:task, :id, :key, 'armed')")
LAUNCH = (
    "INSERT INTO attempts (id, task_id, seq, driver, state, boot_id, run_id,"
    " containment, launched_at) SELECT :attempt, :task, 1, driver,"
    " 'launching', boot_id, run_id, replace(containment, id, :attempt), :then"
    " FROM attempts ORDER BY task_id LIMIT 1",
    "UPDATE attempts SET state = 'running', running_at = :then, (pid, pgid,"
    " started_ticks, session_id) = (SELECT pid, pgid, started_ticks,"
    " session_id FROM attempts ORDER BY task_id LIMIT 1) WHERE id = :attempt",
    "UPDATE task_events SET delivery = 'exposed', exposed_at = :then,"
    " exposed_attempt_id = :attempt WHERE task_id = :task AND event_id = :id")
PULL = (
    "UPDATE task_events SET pulled_at = :then, guard = CASE guard"
    " WHEN 'armed' THEN 'canceled' ELSE guard END"
    " WHERE task_id = :task AND event_id = :id")
ACK = (
    "UPDATE task_events SET delivery = 'delivered', delivered_at = :then,"
    " ack_id = (SELECT receipt_id FROM outbox"
    " WHERE intent_key = 'worker_ack:event:' || :id)"
    " WHERE task_id = :task AND event_id = :id")
REPORTED = (
    "UPDATE task_events SET delivery = 'completed', delivered_at = :then,"
    " completed_at = :then, outcome = :outcome, reply_id = (SELECT receipt_id"
    " FROM outbox WHERE intent_key = 'worker_reply:event:' || :id)"
    " WHERE task_id = :task AND event_id = :id",
    "UPDATE attempts SET state = 'ended', ended_at = :then,"
    " stop_reason = 'finished' WHERE id = :attempt",
    "UPDATE tasks SET superseded_at = :then, ended_at = :then"
    " WHERE id = :task")
HOLD = (
    "INSERT INTO generations (cause, opened_by, opened_at)"
    " VALUES ('hold', 'operator', :then)",
    "UPDATE events SET review = 1 WHERE state = 'admitted'",
    "INSERT INTO decisions (action, decided_by, decided_at)"
    " VALUES ('hold', 'operator', :then), ('release', 'operator', :then)")


class Past:
    """The ledger of a connector that is down, to be filled. THEN is a stamp
    some minutes old, LATER one to come; directories are the projects'.
    """

    def __init__(self, path, directories, then, later):
        self.db = sqlite3.connect(path)
        self.db.execute("PRAGMA foreign_keys = ON")
        self.directories = directories
        self.then = then
        self.later = later
        self.threads = {}  # record -> the recording that it is answered at

    def run(self, record, *statements, **more):
        for sql in statements:
            self.db.execute(sql, dict(record, **more))

    def record(self, insert, nth, **more):
        """The parameters of a new record in the nth thread."""
        event = len(self.threads) + 1
        thread = self.threads[event] = THREAD + nth % THREADS
        project = PROJECT + nth % THREADS % PROJECTS
        record = {
            "id": event, "model": MODEL, "then": self.then, "due": None,
            "who": harness.OPERATOR, "reason": "", "comment": COMMENT + event,
            "thread": thread, "key": "recording:%d" % thread,
            "project": project, "route": self.directories[project],
            "task": MODEL + event, "attempt": "att_%024x" % event}
        record.update(more)
        self.run(record, insert)
        return record

    def message(self, record, kind, form, state):
        of_task = None if kind == "guard_ack" else record["task"]
        self.run(record, *MESSAGE_STEPS[state], kind=kind, form=form,
                 of_task=of_task)

    def admit(self, nth, guard, state="admitted"):
        record = self.record(ADMITTED, nth)
        self.message(record, "guard_ack", "boost", guard)
        self.run(record, MOVE, state=state)
        return record

    def complete(self, nth):
        """Most are answered, a few answers in doubt; some have failed."""
        record = self.admit(nth, "pending")
        self.run(record, TASK, JOIN, MOVE, *LAUNCH, PULL, state="dispatched")
        outcome = "failed" if nth % 40 == 0 else "succeeded"
        if outcome == "succeeded":
            self.message(record, "worker_reply", "comment",
                         "indeterminate" if nth % 500 == 1 else "sent")
        self.run(record, MOVE, *REPORTED, state="completed", outcome=outcome)

    def block(self, nth):
        """Most for a person, a third to be read again, some of these now."""
        due = self.then if nth % 15 == 0 else self.later
        timed = {"reason": "read_failed", "due": due}
        self.run(self.record(SEEN, nth), MOVE, state="blocked",
                 **timed if nth % 3 == 0 else {"reason": "rule_not_served"})

    def dispatch(self, nth):
        """A task when its run died: unseen, read, or acknowledged."""
        record = self.admit(nth, "sent")
        self.run(record, TASK, JOIN, MOVE, *LAUNCH, state="dispatched")
        if nth < RECORDS["dispatched"] - TASKS:
            self.run(self.admit(nth, "sent", "queued"), JOIN, MOVE,
                     task=record["task"], state="dispatched")
        if nth % 4 != 0:
            self.run(record, PULL)
        if nth % 2 != 0:
            self.message(record, "worker_ack", "boost", "sent")
            self.run(record, ACK)

    def wait(self, nth):
        """Behind a task, or behind an older record of the thread. As after
        an hour of a bad Basecamp, some first words are in doubt or due.
        """
        guard = {0: "sending", 1: "pending", 2: "pending"}.get(nth // 30)
        is_first = TASKS <= nth < THREADS
        self.admit(nth, guard or "sent", "admitted" if is_first else "queued")

    def fill(self):
        """All of it, in the order in which it came."""
        for nth in range(RECORDS["held"]):
            self.admit(nth, "pending")
        self.run({"then": self.then}, *HOLD)
        for nth in range(RECORDS["completed"]):
            self.complete(nth)
        for nth in range(RECORDS["discarded"]):
            self.run(self.record(SEEN, nth), MOVE, state="discarded",
                     reason="not_addressed")
        for nth in range(RECORDS["blocked"]):
            self.block(nth)
        for nth in range(TASKS):
            self.dispatch(nth)
        for nth in range(RECORDS["waiting"]):
            self.wait(nth)
        for nth in range(RECORDS["seen"]):
            self.record(SEEN, nth, **{"who": STRANGER} if nth % 2 else {})
        self.db.commit()
