"""The six promises, checked from what can be seen from outside: a copy of the
ledger, the simulator's log and messages, the agent's log, the process table
and everything that was written. Nothing here knows where a kill fell.
"""

import collections
import html
import json
import os
import re

import leaks
import processes

TABLES = ("events", "tasks", "task_events", "attempts", "outbox",
          "hold_marker", "decisions")
# What Basecamp calls it, by the path that it is posted to.
POSTS = ((re.compile(r"/\d+/recordings/(\d+)/boosts(?:\.json)?"), "boost"),
         (re.compile(r"/\d+/recordings/(\d+)/comments(?:\.json)?"), "comment"),
         (re.compile(r"/\d+/chats/(\d+)/lines(?:\.json)?"), "chat_line"))
BREAKS = re.compile(r"<br\s*/?>|</(?:div|p|li|h[1-6])>", re.I)
TAGS = re.compile(r"<[^>]*>")
UNSETTLED = ("seen", "admitted", "queued", "dispatched")
DOUBTFUL = ("sending", "indeterminate", "abandoned")
# What one recording may carry of the words of one row.
Place = collections.namedtuple("Place", "kind recording text")


def words(text):
    """The words of a body, as Basecamp and we both keep them."""
    return " ".join(html.unescape(TAGS.sub("", BREAKS.sub(" ", text))).split())


def caused_events(sim):
    """The ids of all that others than the agent did to a recording."""
    agent = sim.ready["agent_id"]
    return {event["id"] for recording in sim.get("/sim/world")["recordings"]
            for event in recording.get("events") or []
            if event["creator_id"] != agent}


def served_events(sim):
    """Those that pages have carried: all up to the last one (a test causes
    nothing before the feed is entered).
    """
    last = sim.state()["served"]
    return {ident for ident in caused_events(sim) if ident <= last}


class Evidence:
    """All that is known at one moment. The ledger is read first and the
    processes after it: what it calls ended must be gone by then.
    """

    def __init__(self, connector, needles=None):
        self.connector = connector
        self.needles = needles
        if connector.is_running():
            self.status = connector.status()
        else:
            self.status = None
        with connector.ledger() as ledger:
            self.rows = {name: [dict(row) for row in ledger.execute(
                "SELECT * FROM " + name)] for name in TABLES}
        self.processes = processes.all_processes()
        self.cgroups = {a["id"]: cgroup_members(a["containment"])
                        for a in self.rows["attempts"]}
        self.messages = connector.sim.messages()
        self.requests = connector.sim.log()
        self.minted = connector.sim.state()["minted"]
        self.served = served_events(connector.sim)
        self.agent = connector.agent_records()
        self.report = leaks.Report(needles) if needles else None
        if needles:
            needles.learn(connector)
            leaks.look_around(self.report, connector)

    def event(self, ident):
        return next(r for r in self.rows["events"] if r["id"] == ident)

    def of_event(self, table, ident):
        return [r for r in self.rows[table] if r["event_id"] == ident]

    def task_attempts(self, task_id):
        return [a for a in self.rows["attempts"] if a["task_id"] == task_id]


def cgroup_members(containment):
    """The processes of an attempt's cgroup; none when it is gone."""
    kind, _, path = containment.partition(":")
    if kind != "cgroup":
        return []
    try:
        with open(os.path.join(path, "cgroup.procs"), encoding="ascii") as f:
            return [int(line) for line in f]
    except OSError:
        return []


# ---- 1. no instruction that a worker may have seen runs twice --------------

def pulls(evidence):
    """(event, agent's pid) of each dispatch that an agent has got."""
    asked = {}
    got = []
    for record in evidence.agent:
        if record["what"] == "call":
            asked[record["pid"]] = record["arguments"]
        elif record["what"] == "answer" and not record["is_error"]:
            arguments = asked.get(record["pid"], {})
            if arguments.get("action") == "get_dispatch":
                answer = json.loads(record["text"])
                ident = (answer.get("instruction") or {}).get("event_id")
                if ident is not None:
                    got.append((ident, record["pid"]))
    return got


