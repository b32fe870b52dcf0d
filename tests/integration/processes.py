"""Processes as /proc shows them, named by pid and start time together, so that
a number that was used again is never taken for the process it once was.
"""

import collections
import os
import signal

Process = collections.namedtuple(
    "Process", "pid comm state ppid pgid sid started")


def read_process(pid):
    """The process, or None when it is gone."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            text = file.read().decode("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    comm = text[text.index("(") + 1:text.rindex(")")]
    rest = text[text.rindex(")") + 2:].split()
    return Process(pid, comm, rest[0], int(rest[1]), int(rest[2]),
                   int(rest[3]), int(rest[19]))


def all_processes():
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            process = read_process(int(name))
            if process is not None:
                found.append(process)
    return found


def descendants(pid):
    """Every process below pid, nearest first."""
    children = collections.defaultdict(list)
    for process in all_processes():
        children[process.ppid].append(process)
    found = []
    queue = [pid]
    while queue:
        for child in children[queue.pop(0)]:
            found.append(child)
            queue.append(child.pid)
    return found


def is_running(process):
    """Is it still there, and no zombie?"""
    now = read_process(process.pid)
    return (now is not None and now.started == process.started
            and now.state not in "ZX")


def send_signal(process, number):
    """Signal exactly this process. False when it is gone already."""
    try:
        pidfd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        if not is_running(process):
            return False
        signal.pidfd_send_signal(pidfd, number)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(pidfd)


def read_bytes(pid, name):
    try:
        with open("/proc/%d/%s" % (pid, name), "rb") as file:
            return file.read()
    except OSError:
        return b""


def has_become(pid, name):
    """Has its exec come to its end? The name is there before what it was given:
    arguments first, and the environment, which must not be empty.
    """
    return (read_process(pid).comm == name and read_bytes(pid, "cmdline") != b""
            and read_bytes(pid, "environ") != b"")


def read_link(pid, name):
    try:
        return os.readlink("/proc/%d/%s" % (pid, name))
    except OSError:
        return ""


def belongs_to(process, folder, marker):
    """Does it carry the marker, or run, stand or look in the folder?"""
    inside = folder + "/"
    if marker and marker.encode() in read_bytes(process.pid, "environ"):
        return True
    if inside.encode() in read_bytes(process.pid, "cmdline"):
        return True
    links = [read_link(process.pid, name) for name in ("cwd", "exe")]
    return any(link == folder or link.startswith(inside) for link in links)


def find_belonging(folder, marker):
    """All that belong to a test's folder, except this process."""
    return [process for process in all_processes()
            if process.pid != os.getpid() and process.state not in "ZX"
            and belongs_to(process, folder, marker)]
