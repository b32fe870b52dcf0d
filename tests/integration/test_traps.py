"""Every trap and every invariant of the ledger has a test that bears its
name: TRAP("T26", ...) in C, or a file's own macro that stands for one, and a
mark in Python.
"""

import pathlib
import re

TESTS = pathlib.Path(__file__).resolve().parents[1]
# recovery.md's rows have their own table; some tests here prove one as well.
RECOVERY = {"R%d" % n for n in range(1, 55)}
TRAPS = {"T%d" % n for n in range(1, 91)} | {"I%d" % n for n in range(1, 19)}
NAMED = r'\b%s\(\s*"([^"]+)"'
SHORTER = re.compile(r"#define (\w+)\([^)]*\)[\s\\]*TRAP\(")
MARKED = re.compile(NAMED % r"mark\.trap")


def named_in_c(text):
    return [names for macro in ["TRAP", *SHORTER.findall(text)]
            for names in re.findall(NAMED % macro, text)]


def every_name():
    found = [names for path in TESTS.rglob("*.c")
             for names in named_in_c(path.read_text())]
    found += [names for path in TESTS.rglob("*.py")
              for names in MARKED.findall(path.read_text())]
    return {name for names in found for name in names.split()}


def test_each_has_its_test():
    assert TRAPS - every_name() == set()


def test_no_other_is_named():
    assert every_name() - TRAPS - RECOVERY == set()
