"""How fast a backlog of the feed becomes durable.

Some thousand events of a person who may not direct the agent, each recorded
and decided (discarded). The simulator's log tells the time: the poll that
asks for the page after the last full one comes when all before is committed.
One event before them is where the feed is entered, and one behind them is on
that last page.
"""

import house
from bench_live import seconds
from house import harness

EVENTS = 30000
STRANGER = 26909559


def polls(home):
    return [seconds(request["at"])
            for request in home.sim.log("GET /{a}/events.json")]


def main():
    with house.house() as home:
        first = home.sim.post("/sim/emit", {
            "event_type": "comment.created", "count": EVENTS + 2,
            "bucket_id": harness.PROJECT, "recording_id": 1000001,
            "creator_id": STRANGER})["first_id"]
        pages = EVENTS // home.sim.get("/sim/world")["options"]["page_size"]
        home.connector.start("--since", str(first), ready=False)
        home.sim.wait("requests", pages + 1, 120,
                      route="GET /{a}/events.json")
        at = polls(home)
        took = at[pages] - at[0]
        harness.wait_for(
            lambda: home.connector.query(
                "SELECT count(*) AS n FROM events")[0]["n"] == EVENTS + 1,
            60, "every event in the ledger", every=0.2)
        house.row("feed_catch_up", "events/s", round(EVENTS / took), 40000,
                  n=EVENTS, pages=pages, took_ms=round(took * 1000))


if __name__ == "__main__":
    main()
