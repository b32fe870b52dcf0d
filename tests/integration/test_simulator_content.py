"""basecamp-sim: reads, mentions, writes and listings."""
import base64
import json
import pathlib
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "simulator"))

from simulator_client import (  # noqa: E402
    AGENT, OPERATOR, OPERATOR_TOKEN, PROJECT, boosts, emit, ids, in_thread,
    sim)


def test_people_and_projects(sim):
    me = sim.get("/my/profile.json", sim.agent).json
    assert me["personable_type"] == "Agent" and "email_address" not in me
    assert me["attachable_sgid"] == (
        "eyJfcmFpbHMiOnsiZGF0YSI6ImdpZDovL2JjMy9QZXJzb24vNTIwMDc0MTIiLCJwdX"
        "IiOiJhdHRhY2hhYmxlIn19")
    assert "boss" not in me
    sim.sim("world", people=[{"id": AGENT, "boss_id": OPERATOR}])
    me = sim.get("/my/profile.json", sim.agent).json
    assert me["boss"] == {"id": OPERATOR, "name": "Operator"}
    person = sim.get(f"/people/{OPERATOR}.json").json
    assert person["personable_type"] == "User" and person["employee"]
    assert person["client"] is False and "email_address" in person
    assert sim.get("/people/5").status == 404
    sim.sim("world", people=[{"id": 8, "name": "Eve", "readable_by": []},
                             {"id": 9, "readable_by": [OPERATOR]}])
    assert sim.get("/people/8").status == 403
    assert sim.get("/people/9").status == 200
    assert sim.get("/people/9", sim.agent).status == 403
    sim.sim("world", projects={"3": {"id": 3, "name": "Early",
                                     "members": [OPERATOR]},
                               "4": {"id": 4, "circle": True,
                                     "members": [OPERATOR]}})
    assert [p["id"] for p in sim.get("/projects.json").json] == [3, PROJECT]
    assert [p["id"] for p in sim.get("/projects.json", sim.agent).json] == \
        [PROJECT]
    people = sim.get(f"/projects/{PROJECT}/people.json").json
    assert [p["id"] for p in people] == [OPERATOR, AGENT]
    chat = sim.sim("mention", kind="chat_line")["parent_id"]
    dock = sim.get(f"/projects/{PROJECT}.json").json["dock"]
    assert [(d["name"], d["id"], d["position"]) for d in dock] == \
        [("chat", chat, 1)]
    assert [c["id"] for c in sim.get("/chats.json").json] == [chat]
    assert sim.get("/chats.json").json[0]["bucket"]["id"] == PROJECT


KINDS = [("comment", "Comment", "comment.created", "/comments/"),
         ("message", "Message", "message.created", "/messages/"),
         ("todo", "Todo", "todo.created", "/todos/"),
         ("card", "Kanban::Card", "card.created", "/card_tables/cards/"),
         ("chat_line", "Chat::Lines::RichText", "chat.line.created", None)]


@pytest.mark.parametrize("kind, type, event_type, path", KINDS)
def test_mention(sim, kind, type, event_type, path):
    made = sim.sim("mention", kind=kind, text="fix <this>")
    path = path or f"/chats/{made['parent_id']}/lines/"
    shown = sim.get(path + str(made["recording_id"])).json
    assert (shown["type"], shown["status"]) == (type, "active")
    assert shown["creator"]["id"] == OPERATOR
    assert shown["bucket"] == {"id": PROJECT, "name": "Connector",
                               "type": "Project"}
    if kind in ("comment", "chat_line"):
        assert shown["parent"]["id"] == made["parent_id"]
    else:
        assert "parent" not in shown and made["parent_id"] == 0
    text = shown["description" if kind == "todo" else "content"]
    sgid = text[text.index('sgid="') + 6:].split('"')[0]
    assert json.loads(base64.urlsafe_b64decode(sgid + "=="))["_rails"] == {
        "data": f"gid://bc3/Person/{AGENT}", "pur": "attachable"}
    assert "fix &lt;this&gt;" in text
    event = sim.poll(since=0).json["events"][0]
    created = event.pop("created_at")
    assert abs(time.time() - time.mktime(time.strptime(
        created[:19] + "UTC", "%Y-%m-%dT%H:%M:%S%Z")) + time.timezone) < 60
    assert event == {
        "id": made["event_id"], "kind": event_type.replace(".", "_"),
        "action": "created", "event_type": event_type,
        "bucket_id": PROJECT, "creator_id": OPERATOR,
        "performed_by_id": None, "recording_id": made["recording_id"]}
    for _, _, _, other in KINDS:
        if other and other not in path:
            assert sim.get(other + str(made["recording_id"])).status == 404


