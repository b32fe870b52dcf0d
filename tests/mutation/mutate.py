"""Reverts the rules behind the six promises one at a time, each in a scratch
copy of the tree, and sees every test that is named for it go red. A rule whose
reversal a test does not notice is not held by that test.

	mutate.py [--list] [--save] [NAME...]

Without names: all of rules.py. --save writes last.txt. The exit status is 0
when every reversal was noticed. Needs what ./check needs.
"""

import argparse
import concurrent.futures
import datetime
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
sys.path.insert(0, str(HERE))

import rules

PYTEST = [sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider",
          "-q", "-x"]
TEST_LIMIT = 600
# Most tests wait for longer than they compute.
TREES = 2 * (os.cpu_count() or 1)


class Tree:
    """A copy of the sources with a build directory of its own."""

    def __init__(self, folder):
        self.source = folder / "source"
        self.build = folder / "build"
        shutil.copytree(TOP, self.source, symlinks=True,
                        ignore=shutil.ignore_patterns(
                            ".git", "build", "build-*", "__pycache__"))
        self.run(["meson", "setup", str(self.build), str(self.source)])
        if self.compile().returncode != 0:
            sys.exit("the tree does not build as it is")

    def run(self, command, **more):
        return subprocess.run(command, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True,
                              check=False, **more)

    def compile(self):
        return self.run(["ninja", "-C", str(self.build)])

    def test(self, name):
        """A unit test by its name, or a pytest path below tests/."""
        if "/" not in name:
            command = ["meson", "test", "-C", str(self.build),
                       "--no-rebuild", name]
        else:
            command = PYTEST + ["--rootdir", str(self.source / "tests"),
                                str(self.source / "tests" / name)]
        env = dict(os.environ, CONNECTD_BUILD=str(self.build))
        try:
            return self.run(command, env=env, timeout=TEST_LIMIT).returncode
        except subprocess.TimeoutExpired:
            return -1


def reverted(text, rule):
    """The file's text without the rule; it must stand there exactly once."""
    if text.count(rule.before) != 1:
        sys.exit("%s: its text stands %d times in %s" % (
            rule.name, text.count(rule.before), rule.file))
    return text.replace(rule.before, rule.after)


def try_rule(tree, rule):
    """How its reversal went, and its tests, or those that stayed green."""
    path = tree.source / rule.file
    text = path.read_text(encoding="utf-8")
    path.write_text(reverted(text, rule), encoding="utf-8")
    try:
        made = tree.compile()
        if made.returncode != 0:
            return "NOT BUILT", made.stdout.splitlines()[-1]
        green = [test for test in rule.tests if tree.test(test) == 0]
        if green:
            return "GREEN", " ".join(green)
        return "red", " ".join(rule.tests)
    finally:
        path.write_text(text, encoding="utf-8")


class Trees:
    """Some copies, each of which one thing at a time is done in."""

    def __init__(self, folder, count):
        self.pool = concurrent.futures.ThreadPoolExecutor(count)
        self.free = queue.SimpleQueue()
        places = [folder / str(number) for number in range(count)]
        for place in places:
            place.mkdir()
        for tree in self.pool.map(Tree, places):
            self.free.put(tree)

    def each(self, do, things):
        """What do(tree, thing) returns of each thing, in their order."""
        def one(thing):
            tree = self.free.get()
            try:
                return do(tree, thing)
            finally:
                self.free.put(tree)
        return self.pool.map(one, things)


def check_green(trees, chosen):
    """A test that is red anyway proves nothing."""
    tests = sorted({test for rule in chosen for test in rule.tests})
    for test, status in zip(tests, trees.each(Tree.test, tests)):
        if status != 0:
            sys.exit("%s is red in the tree as it is" % test)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--save", action="store_true")
    parser.add_argument("names", nargs="*")
    words = parser.parse_args()
    chosen = [rule for rule in rules.RULES
              if not words.names or rule.name in words.names]
    unknown = set(words.names) - {rule.name for rule in chosen}
    if unknown:
        sys.exit("no rule is called " + ", ".join(sorted(unknown)))
    if words.list:
        for rule in chosen:
            print("%-40s %s" % (rule.name, rule.of))
        return 0
    with tempfile.TemporaryDirectory(prefix="connectd-mutation-") as folder:
        os.chmod(folder, 0o755)
        trees = Trees(pathlib.Path(folder), min(TREES, len(chosen)))
        check_green(trees, chosen)
        lines = []
        for rule, (how, by) in zip(chosen, trees.each(try_rule, chosen)):
            lines.append("%-9s %-40s %-12s %s" % (how, rule.name, rule.of, by))
            print(lines[-1], flush=True)
    red = sum(line.startswith("red") for line in lines)
    lines.append("%d of %d reversals were noticed" % (red, len(lines)))
    print(lines[-1])
    if words.save:
        head = "As of %s:\n" % datetime.date.today().isoformat()
        (HERE / "last.txt").write_text(head + "\n".join(lines) + "\n",
                                       encoding="utf-8")
    return 0 if red == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
