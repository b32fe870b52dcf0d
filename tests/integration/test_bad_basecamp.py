"""A Basecamp that answers garbage, an error, half an answer or nothing: on the
feed, on a recording's read, at the token endpoint and to a post. Each time a
state in `status` that names it, no change in the ledger but that, no death of
a process, and a good end once it is put right.
"""

import json

import pytest

import harness

TABLES = ("events", "tasks", "task_events", "attempts", "outbox", "losses",
          "gaps", "decisions")
LIMITS = {
    "feed_retry": "20ms", "feed_retry_most": "200ms",
    "http_timeout": "300ms", "read_attempts": 2, "read_retry": "10ms",
    "read_retry_most": "20ms", "blocked_retry": "200ms",
    "post_timeout": "300ms", "reconcile_backoff": "50ms",
    "reconcile_backoff_most": "100ms", "listing_bound": "500ms",
}
ROUTES = {
    "feed": "GET /{a}/events.json",
    "read": "GET /{a}/comments/{id}",
    "token": "POST /oauth/tokens",
    "boost": "POST /{a}/recordings/{id}/boosts.json",
}
FAULTS = {
    "garbage": {"garbage": True},
    "no http": {"garbage": "wire"},
    "401": {"status": 401},
    "403": {"status": 403},
    "404": {"status": 404},
    "429": {"status": 429, "headers": {"Retry-After": "1"}},
    "503": {"status": 503},
    "redirect": {"status": 302},
    "half": {"half": True},
    "dropped": {"drop": True},
    "nothing": {"hang": True},
}


def ledger_rows(connector):
    with connector.ledger() as ledger:
        return {table: [dict(row) for row in ledger.execute(
            "SELECT * FROM " + table)] for table in TABLES}


def set_fault(connector, request, name, times=0):
    members = dict(FAULTS[name])
    if name == "redirect":
        members["headers"] = {"Location": connector.sim.url + "/elsewhere"}
    return connector.sim.fault(ROUTES[request], times=times,
                               **members)["fault"]


def child_value(status, role, name):
    child, = [c for c in status["data"]["children"] if c["role"] == role]
    return child["values"].get(name, "")


def wait_value(connector, role, name, *starts):
    return connector.wait_status(
        lambda s: child_value(s, role, name).startswith(starts),
        what="%s %s %r" % (role, name, starts))


def check_no_deaths(connector):
    for child in connector.status()["data"]["children"]:
        assert child["restarts"] == child["own_deaths"] == 0, child
        # A task's mcpd starts and stops as tasks do.
        assert child["role"] == "mcpd" or child["state"] == "ready", child
    assert not [r for r in connector.sim.log() if "elsewhere" in r["path"]]


def good_end(connector, event_id, kinds=("boost", "comment")):
    connector.wait_event(event_id, "completed", timeout=30)
    harness.wait_for(
        lambda: sorted(m["kind"] for m in connector.sim.messages())
        == sorted(kinds), what="the messages %r: %r" % (
            kinds, connector.sim.messages()))
    check_no_deaths(connector)


AGAIN = ("retrying: ", "trying again: ")
# What status shows of the feed.
FEED = {
    "garbage": ("ended: poll_failed",),
    "no http": AGAIN,
    "401": ("ended: authorization_failed: http 401",),
    "403": ("ended: authorization_failed: http 403",),
    "404": ("ended: poll_failed: http 404",),
    "429": ("retrying: throttled: http 429", "trying again: http 429"),
    "503": ("retrying: transient: http 503", "trying again: http 503"),
    "redirect": ("ended: invalid_continuation: http 302",),
    "half": AGAIN,
    "dropped": AGAIN,
    "nothing": AGAIN,
}


