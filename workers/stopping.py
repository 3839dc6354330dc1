"""The reasons for which a run ends before its last step."""

import signal
import threading
from typing import Any

from workers.telemetry.sender import Sender


class StoppedError(Exception):
    """The run's owner or the cluster wants it to stop."""


class ReplacedError(Exception):
    """The control plane does not count on this attempt any more."""


class StopWatch:
    """Knows of SIGTERM, and of what the control plane's answers say."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._is_terminated = threading.Event()

    def install(self) -> None:
        """Take SIGTERM; to be called again after a library has put its own handler there."""
        signal.signal(signal.SIGTERM, self._on_sigterm)

    @property
    def is_terminated(self) -> bool:
        """SIGTERM has come, so there are seconds left."""
        return self._is_terminated.is_set()

    def check(self) -> None:
        """Between stages: raise where the run should end."""
        self.interrupt()
        if self._sender.is_stop_requested:
            raise StoppedError("the run was asked to stop")

    def interrupt(self) -> None:
        """Within a stage: raise only where its result is not wanted any more."""
        if self._sender.is_replaced:
            raise ReplacedError("a newer attempt of the run has taken over")
        if self._sender.is_dismissed:
            raise ReplacedError("the control plane has refused this attempt's token for a while")
        if self.is_terminated:
            raise StoppedError("the process was asked to end")

    def terminate(self) -> None:
        """Take note that the process was asked to end."""
        self._is_terminated.set()

    def _on_sigterm(self, *_: Any) -> None:
        self.terminate()
