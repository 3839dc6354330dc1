"""Delivers spooled events to the control plane from a thread of its own."""

import json
import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import httpx

from contract.telemetry.events import MAX_EVENTS_PER_BATCH, IngestResponse, Log
from workers.telemetry.spool import Spool, SpoolReader

_COALESCE_S = 0.05
"""Waited after an event, so that what is logged together travels together; charts are promised a point within 1 s."""
_FIRST_BACK_OFF_S = 0.2
_LONGEST_BACK_OFF_S = 5.0
_REQUEST_TIMEOUT_S = 10.0
_MAX_BATCH_BYTES = 1_000_000
_LASTING_S = 300.0
"""Refused for so long, this attempt's token is refused for good: its run has ended, or another attempt has it."""
_REFUSED = {400, 413, 422}
"""Answers that mean the events themselves are at fault; everything else is tried again."""

log = logging.getLogger(__name__)


class Sender:
    """Posts batches until they are acknowledged; events of earlier attempts' spools are delivered too.

    The control plane's answer says which attempt is current and whether the run should stop.
    """

    def __init__(
        self,
        api_url: str,
        token: str,
        spool: Spool,
        attempt: int,
        earlier: Sequence[SpoolReader] = (),
        lasting_s: float = _LASTING_S,
    ) -> None:
        self._client = httpx.Client(
            base_url=api_url.rstrip("/"),
            headers={"Authorization": f"Bearer {token}"},
            timeout=_REQUEST_TIMEOUT_S,
            trust_env=False,  # a .netrc of this host would replace the token
        )
        self._spool = spool
        self._attempt = attempt
        self._earlier = list(earlier)
        self._current_attempt = attempt
        self._is_stop_requested = False
        self._progress = threading.Condition()
        self._has_news = True
        self._is_closing = False
        self._back_off_s = 0.0
        self._lasting_s = lasting_s
        self._refused_since: float | None = None
        self._thread = threading.Thread(target=self._run, name="telemetry-sender", daemon=True)
        spool.on_append(self._wake)

    @property
    def is_replaced(self) -> bool:
        """A newer attempt of the run exists, so this process must exit."""
        return self._current_attempt > self._attempt

    @property
    def is_stop_requested(self) -> bool:
        return self._is_stop_requested

    @property
    def is_dismissed(self) -> bool:
        """The control plane has refused the token for so long that this process should exit."""
        since = self._refused_since
        return since is not None and time.monotonic() - since > self._lasting_s

    def start(self) -> None:
        self._thread.start()

    def flush(self, timeout_s: float) -> bool:
        """Wait until every event is acknowledged, those of earlier attempts too.

        False when the time ran out first, or the control plane takes nothing from this process any more.
        """
        with self._progress:
            self._progress.wait_for(lambda: self._is_all_delivered() or self.is_dismissed, timeout_s)
            return self._is_all_delivered()

    def _is_all_delivered(self) -> bool:
        return not self._earlier and self._spool.acknowledged >= self._spool.last_seq

    def close(self) -> None:
        """Stop sending; what is not acknowledged stays on disk for the next attempt to deliver."""
        with self._progress:
            self._is_closing = True
            self._progress.notify_all()
        self._thread.join()
        self._client.close()

    def _wake(self) -> None:
        with self._progress:
            self._has_news = True
            self._progress.notify_all()

    def _run(self) -> None:
        while self._wait_for_work():
            try:
                self._deliver_once()
                self._back_off_s = 0.0
            except (httpx.HTTPError, OSError, ValueError) as error:
                self._is_worse(error)
            with self._progress:
                self._progress.notify_all()

    def _wait_for_work(self) -> bool:
        """Wait for an event, or for the back-off to end; False when closing."""
        with self._progress:
            if self._back_off_s:
                self._progress.wait_for(lambda: self._is_closing, self._back_off_s)
            else:
                self._progress.wait_for(lambda: self._has_news or self._is_closing)
                self._progress.wait_for(lambda: self._is_closing, _COALESCE_S)
            self._has_news = False
            return not self._is_closing

    def _is_worse(self, error: Exception) -> None:
        if not self._back_off_s:
            log.warning("Cannot reach the control plane (%s). Events are kept on disk and sent later.", error)
        self._back_off_s = min(max(2 * self._back_off_s, _FIRST_BACK_OFF_S), _LONGEST_BACK_OFF_S)

    def _deliver_once(self) -> None:
        """One batch of this attempt, one of the oldest earlier attempt that still has events."""
        is_more = self._deliver(self._spool)
        while self._earlier and not self._deliver(self._earlier[0]):
            self._earlier.pop(0)
        if is_more or self._earlier:
            self._wake()

    def _deliver(self, spool: SpoolReader) -> bool:
        """Send one batch; True when the spool holds more."""
        lines = spool.read(MAX_EVENTS_PER_BATCH, _MAX_BATCH_BYTES)
        if not lines:
            return False
        spool.sync()
        self._post(spool, lines)
        return bool(spool.read(1, _MAX_BATCH_BYTES))

    def _post(self, spool: SpoolReader, lines: list[str]) -> None:
        first_seq = spool.acknowledged + 1
        response = self._request(lines)
        if response.status_code in _REFUSED:
            self._post_singly(spool, lines, response, first_seq)
            return
        response.raise_for_status()
        self._take(spool, IngestResponse.model_validate_json(response.content))

    def _request(self, lines: list[str]) -> httpx.Response:
        response = self._client.post(
            "/api/v1/ingest",
            content='{"events":[' + ",".join(lines) + "]}",
            headers={"Content-Type": "application/json"},
        )
        if response.status_code not in {401, 403}:
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = time.monotonic()
        return response

    def _post_singly(self, spool: SpoolReader, lines: list[str], response: httpx.Response, first_seq: int) -> None:
        """One bad event must not hold up the others: find it by halving, and put it aside.

        A log line takes its place, since the control plane stores nothing behind a gap in seq.
        """
        if len(lines) > 1:
            half = len(lines) // 2
            self._post(spool, lines[:half])
            self._post(spool, lines[half:])
            return
        log.error("The control plane refused event %d: %s", first_seq, response.text[:1000])
        spool.refuse(lines[0])
        answer = self._request([_substitute(lines[0], response)])
        answer.raise_for_status()
        self._take(spool, IngestResponse.model_validate_json(answer.content))

    def _take(self, spool: SpoolReader, answer: IngestResponse) -> None:
        self._current_attempt = max(self._current_attempt, answer.current_attempt)
        self._is_stop_requested = self._is_stop_requested or answer.is_stop_requested
        seq = max((a.seq for a in answer.acknowledged), default=0)
        if seq <= spool.acknowledged:
            raise ValueError(f"nothing after event {spool.acknowledged} was acknowledged")
        self._acknowledge(spool, seq)

    def _acknowledge(self, spool: SpoolReader, seq: int) -> None:
        spool.acknowledge(seq)
        with self._progress:
            self._progress.notify_all()


def _substitute(line: str, response: httpx.Response) -> str:
    """A log line in the place of a refused event."""
    event = json.loads(line)
    message = f"The control plane refused an event of kind {event['body'].get('kind')}: {response.text[:1000]}"
    event["body"] = Log(level="error", message=message).model_dump()
    return json.dumps(event)


def earlier_spools(storage_dir: Path, attempt: int) -> list[SpoolReader]:
    """Spools that earlier attempts of the run left behind, oldest first."""
    numbered = ((int(f.name.removeprefix("attempt-")), f) for f in storage_dir.glob("attempt-*"))
    return [SpoolReader(folder / "spool") for number, folder in sorted(numbered) if number < attempt]
