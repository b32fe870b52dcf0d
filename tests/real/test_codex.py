"""The real Codex, with the same declaration. No driver of its own is needed to
see that: the scripted agent starts it with the server that it was given
itself, by the arguments of dispatch.md 15.1.
"""

import json

import pytest

import story
from harness import WORKER_USER

pytestmark = pytest.mark.real_agents

POST_COMMENT = "POST /999/recordings/*/comments"
QUIET = ["apps", "plugins", "remote_plugin", "hooks", "browser_use",
         "browser_use_external", "computer_use", "in_app_browser",
         "image_generation", "memories", "skill_mcp_dependency_install",
         "tool_suggest"]
SETTINGS = [
    'approval_policy="never"',
    'sandbox_mode="workspace-write"',
    "sandbox_workspace_write.network_access=false",
    "sandbox_workspace_write.exclude_slash_tmp=true",
    "sandbox_workspace_write.exclude_tmpdir_env_var=true",
    "sandbox_workspace_write.writable_roots=[]",
    'shell_environment_policy.inherit="core"',
    'web_search="disabled"',
    "skills.bundled.enabled=false",
    "skills.include_instructions=false",
]
PROVIDER = ('model_providers.scripted={name="scripted",base_url="%s/v1",'
            'env_key="CODEX_API_KEY",wire_api="responses"}')


def codex_argv(program, model, server, model_name):
    words = [program, "exec", "--json", "--strict-config",
             "--ignore-user-config", "--ignore-rules",
             "--skip-git-repo-check"]
    for setting in SETTINGS:
        words += ["-c", setting]
    for feature in QUIET:
        words += ["--disable", feature]
    words += ["-c", PROVIDER % model.url, "-c", 'model_provider="scripted"',
              "-c", "analytics.enabled=false",
              "-c", 'otel.metrics_exporter="none"']
    return words + [server, "--model", model_name, "-"]


@pytest.fixture
def start(make_connector, folder, clients, model):
    """A connector whose scripted agent hands its task to the real Codex."""
    def start(server="{codex-server}", model_name="scripted-1"):
        home = folder.make("codex-home", 0o700, WORKER_USER)
        run = {"step": "run", "stdin": "prompt",
               "argv": codex_argv(clients.path("codex"), model, server,
                                  model_name),
               "env": dict(model.proxy_environ(), CODEX_HOME=str(home),
                           HOME=str(home), CODEX_API_KEY="dummy-key")}
        connector = make_connector(script={"default": [run]})
        worker = connector.config["worker"]
        worker["read"].append(str(clients.modules))
        worker["write"].append(str(home))
        connector.write_config()
        return story.begin(connector)
    return start


def run_record(connector):
    return connector.agent_records("run")[0]


def events(connector):
    """What Codex said on its standard output."""
    return [json.loads(line) for line in
            run_record(connector)["stdout"].splitlines()]


def calls(connector):
    """Its finished calls of the server, as (tool, status)."""
    items = [e["item"] for e in events(connector)
             if e["type"] == "item.completed"]
    return [(i["tool"], i["status"]) for i in items
            if i["type"] == "mcp_tool_call"]


TOOLS = [step.tool for step in story.whole()[:-1]]


def assert_the_whole_story(connector, model):
    model.script = story.whole()
    event = connector.sim.mention()["event_id"]
    story.assert_told_once(connector, event)
    story.assert_no_call_failed(model)
    assert run_record(connector)["status"] == 0
    assert calls(connector) == [(tool, "completed") for tool in TOOLS]
    assert events(connector)[-1]["type"] == "turn.completed"


# How the tools are shown hangs on the model's name: in the list, behind a
# search, from programs.
@pytest.mark.parametrize("name", ["scripted-1", "gpt-5.5", "gpt-6.1-sol"])
def test_the_whole_story(start, model, name):
    assert_the_whole_story(start(model_name=name), model)


def test_annotations_give_leave(start, model):
    """No word in the declaration that the tools may be called unasked."""
    assert_the_whole_story(start("{codex-server-unapproved}"), model)


def test_the_wire(start, model, tap):
    """A session of 2025-06-18; each call is one, in order."""
    model.script = story.whole()
    connector = start()
    event = connector.sim.mention()["event_id"]
    story.assert_told_once(connector, event)
    records = tap.records()
    own = [n for n, r in enumerate(records) if r["what"] == "start"]
    assert len(own) == 2
    messages = [r["message"] for r in records[own[1]:]
                if r["what"] == "client"]
    assert [m["method"] for m in messages] == (
        ["initialize", "notifications/initialized", "tools/list"] +
        ["tools/call"] * len(story.ACTIONS))
    assert messages[0]["params"]["protocolVersion"] == "2025-06-18"
    assert [m["params"]["arguments"]["action"]
            for m in messages[3:]] == story.ACTIONS


def test_mcpd_dies(start, model):
    """Codex never starts a server again: it need not."""
    model.script = story.whole()
    for step in model.script[1:4]:
        step.after(lambda: story.another_mcpd(connector))
    connector = start()
    sim = connector.sim
    sim.gate(POST_COMMENT)
    event = sim.mention()["event_id"]
    sim.wait("held", 1, timeout=60)
    story.another_mcpd(connector)
    sim.release(POST_COMMENT)
    story.assert_told_once(connector, event)
    story.assert_no_call_failed(model)
    assert calls(connector) == [(tool, "completed") for tool in TOOLS]