def test_mention_creates_what_is_missing(sim):
    first = sim.sim("mention")
    again = sim.sim("mention", creator_id=77)
    assert [first["parent_id"], again["parent_id"]] == [1000000, 1000000]
    assert [first["recording_id"], again["recording_id"]] == \
        [1000001, 1000002]
    assert sim.get("/messages/1000000").json["subject"] == "Kickoff"
    assert sim.get("/comments/1000002").json["creator"]["id"] == 77
    other = sim.sim("mention", project_id=3, recording_id=55)
    assert other["parent_id"] == 55
    assert sim.get("/messages/55").json["bucket"]["id"] == 3
    sim.sim("mention", recording_id=55, creator_id=78)
    members = {p["id"]: p["members"] for p in sim.see("world")["projects"]}
    assert 78 in members[3] and 78 not in members[PROJECT]
    assert 77 in members[PROJECT]
    own = sim.sim("mention", kind="todo", recording_id=60, title="Paint")
    assert own["recording_id"] == 60
    todo = sim.get("/todos/60").json
    assert todo["title"] == todo["content"] == "Paint"
    for bad in ({"kind": "poem"}, {"recording_id": own["recording_id"],
                                   "kind": "todo"}, {"lanes": "x"},
                {"recording_id": 1000001}, {"what": 1}, {"text": 1}):
        assert sim.call("POST", "/sim/mention", body=bad).status == 400, bad


def test_line_is_read_in_its_own_campfire(sim):
    line = sim.sim("mention", kind="chat_line")
    comment = sim.sim("mention")
    own = f"/chats/{line['parent_id']}/lines/"
    assert sim.get(own + str(line["recording_id"])).status == 200
    assert sim.get(f"/chats/{comment['parent_id']}/lines/"
                   f"{line['recording_id']}").status == 404
    assert sim.get(f"/chats/{comment['parent_id']}/lines/"
                   f"{comment['recording_id']}").status == 404


def test_todo_and_card_members(sim):
    sim.sim("world", recordings=[
        {"id": 71, "type": "Todo", "bucket_id": PROJECT, "title": "T",
         "content": "<p>d</p>", "creator_id": OPERATOR, "completed": True,
         "assignee_ids": [AGENT]},
        {"id": 72, "type": "Kanban::Card", "bucket_id": PROJECT,
         "title": "C", "content": "c", "creator_id": OPERATOR,
         "status": "trashed"}])
    todo = sim.get("/todos/71").json
    assert (todo["content"], todo["description"]) == ("T", "<p>d</p>")
    assert todo["completed"] and todo["completion_subscribers"] == []
    assert [a["id"] for a in todo["assignees"]] == [AGENT]
    assert todo["created_at"] == "2026-01-05T09:00:00Z"
    card = sim.get("/card_tables/cards/72").json
    assert (card["content"], card["status"]) == ("c", "trashed")
    assert card["assignees"] == [] and card["completed"] is False


def test_subscription(sim):
    made = sim.sim("mention")
    path = f"/recordings/{made['parent_id']}/subscription.json"
    assert sim.get(path, sim.agent).json["subscribed"] is False
    sim.sim("world", recordings=[{"id": made["parent_id"],
                                  "subscriber_ids": [AGENT, OPERATOR]}])
    shown = sim.get(path, sim.agent).json
    assert (shown["subscribed"], shown["count"]) == (True, 2)
    assert [p["id"] for p in shown["subscribers"]] == [AGENT, OPERATOR]


def test_history(sim):
    sim.sim("world", recordings=[{
        "id": 71, "type": "Todo", "bucket_id": PROJECT,
        "creator_id": OPERATOR}])
    for _ in range(16):
        emit(sim, event_type="todo.moved", recording_id=71)
    last = emit(sim, event_type="todo.assignment_changed", recording_id=71,
                added_person_ids=[AGENT], performed_by_id=AGENT)
    rows = sim.get("/recordings/71/events.json").json
    assert len(rows) == 15 and rows[0]["id"] == last
    assert rows[0]["details"] == {"added_person_ids": [AGENT]}
    assert rows[0]["performed_by"]["id"] == AGENT
    assert rows[1]["details"] == {} and rows[1]["performed_by"] is None
    assert rows[1]["creator"]["id"] == OPERATOR
    assert [r["id"] for r in
            sim.get("/recordings/71/events.json?page=2").json] == [2, 1]
    assert sim.get("/recordings/71/events.json?page=3").json == []
    for page in ("0", "x", "-1", ""):
        assert sim.get(f"/recordings/71/events.json?page={page}"
                       ).status == 400


