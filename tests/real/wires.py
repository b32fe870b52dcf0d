"""The two wires that models are spoken to by, as far as a script needs them:
Anthropic's Messages and OpenAI's Responses, both streamed.

A wire reads a request's conversation and makes the events of an answer. The
step that made a call is in the call's id.
"""

import json
import re

OWN_ID = re.compile(r"_step([0-9]+)$")
# What Codex runs for today's models: a tool is called from a program.
PROGRAM = """const answer = await tools[%s](%s);
text(answer.content.map(part => part.text).join(""));
"""


def text_of(content):
    """The text of a message's or a result's content, whichever form it has."""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or [])


def own_step(ident):
    """The number of the step that made this call."""
    return int(OWN_ID.search(ident).group(1))


def offered(tools, end):
    """The whole name of the tool whose name ends so, or None."""
    return next((name for name in tools if name.endswith(end)), None)


class Messages:
    """Anthropic's, which Claude Code speaks."""

    @staticmethod
    def read(body, into):
        for tool in body.get("tools") or []:
            is_hidden = tool.get("defer_loading")
            (into.hidden if is_hidden else into.tools).append(tool["name"])
        for message in body["messages"]:
            content = message["content"]
            if isinstance(content, str):
                content = [{"type": "text", "text": content}]
            for block in content:
                Messages.read_block(block, message["role"], into)

    @staticmethod
    def read_block(block, role, into):
        if block["type"] == "text" and role == "user":
            into.prompt += block["text"] + "\n"
        elif block["type"] == "tool_use":
            into.calls.append(own_step(block["id"]))
        elif block["type"] == "tool_result":
            step = own_step(block["tool_use_id"])
            into.results[step] = text_of(block.get("content"))
            if block.get("is_error"):
                into.errors.append(step)

    @staticmethod
    def is_main(conversation):
        """Titles and the like are asked for without any tool."""
        return bool(conversation.tools)

    @staticmethod
    def error(kind):
        return {"type": "error", "error": {"type": kind, "message": kind}}

    @staticmethod
    def opening(body):
        yield {"type": "message_start", "message": {
            "id": "msg_scripted", "type": "message", "role": "assistant",
            "model": body["model"], "content": [], "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1}}}

    @staticmethod
    def block(start, delta, stop_reason):
        yield {"type": "content_block_start", "index": 0,
               "content_block": start}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
        yield {"type": "message_delta",
               "delta": {"stop_reason": stop_reason, "stop_sequence": None},
               "usage": {"output_tokens": 1}}
        yield {"type": "message_stop"}

    @staticmethod
    def use(step, tool, arguments, conversation):
        name = offered(conversation.tools, tool)
        assert name, "%s is not offered" % tool
        return Messages.block(
            {"type": "tool_use", "id": "toolu_step%d" % step, "name": name,
             "input": {}},
            {"type": "input_json_delta",
             "partial_json": json.dumps(arguments)}, "tool_use")

    @staticmethod
    def say(text):
        return Messages.block({"type": "text", "text": ""},
                              {"type": "text_delta", "text": text},
                              "end_turn")


class Responses:
    """OpenAI's, which Codex speaks. It shows a model its tools in one of three
    ways: in the list, behind a search, or inside a tool that runs programs.
    """

    @staticmethod
    def read(body, into):
        Responses.read_tools(body.get("tools") or [], "", into)
        for item in body["input"]:
            Responses.read_item(item, into)

    @staticmethod
    def read_tools(tools, space, into):
        for tool in tools:
            if tool["type"] == "namespace":
                Responses.read_tools(tool["tools"], tool["name"] + "/", into)
            else:
                into.tools.append(space + (tool.get("name") or tool["type"]))

    @staticmethod
    def read_item(item, into):
        kind = item["type"]
        if kind == "message" and item["role"] == "user":
            into.prompt += text_of(item["content"]) + "\n"
        elif kind in ("additional_tools", "tool_search_output"):
            Responses.read_tools(item["tools"], "", into)
        elif kind in ("function_call", "custom_tool_call"):
            into.calls.append(own_step(item["call_id"]))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            into.results[own_step(item["call_id"])] = text_of(item["output"])

    @staticmethod
    def is_main(conversation):
        return bool(conversation.tools)

    @staticmethod
    def error(kind):
        return {"error": {"type": kind, "code": None, "message": kind}}

    @staticmethod
    def opening(body):
        yield {"type": "response.created", "response": {
            "id": "resp_scripted", "status": "in_progress",
            "model": body["model"], "output": []}}

    @staticmethod
    def item(kind, **members):
        item = dict(members, type=kind, status="completed")
        yield {"type": "response.output_item.done", "output_index": 0,
               "item": item}
        yield {"type": "response.completed", "response": {
            "id": "resp_scripted", "status": "completed", "output": [item],
            "usage": {"input_tokens": 1, "output_tokens": 1,
                      "total_tokens": 2}}}

    @staticmethod
    def use(step, tool, arguments, conversation):
        name = offered(conversation.tools, tool)
        if name is None and "tool_search" in conversation.tools:
            return Responses.item("tool_search_call", id="ts_search",
                                  call_id="call_search", execution="client",
                                  arguments={"query": tool})
        if name is None:
            name = offered(conversation.tools, "exec")
            assert name, "%s is not offered" % tool
            return Responses.call(
                "custom_tool_call", step, name, input=PROGRAM % (
                    json.dumps("mcp__basecamp__" + tool),
                    json.dumps(arguments)))
        return Responses.call("function_call", step, name,
                              arguments=json.dumps(arguments))

    @staticmethod
    def call(kind, step, name, **members):
        space, slash, members["name"] = name.rpartition("/")
        if slash:
            members["namespace"] = space
        return Responses.item(kind, id="item_step%d" % step,
                              call_id="call_step%d" % step, **members)

    @staticmethod
    def say(text):
        return Responses.item(
            "message", id="msg_scripted", role="assistant",
            content=[{"type": "output_text", "text": text,
                      "annotations": []}])


def find(path):
    """The wire of a path, or None."""
    for end, wire in (("/v1/messages", Messages),
                      ("/v1/responses", Responses)):
        if path.endswith(end):
            return wire
    return None
