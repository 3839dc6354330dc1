"""Processes that must not outlive the one that started them."""

import ctypes
import os
import signal
from contextlib import suppress

import psutil

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def die_with(parent: int) -> None:
    """Have Linux kill this process when its parent ends; elsewhere nothing."""
    if _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) and os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that kill_descendants() finds them; Linux only."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def kill_descendants(pid: int) -> None:
    """Kill all processes below one, those that are started meanwhile too, and reap what are this process's own."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        while alive := [p for p in process.children(recursive=True) if p.status() != psutil.STATUS_ZOMBIE]:
            for descendant in alive:
                with suppress(psutil.NoSuchProcess):
                    descendant.kill()
            psutil.wait_procs(alive, timeout=1)


def _prctl(option: int, value: int) -> bool:
    function = getattr(ctypes.CDLL(None), "prctl", None)
    return function is not None and function(option, int(value), 0, 0, 0) == 0
