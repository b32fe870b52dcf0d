#!/usr/bin/python3
"""Searches files for credentials, in a process of its own (operator.md 7).

What is looked for comes on standard input as JSON, {"hashes", "tokens",
"secrets", "skip"}; the directories are the arguments. One line for each thing
that there is to say, its parts between tabs: `found WHAT PATH`, `unreadable
PATH WHY`, and at last `read N`.
"""

import json
import os
import stat
import sys

sys.dont_write_bytecode = True

import leaks


def say(*words):
    print("\t".join(str(word).replace("\t", " ").replace("\n", " ")
                    for word in words))


def read_file(path):
    """Its bytes; None for one that vanished or is no regular file."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        say("unreadable", path, error.strerror)
        return None


def denied(error):
    """A directory that cannot be listed. One that vanished is none."""
    if not isinstance(error, FileNotFoundError):
        say("unreadable", error.filename, error.strerror)


def search(needles, top, skip):
    """How many files were read."""
    count = 0
    for folder, names, files in os.walk(top, onerror=denied):
        names[:] = [n for n in names if os.path.join(folder, n) not in skip]
        for name in names + files:
            for what in needles.search(os.fsencode(name)):
                say("found", what, "a name in " + folder)
        for name in files:
            path = os.path.join(folder, name)
            data = None if path in skip else read_file(path)
            if data is None:
                continue
            count += 1
            for what in needles.search(data):
                say("found", what, path)
    return count


def main():
    told = json.load(sys.stdin)
    needles = leaks.Needles(**told["secrets"])
    needles.hashes.update(told["hashes"])
    needles.tokens.update(token.encode() for token in told["tokens"])
    say("read", sum(search(needles, top, set(told["skip"]))
                    for top in sys.argv[1:]))


if __name__ == "__main__":
    main()