def test_writes(sim):
    made = sim.sim("mention")
    chat = sim.sim("mention", kind="chat_line")["parent_id"]
    comment = sim.post(f"/recordings/{made['parent_id']}/comments.json",
                       {"content": "<div>Done.</div>"})
    assert comment.status == 201
    assert comment.json["content"] == "<div>Done.</div>"
    assert comment.json["creator"]["id"] == AGENT
    assert comment.json["parent"]["id"] == made["parent_id"]
    line = sim.post(f"/chats/{chat}/lines.json", {"content": "<b>x"})
    assert (line.status, line.json["type"]) == (201, "Chat::Lines::Text")
    rich = sim.post(f"/chats/{chat}/lines.json",
                    {"content": "<b>x</b>", "content_type": "text/html"})
    assert rich.json["type"] == "Chat::Lines::RichText"
    boost = sim.post(f"/recordings/{made['recording_id']}/boosts.json",
                     {"content": "\U0001f440 received"})
    assert boost.status == 201 and boost.json["booster"]["id"] == AGENT
    assert boost.json["content"] == "\U0001f440 received"
    seen = sim.see("messages")
    assert seen["counts"] == {"comment": 1, "chat_line": 2, "boost": 1}
    assert [(m["kind"], m["id"], m["recording_id"], m["creator_id"])
            for m in seen["messages"]] == [
        ("comment", comment.json["id"], made["parent_id"], AGENT),
        ("chat_line", line.json["id"], chat, AGENT),
        ("chat_line", rich.json["id"], chat, AGENT),
        ("boost", boost.json["id"], made["recording_id"], AGENT)]
    assert seen["messages"][0]["created_at"] == comment.json["created_at"]
    assert len(sim.see("messages?kind=boost")["messages"]) == 1
    types = [e["event_type"] for e in sim.poll(since=2).json["events"]]
    assert types == ["comment.created", "chat.line.created",
                     "chat.line.created", "boost.created"]
    details = sim.poll(since=0, types="boost.created").json["events"][0]
    assert details["details"] == {
        "boost_id": boost.json["id"], "boosted_event_id": None,
        "boosted_event_type": None}
    assert ids(sim.poll(since=2, exclude_performers=AGENT).json) == []
    sim.sim("world", options={"write_events": False})
    sim.post(f"/chats/{chat}/lines.json", {"content": "quiet"})
    assert len(ids(sim.poll(since=2).json)) == 4


def test_write_refusals(sim):
    made = sim.sim("mention")
    comments = f"/recordings/{made['parent_id']}/comments.json"
    ok = {"content": "x"}
    assert sim.post(comments, ok, type=None).status == 415
    assert sim.post(comments, ok, type="text/plain").status == 415
    assert sim.post(comments, ok, type="application/jsonp").status == 415
    assert sim.post(comments, ok, type="application/json").status == 201
    assert sim.post(comments, ok, agent=None).status == 400
    for body in ("{", "[]", '{"content":"a","content":"b"}',
                 b'{"content":"\xff"}', ""):
        assert sim.post(comments, body).status == 400, body
    for body in ({}, {"content": " \n"}, {"content": 5}):
        assert sim.post(comments, body).status == 422, body
    assert sim.post(f"/recordings/{made['recording_id']}/comments.json",
                    ok).status == 404
    assert sim.post("/recordings/9/comments.json", ok).status == 404
    assert sim.post("/recordings/9/boosts.json", ok).status == 404
    assert sim.post(f"/chats/{made['parent_id']}/lines.json",
                    ok).status == 404
    assert sim.see("messages")["counts"]["comment"] == 1
    # The refusal may overtake what the client still has to send.
    big = in_thread(sim.post, comments, {"content": "x" * 1024 * 1024})()
    assert isinstance(big, OSError) or big.status == 413
    assert sim.see("messages")["counts"]["comment"] == 1


def test_update_comment(sim):
    made = sim.sim("mention")
    own = sim.post(f"/recordings/{made['parent_id']}/comments.json",
                   {"content": "one"}).json["id"]
    path = f"/999/comments/{own}.json"
    assert sim.call("PUT", path, sim.agent, {"content": "two"}).status == 200
    assert sim.get(f"/comments/{own}").json["content"] == "two"
    assert sim.call("PUT", path, OPERATOR_TOKEN,
                    {"content": "no"}).status == 403
    assert sim.call("PUT", path, sim.agent, {"content": ""}).status == 422
    assert sim.call("PUT", "/999/comments/4", sim.agent,
                    {"content": "x"}).status == 404


