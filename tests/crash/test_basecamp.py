"""Basecamp answers late, half, with garbage, not at all or with a pause, and
the whole connector dies of something else meanwhile: the next run goes on,
and what is in doubt is shown.
"""

import datetime
import json
import urllib.parse
import urllib.request

import pytest

import chance
import harness
import stories
from test_bad_basecamp import FAULTS, LIMITS, ROUTES, wait_value
from test_kill_role import hold_post
from test_kill_supervisor import kill_supervisor

ANSWERS = {
    **{name: FAULTS[name] for name in (
        "no http", "429", "503", "half", "dropped", "nothing")},
    # The request is handled, and nobody waits for its answer any more.
    "late": {"delay_ms": 600},
}
COMMENTS = "/{a}/recordings/{id}/comments.json"
BOOSTS = "/{a}/recordings/{id}/boosts.json"
ASKED = {
    "feed": ROUTES["feed"], "read": ROUTES["read"], "token": ROUTES["token"],
    "boost": "POST " + BOOSTS, "comment": "POST " + COMMENTS,
}
LISTED = {"boost": BOOSTS, "comment": COMMENTS}
CASES = [(what, name) for what in ASKED for name in ANSWERS]
SAMPLE = 6


def set_fault(connector, route, name):
    return connector.sim.fault(route, times=0, **ANSWERS[name])["fault"]


def kill_and_start(connector):
    kill_supervisor(connector)
    connector.start()


@pytest.mark.parametrize("what, name", chance.some("answers", CASES, SAMPLE))
def test_killed_meanwhile(make_connector, what, name):
    """Asked while the fault stands, killed, and started while it stands."""
    connector = stories.begin(make_connector, limits=LIMITS, script={
        "default": ["get", "ack", "reply", "complete"]})
    needles = stories.new_needles()
    fault = set_fault(connector, ASKED[what], name)
    event_id, _ = stories.mention(connector)
    if what == "token":  # asked for by the next run
        kill_and_start(connector)
    connector.sim.wait("hits", 1, fault=fault)
    needles.learn(connector)
    kill_and_start(connector)
    connector.sim.clear_faults()
    # What was blocked for its read is tried again.
    connector.wait_event(event_id, "completed", timeout=40)
    evidence = stories.settle(connector, needles)
    outcome, stop = stories.outcome_of(evidence, event_id)
    assert outcome in ("succeeded", "unknown")
    if (outcome, stop) == ("unknown", "finished"):
        assert stories.doubts(evidence)


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("kind", LISTED)
def test_listing(make_connector, kind, name):
    """A message whose receipt was lost is looked for until there is an
    answer: then it is found, and was never sent again.
    """
    connector = stories.begin(make_connector, limits=LIMITS, script={
        "default": ["get", "ack", "fail"]})
    route = ASKED[kind]
    held = hold_post(connector, route, "after")
    fault = set_fault(connector, "GET " + LISTED[kind], name)
    stories.mention(connector)
    connector.sim.wait("hits", 1, fault=held)
    kill_and_start(connector)
    connector.sim.wait("hits", 1, fault=fault)
    status = connector.status()["data"]["status"]
    assert len(status["indeterminate_intents"]) <= 1
    connector.sim.clear_faults()
    harness.wait_for(lambda: connector.query(
        "SELECT id FROM outbox WHERE state = 'sent' AND note LIKE"
        " '%adopted%'"), what="it to be adopted")
    evidence = stories.settle(connector, stories.new_needles())
    assert len([r for r in connector.sim.log(route)]) == 1
    assert len([m for m in evidence.messages if m["kind"] == kind]) == 1


def same_answer(sim, request):
    """What that request gets when somebody makes it again."""
    query = urllib.parse.urlencode(request["query"])
    again = urllib.request.Request(
        "%s%s?%s" % (sim.url, request["path"], query),
        headers={"User-Agent": "test", "Authorization":
                 "Bearer " + sim.ready["operator_token"]})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(again, timeout=20) as answer:
        return {"status": 200, "body": json.loads(answer.read())}


def test_a_page_that_is_served_twice(make_connector):
    """Nothing in it counts twice, for the same run or for the next one."""
    connector = stories.begin(make_connector)
    sim = connector.sim
    event_id, _ = stories.mention(connector)
    stories.settle(connector)
    pages = [same_answer(sim, r) for r in sim.log(ROUTES["feed"])]
    page = next(p for p in pages if event_id in
                [e["id"] for e in p["body"]["events"]])
    for again in (lambda: None, lambda: kill_and_start(connector)):
        fault = sim.fault(ROUTES["feed"], times=1, **page)["fault"]
        again()
        sim.wait("hits", 1, fault=fault)
        second, _ = stories.mention(connector)
        evidence = stories.settle(connector, stories.new_needles())
        for ident in (event_id, second):
            assert stories.outcome_of(evidence, ident) == ("succeeded",
                                                           "finished")


LISTINGS_MOST = 10
PAUSE = {"status": 429, "headers": {"Retry-After": "3600"}}


