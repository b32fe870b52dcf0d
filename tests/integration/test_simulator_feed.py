"""basecamp-sim: the poll lane and what is put on it."""
import hashlib
import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "simulator"))

from simulator_client import (  # noqa: E402
    AGENT, OPERATOR, OPERATOR_TOKEN, PROJECT, Sim, emit, ids, sim)


def test_poll_entry_and_positions(sim):
    assert sim.poll().json == {"events": [], "position": "fake-0"}
    for _ in range(3):
        emit(sim)
    for query in ({}, {"since": "now"}, {"since": ""}):
        assert sim.poll(**query).json == {"events": [],
                                          "position": "fake-3"}
    assert ids(sim.poll(since=0).json) == [1, 2, 3]
    assert ids(sim.poll(since=2).json) == [3]
    page = sim.poll(position="fake-1")
    assert ids(page.json) == [2, 3] and page.json["position"] == "fake-3"
    assert page.headers["X-Feed-Position"] == "fake-3"
    assert "next" not in page.json and page.link() is None
    assert sim.poll(position="fake-3").json == {"events": [],
                                                "position": "fake-3"}


@pytest.mark.parametrize("query, reason", [
    ({"since": "0", "position": "fake-1"}, None),
    ({"since": "-1"}, None), ({"since": "x"}, None),
    ({"since": "9223372036854775808"}, "invalid_position"),
    ({"position": ""}, "invalid_position"),
    ({"position": "1"}, "invalid_position"),
    ({"position": "fake--1"}, "invalid_position"),
    ({"position": "fake-1x"}, "invalid_position"),
    ({"position": "fake-9223372036854775808"}, "invalid_position"),
    ({"types": "nodot"}, "invalid_filter"),
    ({"buckets": "0"}, "invalid_filter"),
    ({"buckets": "1,,2"}, "invalid_filter"),
    ({"creators": "self"}, "invalid_filter"),
    ({"performers": "-4"}, "invalid_filter"),
    ({"exclude_performers": "9223372036854775808"}, "invalid_filter"),
    ({"buckets": ",".join(map(str, range(1, 102)))}, "invalid_filter"),
    ({"types": "a.b" * 6000}, "invalid_filter"),
    ({"actor_types": "robot"}, "invalid_filter")])
def test_poll_refusals(sim, query, reason):
    reply = sim.poll(**query)
    assert reply.status == 400 and reply.json["error"]
    assert reply.json.get("reason") == reason


@pytest.mark.parametrize("query, expected", [
    ({"types": "todo.completed,comment.created"}, [1, 2, 3, 4]),
    ({"types": "todo.completed"}, [4]),
    ({"buckets": str(PROJECT)}, [1, 2, 3, 4]), ({"buckets": "3"}, [5]),
    ({"creators": str(AGENT)}, [2]),
    ({"performers": str(AGENT)}, [2, 3]),
    ({"performers": "self"}, [1, 4, 5]),
    ({"exclude_performers": str(AGENT)}, [1, 4, 5]),
    ({"exclude_performers": "self"}, [2, 3]),
    ({"actor_types": "person"}, [1, 4, 5]),
    ({"actor_types": "agent"}, [2, 3]),
    ({"actor_types": "person,agent"}, [1, 2, 3, 4, 5]),
    ({"actor_types": "person", "exclude_performers": str(AGENT),
      "buckets": f"3,{PROJECT}", "types": "comment.created"}, [1, 5])])
def test_poll_filters(sim, query, expected):
    sim.sim("world", projects=[{"id": 3, "members": [OPERATOR]},
                               {"id": 4, "members": [AGENT]}])
    emit(sim)
    emit(sim, creator_id=AGENT)
    emit(sim, performed_by_id=AGENT)
    emit(sim, event_type="todo.completed")
    if "types" in query and "buckets" not in query:
        emit(sim, event_type="card.moved")
    else:
        emit(sim, bucket_id=3)
    emit(sim, bucket_id=4)
    page = sim.poll(since=0, **query).json
    assert ids(page) == expected and page["position"] == "fake-6"


def test_poll_pages():
    sim = Sim("--page-size", "2")
    for n in range(5):
        emit(sim, creator_id=AGENT if n in (2, 3) else OPERATOR)
    page = sim.poll(since=0, exclude_performers="52007412,7").json
    assert (ids(page), page["position"]) == ([1, 2], "fake-2")
    assert page["next"] == (
        sim.url + "/999/events.json?exclude_performers=52007412%2C7"
        "&position=fake-2")
    emit(sim)
    reply = sim.call("GET", page["next"][len(sim.url):], OPERATOR_TOKEN)
    page = reply.json
    assert (ids(page), page["position"]) == ([], "fake-4")
    assert page["next"].endswith("&position=fake-4")
    assert sim.url + reply.link() == page["next"]
    page = sim.call("GET", reply.link(), OPERATOR_TOKEN).json
    assert (ids(page), page["position"]) == ([5, 6], "fake-6")
    assert "next" not in page
    sim.close()


