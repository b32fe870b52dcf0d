"""Each executable links what its work needs, and nothing else (design 2)."""

import os
import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.walls

BUILD = Path(os.environ["CONNECTD_BUILD"])
LIBC = {"libc.so.6"}
LOOP = LIBC | {"libevent_core-2.1.so.7"}

TABLE = {
    "supervisor/connectd": LOOP | {"libjansson.so.4"},
    "ledger/connectd-ledger": LOOP | {
        "libjansson.so.4", "libsqlite3.so.0", "libseccomp.so.2"},
    "intake/connectd-intake": LOOP | {
        "libjansson.so.4", "libcurl.so.4", "libseccomp.so.2"},
    "dispatcher/connectd-dispatcher": LOOP | {
        "libjansson.so.4", "libseccomp.so.2"},
    "outbox/connectd-outbox": LOOP | {
        "libjansson.so.4", "libcurl.so.4", "libseccomp.so.2"},
    "mcpd/connectd-mcpd": LOOP | {
        "libjansson.so.4", "libseccomp.so.2", "libcmark.so.0.30.2"},
    "mcpd/connect-bridge": LIBC,
    "connectctl/connectctl": LIBC | {"libjansson.so.4"},
}

# What a sanitizer brings along is not the program's choice.
SANITIZERS = re.compile(r"lib(asan|ubsan|m|stdc\+\+|gcc_s)\.")


def needed(path):
    out = subprocess.run(["readelf", "-d", path], check=True,
                         capture_output=True, text=True).stdout
    names = re.findall(r"\(NEEDED\).*\[(.*)\]", out)
    return {name for name in names if not SANITIZERS.match(name)}


@pytest.mark.parametrize("program", TABLE)
def test_links_only_what_it_needs(program):
    assert needed(BUILD / program) == TABLE[program]
