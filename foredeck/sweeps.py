"""Sweeps: many runs from one configuration."""

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID, uuid4

from foredeck.models import Sweep, SweepPage, SweepSummary
from foredeck.paging import every
from foredeck.transport import Transport


class Sweeps:
    """`Foredeck.sweeps`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def launch(self, body: Mapping[str, Any], *, idempotency_key: str | None = None) -> Sweep:
        """Launches a sweep; `body` is a SweepCreate of the API. Tried again with the same key, it is one sweep."""
        headers = {"Idempotency-Key": idempotency_key or str(uuid4())}
        return self._transport.read(Sweep, "POST", "/sweeps", json=dict(body), headers=headers, is_repeatable=True)

    def get(self, sweep_id: UUID) -> Sweep:
        return self._transport.read(Sweep, "GET", f"/sweeps/{sweep_id}")

    def list(self) -> Iterator[SweepSummary]:
        """All of them, newest first."""
        return every(self._transport, SweepPage, "/sweeps")

    def stop(self, sweep_id: UUID) -> Sweep:
        """Stops all its runs; twice is as once."""
        return self._transport.read(Sweep, "POST", f"/sweeps/{sweep_id}/stop", is_repeatable=True)
