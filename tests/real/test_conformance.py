"""The MCP conformance suites and the Inspector, against the bridge and mcpd of
a live task. What is expected is the tally that a server can reach which has
tools of its own and a transport without HTTP; anything below it is ours.
"""

import collections
import json
import subprocess
import urllib.request

import pytest

import story
from harness import WORKER_USER, wait_for

pytestmark = pytest.mark.real_agents

LIMIT = 90

# What fails by design: neither prompts nor resources are offered.
NOT_OFFERED = {
    "sep-2549-prompts-list-caching-hints",
    "sep-2549-resources-list-caching-hints",
    "sep-2549-resources-templates-list-caching-hints",
}
# What cannot be told here: it needs tools of the suite's own, or, the first,
# an HTTP server that looks at headers.
NOT_STDIO = {
    "sep-2575-http-server-header-mismatch-400",
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
}
Scenario = collections.namedtuple(
    "Scenario", "suite name version passed failed skipped")
SCENARIOS = [
    Scenario("0.1", "server-initialize", None, 1, set(), 0),
    Scenario("0.1", "ping", None, 1, set(), 0),
    Scenario("0.1", "tools-list", None, 1, set(), 0),
    Scenario("0.2", "server-initialize", None, 3, set(), 0),
    Scenario("0.2", "ping", None, 2, set(), 0),
    Scenario("0.2", "tools-list", None, 3, set(), 0),
    Scenario("0.2", "tools-list", "2025-06-18", 2, set(), 0),
    Scenario("0.2", "tools-list", "2026-07-28", 4, set(), 0),
    Scenario("0.2", "input-required-result-unsupported-methods",
             "2026-07-28", 2, set(), 0),
    Scenario("0.2", "caching", "2026-07-28", 4, NOT_OFFERED, 1),
    Scenario("0.2", "server-stateless", "2026-07-28", 20,
             NOT_STDIO, 5),
]


@pytest.fixture
def live_task(make_connector, folder, clients):
    """A task whose agent hands its server to a program: the connector, once
    that program was started.
    """
    def begin(*argv, write=()):
        connector = make_connector(script={"default": [
            "get", "ack",
            {"step": "run", "argv": [str(word) for word in argv],
             "timeout": LIMIT},
            "reply", "complete"]})
        worker = connector.config["worker"]
        worker["read"].append(str(clients.modules))
        worker["write"] += [str(path) for path in write]
        connector.write_config()
        story.begin(connector)
        connector.event = connector.sim.mention()["event_id"]
        return connector
    return begin


@pytest.fixture
def url(live_task, folder):
    """Where the suites find the task's server; the task goes on after."""
    out = folder.make("out", 0o755, WORKER_USER)
    folder.programs()
    program = folder.path / "agents" / "http_bridge.py"
    program.write_bytes((story.HERE / "http_bridge.py").read_bytes())
    program.chmod(0o755)
    port = out / "port"
    connector = live_task(program, port, "{server}")
    wait_for(port.exists, what="the HTTP bridge")
    address = "http://127.0.0.1:" + port.read_text()
    yield address + "/mcp"
    urllib.request.urlopen(address + "/end", data=b"", timeout=LIMIT).close()
    story.assert_told_once(connector, connector.event)


def run_suite(clients, url, scenario, results):
    """The suite's checks of one scenario: those that passed, that failed,
    that were skipped.
    """
    argv = [clients.path("node"), clients.path("suite-" + scenario.suite),
            "server", "--url", url, "--scenario", scenario.name,
            "-o", str(results)]
    if scenario.version is not None:
        argv += ["--spec-version", scenario.version]
    done = subprocess.run(argv, capture_output=True, timeout=LIMIT,
                          check=False, text=True, cwd=results)
    files = list(results.glob("*/checks.json"))
    assert len(files) == 1, done.stdout + done.stderr
    checks = json.loads(files[0].read_text())
    found = collections.defaultdict(list)
    for check in checks:
        found[check["status"]].append(check["id"])
    return found


def scenario_id(scenario):
    return "-".join(filter(None, scenario[:3]))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=scenario_id)
def test_suite(url, clients, tmp_path, scenario):
    found = run_suite(clients, url, scenario, tmp_path)
    print(json.dumps(found))
    failed = set(found.pop("FAILURE", [])) | set(found.pop("WARNING", []))
    assert failed == scenario.failed
    assert len(found["SUCCESS"]) == scenario.passed
    assert len(found["SKIPPED"]) == scenario.skipped


LIST = ["--method", "tools/list", "--strict"]
CALL = ["--method", "tools/call", "--tool-name"]
GET = CALL + ["basecamp_connect", "--tool-args-json",
              '{"action":"get_dispatch"}']
READ = CALL + ["basecamp_thread", "--tool-args-json",
               '{"action":"read","params":{"event_id":1}}']
LOAD = ["--load", "--load-requests", "100", "--load-concurrency"]


@pytest.fixture
def inspect(live_task, folder, clients):
    """What the Inspector's command line says of a live task's server."""
    def run(*arguments):
        home = folder.make("inspector-home", 0o700, WORKER_USER)
        connector = live_task(
            "/usr/bin/env", "HOME=%s" % home, clients.path("node"),
            clients.path("inspector"), "--cli", "{server}", *arguments,
            write=[home])
        story.assert_told_once(connector, connector.event)
        done = connector.agent_records("run")[0]
        assert done["status"] == 0, done["stderr"]
        return json.loads(done["stdout"])
    return run


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_inspector_finds_nothing(inspect, era):
    listed = inspect(*LIST, "--protocol-era", era)
    assert [tool["name"] for tool in listed["tools"]] == [
        "basecamp_connect", "basecamp_thread"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_inspector_calls(inspect, era):
    answer = inspect(*READ, "--protocol-era", era)
    text = json.loads(answer["content"][0]["text"])
    assert text["recording"]["title"] == "Kickoff"


@pytest.mark.parametrize("call, at_once", [(GET, 10), (READ, 4)],
                         ids=["get_dispatch", "read"])
def test_inspector_loads(inspect, call, at_once):
    """So many calls in flight, each with its own answer."""
    counts = inspect(*call, *LOAD, str(at_once))
    assert counts["ok"] == 100, counts
