"""From a mention on the feed to the first byte of the agent's prompt.

Ours is what comes after the poll that finds it: the time counts from that
poll's arrival at the simulator, whose clock stamps both it and the event, to
the agent's clock when the prompt came. So the wait for the next poll, which
is feed_poll's and the chance's, is not in it; Basecamp's answers (the page,
and what admission reads) are, and so are mcpd's and the agent's starts.
"""

import datetime
import time

import house

MENTIONS = 40
# The ledger's lines on the way; when each was read goes into the row as well.
STAGES = {
    "recorded": {"type": None},
    "admitted": {"type": "event", "state": "admitted"},
    "launching": {"type": "dispatch", "state": "launching"},
    "running": {"type": "dispatch", "state": "running"},
}


def seconds(stamp):
    """An RFC 3339 stamp with any fraction, since the epoch."""
    whole, _, fraction = stamp.rstrip("Z").partition(".")
    base = datetime.datetime.fromisoformat(whole + "+00:00").timestamp()
    return base + float("0." + (fraction or "0"))


def found_by(home, created_at):
    """When the first poll after this moment came."""
    for request in home.sim.log("GET /{a}/events.json"):
        at = seconds(request["at"])
        if at >= created_at:
            return at
    raise AssertionError("no poll after the event")


def measure(home, took):
    """One mention: milliseconds from its poll, by stage."""
    start = home.connector.line_count()
    line = home.run_task("get ack complete")
    found = found_by(home, seconds(line["created_at"]))
    ahead = time.time() - time.monotonic()
    for stage, fields in STAGES.items():
        said = home.connector.wait_line(start=start, **fields)
        took[stage].append((said["_time"] + ahead - found) * 1e3)
    took["prompt"].append((home.samples()["prompt"][-1] / 1e9 - found) * 1e3)


def main():
    took = {stage: [] for stage in (*STAGES, "prompt")}
    with house.house() as home:
        home.use_bench_agent()
        home.start()
        for _ in range(MENTIONS):
            measure(home, took)
    stages = {stage: round(house.percentile(took[stage], 50), 1)
              for stage in STAGES}
    house.times_row("mention_to_prompt", [ms * 1e3 for ms in took["prompt"]],
                    "ms", 15, **stages)


if __name__ == "__main__":
    main()