def runs_once(evidence):
    prompts = collections.Counter(
        r["event_id"] for r in evidence.agent if r["what"] == "prompt")
    pullers = collections.defaultdict(set)
    for ident, pid in pulls(evidence):
        pullers[ident].add(pid)
    for event in evidence.rows["events"]:
        ident = event["id"]
        rows = evidence.of_event("task_events", ident)
        allowed = 1 + sum(d["action"] == "redispatch" for d in
                          evidence.of_event("decisions", ident))
        shown = [r for r in rows if r["exposed_at"] and not r["withdrawn_at"]]
        pulled = [r for r in rows if r["pulled_at"]]
        if len(shown) > allowed:
            yield "event %d was handed over %d times" % (ident, len(shown))
        if len(pulled) > allowed or len(pullers[ident]) > allowed:
            yield "event %d was pulled %d times, by %s" % (
                ident, len(pulled), sorted(pullers[ident]))
        if prompts[ident] > allowed:
            yield "event %d was prompted %d times" % (ident, prompts[ident])
        if (prompts[ident] or pullers[ident]) and not shown:
            yield "an agent was told of event %d, the ledger says it " \
                "waits" % ident
        if pullers[ident] and not pulled:
            yield "event %d was pulled, the ledger does not know" % ident
    for ident in set(prompts) - {e["id"] for e in evidence.rows["events"]}:
        yield "event %d was prompted and is not recorded" % ident


# ---- 2. no message is posted twice, a doubt is shown -----------------------

def place_of_row(row):
    return Place(row["message_kind"], row["recording_id"], words(row["body"]))


def place_of_request(request):
    if request["method"] != "POST" or not isinstance(request.get("body"),
                                                     dict):
        return None
    for pattern, kind in POSTS:
        match = pattern.fullmatch(request["path"])
        if match:
            return Place(kind, int(match.group(1)),
                         words(str(request["body"].get("content"))))
    return None


def posted_once(evidence):
    claimed = collections.Counter(
        place_of_row(r) for r in evidence.rows["outbox"] if r["sending_at"])
    posted = collections.Counter(
        Place(m["kind"], m["recording_id"], words(m["content"]))
        for m in evidence.messages)
    # A 401 has created nothing: it may be asked again with another token.
    asked = collections.Counter(
        place_of_request(r) for r in evidence.requests if r["status"] != 401)
    del asked[None]
    for place, count in posted.items():
        if count > 1 and count > claimed[place]:
            yield "%d times in Basecamp: %s" % (count, place)
        if not claimed[place]:
            yield "nobody claimed what was posted: %s" % (place,)
    for place, count in asked.items():
        if count > claimed[place]:
            yield "%d requests for %d claims: %s" % (count, claimed[place],
                                                     place)
    yield from receipts_wrong(evidence)
    yield from doubts_hidden(evidence)


def receipts_wrong(evidence):
    there = {(m["kind"], m["id"]): m for m in evidence.messages}
    owned = set()
    for row in evidence.rows["outbox"]:
        if row["state"] != "sent":
            continue
        message = there.get((row["message_kind"], row["receipt_id"]))
        if message is None:
            yield "intent %d has the receipt of no message" % row["id"]
        elif place_of_row(row) != Place(message["kind"],
                                        message["recording_id"],
                                        words(message["content"])):
            yield "intent %d has another message's receipt" % row["id"]
        owned.add((row["message_kind"], row["receipt_id"]))
    doubtful = {place_of_row(r) for r in evidence.rows["outbox"]
                if r["state"] in DOUBTFUL}
    for key, message in there.items():
        place = Place(message["kind"], message["recording_id"],
                      words(message["content"]))
        if key not in owned and place not in doubtful:
            yield "%s %d is in Basecamp and in no row" % key


def doubts_hidden(evidence):
    if evidence.status is None:
        return
    shown = {i["id"] for i in
             evidence.status["data"]["status"]["indeterminate_intents"]}
    for row in evidence.rows["outbox"]:
        if row["state"] == "indeterminate" and row["id"] not in shown:
            yield "intent %d is in doubt and status does not say so" % (
                row["id"])


# ---- 3. nothing that the feed served is lost -------------------------------

def nothing_lost(evidence):
    recorded = {r["id"] for r in evidence.rows["events"]}
    for ident in sorted(evidence.served - recorded):
        yield "event %d was served and is not in the ledger" % ident


# ---- 4. nothing held is dispatched -----------------------------------------

