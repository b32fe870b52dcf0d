"""How fast a backlog of the feed becomes durable.

Some thousand events of a person who may not direct the agent, each recorded
and decided (discarded, without reading anything more). The simulator's log
tells the time: the poll that asks for the page after the last full one comes
when all before is committed. One event before them is where the feed is
entered, and one behind them is on that last page. The pause depth is raised,
or recording would wait for the decisions, whose own pace is the second row.
"""

import time

import house
from bench_live import seconds
from house import harness

EVENTS = 30000
STRANGER = 26909559


def undecided(home):
    status = home.connector.status()
    return status["data"]["status"]["queues"].get("seen", 0)


def measure(home, first):
    pages = EVENTS // home.sim.get("/sim/world")["options"]["page_size"]
    began = time.time()
    home.connector.start("--since", str(first), ready=False)
    home.sim.wait("requests", pages + 1, 120, route="GET /{a}/events.json")
    at = [seconds(request["at"])
          for request in home.sim.log("GET /{a}/events.json")]
    harness.wait_for(lambda: not undecided(home), 60, "all decisions",
                     every=0.05)
    decided = time.time()
    house.row("feed_catch_up", "events/s",
              round(EVENTS / (at[pages] - at[0])), 40000, n=EVENTS,
              pages=pages, from_start_ms=round((at[pages] - began) * 1000))
    house.row("feed_decided", "events/s", round(EVENTS / (decided - at[0])),
              n=EVENTS)


def main():
    with house.house(pause_depth=100000, resume_depth=50000) as home:
        made = home.sim.post("/sim/emit", {
            "event_type": "comment.created", "count": EVENTS + 2,
            "bucket_id": harness.PROJECT, "recording_id": 1000001,
            "creator_id": STRANGER})
        measure(home, made["first_id"])


if __name__ == "__main__":
    main()
