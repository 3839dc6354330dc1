"""Waiting for other processes without becoming deaf to a request to stop."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, ObjectLostError, RayActorError, RayError, RayTaskError

_POLL_S = 0.2


class ProcessLostError(RuntimeError):
    """A process of the run died; another attempt may do better."""


class RayCalls:
    """Waits for results; while it waits, `interrupt` is called again and again and may raise to end the wait."""

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt

    def get(self, who: str, reference: Any) -> Any:
        """The result. Raises ProcessLostError naming the process where it died, else what the call itself raised."""
        while True:
            try:
                return ray.get(reference, timeout=_POLL_S)
            except GetTimeoutError:
                self._interrupt()
            except RayError as error:
                _raise_lost(who, error)

    def get_all(self, who: str, references: Sequence[Any]) -> list[Any]:
        """All results in order; processes are named `who 0`, `who 1`, ..."""
        return [self.get(f"{who} {index}", reference) for index, reference in enumerate(references)]

    def stream(self, who: str, generator: Any) -> Iterator[Any]:
        """The items of a streaming call as they come."""
        while True:
            ready, _ = ray.wait([generator], timeout=_POLL_S)
            if not ready:
                self._interrupt()
                continue
            try:
                reference = next(generator)
            except StopIteration:
                return
            self._interrupt()
            yield self.get(who, reference)


def _raise_lost(who: str, error: RayError) -> None:
    if isinstance(error, RayTaskError):
        if isinstance(lost := _root_cause(error), RayActorError | ObjectLostError):
            raise ProcessLostError(f"A process that {who} waited for was lost. {lost}") from error
        raise error  # the call raised; its own exception says more
    died = "died" if isinstance(error, RayActorError) else "did not answer"
    raise ProcessLostError(f"{who}'s process {died}. {error}") from error


def _root_cause(error: BaseException) -> BaseException:
    """What failed first: a call whose argument is another call's result fails with that one's error as its cause."""
    while isinstance(error, RayTaskError) and isinstance(error.cause, BaseException):
        error = error.cause
    return error
