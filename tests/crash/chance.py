"""The seed of the random cases. Cases are made when tests are collected, so
that one of them can be run again by its name under the same seed.
"""

import os
import random

SEED = int(os.environ.get("CONNECTD_SEED") or
           random.SystemRandom().getrandbits(31))
SWEEP = bool(os.environ.get("CONNECTD_SWEEP"))


def fractions(name, sample, sweep):
    """So many moments of [0, 1) for what is called that, in order."""
    count = sweep if SWEEP else sample
    source = random.Random("%d %s" % (SEED, name))
    return sorted(source.random() for _ in range(count))


def some(name, cases, sample):
    """A sample of the cases, all of them in a sweep."""
    if SWEEP or sample >= len(cases):
        return list(cases)
    return random.Random("%d %s" % (SEED, name)).sample(list(cases), sample)
