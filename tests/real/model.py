"""A model on loopback that does as its script says: what the real agents talk
to in place of the service that their keys are for.

A script is a list of steps; each answers one request of the agent's own
conversation:

  Use(tool, **arguments)  call the tool whose name ends so; an argument may be
                          a function of the conversation
  Say(text)               say it, and the turn is over
  Hang()                  begin an answer and never go on
  Fail(status, kind)      an HTTP error, however often it is asked

Where a script stands is counted in the conversation that each request brings
along, so a request that is sent again gets the same answer again. step.after()
has something done before a step is answered for the first time.
"""

import http.server
import json
import re
import select
import socket
import threading
import time
import traceback

import wires

EVENT_ID = re.compile(r"event_id ([0-9]+)")


class Step:
    before = None

    def after(self, action):
        self.before = action
        return self


class Use(Step):
    def __init__(self, tool, **arguments):
        self.tool = tool
        self.arguments = arguments


class Say(Step):
    def __init__(self, text="That is done."):
        self.text = text


class Hang(Step):
    pass


class Fail(Step):
    def __init__(self, status, kind):
        self.status = status
        self.kind = kind


class Conversation:
    """What a request says of the conversation so far; a wire fills it in."""

    def __init__(self):
        self.prompt = ""
        self.tools = []     # names that can be called now, with their space
        self.hidden = []    # names that must be searched for first
        self.results = {}   # step -> text of its result
        self.errors = []    # steps whose result was marked as an error
        self.calls = []     # steps that were called

    def event_id(self):
        """The event that the prompt speaks of."""
        return int(EVENT_ID.search(self.prompt).group(1))

    def position(self):
        return max(self.calls, default=-1) + 1

    def answer(self, step):
        """A step's result as the JSON object it is."""
        return find_object(self.results[step])

    def posted(self):
        """The id that the newest boost or reply came back with."""
        for step in sorted(self.results, reverse=True):
            number = self.answer(step).get("id")
            if number is not None:
                return number
        raise KeyError("nothing was posted")


def find_object(text):
    """The first JSON object in a text; an agent may say things around it."""
    decoder = json.JSONDecoder()
    for match in re.finditer("{", text):
        try:
            return decoder.raw_decode(text, match.start())[0]
        except ValueError:
            continue
    raise ValueError("no JSON object in: " + text)


class Request:
    """One request, as the log keeps it."""

    def __init__(self, path, conversation, step):
        self.at = time.monotonic()
        self.path = path
        self.conversation = conversation
        self.step = step            # its number; None: not the script's
        self.script_step = None     # what that step is
        self.left = None            # when the agent gave it up


class Model:
    """The server. Its script may be set as long as nobody has asked."""

    def __init__(self, *script):
        self.script = list(script)
        self.requests = []
        self.elsewhere = []         # hosts it was asked to reach
        self.unknown = []
        self.faults = []
        self.begun = set()
        self.cond = threading.Condition()
        self.closed, self.closing = socket.socketpair()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                                      Handler)
        self.server.daemon_threads = True
        self.server.model = self
        self.url = "http://127.0.0.1:%d" % self.server.server_port
        threading.Thread(target=self.server.serve_forever,
                         daemon=True).start()

    def proxy_environ(self):
        """For an agent: all but the model it reaches through the model, which
        lets nobody out and remembers who wanted to.
        """
        return {"HTTPS_PROXY": self.url, "HTTP_PROXY": self.url,
                "NO_PROXY": "127.0.0.1,localhost"}

    def step(self, number):
        """A conversation that outgrew its script gets the last step."""
        return self.script[min(number, len(self.script) - 1)]

    def begin(self, number):
        """Do what is to be done before this step, once."""
        with self.cond:
            is_first = number not in self.begun
            self.begun.add(number)
        action = self.step(number).before
        if is_first and action is not None:
            action()

    def note(self, request, **changes):
        with self.cond:
            if request not in self.requests:
                self.requests.append(request)
            for name, value in changes.items():
                setattr(request, name, value)
            self.cond.notify_all()

    def steps(self):
        """The requests of the script, in order."""
        with self.cond:
            return [r for r in self.requests if r.step is not None]

    def wait(self, condition, timeout=30):
        """The first of the script's requests for which it is true."""
        def look():
            return next((r for r in self.requests if r.step is not None
                         and condition(r)), None)
        with self.cond:
            found = self.cond.wait_for(look, timeout)
        assert found, "the model was not asked so: %r" % [
            vars(r) for r in self.requests]
        return found

    def close(self):
        self.closing.close()
        self.server.shutdown()
        self.server.server_close()
        self.closed.close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments):
        """The log is the model's."""

    def send_json(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self):
        self.server.model.unknown.append((self.command, self.path))
        self.close_connection = True
        self.send_json(404, {"error": {"type": "not_found_error",
                                       "message": "there is no such path"}})

    do_GET = do_HEAD = do_PUT = do_DELETE = refuse

    def do_CONNECT(self):
        self.server.model.elsewhere.append(self.path)
        self.close_connection = True
        self.send_json(403, {})

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        wire = wires.find(self.path.partition("?")[0])
        if wire is None:
            self.refuse()
            return
        try:
            self.answer(wire, json.loads(body))
        except OSError:
            self.close_connection = True
        except Exception:
            # Of the script or of a wire: the agent need not ask again.
            self.server.model.faults.append(traceback.format_exc())
            self.send_json(400, wire.error("invalid_request_error"))

    def answer(self, wire, body):
        model = self.server.model
        conversation = Conversation()
        wire.read(body, conversation)
        number = conversation.position()
        if not wire.is_main(conversation):
            number = None
        request = Request(self.path, conversation, number)
        model.note(request)
        if number is None:
            step = Say("ok")
        else:
            model.begin(number)
            step = model.step(number)
        model.note(request, script_step=step)
        if isinstance(step, Fail):
            self.send_json(step.status, wire.error(step.kind))
        elif isinstance(step, Hang):
            self.begin_stream()
            self.send_events(wire.opening(body))
            self.wait_left(request)
        else:
            self.speak(wire, body, step, number, conversation)

    def speak(self, wire, body, step, number, conversation):
        if isinstance(step, Use):
            events = wire.use(number, step.tool,
                              fill(step.arguments, conversation),
                              conversation)
        else:
            events = wire.say(step.text)
        self.begin_stream()
        self.send_events(wire.opening(body))
        self.send_events(events)

    def begin_stream(self):
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()

    def send_events(self, events):
        for event in events:
            self.wfile.write(("event: %s\ndata: %s\n\n" % (
                event["type"], json.dumps(event))).encode())
        self.wfile.flush()

    def wait_left(self, request):
        """Until the agent hangs up or the model is closed."""
        model = self.server.model
        while True:
            ready, _, _ = select.select([self.connection, model.closed],
                                        [], [])
            if model.closed in ready:
                return
            if has_hung_up(self.connection):
                model.note(request, left=time.monotonic())
                return


def has_hung_up(connection):
    try:
        return not connection.recv(4096)
    except ConnectionError:
        return True


def fill(value, conversation):
    """A value with every function in it called."""
    if callable(value):
        return value(conversation)
    if isinstance(value, dict):
        return {k: fill(v, conversation) for k, v in value.items()}
    return value
