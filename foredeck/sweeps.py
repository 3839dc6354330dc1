"""Sweeps: many runs from one configuration."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal
from uuid import UUID, uuid4

from foredeck.models import Sweep, SweepPage, SweepSummary
from foredeck.paging import every
from foredeck.transport import Transport

BestBy = Literal["reward", "acceptance_length", "generation_speedup", "validation_accuracy"]


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

    def list(self, *, project: str | None = None, best_by: BestBy = "reward") -> Iterator[SweepSummary]:
        """All of them, or a project's, newest first, each with its best run by that figure."""
        return every(self._transport, SweepPage, "/sweeps", {"project": project, "best_by": best_by})

    def update(
        self,
        sweep_id: UUID,
        *,
        name: str | None = None,
        labels: Mapping[str, str] | None = None,
        notes: str | None = None,
        if_match: str | None = None,
    ) -> Sweep:
        """Changes what is given; its runs keep theirs. With `if_match`, a sweep's `etag`, only where nobody has changed
        it since."""
        given = {"name": name, "labels": None if labels is None else dict(labels), "notes": notes}
        return self._transport.read(
            Sweep,
            "PATCH",
            f"/sweeps/{sweep_id}",
            json={key: value for key, value in given.items() if value is not None},
            headers={"If-Match": if_match},
            is_repeatable=if_match is None,
        )

    def stop(self, sweep_id: UUID) -> Sweep:
        """Stops all its runs; twice is as once."""
        return self._transport.read(Sweep, "POST", f"/sweeps/{sweep_id}/stop", is_repeatable=True)