def nothing_held_runs(evidence):
    for event in evidence.rows["events"]:
        is_held = event["state"] == "held" or (
            event["review"] and not event["authorized_at"])
        rows = [r for r in evidence.of_event("task_events", event["id"])
                if not r["retired_at"]]
        if is_held and (rows or event["state"] == "dispatched"):
            yield "event %d is held and on a task" % event["id"]
    for hold in evidence.rows["hold_marker"]:
        for attempt in evidence.rows["attempts"]:
            if attempt["launched_at"] > hold["held_at"]:
                yield "%s was launched under the hold" % attempt["id"]


# ---- 5. nothing of a task is released while any of its processes runs ------

def of_attempt(evidence, attempt):
    """The live processes of its group, session and cgroup."""
    inside = set(evidence.cgroups[attempt["id"]])
    for process in evidence.processes:
        if process.state in "ZX":
            continue
        if process.pid in inside:
            yield process
        elif attempt["pid"] and attempt["pgid"] in (process.pgid, process.sid):
            if process.started >= attempt["started_ticks"]:
                yield process


def agent_pids(evidence):
    """Who logged, by pid: agents, their servers, their children."""
    found = {}
    for record in evidence.agent:
        if record["what"] == "start":
            found[record["pid"]] = "agent"
        elif record["what"] == "server_start":
            found[record["pid"]] = "server"
        elif record["what"] == "grandchild":
            found[record["child"]] = "grandchild"
    return found


def nothing_left(evidence):
    live = set()
    for attempt in evidence.rows["attempts"]:
        there = list(of_attempt(evidence, attempt))
        if attempt["state"] != "ended":
            live.update(p.pid for p in there)
            continue
        for process in there:
            yield "%s has ended and %s (pid %d) of it lives" % (
                attempt["id"], process.comm, process.pid)
    if any(a["state"] != "ended" for a in evidence.rows["attempts"]):
        return
    now = {p.pid: p for p in evidence.processes if p.state not in "ZX"}
    marker = evidence.connector.folder.marker.encode()
    for pid, what in agent_pids(evidence).items():
        if pid in now and marker in processes.read_bytes(pid, "environ"):
            yield "no attempt lives and the %s %d does" % (what, pid)


# ---- 6. no credential leaves the process that needs it ---------------------

def nothing_leaked(evidence):
    if evidence.report is None:
        return
    yield from sorted(evidence.report.found)
    if "access_token" not in evidence.needles.secrets or not evidence.minted:
        yield "no access token was looked for"
    for kind in ("file", "line", "log", "cmdline", "request"):
        if not evidence.report.read.get(kind):
            yield "nothing was read of: %s" % kind


PROMISES = {
    "no instruction runs twice": runs_once,
    "no message is posted twice": posted_once,
    "nothing served is lost": nothing_lost,
    "nothing held is dispatched": nothing_held_runs,
    "nothing is released while it runs": nothing_left,
    "no credential leaves": nothing_leaked,
}


def broken(evidence):
    """What is not as promised, promise by promise; empty when all hold."""
    found = {name: list(check(evidence)) for name, check in PROMISES.items()}
    return {name: texts for name, texts in found.items() if texts}


def check(connector, needles=None):
    """The evidence of this moment, after all six were checked against it."""
    evidence = Evidence(connector, needles)
    faults = broken(evidence)
    assert not faults, json.dumps(faults, indent=1)
    return evidence


# ---- when it is all over ---------------------------------------------------

def unsettled(connector):
    """What still moves, in words; empty when nothing does (operator.md 6.1).
    What is not due yet does not, by connectd's own clock.
    """
    now = "%+d seconds" % connector.folder.clock_shift
    with connector.ledger() as ledger:
        def ask(sql, *values):
            return [tuple(row) for row in ledger.execute(sql, values)]
        found = ask("SELECT id, state FROM events WHERE state IN"
                    " (?, ?, ?, ?)", *UNSETTLED)
        found += ask("SELECT id, state FROM attempts WHERE state <> 'ended'")
        found += ask("SELECT id, kind, state FROM outbox WHERE state ="
                     " 'sending' OR (state = 'pending' AND not_before <="
                     " strftime('%Y-%m-%dT%H:%M:%f', 'now', ?))", now)
        recorded = {row[0] for row in ask("SELECT id FROM events")}
    return found + sorted(caused_events(connector.sim) - recorded)
