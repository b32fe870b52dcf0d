"""What a scripted agent does with a prompt, and the log of what it did.

The script is a JSON file, named by CONNECTD_AGENT_SCRIPT or found as
.agent-script.json in the working directory. Without one, every prompt gets
the default steps. Members, all optional:

  log       file for what the agent did, JSON lines (or CONNECTD_AGENT_LOG)
  default   the steps of a prompt that nothing below names
  events    {"101": [steps of the first prompt of event 101, of the second..]}
            the last list stands for all later prompts; prompts are counted
            over all processes that share the log
  harness   unix socket of the test harness, for kill, arrive and await
  control   path of connectd's control socket, for connect-control
  out       directory for what echo-env and connect-control write
  wait      seconds that a pending boost or reply is asked about again (60)

A step is a string "name" or "name:argument", or an object {"step": name,
"arg": argument, ...} with members of its own. A "?" at the end of a name (or
"may_fail": true) lets the turn go on when the step's call is refused.

  get               get_dispatch of the prompt's event
  get-any           get_dispatch without an event id
  ack               boost and ack_dispatch, when the instruction asks for it
  ack-always        the same without looking at the instruction
  boost[:TEXT]      only the boost
  ack-id:N          only ack_dispatch with that id (none: without an id)
  read              one page of the thread
  work[:NAME]       write a file in the working directory
  reply[:TEXT]      post the answer and wait for its id
  complete          complete_dispatch with outcome succeeded
  fail              complete_dispatch with outcome failed
  call              object form: any tool call, {"tool":..., "arguments":...}
  text:TEXT         say something
  denied[:TOOL]     report a permission refusal
  kill[:WHAT]       ask the harness to kill that role, or the supervisor, or
                    the `tree`, then wait for its answer
  arrive[:TEXT]     ask the harness for a new mention in the same thread
  await:ID=STATES   ask the harness to wait until a record is in one of the
                    states (STATE|STATE); the ID may be `arrived`
  linger            do nothing until interrupted or ended
  linger-deaf       the same, deaf to interrupts and to SIGTERM
  sleep:MS          do nothing for so long
  exit:N            end at once with this code, without a result
  grandchild        a sleeping child in the group, holding the directory
  setsid-grandchild the same in a session of its own
  echo-env          write argv, environment and descriptors to out/env-PID.json
  connect-control   connect to the control socket, write what happened
  try-read:PATH     log whether a file can be read
  try-write:PATH    log whether a file can be written
  crash-server[:A]  kill the MCP server in the middle of a call (read, or
                    boost, reply, get)
  run               object form: {"argv": [...]}, a child run to its end; the
                    word {server} stands for the declared server's command,
                    {codex-server} for the arguments that declare it to Codex,
                    {codex-server-unapproved} for those without the leave to
                    call it unasked; {"stdin": "prompt"} gives it the prompt
  wrong-mode, wrong-session, no-server
                    what the first event of the session claims wrongly
"""

import json
import os
import re
import sys
import time

DEFAULT = ["get", "ack", "read", "work", "reply", "complete"]
EVENT_ID = re.compile(r"event(?:[_ ]?id)?\D{0,16}?([0-9]{1,19})", re.I)
NUMBER = re.compile(r"[0-9]{1,19}")
NAMED_FILE = ".agent-script.json"


class Log:
    """JSON lines, each appended in one write; shared between processes."""

    def __init__(self, path):
        self.path = path
        self.file = None
        if path:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            try:
                self.file = os.open(path, flags, 0o644)
            except OSError as error:
                sys.stderr.write("no log: %s: %s\n" % (path, error))
                self.path = None

    def __call__(self, what, **fields):
        if self.file is None:
            return
        record = {"what": what, "at": time.monotonic(), "pid": os.getpid()}
        record.update(fields)
        os.write(self.file, (json.dumps(record) + "\n").encode())

    def count_prompts(self, event_id):
        """How many prompts of this event the log already holds."""
        if not self.path:
            return 0
        count = 0
        with open(self.path, encoding="utf-8") as lines:
            for line in lines:
                if not line.endswith("\n"):
                    continue
                record = json.loads(line)
                if (record["what"] == "prompt"
                        and record.get("event_id") == event_id):
                    count += 1
        return count


class Step:
    """One parsed step: name, argument, further members."""

    def __init__(self, source):
        if isinstance(source, dict):
            self.more = source
            self.name = source["step"]
            self.arg = source.get("arg")
        else:
            self.more = {}
            self.name, _, arg = source.partition(":")
            self.arg = arg or None
        self.may_fail = bool(self.more.get("may_fail"))
        if self.name.endswith("?"):
            self.name = self.name[:-1]
            self.may_fail = True


class Script:
    """The parsed script file."""

    def __init__(self, members):
        self.log_path = members.get("log")
        self.default = members.get("default", DEFAULT)
        self.events = members.get("events", {})
        self.harness = members.get("harness")
        self.control = members.get("control")
        self.out = members.get("out", ".")
        self.wait = float(members.get("wait", 60))

    def steps(self, event_id, nth):
        """The steps of the nth prompt (from 0) of an event."""
        lists = self.events.get(str(event_id))
        if not lists:
            chosen = self.default
        else:
            chosen = lists[min(nth, len(lists) - 1)]
        return [Step(source) for source in chosen]


def load_script(environ):
    """The script and its log. An unreadable script is an error of the test,
    so it ends the agent with its reason.
    """
    path = environ.get("CONNECTD_AGENT_SCRIPT")
    if not path and os.path.exists(NAMED_FILE):
        path = NAMED_FILE
    members = {}
    if path:
        with open(path, encoding="utf-8") as file:
            members = json.load(file)
    script = Script(members)
    return script, Log(script.log_path or environ.get("CONNECTD_AGENT_LOG"))


def find_event_ids(text):
    """The event ids that a prompt names, in order, each once."""
    found = EVENT_ID.findall(text) or NUMBER.findall(text)
    return list(dict.fromkeys(int(number) for number in found))