@pytest.mark.parametrize("name", FEED)
def test_feed(make_connector, name):
    """Nothing is recorded and no position moves; what cannot change by
    itself has ended until somebody reloads.
    """
    connector = make_connector(limits=LIMITS).start()
    before = ledger_rows(connector)
    position = connector.status()["data"]["status"]["positions"]
    set_fault(connector, "feed", name)
    event_id = connector.sim.mention()["event_id"]
    wait_value(connector, "intake", "feed", *FEED[name])
    assert ledger_rows(connector) == before
    now = connector.status()["data"]["status"]["positions"]
    assert [p["last_poll_served_id"] for p in now] == [
        p["last_poll_served_id"] for p in position]
    shown = connector.connectctl("status")
    assert "feed: " in shown.stdout
    has_ended = FEED[name][0].startswith("ended")
    assert shown.returncode == (1 if has_ended else 0)
    check_no_deaths(connector)
    connector.sim.clear_faults()
    if has_ended:
        connector.wait_log("feed ended: ")
        assert connector.connectctl("reload").returncode == 0
    good_end(connector, event_id)
    assert connector.connectctl("status").returncode == 0


def test_feed_that_ended_is_left_by_restart_too(make_connector):
    connector = make_connector(limits=LIMITS).start()
    set_fault(connector, "feed", "404", times=1)
    wait_value(connector, "intake", "feed", "ended: ")
    event_id = connector.sim.mention()["event_id"]
    assert connector.connectctl("restart", "intake").returncode == 0
    connector.wait_event(event_id, "completed")


# What a record is blocked for, where it is not for a read that failed.
READ_LATER = {"429": "throttled"}


@pytest.mark.parametrize("name", FAULTS)
def test_read(make_connector, name):
    """The record is kept, blocked with its reason, and tried again by
    itself; nothing is started and nothing is posted of it.
    """
    connector = make_connector(limits=LIMITS).start()
    fault = set_fault(connector, "read", name)
    event_id = connector.sim.mention()["event_id"]
    reason = READ_LATER.get(name, "read_failed")
    connector.wait_status(
        lambda s: s["data"]["status"]["blocked"].get(reason) == 1,
        what="one blocked as " + reason)
    rows = ledger_rows(connector)
    assert rows["tasks"] == rows["task_events"] == rows["outbox"] == []
    event, = rows["events"]
    assert event["next_retry_at"] and event["snapshot"] is None
    shown = connector.control("show", str(event_id))
    assert reason in json.dumps(shown)
    hits = connector.sim.state()["fault_hits"]
    connector.sim.wait("hits", hits + 1, fault=fault)
    check_no_deaths(connector)
    connector.sim.clear_faults()
    good_end(connector, event_id)


# What status shows of the credential, and what the log says.
TOKEN = {
    "garbage": ("failing", "the token endpoint's answer is none (HTTP 200)"),
    "no http": ("no answer", "the token endpoint: "),
    "401": ("refused", "the token endpoint refuses (HTTP 401)"),
    "403": ("refused", "the token endpoint refuses (HTTP 403)"),
    "404": ("failing", "the token endpoint answers HTTP 404"),
    "429": ("throttled", "the token endpoint limits our rate"),
    "503": ("no answer", "the token endpoint answers HTTP 503"),
    "redirect": ("failing", "the token endpoint's answer is none (HTTP 302)"),
    "half": ("no answer", "the token endpoint: "),
    "dropped": ("no answer", "the token endpoint: "),
    "nothing": (None, None),
}
HOLDS = {"401": ["refused"], "403": ["refused"], "429": ["throttled"]}


@pytest.mark.parametrize("name", TOKEN)
def test_token_endpoint(make_connector, name):
    """All roles are ready, nothing is read, and status says why; a refused
    credential is not tried again until there is another one.
    """
    value, text = TOKEN[name]
    connector = make_connector(limits=LIMITS)
    fault = set_fault(connector, "token", name)
    connector.start(entered=False)
    connector.sim.wait("hits", 1, fault=fault)
    if value is None:
        wait_value(connector, "intake", "feed", "waiting for the access")
    else:
        wait_value(connector, "outbox", "credential", value)
        connector.wait_log(text)
    status = connector.status()["data"]["status"]
    assert [h["reason"] for h in status["renewal_holds"]] == HOLDS.get(
        name, [])
    rows = ledger_rows(connector)
    assert not any(rows.values()), rows
    assert connector.sim.log(ROUTES["feed"]) == []
    check_no_deaths(connector)
    connector.sim.clear_faults()
    if value == "refused":
        connector.sim.world({"clients": [{
            "client_id": "agent-client", "secret": "another-secret",
            "person_id": harness.AGENT, "scope": "full"}]})
        connector.write_credentials(client_secret="another-secret")
        assert connector.connectctl("reload").returncode == 0
    connector.wait_entered()
    good_end(connector, connector.sim.mention()["event_id"])