def test_event_boosts(sim):
    sim.sim("world", recordings=[{
        "id": 71, "type": "Todo", "bucket_id": PROJECT,
        "creator_id": OPERATOR}])
    done = emit(sim, event_type="todo.completed", recording_id=71)
    moved = emit(sim, event_type="todo.moved", recording_id=71)

    def boost(event):
        return sim.post(f"/recordings/71/events/{event}/boosts.json",
                        {"content": "yes"}).status
    assert (boost(done), boost(moved), boost(99)) == (201, 403, 404)
    assert sim.see("messages")["messages"][0]["event_id"] == done
    assert sim.get("/recordings/71/boosts.json").json == []


def walk(sim, path):
    sizes, rows, total = [], [], None
    while path:
        reply = sim.call("GET", path, OPERATOR_TOKEN)
        sizes.append(len(reply.json))
        rows += reply.json
        total = int(reply.headers["X-Total-Count"])
        path = reply.link()
    return sizes, [row["id"] for row in rows], total


def test_lists_in_pages(sim):
    def children(first, type, parent):
        return [{"id": n, "type": type, "parent_id": parent,
                 "bucket_id": PROJECT, "creator_id": AGENT}
                for n in range(first, first + 296)]
    sim.sim("world", recordings=[
        {"id": 1, "type": "Message", "bucket_id": PROJECT},
        {"id": 2, "type": "Chat::Transcript", "bucket_id": PROJECT},
        *children(1001, "Comment", 1),
        *children(2001, "Chat::Lines::Text", 2)],
        boosts=[{"id": n, "recording_id": 1, "booster_id": AGENT}
                for n in range(1, 297)])
    sizes = [15, 30, 50, 100, 100, 1]
    assert walk(sim, "/999/recordings/1/comments.json") == (
        sizes, list(range(1001, 1297)), 296)
    assert walk(sim, "/999/recordings/1/boosts") == (
        sizes, list(range(1, 297)), 296)
    assert walk(sim, "/999/chats/2/lines.json") == (
        sizes, list(range(2001, 2297)), 296)
    assert walk(sim, "/999/chats/2/lines.json?sort=created_at&direction=desc"
                ) == (sizes, list(range(2296, 2000, -1)), 296)
    row = sim.get("/recordings/1/boosts.json").json[0]
    assert row["booster"]["id"] == AGENT and row["created_at"]
    assert sim.get("/recordings/1/comments.json?page=99").json == []
    for query in ("page=0", "page=x"):
        assert sim.get(f"/recordings/1/comments.json?{query}").status == 400
    for query in ("sort=size", "direction=up"):
        assert sim.get(f"/chats/2/lines.json?{query}").status == 400
    assert sim.get("/chats/1/lines.json").status == 404
    whole = {"boosts": [{"id": n, "recording_id": 2} for n in range(301, 316)]}
    sim.sim("world", **whole)
    assert walk(sim, "/999/recordings/2/boosts")[0] == [15]
    sim.sim("world", recordings=[{"id": 1001, "status": "trashed"}],
            remove={"recordings": [1002], "boosts": [1]})
    assert sim.get("/recordings/1/comments.json").json[0]["id"] == 1003
    assert walk(sim, "/999/recordings/1/boosts")[2] == 295


def test_directories_whole_or_in_pages(sim):
    members = [OPERATOR, *range(100, 120)]
    sim.sim("world", projects=[{"id": n, "members": members}
                               for n in range(1, 21)])
    assert len(sim.get("/projects.json").json) == 21
    assert len(sim.get("/projects/1/people.json").json) == 21
    sim.sim("world", options={"page_directories": True})
    assert walk(sim, "/999/projects.json")[0] == [15, 6]
    assert walk(sim, "/999/projects/1/people.json")[0] == [15, 6]


def test_wrapped_content(sim):
    made = sim.sim("mention")
    sim.sim("world", options={"wrap_content": True})
    path = f"/recordings/{made['parent_id']}/comments.json"
    sim.post(path, {"content": "<p>a</p>"})
    assert sim.get(path).json[-1]["content"] == \
        "<div>\n<p>a</p><br />\n</div>"
    assert sim.see("messages")["messages"][0]["content"] == "<p>a</p>"
