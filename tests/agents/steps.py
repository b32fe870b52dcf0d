"""The steps of a script (script.py lists them) as functions in one table.

Each takes the turn and the step. A turn offers call(), wait(), emit_text(),
the script, the log and the event id; see `claude`.
"""

import errno
import json
import os
import signal
import socket
import subprocess
import time

CONNECT = "basecamp_connect"
THREAD = "basecamp_thread"
ASK_AGAIN = 0.02
SLEEPER = ["/usr/bin/sleep", "600"]
ID_NAMES = ("id", "receipt_id", "ack_id", "reply_id")


class StepFailed(Exception):
    """A tool refused, or the server was lost: the rest of the turn is off."""


def connect(turn, action, **params):
    return turn.call(CONNECT, {"action": action, "params": params})


def thread(turn, action, **params):
    return turn.call(THREAD, {"action": action, "params": params})


def posted_id(answer):
    for name in ID_NAMES:
        if isinstance(answer.get(name), int):
            return answer[name]
    return None


def post(turn, action, content):
    """Ask for a boost or a reply until its id is known. The same arguments
    name the same message, so asking again never posts again.
    """
    deadline = time.monotonic() + turn.script.wait
    while True:
        answer = thread(turn, action, event_id=turn.event_id, content=content)
        number = posted_id(answer)
        if number is not None:
            turn.log("posted", action=action, id=number,
                     event_id=turn.event_id)
            return number
        if answer.get("state") != "pending":
            raise StepFailed("%s stands as %r" % (action, answer))
        if time.monotonic() > deadline:
            raise StepFailed("%s still pending" % action)
        turn.wait(ASK_AGAIN)


def step_get(turn, step):
    answer = connect(turn, "get_dispatch", event_id=turn.event_id)
    turn.instruction = answer.get("instruction") or {}


def step_get_any(turn, step):
    answer = connect(turn, "get_dispatch")
    turn.instruction = answer.get("instruction") or {}
    turn.event_id = turn.instruction.get("event_id", turn.event_id)


def step_ack(turn, step):
    asked = turn.instruction.get("acknowledge")
    if not asked or turn.instruction.get("guard_acknowledged"):
        turn.log("ack_not_asked", event_id=turn.event_id)
        return
    step_ack_always(turn, step)


def step_ack_always(turn, step):
    ack_id = post(turn, "boost", step.arg or "On it")
    connect(turn, "ack_dispatch", event_id=turn.event_id, ack_id=ack_id)


def step_boost(turn, step):
    post(turn, "boost", step.arg or "On it")


def step_ack_id(turn, step):
    params = {"event_id": turn.event_id}
    if step.arg:
        params["ack_id"] = int(step.arg)
    connect(turn, "ack_dispatch", **params)


def step_read(turn, step):
    params = dict(step.more.get("params", {}))
    thread(turn, "read", event_id=turn.event_id, **params)


def step_work(turn, step):
    name = step.arg or "answer-%d.txt" % turn.event_id
    text = "Event %d was worked on here.\n" % turn.event_id
    ident = turn.tool_use("Write", {"file_path": os.path.abspath(name),
                                    "content": text})
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)
    turn.tool_result(ident, "File created successfully at: " + name, False)


def step_reply(turn, step):
    text = step.arg or "Done: event %d." % turn.event_id
    turn.reply_id = post(turn, "reply", text)


def step_complete(turn, step):
    params = {"event_id": turn.event_id, "outcome": "succeeded"}
    if turn.reply_id is not None:
        params["reply_id"] = turn.reply_id
    params.update(step.more.get("params", {}))
    connect(turn, "complete_dispatch", **params)


def step_fail(turn, step):
    params = {"event_id": turn.event_id, "outcome": "failed"}
    params.update(step.more.get("params", {}))
    connect(turn, "complete_dispatch", **params)


def step_call(turn, step):
    turn.call(step.more["tool"], step.more["arguments"])


def step_text(turn, step):
    turn.emit_text(step.arg or "")


def step_denied(turn, step):
    turn.deny(step.arg or "Bash")


def ask_harness(turn, request):
    """One line to the harness, one line back; an interrupt is noticed."""
    request["event_id"] = turn.event_id
    request["pid"] = os.getpid()
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with peer:
        peer.connect(turn.script.harness)
        peer.sendall((json.dumps(request) + "\n").encode())
        peer.settimeout(0.05)
        answer = b""
        while not answer.endswith(b"\n"):
            turn.wait(0)
            try:
                part = peer.recv(65536)
            except TimeoutError:
                continue
            if not part:
                break
            answer += part
    turn.log("harness", request=request, answer=answer.decode())


def step_kill(turn, step):
    ask_harness(turn, {"ask": "kill", "what": step.arg or "supervisor"})


def step_arrive(turn, step):
    ask_harness(turn, {"ask": "arrive",
                       "text": step.arg or "and one thing more"})


def step_await(turn, step):
    ident, _, states = step.arg.partition("=")
    ask_harness(turn, {"ask": "await", "id": ident,
                       "states": states.split("|")})


def step_linger(turn, step):
    while True:
        turn.wait(3600)


def step_linger_deaf(turn, step):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    turn.log("deaf")
    while True:
        time.sleep(3600)


def step_sleep(turn, step):
    turn.wait(int(step.arg) / 1000)


def step_exit(turn, step):
    os._exit(int(step.arg or 0))


