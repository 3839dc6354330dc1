"""Waiting for other processes without becoming deaf to a request to stop."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, ObjectLostError, RayActorError, RayError, RayTaskError

from workers.process_log import Process

_POLL_S = 0.2


class ProcessLostError(RuntimeError):
    """A process of the run died or hangs; another attempt may do better."""


class RayCalls:
    """Waits for results; while it waits, `interrupt` is called again and again and may raise to end the wait."""

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt
        self._processes: dict[str, Process] = {}

    def know(self, who: str, process: Process) -> None:
        """Where to look for the last words of a process, should it die."""
        self._processes[who] = process

    def get(self, who: str, reference: Any) -> Any:
        """The result. Raises ProcessLostError naming the process where it died, else what the call itself raised."""
        while True:
            try:
                return ray.get(reference, timeout=_POLL_S)
            except GetTimeoutError:
                self._interrupt()
            except RayError as error:
                self._raise_lost(who, error)

    def get_all(self, who: str, references: Sequence[Any], straggler_s: float | None = None) -> list[Any]:
        """All results in order; processes are named `who 0`, `who 1`, ...

        Ends with the first that fails, whichever it is, for the others may be waiting for it in vain. straggler_s: so
        much longer than the first answer may the others take, where the calls are parts of one; else ProcessLostError
        names those that hang.
        """
        results: list[Any] = [None] * len(references)
        waiting = dict(enumerate(references))
        deadline = None
        while waiting:
            index = self.first(waiting, deadline)
            if index is None:
                missing = ", ".join(map(str, waiting))
                why = f"{who} {missing} hangs: no answer within {straggler_s:.0f} s of the first of its group."
                raise ProcessLostError(why + self._last_words(f"{who} {min(waiting)}"))
            results[index] = self.get(f"{who} {index}", waiting.pop(index))
            if straggler_s is not None and deadline is None:
                deadline = time.monotonic() + straggler_s
        return results

    def first(self, waiting: dict[int, Any], deadline: float | None = None) -> int | None:
        """The key of one that is done, with a result or an error; None where none is at the deadline."""
        while True:
            ready, _ = ray.wait(list(waiting.values()), timeout=_POLL_S)
            if ready:
                return next(key for key, reference in waiting.items() if reference is ready[0])
            if deadline is not None and time.monotonic() > deadline:
                return None
            self._interrupt()

    def stream(self, who: str, generator: Any) -> Iterator[Any]:
        """The items of a streaming call as they come."""
        for reference in self.stream_references(who, generator):
            yield self.get(who, reference)

    def stream_references(self, who: str, generator: Any, beside: Sequence[tuple[str, Any]] = ()) -> Iterator[Any]:
        """The same, each still where it was made. Calls beside it, by names, are watched: should one fail, the stream
        may be waiting for it in vain, and ends with its error."""
        watched = dict(enumerate(beside))
        while True:
            index = self.first({-1: generator} | {key: reference for key, (_, reference) in watched.items()})
            assert index is not None
            if index >= 0:
                self.get(*watched.pop(index))
                continue
            try:
                reference = next(generator)
            except StopIteration:
                return
            except RayError as error:
                self._raise_lost(who, error)
            self._interrupt()
            yield reference

    def _raise_lost(self, who: str, error: RayError) -> None:
        if isinstance(error, RayTaskError):
            if isinstance(lost := _root_cause(error), RayActorError | ObjectLostError):
                raise ProcessLostError(f"A process that {who} waited for was lost. {lost}") from error
            raise error  # the call raised; its own exception says more
        died = "died" if isinstance(error, RayActorError) else "did not answer"
        raise ProcessLostError(f"{who}'s process {died}. {error}{self._last_words(who)}") from error

    def _last_words(self, who: str) -> str:
        process = self._processes.get(who)
        return "" if process is None else f"\n{process.last_words()}"


def _root_cause(error: BaseException) -> BaseException:
    """What failed first: a call whose argument is another call's result fails with that one's error as its cause."""
    while isinstance(error, RayTaskError) and isinstance(error.cause, BaseException):
        error = error.cause
    return error
