"""The demo's story: one mention, from the feed to the posted answer.

./demo builds first and then runs this. With --keep all stays up until
Ctrl-C. The last line of a run that went well is one JSON object.
"""

import json
import pathlib
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent / "integration"))

import harness

REQUEST = "could you fix the date picker?"
SCRIPT = {"default": ["get", "ack", "read", "work",
                      "reply:Fixed: the date picker opens again.",
                      "complete"]}
LIMITS = {"feed_poll": "200ms", "guard_delay": "30s"}
BOOST = "POST /{a}/recordings/{id}/boosts.json"
TITLES = {
    "supervisor": "starts, watches and ends all others",
    "ledger": "the only one that opens ledger.db",
    "intake": "reads Basecamp",
    "dispatcher": "decides what starts, talks to the agent",
    "outbox": "posts to Basecamp, has the credential",
    "mcpd": "serves the tools of this one task",
    "worker": "the (scripted) coding agent",
    "bridge": "the agent's way to its mcpd",
}


class Story:
    """Tells what happened and when, counted from the mention."""

    def __init__(self):
        self.start = None
        self.times = {}

    def say(self, text):
        print("             " + text, flush=True)

    def tell(self, name, at, text):
        since = round((at - self.start) * 1000)
        self.times[name] = since
        print("  %+6d ms  %s" % (since, text), flush=True)


def call_record(connector, tool, action, what="answer"):
    """The agent's record of the last answer to this action, or None."""
    asked = False
    found = None
    for record in connector.agent_records():
        if record["what"] == "call" and record["tool"] == tool:
            asked = record["arguments"]["action"] == action
        elif record["what"] == what and asked and record["tool"] == tool:
            found = record
            asked = False
    return found


def wait_answer(connector, tool, action):
    record = harness.wait_for(
        lambda: call_record(connector, tool, action),
        what="the agent's %s" % action)
    if record["is_error"]:
        raise harness.HarnessError("%s was refused: %s"
                                   % (action, record["text"]))
    return record


def process_table(connector):
    """All processes of the running task, role and pid."""
    def look():
        found = connector.roles()
        return found if set(found) >= set(TITLES) - {"supervisor"} else None

    found = harness.wait_for(look, what="all processes of the task")
    table = [{"role": "supervisor", "pid": connector.process.pid}]
    for role in TITLES:
        table += [{"role": role, "pid": p.pid} for p in found.get(role, [])]
    return table


def tell_processes(story, table):
    for row in table:
        story.say("  %-10s pid %-7d %s" % (row["role"], row["pid"],
                                           TITLES[row["role"]]))


def tell_story(story, connector):
    """One mention and all that follows. Returns what the last line says."""
    sim = connector.sim
    start = connector.line_count()
    # Until its processes were seen, the task gets no further than this.
    sim.gate(BOOST)
    story.start = time.monotonic()
    sim.mention(REQUEST)
    story.tell("mentioned", time.monotonic(),
               'A person writes: "@Marie Chef %s"' % REQUEST)

    def line(name, text, **fields):
        found = connector.wait_line(start=start, **fields)
        story.tell(name, found["_time"], text % found)
        return found

    pointer = line("recorded", "intake read event %(event_id)d on the feed; "
                   "the ledger has written it down",
                   type=None, event_id=lambda n: n is not None)
    event_id = pointer["event_id"]
    line("admitted", "This person may direct this agent here: admitted "
         "(%(trigger)s)", type="event", event_id=event_id, state="admitted")
    attempt = line("launched", "The dispatcher starts %(attempt_id)s",
                   type="dispatch", state="launching")["attempt_id"]
    line("running", "The agent's process runs; it is told only the event's "
         "number", type="dispatch", attempt_id=attempt, state="running")
    table = process_table(connector)
    sim.release(BOOST)
    tell_processes(story, table)
    pulled = wait_answer(connector, "basecamp_connect", "get_dispatch")
    story.tell("pulled", pulled["at"], "The agent pulled its dispatch")
    line("acknowledged", "It acknowledged: boost %(receipt_id)d is posted",
         type="outbox", kind="worker_ack", state="sent", event_id=event_id)
    read = wait_answer(connector, "basecamp_thread", "read")
    story.tell("read", read["at"], "It read the thread")
    work = connector.route / ("answer-%d.txt" % event_id)
    harness.wait_for(work.exists, what="the agent's work")
    worked = [r for r in connector.agent_records("step")
              if r["name"] == "work"][0]
    story.tell("worked", worked["at"], "It worked in %s" % connector.route)
    line("replied", "It answered: comment %(receipt_id)d is posted",
         type="outbox", kind="worker_reply", state="sent", event_id=event_id)
    done = wait_answer(connector, "basecamp_connect", "complete_dispatch")
    story.tell("completed", done["at"], "It reported its outcome")
    line("ended", "Its process tree is gone and the task is settled "
         "(%(stop_reason)s)", type="dispatch", attempt_id=attempt,
         state="ended")
    row = settled_row(connector, event_id)
    check_messages(story, sim, row)
    return {"ok": True, "event_id": event_id, "ack_id": row["ack_id"],
            "reply_id": row["reply_id"], "outcome": row["outcome"],
            "processes": table, "timeline_ms": story.times}


