"""What looking drafts up takes, told from worker to scheduler where both are of one process."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class LookupClock:
    """Adds up until it is asked."""

    def __init__(self) -> None:
        self._seconds = 0.0

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """The time inside counts."""
        began = time.perf_counter()
        yield
        self._seconds += time.perf_counter() - began

    def take(self) -> float:
        """Seconds since the last time."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds


LOOKUP_CLOCK = LookupClock()
"""With tensor parallelism the workers are other processes, and this one stays at 0: lookups seem free, and their time
is part of the rounds'."""
