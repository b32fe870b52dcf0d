"""What Basecamp was told, message by message: of which kind it is by its
words, and whether it stands where the story calls for it. The words are those
of operator.md 2.2 and 2.3 as we say them, the places come from the simulator,
which knows what was said where; nothing here asks the outbox's rows.
"""

import collections
import re

import promises

CLOCK = r"\d\d:\d\d UTC"
FOOT = " - posted by connectd, not by the agent"
ASK = r" To run it again: connectctl redispatch (\d+)"

# What stands on the event's own recording; all else is in its conversation.
BOOSTS = {"guard_ack": "\N{EYES} received", "worker_ack": "On it"}
# With the event's id, or the attempt's.
COMMENTS = {
    "worker_reply": r"Done: event (?P<event>\d+)\.",
    "holding_reply":
        r"Nothing was started: this project is not one that this connector"
        r" works in\. Once it is, this starts the work: connectctl redispatch"
        r" (?P<event>\d+) Event (?P=event)" + FOOT,
    "still_running":
        r"Task (?P<task>\d+): the agent is still at work, as of " + CLOCK +
        r"\. It was started at " + CLOCK + r"; (no progress was reported yet|"
        r"the last progress was at " + CLOCK + r")\. Attempt (?P<attempt>\w+),"
        r" notice [1-9]\d*" + FOOT,
    "completion":
        r"Task (?P<task>\d+): (?P<stop>.+?) (?P<lines>Event \d+: .+) Attempt"
        r" (?P<attempt>\w+)" + FOOT,
    "retraction":
        r"Event (?P<event>\d+): an earlier notice here asked for its"
        r" redispatch\. A person (closed it|had it run again), at " + CLOCK +
        r"; that notice stays as a record\. Event (?P=event)" + FOOT,
}
ONE_DIV = re.compile("<div>[^<>]+(<br>[^<>]+)+</div>")
LINE = re.compile(r"Event (\d+): (.+?)(?:%s)?(?= Event \d+: |$)" % ASK)
STOPS = {
    "finished": "the agent's turn came to its end.",
    "failed": "the agent stopped with an error.",
    "deadline": "the agent was stopped at its time limit.",
    "shutdown": "the agent was stopped with the connector.",
    "lost": "the agent, or what watched over it, went away in the middle of"
            " its work.",
}
OUTCOMES = {
    "failed": "reported as failed.",
    "unknown": "no outcome was reported; what was done is not known.",
    "succeeded": "reported as done, without a reply.",
}
NOT_STARTED = "the agent could not be started."

# Of an event, or of an attempt; the other one is None.
Said = collections.namedtuple("Said", "kind event attempt")


class Story:
    """Where things were said, and what the ledger made of them."""

    def __init__(self, evidence):
        self.evidence = evidence
        self.recordings = {}  # event id -> the recording it is about
        self.threads = {}     # event id -> where it is answered
        sim = evidence.connector.sim
        for recording in sim.get("/sim/world")["recordings"]:
            for event in recording.get("events") or []:
                if event["creator_id"] != sim.ready["agent_id"]:
                    self.recordings[event["id"]] = recording["id"]
                    self.threads[event["id"]] = recording["parent_id"]

    def attempt(self, ident):
        found, = [a for a in self.evidence.rows["attempts"]
                  if a["id"] == ident]
        return found

    def task_rows(self, task_id):
        return {r["event_id"]: r for r in self.evidence.rows["task_events"]
                if r["task_id"] == task_id}


def read(evidence):
    """All that stands in Basecamp; fails for what no story calls for, also
    for what was only asked for and does not stand there.
    """
    story = Story(evidence)
    for message in filter(None, map(asked_for, evidence.requests)):
        read_one(story, message)
    return [read_one(story, message) for message in evidence.messages]


def asked_for(request):
    """The message that a request would have made; or None."""
    place = promises.place_of_request(request)
    return place and {"kind": place.kind, "recording_id": place.recording,
                      "content": request["body"]["content"]}


def read_one(story, message):
    text = promises.words(message["content"])
    if message["kind"] == "boost":
        kind, = [k for k, form in BOOSTS.items() if form == text] or [None]
        events = [e for e, r in story.recordings.items()
                  if r == message["recording_id"]]
        assert kind and len(events) == 1, "a boost of nobody's: %s" % message
        return Said(kind, events[0], None)
    for kind, form in COMMENTS.items():
        found = re.fullmatch(form, text)
        if found and message["kind"] == "comment":
            break
    else:
        raise AssertionError("of no known form: %s" % message)
    assert kind == "worker_reply" or ONE_DIV.fullmatch(message["content"])
    parts = found.groupdict()
    if "attempt" in parts:
        return read_attempt(story, message, kind, parts)
    event = int(parts["event"])
    assert story.threads[event] == message["recording_id"], (
        "another conversation's: %s" % message)
    return Said(kind, event, None)


def read_attempt(story, message, kind, parts):
    """In the conversation of the task, and true of it."""
    attempt = story.attempt(parts["attempt"])
    rows = story.task_rows(attempt["task_id"])
    assert attempt["task_id"] == int(parts["task"]), message
    assert {story.threads[e] for e in rows} == {message["recording_id"]}, (
        "another conversation's: %s" % message)
    if kind == "completion":
        assert parts["stop"] == STOPS[attempt["stop_reason"]], message
        lines = LINE.findall(parts["lines"])
        assert lines, message
        for event, sentence, asked in lines:
            check_line(story, rows[int(event)], sentence, asked)
    return Said(kind, None, attempt["id"])


def check_line(story, row, sentence, asked):
    """A person is asked, about that very event, unless all is well or he has
    decided before.
    """
    if row["withdrawn_at"]:
        wanted = NOT_STARTED
    else:
        wanted = OUTCOMES[row["outcome"]]
        assert row["outcome"] != "succeeded" or not row["reply_id"]
    assert sentence == wanted, (sentence, row)
    decided = story.evidence.of_event("decisions", row["event_id"])
    if sentence == OUTCOMES["succeeded"]:
        assert not asked, row
    else:
        assert asked == str(row["event_id"]) or (not asked and decided), (
            asked, row)


def count(evidence, event_id, attempts):
    """Kind -> how many stand there of this event and these attempts."""
    return dict(collections.Counter(
        one.kind for one in read(evidence)
        if one.event == event_id or one.attempt in attempts))
