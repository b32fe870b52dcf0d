"""A tool call as the agent has it: through connect-bridge and mcpd to the
ledger and back.

`get_dispatch` again writes nothing; it is asked one at a time, and sixteen at
once. Writes are bounded by the domain, 20 of a
kind for an event, so that there are many tasks: their replies and boosts,
with post_wait 0 (the answer comes when the intent is committed) and the way
to Basecamp shut (or the outbox would work on the same two processors), and
their acknowledgements and reports, which each come once.
"""

import house

READS = 4000
TASKS = 60
WRITES = ("get", "ack", "reply*20", "boost*20", "complete")
LIMITS = {
    "post_wait": "0s",
    "post_timeout": "5m",
    "outbox_flush": "0s",
}


def measure(home):
    home.run_task("get*%d burst*%d complete" % (READS + 1, READS))
    found = home.samples()
    house.times_row("call_read", found["get"][1:], "us", p99_budget=600)
    house.row("call_read_16_in_flight", "per_s", found["burst"][0], n=READS)
    for kind in ("comments", "boosts"):
        home.sim.gate("POST /{a}/recordings/{id}/%s.json" % kind)
    (home.connector.out / "samples").unlink()
    for _ in range(TASKS):
        home.run_task(" ".join(WRITES))
    found = home.samples()
    durable = found["reply"] + found["boost"] + found["ack"]
    house.times_row("call_durable", durable + found["complete"], "us", 150,
                    p99_budget=600)
    for name in ("get", "ack", "reply", "boost", "complete"):
        house.times_row("call_" + name, found[name], "us")


def main():
    with house.house(**LIMITS) as home:
        home.use_bench_agent()
        home.start()
        measure(home)
        for kind in ("comments", "boosts"):
            home.sim.release("POST /{a}/recordings/{id}/%s.json" % kind)


if __name__ == "__main__":
    main()