def test_a_long_pause_of_the_feed(make_connector):
    """It is kept, shown, and not asked for over a restart of the role."""
    connector = stories.begin(make_connector, limits=LIMITS)
    fault = connector.sim.fault(ROUTES["feed"], times=0, **PAUSE)["fault"]
    event_id, _ = stories.mention(connector)
    connector.sim.wait("hits", 1, fault=fault)
    wait_value(connector, "intake", "feed", "retrying: throttled",
               "trying again: http 429")
    connector.sim.clear_faults()
    assert connector.connectctl("restart", "intake").returncode == 0
    evidence = stories.settle(connector)
    assert stories.outcome_of(evidence, event_id) == ("succeeded", "finished")


def test_a_long_pause_of_a_read(make_connector):
    """The record waits that long, and a restart does not forget it."""
    connector = stories.begin(make_connector, limits=LIMITS)
    fault = connector.sim.fault(ROUTES["read"], times=0, **PAUSE)["fault"]
    event_id, _ = stories.mention(connector)
    connector.wait_event(event_id, "blocked")
    hits = connector.sim.wait("hits", 1, fault=fault)
    before = connector.query("SELECT * FROM events")
    kill_and_start(connector)
    connector.wait_status(lambda s: s["data"]["status"]["blocked"].get(
        "throttled") == 1)
    served = connector.sim.log(ROUTES["feed"])[-1]["n"]
    connector.sim.wait("answered", 3, route=ROUTES["feed"], after=served)
    assert connector.sim.wait("hits", 1, fault=fault) == hits
    assert connector.query("SELECT * FROM events") == before


def test_a_long_pause_of_a_post(make_connector):
    """An answer that may mean anything: asked once, looked for, not found,
    and in doubt from then on. No run sends it again.
    """
    connector = stories.begin(make_connector, limits=LIMITS, script={
        "default": ["get", "ack-id", "fail"]})
    fault = connector.sim.fault(ASKED["comment"], times=0, **PAUSE)["fault"]
    event_id, _ = stories.mention(connector)
    for again in (lambda: None, lambda: kill_and_start(connector)):
        again()
        evidence = stories.settle(connector, stories.new_needles())
        notice, = stories.notices(evidence, event_id)
        assert notice["state"] == "indeterminate"
        assert connector.sim.wait("hits", 1, fault=fault) == 1
    assert evidence.messages == []


def test_a_long_pause_of_a_listing(make_connector):
    """What was posted is looked for so many times, over a restart of the
    whole, then it is a person's to say.
    """
    connector = stories.begin(make_connector, limits=LIMITS, script={
        "default": ["get", "ack-id", "fail"]})
    held = hold_post(connector, ASKED["comment"], "after")
    fault = connector.sim.fault("GET " + COMMENTS, times=0, **PAUSE)["fault"]
    event_id, _ = stories.mention(connector)
    connector.sim.wait("hits", 1, fault=held)
    kill_and_start(connector)
    connector.sim.wait("hits", 2, fault=fault)
    kill_and_start(connector)
    evidence = stories.settle(connector, stories.new_needles())
    notice, = stories.notices(evidence, event_id)
    assert notice["state"] == "indeterminate"
    assert notice["reconcile_failures"] == LISTINGS_MOST
    # The one that the kill cut off may have been asked and not been counted.
    asked = connector.sim.wait("hits", LISTINGS_MOST, fault=fault)
    assert asked in (LISTINGS_MOST, LISTINGS_MOST + 1)
    assert len(connector.sim.log(ASKED["comment"])) == 1


def test_a_long_pause_of_the_token(make_connector):
    """No run asks before its time. A hold is half an hour at most, and a new
    credential has none.
    """
    connector = stories.begin(make_connector, limits=LIMITS)
    connector.stop()
    fault = connector.sim.fault(ASKED["token"], times=0, **PAUSE)["fault"]
    event_id, _ = stories.mention(connector)
    for _ in range(2):
        connector.start()
        wait_value(connector, "outbox", "credential", "throttled")
        assert connector.sim.wait("hits", 1, fault=fault) == 1
        shown = connector.wait_status(
            lambda s: s["data"]["status"]["renewal_holds"])
        hold, = shown["data"]["status"]["renewal_holds"]
        assert hold["reason"] == "throttled"
        kill_supervisor(connector)
    until = datetime.datetime.fromisoformat(hold["until"][:19] + "+00:00")
    left = until - datetime.datetime.now(datetime.timezone.utc)
    assert left <= datetime.timedelta(minutes=30)
    assert connector.query("SELECT id FROM events") == []
    connector.sim.clear_faults()
    connector.sim.world({"clients": [{
        "client_id": "agent-client", "secret": "another-secret",
        "person_id": harness.AGENT, "scope": "full"}]})
    connector.write_credentials(client_secret="another-secret")
    connector.start()
    evidence = stories.settle(connector, stories.new_needles())
    assert stories.outcome_of(evidence, event_id) == ("succeeded", "finished")
