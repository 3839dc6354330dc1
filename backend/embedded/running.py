"""Everything runs inside a `with` block, and ends with it however it ends."""

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

from backend.embedded.home import Home, HomeLock
from backend.embedded.plan import make_plan
from backend.embedded.ports import Ports
from backend.embedded.supervisor import Report, Supervisor

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def running(home: Home, ports: Ports, environment: Mapping[str, str], report: Report) -> Iterator[None]:
    """Starts everything; the first Ctrl-C, SIGTERM or SIGHUP ends the block quietly, further ones change nothing.

    Raises:
        EmbeddedError: something does not come up, or another supervisor uses the home.
    """
    home.create()
    lock = HomeLock(home)
    lock.acquire()
    try:
        with _interruptible():
            supervisor = Supervisor(home, make_plan(home, ports, environment), report)
            supervisor.start()
            with _watched(supervisor, report):
                yield
    except KeyboardInterrupt:
        pass
    finally:
        lock.release()


@contextmanager
def _watched(supervisor: Supervisor, report: Report) -> Iterator[None]:
    is_stopping = threading.Event()
    watch = threading.Thread(target=supervisor.watch, args=(is_stopping,), name="watch")
    watch.start()
    try:
        yield
    finally:
        report("Stopping everything")
        is_stopping.set()
        watch.join()
        supervisor.stop()


@contextmanager
def _interruptible() -> Iterator[None]:
    def interrupt(_number: int, _frame: FrameType | None) -> None:
        for each in STOP_SIGNALS:  # what has begun to stop is not disturbed again
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    earlier = {each: signal.signal(each, interrupt) for each in STOP_SIGNALS}
    try:
        yield
    finally:
        for each, handler in earlier.items():
            signal.signal(each, handler)