def test_frozen_head(sim):
    sim.sim("world", options={"frozen_head": True, "page_size": 2})
    for _ in range(3):
        emit(sim)
    page = sim.poll(since=0).json
    assert page["position"] == "fake-2"
    emit(sim)
    page = sim.call("GET", page["next"][len(sim.url):],
                    OPERATOR_TOKEN).json
    assert (ids(page), page["position"]) == ([3], "fake-3")
    assert "next" not in page
    assert ids(sim.poll(position="fake-3").json) == [4]


def test_safety_delay():
    sim = Sim("--safety-delay-ms", "60000")
    emit(sim, created_at="2026-01-05T09:00:00Z")
    emit(sim)
    page = sim.poll(since=0).json
    assert (ids(page), page["position"]) == ([1], "fake-1")
    assert "next" not in page
    assert sim.poll().json["position"] == "fake-1"
    sim.sim("world", options={"safety_delay_ms": 0})
    assert ids(sim.poll(position="fake-1").json) == [2]
    sim.close()


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def test_bound_positions(sim):
    sim.sim("world", options={"bind_positions": True})
    own = {"actor_types": "person", "exclude_performers": "52007412"}
    position = sim.poll(**own).json["position"]
    assert position == "fake-0-fecd6953cd6b9532a"
    assert sim.poll(position=position, **own).status == 200
    self = {"actor_types": "person", "exclude_performers": "self"}
    assert sim.poll(sim.agent, position=position, **self).status == 200
    reply = sim.poll(position=position, buckets="2,1,2")
    assert reply.status == 409
    assert reply.json["position_digest"] == "ecd6953cd6b9532a"
    assert reply.json["filters_digest"] == digest('{"buckets":[1,2]}')
    assert sim.poll(position="fake-0", buckets="1").status == 200


def test_epoch(sim):
    for _ in range(4):
        emit(sim)
    sim.sim("world", options={"epoch": 2})
    for entry in ({"position": "fake-1"}, {"since": 1}):
        reply = sim.poll(buckets=str(PROJECT), **entry)
        assert reply.status == 410 and reply.json["epoch_after_id"] == 2
        resume = reply.json["resume"]
        assert resume == (sim.url +
                          f"/999/events.json?buckets={PROJECT}&since=2")
    page = sim.call("GET", resume[len(sim.url):], OPERATOR_TOKEN).json
    assert ids(page) == [3, 4]
    assert ids(sim.poll(since=0).json) == [3, 4]
    assert ids(sim.poll(position="fake-2").json) == [3, 4]


def test_emit_and_publish(sim):
    big = 2 ** 60 + 1
    assert emit(sim, lanes="live") == 1
    assert emit(sim, id=big, event_type="chat.line.created",
                details={"a": {"b": 1}}, action="said", kind="odd",
                created_at="2026-07-14T06:10:00.159Z") == big
    page = sim.poll(since=0).json
    assert page["events"] == [{
        "id": big, "kind": "odd", "action": "said",
        "event_type": "chat.line.created", "bucket_id": PROJECT,
        "creator_id": OPERATOR, "performed_by_id": None, "recording_id": 5,
        "created_at": "2026-07-14T06:10:00.159Z", "details": {"a": {"b": 1}}}]
    sim.sim("publish", id=1, lanes="poll")
    assert ids(sim.poll(since=0).json) == [1, big]
    assert sim.call("POST", "/sim/publish", body={"id": 9}).status == 404
    assert sim.sim("emit", event_type="a.b", bucket_id=1, recording_id=1,
                   creator_id=1, count=250) == {
        "first_id": big + 1, "event_id": big + 250}
    for bad in ({"id": 4}, {"event_type": "nodot"}, {"bucket_id": 0},
                {"creator_id": -1}, {"recording_id": "5"}, {"lanes": "no"},
                {"count": 0}, {"created_at": "yesterday"}, {"odd": 1}):
        body = {"event_type": "a.b", "bucket_id": 1, "recording_id": 1,
                "creator_id": 1, **bad}
        assert sim.call("POST", "/sim/emit", body=body).status == 400, bad
