"""Ports for servers that are told theirs before they listen: no other process of these tests is given the same.

They lie between what Ray gives to its workers and what the system gives to whoever connects, so that nothing takes one
in the meantime.
"""

import os
import random

from backend.embedded.ports import is_free

PORTS = range(20_000, 30_000)
NUM_TOGETHER = 10
"""An installation takes 5 from its base on."""


def _own_bases() -> list[int]:
    """Those of this process among the ones that pytest-xdist has started, in an order of chance: another session may
    run on this machine."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    bases = list(PORTS[::NUM_TOGETHER])[number :: int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))]
    random.shuffle(bases)
    return bases


_bases = _own_bases()


def free_base_port() -> int:
    """The first of NUM_TOGETHER free ports; each is given once."""
    return next(base for base in iter(_bases.pop, None) if all(map(is_free, range(base, base + NUM_TOGETHER))))
