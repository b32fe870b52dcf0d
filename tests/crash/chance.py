"""The seed of what is chosen by chance: the same one chooses the same again.
"""

import os
import random

SEED = int(os.environ.get("CONNECTD_SEED") or
           random.SystemRandom().getrandbits(31))
SWEEP = bool(os.environ.get("CONNECTD_SWEEP"))


def some(name, cases, sample):
    """A sample of the cases, all of them in a sweep."""
    if SWEEP or sample >= len(cases):
        return list(cases)
    return random.Random("%d %s" % (SEED, name)).sample(list(cases), sample)


def order(name, cases):
    """All of the cases, in an order by chance."""
    return random.Random("%d %s" % (SEED, name)).sample(
        list(cases), len(cases))
