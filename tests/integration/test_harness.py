"""The harness must notice what a test leaves behind."""

import os
import signal
import subprocess

import pytest

import harness
import processes

SLEEPER = ["/usr/bin/sleep", "600"]


def start_sleeper(**arguments):
    """A sleeper that has become one, for a fork still looks like us."""
    arguments["env"] = dict(arguments.get("env", os.environ), LANG="C")
    child = subprocess.Popen(SLEEPER, start_new_session=True, **arguments)
    harness.wait_for(lambda: processes.has_become(child.pid, "sleep"),
                     what="the sleeper")
    return child


def end(child):
    child.kill()
    child.wait()


def remove_and_complain(folder, child):
    try:
        with pytest.raises(harness.HarnessError, match="sleep .pid %d"
                           % child.pid):
            folder.remove(timeout=0)
        assert not folder.path.exists()
        assert child.wait(10) == -signal.SIGKILL
    finally:
        end(child)


def test_finds_by_marker():
    folder = harness.Folder()
    remove_and_complain(folder, start_sleeper(
        cwd="/", env={harness.MARKER: folder.marker}))


def test_finds_by_directory():
    folder = harness.Folder()
    remove_and_complain(folder, start_sleeper(cwd=folder.path, env={}))


def test_finds_what_was_below():
    folder = harness.Folder()
    shell = subprocess.Popen(
        ["/bin/sh", "-c", "setsid sleep 600 >/dev/null & exec sleep 600"],
        cwd="/", env={"PATH": "/usr/bin:/bin"}, stdout=subprocess.DEVNULL)
    below = harness.wait_for(
        lambda: [p for p in processes.descendants(shell.pid)
                 if p.comm == "sleep"], what="the shell's child")
    folder.note(shell.pid)
    end(shell)
    assert processes.is_running(below[0])
    with pytest.raises(harness.HarnessError, match=str(below[0].pid)):
        folder.remove(timeout=0)
    harness.wait_for(lambda: not processes.is_running(below[0]),
                     what="the end of what was left")


def test_clean_folder():
    folder = harness.Folder()
    end(start_sleeper(cwd=folder.path, env={}))
    folder.remove(timeout=0)
    assert not folder.path.exists()


def test_signal_needs_the_same_process():
    child = start_sleeper()
    try:
        now = processes.read_process(child.pid)
        other = now._replace(started=now.started - 1)
        assert not processes.send_signal(other, signal.SIGKILL)
        assert processes.is_running(now)
        assert processes.send_signal(now, signal.SIGKILL)
        child.wait(10)
        assert not processes.send_signal(now, signal.SIGKILL)
    finally:
        end(child)


def test_zombie_is_not_running():
    child = start_sleeper()
    now = processes.read_process(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not processes.is_running(now)
    child.wait()


def test_wait_for_has_a_deadline():
    with pytest.raises(harness.HarnessError, match="for the moon"):
        harness.wait_for(lambda: False, timeout=0.05, what="the moon")


def test_sim(sim):
    made = sim.mention("please look")
    assert sim.wait("requests", 0) == 0
    text = sim.request("GET", "/sim/world")
    assert "please look" in str(text)
    assert made["event_id"] > 0
    assert sim.messages() == [] and sim.log() == []
    sim.gate("GET /*")
    sim.release("GET /*")
    sim.fault("GET /{a}/events.json", status=503, times=1)
    sim.clear_faults()
    assert sim.state()["errors"] == []


def test_sim_ends_with_us(sim):
    sim.process.stdin.close()
    assert sim.process.wait(10) == 0
