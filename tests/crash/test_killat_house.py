"""killat beside a whole connector: it changes nothing, sees every role, lets
workers go, and interferes where it is told to.
"""

import pytest

import harness
import killat
import stories

pytestmark = [
    pytest.mark.skipif(not killat.is_here(),
                       reason="killat knows Linux on x86_64 only"),
    pytest.mark.walls]

needs_root = pytest.mark.skipif(
    not harness.is_root(), reason="only root sees what is not dumpable")
PROGRAMS = {"connectd", "connectd-ledger", "connectd-intake",
            "connectd-dispatcher", "connectd-outbox", "connectd-mcpd"}


def finish(connector):
    event_id, _ = stories.mention(connector)
    evidence = stories.settle(connector)
    return stories.outcome_of(evidence, event_id)


def test_a_story_is_counted(make_killat, make_connector):
    """All of it, behind all walls, with a thread of curl's in two roles; and
    the order to stop is followed as ever.
    """
    follower = make_killat(count=True)
    connector = stories.begin(make_connector, follower=follower)
    assert finish(connector) == ("succeeded", "finished")
    assert connector.stop() == 143
    follower.must_be_met()
    counts = follower.wait(what="counts")["names"]
    assert PROGRAMS <= set(counts)
    for name in PROGRAMS:
        assert counts[name]["write"] > 0, name
        assert counts[name]["read"] > 0, name
    assert counts["connectd-ledger"]["sync"] > 0
    assert len(follower.said(what="let_go")) == 1  # the worker
    assert {r["name"] for r in follower.said(what="exec")} == PROGRAMS


def test_one_role_at_its_call(make_killat, make_connector):
    """It alone dies there, and the story goes on."""
    follower = make_killat("later:kill@connectd-ledger:fdatasync:2")
    connector = stories.begin(make_connector, follower=follower)
    before = stories.pids(connector)
    follower.arm(1)
    event_id, _ = stories.mention(connector)
    evidence = stories.settle(connector)
    killed = follower.wait(what="kill")
    assert [killed["pid"]] == before["ledger"]
    stories.check_only_death(connector, before, "ledger", killed["pid"])
    assert stories.check_end(evidence, event_id, "ledger") == (
        "succeeded", "finished")


@needs_root
def test_the_tree_at_a_line(make_killat, make_connector):
    """No role is left, the worker is, and a next start ends and settles it.
    """
    follower = make_killat(
        'kill-tree@connectd-ledger:send/3~"dispatch".*"running"')
    connector = stories.begin(make_connector, follower=follower,
                              script={"default": ["linger"]})
    event_id, _ = stories.mention(connector)
    assert connector.wait_end() == -9
    follower.must_be_met()
    killed = follower.wait(what="kill")
    dead = {r["name"] for r in follower.said(what="exit", signal=9)}
    assert dead >= PROGRAMS and killed["fd"] == 3
    connector.follower = None
    connector.start()
    evidence = stories.settle(connector)
    assert stories.outcome_of(evidence, event_id) == ("unknown", "lost")


def test_a_role_held_at_its_exec(make_killat, make_connector):
    """The others are up meanwhile; let go, it is ready at once."""
    follower = make_killat("hold@connectd-outbox:exec")
    connector = make_connector(follower=follower).start(ready=False)
    follower.wait(what="hold")
    child = {}

    def others_are_ready(status):
        child.update({c["role"]: c["state"]
                      for c in status["data"]["children"]})
        return all(child[role] == "ready" for role in harness.ROLES
                   if role != "outbox")
    harness.wait_for(connector.status, what="a status")
    connector.wait_status(others_are_ready)
    assert child["outbox"] == "starting"
    follower.go(1)
    harness.wait_for(lambda: stories.all_ready(connector))
