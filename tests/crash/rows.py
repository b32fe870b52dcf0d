"""The recovery matrix as a table (operator.md 6.2, 6.3, 6.6, 6.8): rows with
one kill, that one engine can play. Rows that are longer stories are told in
test_matrix.py.
"""

import dataclasses

import matrix
import stories
from matrix import ByWorker, Post, Reading, line, tx

FAIL = ["get", "ack-id", "fail"]
TREE = ["grandchild", "kill:tree", "linger"]

ANSWERED = {"worker_ack": 1, "worker_reply": 1}
# How an event stands, and how it may end.
DONE = {"record": "completed", "outcome": "succeeded", "prompts": 1,
        "attempts": ["ended finished"], "completion": [], "posted": ANSWERED}
FAILED = {"record": "completed", "outcome": "failed", "prompts": 1,
          "attempts": ["ended finished"]}
LOST = {"record": "completed", "outcome": "unknown", "prompts": 1,
        "attempts": ["ended lost"], "completion": ["sent"],
        "posted": {"completion": 1}}
KEPT = {"record": "completed", "outcome": "succeeded", "prompts": 1,
        "attempts": ["ended lost"], "completion": [], "posted": ANSWERED}
SEEN = {"record": "seen", "tasks": 0, "guard_ack": [], "prompts": 0}
RUNNING = {"record": "dispatched", "attempts": ["running"], "prompts": 1}


@dataclasses.dataclass
class Row:
    """DEAD is what stands at death, THEN what after the first restart, POSTS
    how many requests to post are made from the restart on. A launch whose
    token was never written is a lost token.
    """

    name: str
    guarantee: str
    point: object
    script: object
    dead: dict
    then: dict
    posts: int
    limits: dict = dataclasses.field(default_factory=dict)
    mention: dict = dataclasses.field(default_factory=dict)
    lost_tokens: int = 0


# The state in a VERDICT's frame, behind its length.
VERDICT = "\x08([^a]|a)admitted"
GUARD = {"limits": {"guard_delay": "50ms"}}
HOLDING = {"mention": {"project_id": matrix.UNROUTED_PROJECT}}

ROWS = [
    Row("R1", "undecided work runs once", Reading(), stories.STEPS,
        SEEN, DONE, 2),
    Row("R2", "an uncommitted verdict leaves nothing",
        tx("ledger", VERDICT), stories.STEPS, SEEN, DONE, 2),
    Row("R3", "admitted before launch runs once",
        line("event", "admitted"), stories.STEPS,
        {"record": "admitted", "tasks": 0, "guard_ack": ["pending"],
         "prompts": 0}, DONE, 2),
    Row("R4", "exposure starts at launch: never run again",
        line("dispatch", "running"), ["linger"],
        dict(RUNNING, prompts=0, pulled=False),
        dict(LOST, prompts=0), 1),
    Row("R4 prompted", "the same when it was told already",
        ByWorker(), TREE, dict(RUNNING, pulled=False), LOST, 1),
    Row("R5", "exposed is never run again; ended as a group",
        ByWorker(), ["get", *TREE],
        dict(RUNNING, delivery="exposed", pulled=True), LOST, 1),
    Row("R6", "acknowledged is never run again",
        ByWorker(), ["get", "ack", *TREE],
        dict(RUNNING, delivery="delivered"),
        dict(LOST, posted={"worker_ack": 1, "completion": 1}), 1),
    Row("R7", "a reported outcome stands",
        ByWorker(), ["get", "ack", "reply", "complete", *TREE],
        dict(KEPT, attempts=["running"], delivery="completed"), KEPT, 0),
    Row("R8", "settlement is atomic, the outcome is kept",
        tx("ledger", "finished"), stories.STEPS,
        dict(KEPT, attempts=["running"], delivery="completed"), KEPT, 0),
    Row("R9", "a due notice is sent on start, once",
        line("dispatch", "ended"), FAIL,
        dict(FAILED, completion=["pending"], posted={}),
        dict(FAILED, completion=["sent"], posted={"completion": 1}), 1),
    Row("R10", "never resent; visible to a person",
        Post("before"), FAIL,
        dict(FAILED, completion=["sending"], posted={}),
        dict(FAILED, completion=["indeterminate"], posted={}), 0),
    Row("R11", "adopted, not reposted",
        Post("after"), FAIL,
        dict(FAILED, completion=["sending"], posted={"completion": 1}),
        dict(FAILED, completion=["sent"], posted={"completion": 1}), 0),
    Row("R23", "a guard is adopted, never doubled",
        Post("after", matrix.BOOSTS, "prompt"), ["linger"],
        dict(RUNNING, guard_ack=["sending"], posted={"guard_ack": 1}),
        dict(LOST, guard_ack=["sent"],
             posted={"completion": 1, "guard_ack": 1}), 1, **GUARD),
    Row("R24", "a guard is never resent",
        Post("before", matrix.BOOSTS, "prompt"), ["linger"],
        dict(RUNNING, guard_ack=["sending"], posted={}),
        dict(LOST, guard_ack=["indeterminate"]), 1, **GUARD),
    Row("R53", "a holding reply is there exactly once",
        Post("after"), [],
        {"record": "blocked", "reason": "no_route", "tasks": 0,
         "holding_reply": ["sending"], "posted": {"holding_reply": 1}},
        {"record": "blocked", "reason": "no_route", "tasks": 0,
         "holding_reply": ["sent"], "posted": {"holding_reply": 1}},
        0, **HOLDING),
    Row("R54", "a holding reply that may have gone is never resent",
        tx("outbox", "holding_reply"), [],
        {"record": "blocked", "holding_reply": ["sending"], "posted": {}},
        {"record": "blocked", "holding_reply": ["indeterminate"],
         "posted": {}}, 0, **HOLDING),
    Row("G2 holding before", "the same with the whole tree",
        Post("before"), [],
        {"record": "blocked", "holding_reply": ["sending"], "posted": {}},
        {"record": "blocked", "holding_reply": ["indeterminate"],
         "posted": {}}, 0, **HOLDING),
]
