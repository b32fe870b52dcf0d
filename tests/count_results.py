"""Counts the results of one suite for ./check.

	count_results.py meson testlog.json
	count_results.py pytest results.xml

Prints "PASSED FAILED SKIPPED" on the first line, then one line for each that
did not pass: "failed NAME" or "skipped NAME: reason". A missing or broken
file is one failure, for then the suite never came to its end.
"""

import json
import sys
import xml.etree.ElementTree

MESON_PASSED = {"OK", "EXPECTEDFAIL"}
MESON_SKIPPED = {"SKIP", "IGNORED"}


def count_meson(path):
    """(name, state, reason) of each test in meson's log."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            test = json.loads(line)
            if test["result"] in MESON_PASSED:
                yield test["name"], "passed", ""
            elif test["result"] in MESON_SKIPPED:
                yield test["name"], "skipped", last_line(test)
            else:
                yield test["name"], "failed", test["result"]


def last_line(test):
    """Why a test skipped itself: the last thing it said."""
    said = (test.get("stdout") or "") + (test.get("stderr") or "")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def count_pytest(path):
    """The same of each test case in a JUnit file. A test that failed and
    whose clean-up failed too has two cases and counts once.
    """
    states = {}
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        name = "%s::%s" % (case.get("classname"), case.get("name"))
        state, reason = "passed", ""
        for child in case:
            if child.tag in ("failure", "error"):
                state = "failed"
            elif child.tag == "skipped" and state == "passed":
                state, reason = "skipped", child.get("message") or ""
        if states.get(name, ("passed",))[0] != "failed":
            states[name] = (state, reason)
    for name, (state, reason) in states.items():
        yield name, state, reason


def main():
    counters = {"meson": count_meson, "pytest": count_pytest}
    kind, path = sys.argv[1:]
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    notes = []
    try:
        for name, state, reason in counters[kind](path):
            counts[state] += 1
            if state != "passed":
                notes.append("%s %s%s" % (
                    state, name, ": " + reason if reason else ""))
    except (OSError, ValueError, KeyError,
            xml.etree.ElementTree.ParseError) as error:
        counts["failed"] += 1
        notes.append("failed %s: %s" % (path, error))
    print(counts["passed"], counts["failed"], counts["skipped"])
    for note in notes:
        print(note)


if __name__ == "__main__":
    main()
