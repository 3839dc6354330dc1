import ctypes
from collections.abc import Iterator

import pytest

_PR_SET_CHILD_SUBREAPER = 36


@pytest.fixture(autouse=True, scope="module")
def _orphans_go_to_init() -> Iterator[None]:
    """A sandbox makes its process the parent of orphans, here that of all tests: those of servers expect init."""
    yield
    if prctl := getattr(ctypes.CDLL(None), "prctl", None):
        prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