def settled_row(connector, event_id):
    """What the ledger says of the event in the end."""
    rows = connector.query(
        "SELECT t.ack_id, t.reply_id, t.outcome, e.state"
        " FROM task_events t JOIN events e ON e.id = t.event_id"
        " WHERE t.event_id = ?", event_id)
    if len(rows) != 1 or rows[0]["state"] != "completed":
        raise harness.HarnessError("the ledger says %r" % rows)
    if rows[0]["outcome"] != "succeeded":
        raise harness.HarnessError("the outcome is %r" % rows[0]["outcome"])
    return rows[0]


def check_messages(story, sim, row):
    """Basecamp must hold exactly the one boost and the one answer."""
    posted = {message["id"]: message for message in sim.messages()}
    if set(posted) != {row["ack_id"], row["reply_id"]}:
        raise harness.HarnessError("Basecamp has %r, the ledger %r"
                                   % (posted, row))
    for number in sorted(posted):
        story.say('Basecamp has %s %d: "%s"' % (
            posted[number]["kind"], number, posted[number]["content"]))


def tell_commands(connector):
    """What to try while all is up."""
    ctl = "%s -P %s" % (connector.bin / "connectctl", connector.profile)
    names = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR")
    print("\nAll stays up until Ctrl-C. The simulator is %s, the profile %s."
          "\nIn another terminal:\n" % (connector.sim.url, connector.profile))
    for name in names:
        print("  export %s=%s" % (name, connector.environ[name]))
    print("  %s status" % ctl)
    print("  %s events -f" % ctl)
    print("  %s show EVENT" % ctl)
    print("  curl -s %s/sim/mention -H 'Content-Type: application/json'"
          " -d '{\"text\":\"one thing more\"}'" % connector.sim.url)
    print("  curl -s %s/sim/messages" % connector.sim.url)
    print("  kill -9 PID    # any role: it is back at once")
    print("\nLines: %s\nLog:   %s" % (
        connector.folder.path / "connectd.stdout",
        connector.folder.path / "connectd.stderr"), flush=True)


def run(keep):
    """The whole demo. Returns its last line's object."""
    story = Story()
    harness.make_users()
    folder = harness.Folder()
    sim = connector = None
    try:
        sim = harness.Sim(folder)
        story.say("A local Basecamp is at " + sim.url)
        connector = harness.Connector(sim, folder, script=SCRIPT,
                                      limits=LIMITS)
        connector.start()
        story.say("connectd is up, profile %s" % connector.profile)
        result = tell_story(story, connector)
        if keep:
            tell_commands(connector)
            wait_interrupt(connector)
        status = connector.stop()
        if status not in (0, 143):
            raise harness.HarnessError("connectd ended with %d" % status)
    except harness.HarnessError as error:
        if connector is not None:
            print("connectd's last words:\n" + connector.tail(30),
                  file=sys.stderr)
        raise error
    finally:
        clean_up(sim, connector, folder)
    story.say("connectd has stopped; nothing is left running")
    return result


def clean_up(sim, connector, folder):
    """End what runs, in order; a second Ctrl-C cannot stop this."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        if connector is not None:
            connector.close()
    finally:
        try:
            if sim is not None:
                sim.close()
        finally:
            folder.remove()


def wait_interrupt(connector):
    try:
        while connector.is_running():
            time.sleep(0.2)
    except KeyboardInterrupt:
        return
    connector.must_run()


def on_terminate(_number, _frame):
    raise KeyboardInterrupt


def main():
    signal.signal(signal.SIGTERM, on_terminate)
    try:
        result = run(sys.argv[1:] == ["--keep"])
    except KeyboardInterrupt:
        print("demo: interrupted; all is ended", file=sys.stderr)
        return 1
    except (harness.HarnessError, OSError) as error:
        print("demo: it did not go well: %s" % error, file=sys.stderr)
        return 1
    print(json.dumps(result, separators=(",", ":")), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
