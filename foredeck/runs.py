"""Runs: launching, watching, changing, stopping."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from foredeck import events
from foredeck.events import Event
from foredeck.models import Alarm, Alarms, LogLine, LogPage, Run, RunPage, RunSummary, Series, SeriesData
from foredeck.paging import every
from foredeck.transport import TIMEOUT_S, Transport

PAUSE_S = 0.2
MAX_WAIT_S = 300.0
"""The service lets no request wait for longer."""


def filters(
    status: str | None, search: str | None, labels: Mapping[str, str] | None, project: str | None
) -> dict[str, Any]:
    """Which runs are looked for, as parameters of a request."""
    label = [f"{key}:{value}" for key, value in (labels or {}).items()] or None
    return {"status": status, "search": search, "label": label, "project": project}


class Runs:
    """`Foredeck.runs`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def launch(self, body: Mapping[str, Any], *, idempotency_key: str | None = None) -> Run:
        """Launches a run; `body` is a RunCreate of the API: `name` with `config`, or with `example` and `overrides`.

        With the key, the same launch tried again is one run. One is made where none is given, so that a request whose
        answer was lost is safely repeated.
        """
        return self._post("/runs", body, idempotency_key)

    def clone(self, run_id: UUID, body: Mapping[str, Any], *, idempotency_key: str | None = None) -> Run:
        """Launches a run like another; `body` is a RunClone of the API."""
        return self._post(f"/runs/{run_id}/clone", body, idempotency_key)

    def _post(self, path: str, body: Mapping[str, Any], idempotency_key: str | None) -> Run:
        headers = {"Idempotency-Key": idempotency_key or str(uuid4())}
        return self._transport.read(Run, "POST", path, json=dict(body), headers=headers, is_repeatable=True)

    def get(self, run_id: UUID) -> Run:
        return self._transport.read(Run, "GET", f"/runs/{run_id}")

    def page(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        status: str | None = None,
        search: str | None = None,
        labels: Mapping[str, str] | None = None,
        project: str | None = None,
    ) -> RunPage:
        """Some runs, newest first; `status` names statuses with commas between, all `labels` must match."""
        params = {"limit": limit, "cursor": cursor, **filters(status, search, labels, project)}
        return self._transport.read(RunPage, "GET", "/runs", params=params)

    def list(
        self,
        *,
        status: str | None = None,
        search: str | None = None,
        labels: Mapping[str, str] | None = None,
        project: str | None = None,
    ) -> Iterator[RunSummary]:
        """All runs that match, newest first, fetched page by page."""
        return every(self._transport, RunPage, "/runs", filters(status, search, labels, project))

    def update(
        self,
        run_id: UUID,
        *,
        name: str | None = None,
        labels: Mapping[str, str] | None = None,
        notes: str | None = None,
        if_match: str | None = None,
    ) -> Run:
        """Changes what is given. With `if_match`, a run's `etag`, only where nobody has changed it since."""
        given = {"name": name, "labels": None if labels is None else dict(labels), "notes": notes}
        return self._transport.read(
            Run,
            "PATCH",
            f"/runs/{run_id}",
            json={key: value for key, value in given.items() if value is not None},
            headers={"If-Match": if_match},
            is_repeatable=if_match is None,
        )

    def stop(self, run_id: UUID) -> Run:
        """Asks a run to stop; twice is as once."""
        return self._transport.read(Run, "POST", f"/runs/{run_id}/stop", is_repeatable=True)

    def wait(self, run_id: UUID, timeout_s: float) -> Run:
        """The run when it has ended and its gates are judged, or as it is after `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while True:
            left_s = min(MAX_WAIT_S, max(0.0, deadline - time.monotonic()))
            run = self._transport.read(
                Run, "GET", f"/runs/{run_id}/wait", params={"timeout_s": left_s}, timeout=left_s + TIMEOUT_S
            )
            if run.is_settled or time.monotonic() >= deadline:
                return run
            time.sleep(PAUSE_S)  # a service that shuts down answers early

    def follow(self, *run_ids: UUID, after: int | None = None, patience_s: float | None = None) -> Iterator[Event]:
        """What advances in these runs, or in all that the token may see; from now on, or from after an event's id."""
        runs = ",".join(map(str, run_ids)) or "all"
        return events.followed(self._transport, "/stream", {"runs": runs}, after, patience_s)

    def alarms(self, run_id: UUID) -> Sequence[Alarm]:
        """The active ones first, then the newest."""
        return self._transport.read(Alarms, "GET", f"/runs/{run_id}/alarms").items

    def log(self, run_id: UUID, *, limit: int = 500, level: str | None = None, search: str | None = None) -> LogPage:
        """The newest lines, in ascending order."""
        params = {"limit": limit, "level": level, "search": search}
        return self._transport.read(LogPage, "GET", f"/runs/{run_id}/logs", params=params)

    def follow_log(self, run_id: UUID, after: int = 0, *, patience_s: float | None = None) -> Iterator[LogLine]:
        """Lines after id `after` as they come, until the run has ended and all of them are here."""
        for event in events.followed(self._transport, f"/runs/{run_id}/logs/stream", {}, after, patience_s):
            if event.kind == "end":
                return
            if event.kind == "log":
                yield LogLine.model_validate_json(event.data)

    def series(self, run_id: UUID) -> Sequence[Series]:
        """What the run has measured, with the last values."""
        return [Series.model_validate(item) for item in self._transport.ask("GET", f"/runs/{run_id}/series").json()]

    def series_data(self, run_id: UUID, *names: str, from_step: int = 0, max_points: int = 2000) -> SeriesData:
        """Series as bucketed columns."""
        params = {"names": ",".join(names), "from_step": from_step, "max_points": max_points}
        return self._transport.read(SeriesData, "GET", f"/runs/{run_id}/series/data", params=params)
