"""How fast a connector is there, is there again, answers and is gone."""

import house

STARTS = 20
KILLS = 20
QUESTIONS = 100

RESTARTS = {
    "connectd-ledger": ("restart_ledger", 3),
    "connectd-dispat": ("restart_dispatcher", 3),
    "connectd-intake": ("restart_intake", 10),
    "connectd-outbox": ("restart_outbox", 10),
}


def measure_status(home):
    """connectctl beside a running connector."""
    home.start()
    argv = [str(home.connector.bin / "connectctl"), "-P",
            home.connector.profile, "status"]
    took = home.stopwatch("command", QUESTIONS, argv)["command"]
    house.times_row("connectctl_status", took, "ms", 3)
    home.connector.stop()


def main():
    with house.house(**house.NORMAL) as home:
        argv = home.argv()
        first = home.stopwatch("ready", 1, argv)["ready"]
        took = home.stopwatch("ready", STARTS, argv)["ready"]
        house.times_row("start_ready", took, "ms", 40,
                        with_new_ledger=round(first[0] / 1000, 2))
        took = home.stopwatch("restart", KILLS, argv)
        for comm, (name, budget) in RESTARTS.items():
            house.times_row(name, took[comm], "ms", budget)
        took = home.stopwatch("gone", STARTS, argv)["gone"]
        house.times_row("gone_after_kill", took, "ms", 100)
        measure_status(home)


if __name__ == "__main__":
    main()
