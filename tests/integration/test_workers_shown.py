"""What status says of a live task's worker: it signals nothing and asks the
kernel alone, so it says the same when nothing runs.
"""

import json
import os
import signal

import harness
import processes


def shown_worker(connector):
    done = connector.connectctl("--json", "status")
    tasks = json.loads(done.stdout)["data"]["status"]["live_tasks"]
    return [task["worker"] for task in tasks]


def test_worker(make_connector):
    connector = make_connector(
        script={"default": ["get", "ack", "grandchild", "linger"]})
    connector.start()
    connector.sim.mention()
    connector.wait_line(type="outbox", state="sent")
    leader = connector.roles()["worker"][0].pid
    child = harness.wait_for(
        lambda: [p for p in processes.descendants(leader)
                 if p.comm not in ("connect-bridge", "claude")], what="a child")
    assert shown_worker(connector) == ["running"]
    assert "(running)" in connector.connectctl("status").stdout
    connector.kill()
    connector.wait_end()
    assert shown_worker(connector) == ["running"]
    os.kill(leader, signal.SIGKILL)
    harness.wait_for(lambda: shown_worker(connector) == ["held"],
                     what="a group without its leader")
    os.killpg(leader, signal.SIGKILL)
    harness.wait_for(lambda: shown_worker(connector) == ["gone"],
                     what="nothing of it")
    assert child