def sleeper(turn, own_session):
    child = subprocess.Popen(
        SLEEPER,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=own_session,
    )
    turn.log("grandchild", child=child.pid, own_session=own_session)


def step_grandchild(turn, step):
    sleeper(turn, False)


def step_setsid_grandchild(turn, step):
    sleeper(turn, True)


def open_descriptors():
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[name] = os.readlink("/proc/self/fd/" + name)
        except OSError:
            pass
    return found


def step_echo_env(turn, step):
    path = os.path.join(turn.script.out, "env-%d.json" % os.getpid())
    seen = {
        "argv": turn.argv,
        "environ": dict(os.environ),
        "cwd": os.getcwd(),
        "ids": [os.getresuid(), os.getresgid(), os.getgroups()],
        "descriptors": open_descriptors(),
        "umask": umask_now(),
        "mcp_config": turn.mcp_config,
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(seen, file)
    turn.log("echo_env", path=path)


def umask_now():
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def step_connect_control(turn, step):
    path = os.path.join(turn.script.out, "control-%d.json" % os.getpid())
    seen = {"connected": False, "received": "", "closed": False}
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with peer:
        peer.settimeout(5)
        try:
            peer.connect(turn.script.control)
            seen["connected"] = True
            data = peer.recv(65536)
            seen["received"] = data.hex()
            seen["closed"] = not data
        except OSError as error:
            name = errno.errorcode.get(error.errno, type(error).__name__)
            seen["error"] = name
    with open(path, "w", encoding="utf-8") as file:
        json.dump(seen, file)
    turn.log("connect_control", path=path, **seen)


def try_open(turn, step, flags):
    try:
        os.close(os.open(step.arg, flags | os.O_CLOEXEC, 0o600))
        outcome = "ok"
    except OSError as error:
        outcome = errno.errorcode.get(error.errno, str(error.errno))
    turn.log(step.name, path=step.arg, outcome=outcome)


def step_try_read(turn, step):
    try_open(turn, step, os.O_RDONLY)


def step_try_write(turn, step):
    try_open(turn, step, os.O_WRONLY | os.O_CREAT)


def step_crash_server(turn, step):
    """The first look for an interrupt comes when the request is written: the
    server is killed there.
    """
    action = step.arg or "read"
    params = {"event_id": turn.event_id}
    if action in ("boost", "reply"):
        params["content"] = "On it" if action == "boost" else (
            "Done: event %d." % turn.event_id)
    tool, name = THREAD, action
    if action == "get":
        tool, name = CONNECT, "get_dispatch"
    turn.crash_in_call(tool, {"action": name, "params": params})


def toml_table(members):
    return "{%s}" % ",".join("%s=%s" % (json.dumps(name), json.dumps(value))
                             for name, value in sorted(members.items()))


def codex_server(name, entry, approve):
    """The arguments that declare a server to Codex (dispatch.md 15.1)."""
    members = {
        "command": json.dumps(entry["command"]),
        "args": json.dumps(entry.get("args", [])),
        "env": toml_table(entry.get("env", {})),
        "required": "true",
    }
    if approve:
        members["default_tools_approval_mode"] = '"approve"'
    words = []
    for member, value in members.items():
        words += ["-c", "mcp_servers.%s.%s=%s" % (name, member, value)]
    return words


def run_words(turn, step):
    """The argv of a run step. Whoever is given the declared server has it
    alone: only one may be connected at a time.
    """
    name = turn.agent.server().name
    entry = turn.mcp_config[name]
    stands_for = {
        "{server}": [entry["command"], *entry.get("args", [])],
        "{codex-server}": codex_server(name, entry, True),
        "{codex-server-unapproved}": codex_server(name, entry, False),
    }
    words = []
    for word in step.more["argv"]:
        if word in stands_for:
            turn.leave_servers()
        words += stands_for.get(word, [word])
    return words


def step_run(turn, step):
    words = run_words(turn, step)
    said = turn.prompt.text if step.more.get("stdin") == "prompt" else ""
    done = subprocess.run(
        words,
        input=said.encode(),
        capture_output=True,
        env=dict(os.environ, **step.more.get("env", {})),
        timeout=step.more.get("timeout", 120),
        check=False,
    )
    turn.log("run", argv=words, status=done.returncode,
             stdout=done.stdout.decode("utf-8", "replace"),
             stderr=done.stderr.decode("utf-8", "replace"))


def step_claim(turn, step):
    """What the init event claims is chosen before the first step."""


TABLE = {
    "get": step_get,
    "get-any": step_get_any,
    "ack": step_ack,
    "ack-always": step_ack_always,
    "boost": step_boost,
    "ack-id": step_ack_id,
    "read": step_read,
    "work": step_work,
    "reply": step_reply,
    "complete": step_complete,
    "fail": step_fail,
    "call": step_call,
    "text": step_text,
    "denied": step_denied,
    "kill": step_kill,
    "arrive": step_arrive,
    "await": step_await,
    "linger": step_linger,
    "linger-deaf": step_linger_deaf,
    "sleep": step_sleep,
    "exit": step_exit,
    "grandchild": step_grandchild,
    "setsid-grandchild": step_setsid_grandchild,
    "echo-env": step_echo_env,
    "connect-control": step_connect_control,
    "try-read": step_try_read,
    "try-write": step_try_write,
    "crash-server": step_crash_server,
    "run": step_run,
    "wrong-mode": step_claim,
    "wrong-session": step_claim,
    "no-server": step_claim,
}