def test_disconnected_agent(make_connector):
    """invalid_client is for good, over a restart too, until the credential
    is another one.
    """
    connector = make_connector(limits=LIMITS)
    connector.sim.post("/sim/disconnect", {"client": "agent-client"})
    connector.start(entered=False)
    wait_value(connector, "outbox", "credential", "refused")
    connector.wait_log("refused for good")
    minted = len(connector.sim.log(ROUTES["token"]))
    connector.stop()
    connector.start(entered=False)
    wait_value(connector, "outbox", "credential", "refused")
    assert len(connector.sim.log(ROUTES["token"])) == minted
    connector.sim.world({"clients": [{
        "client_id": "agent-client", "secret": "another-secret",
        "person_id": harness.AGENT, "scope": "full"}]})
    connector.write_credentials(client_secret="another-secret")
    assert connector.connectctl("reload").returncode == 0
    connector.wait_entered()
    good_end(connector, connector.sim.mention()["event_id"])


def test_access_token_that_is_revoked(make_connector):
    """Renewed by itself; nothing is lost or doubled for it."""
    connector = make_connector(limits=LIMITS).start()
    connector.sim.gate(ROUTES["boost"])
    event_id = connector.sim.mention()["event_id"]
    connector.sim.wait("held", 1)
    connector.sim.world({"revoke_tokens": True})
    connector.sim.release(ROUTES["boost"])
    good_end(connector, event_id)
    assert len(connector.sim.log(ROUTES["token"])) >= 2


# How the worker's boost stands, and how many requests were made for it.
BOOST = {
    "garbage": ("indeterminate", 1),
    "no http": ("indeterminate", 1),
    "401": ("canceled", 2),
    "403": ("canceled", 1),
    "404": ("canceled", 1),
    "429": ("indeterminate", 1),
    "503": ("indeterminate", 1),
    "redirect": ("indeterminate", 1),
    "half": ("sent", 1),
    "dropped": ("indeterminate", 1),
    "nothing": ("indeterminate", 1),
}


@pytest.mark.parametrize("name", BOOST)
def test_boost(make_connector, name):
    """One request, whatever came of it (a 401 has created nothing and is
    tried with another token). Refused, adopted or in doubt, the worker is
    told, and goes on to answer.
    """
    state, requests = BOOST[name]
    connector = make_connector(limits=LIMITS, script={
        "default": ["get", "boost?", "ack-id", "reply", "complete"]})
    connector.start()
    set_fault(connector, "boost", name)
    event_id = connector.sim.mention()["event_id"]
    stored = name == "half"
    good_end(connector, event_id, ["boost"] * stored + ["comment"])
    boosts = [r for r in connector.query("SELECT * FROM outbox")
              if r["kind"] == "worker_ack"]
    assert [b["state"] for b in boosts] == [state], boosts
    assert boosts[0]["refused"] == (state == "canceled")
    assert len(connector.sim.log(ROUTES["boost"])) == requests
    doubts = connector.status()["data"]["status"]["indeterminate_intents"]
    assert [d["id"] for d in doubts] == [boosts[0]["id"]] * (
        state == "indeterminate")
    if state != "sent":
        connector.wait_log("intent %d " % boosts[0]["id"])
    connector.sim.clear_faults()
    assert connector.query("SELECT outcome FROM task_events") == [
        {"outcome": "succeeded"}]
    second = connector.sim.mention()["event_id"]
    connector.wait_event(second, "completed")
    assert len([m for m in connector.sim.messages()
                if m["kind"] == "boost"]) == 1 + stored
