"""Delivers spooled events to the control plane from a thread of its own."""

import json
import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import httpx

from contract.telemetry.events import MAX_EVENTS_PER_BATCH, Finished, IngestResponse, Log, WorkerToken
from workers.telemetry.spool import Spool, SpoolReader

_COALESCE_S = 0.05
"""Waited after an event, so that what is logged together travels together; charts are promised a point within 1 s."""
_FIRST_BACK_OFF_S = 0.2
_LONGEST_BACK_OFF_S = 5.0
_REQUEST_TIMEOUT_S = 10.0
_TELL_INTERVAL_S = 60.0
"""Between two warnings that events do not arrive."""
_MAX_BATCH_BYTES = 1_000_000
_LASTING_S = 300.0
"""Refused for so long, this attempt's token is refused for good: its run has ended, or another attempt has it."""
_TOKEN_PATH = "/api/v1/ingest/token"  # noqa: S105
_UNWELCOME = {401, 403}
_REFUSED = {400, 413, 422}
"""Answers that mean the events themselves are at fault; everything else is tried again."""

log = logging.getLogger(__name__)


class Sender:
    """Posts batches until they are acknowledged; events of earlier attempts' spools are delivered too.

    The control plane's answer says which attempt is current and whether the run should stop. Before the first batch the
    starter, which Ray shows to others, is exchanged for a token that stays in this process's memory.
    """

    def __init__(
        self,
        api_url: str,
        starter: str,
        spool: Spool,
        attempt: int,
        earlier: Sequence[SpoolReader] = (),
        lasting_s: float = _LASTING_S,
    ) -> None:
        # trust_env off: a .netrc of this host would replace the token.
        self._client = httpx.Client(base_url=api_url.rstrip("/"), trust_env=False)
        self._starter = starter
        self._token: str | None = None
        self._has_reported = False
        self._spool = spool
        self._attempt = attempt
        self._earlier = list(earlier)
        self._current_attempt = attempt
        self._is_stop_requested = False
        self._progress = threading.Condition()
        self._has_news = True
        self._is_closing = False
        self._is_hurried = False
        self._back_off_s = 0.0
        self._request_timeout_s = _REQUEST_TIMEOUT_S
        self._told_at: float | None = None
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
        """Wait until every event is acknowledged, those of earlier attempts too; a back-off ends at once.

        False when the time ran out first, or the control plane takes nothing from this process any more.
        """
        self._request_timeout_s = min(_REQUEST_TIMEOUT_S, timeout_s)
        with self._progress:
            self._is_hurried = True
            self._progress.notify_all()
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
                self._back_off_s, self._told_at = 0.0, None
            except (httpx.HTTPError, OSError, ValueError) as error:
                self._is_worse(error)
            with self._progress:
                self._progress.notify_all()

    def _wait_for_work(self) -> bool:
        """Wait for an event, or for the back-off to end; False when closing."""
        with self._progress:
            if self._back_off_s:
                self._progress.wait_for(lambda: self._is_closing or self._is_hurried, self._back_off_s)
                self._back_off_s = 0.0 if self._is_hurried else self._back_off_s
            else:
                self._progress.wait_for(lambda: self._has_news or self._is_closing)
                self._progress.wait_for(lambda: self._is_closing, _COALESCE_S)
            self._has_news = self._is_hurried = False
            return not self._is_closing

    def _is_worse(self, error: Exception) -> None:
        now = time.monotonic()
        if self._told_at is None or now - self._told_at >= _TELL_INTERVAL_S:
            self._told_at = now
            log.warning("%s Events are kept on disk and sent later.", _explain(error))
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
        self._token = self._token or self._exchange()
        response = self._client.post(
            "/api/v1/ingest",
            content='{"events":[' + ",".join(lines) + "]}",
            timeout=self._request_timeout_s,
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"},
        )
        self._note_welcome(response)
        if response.is_success:
            self._has_reported = True
        elif response.status_code == 401 and not self._has_reported:
            self._token = None  # another exchange of the starter has taken its place
        return response

    def _exchange(self) -> str:
        """A token in place of those before it; the answer may be lost, and nothing with it."""
        headers = {"Authorization": f"Bearer {self._starter}"}
        response = self._client.post(_TOKEN_PATH, timeout=self._request_timeout_s, headers=headers)
        if not response.is_success:
            self._note_welcome(response)
        response.raise_for_status()
        return WorkerToken.model_validate_json(response.content).token

    def _note_welcome(self, response: httpx.Response) -> None:
        if response.status_code not in _UNWELCOME:
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = time.monotonic()

    def _post_singly(self, spool: SpoolReader, lines: list[str], response: httpx.Response, first_seq: int) -> None:
        """One bad event must not hold up the others: find it by halving, and put it aside.

        Another takes its place, since the control plane stores nothing behind a gap in seq.
        """
        if len(lines) > 1:
            half = len(lines) // 2
            self._post(spool, lines[:half])
            self._post(spool, lines[half:])
            return
        answer = self._request([_substitute(lines[0], response)])
        answer.raise_for_status()
        log.error("The control plane refused event %d: %s", first_seq, response.text[:1000])
        spool.refuse(lines[0])
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
    """In the place of a refused event a log line, or for the attempt's last one its bare outcome."""
    event = json.loads(line)
    body = event["body"]
    message = f"The control plane refused an event of kind {body.get('kind')}: {response.text[:1000]}"
    if body.get("kind") == "finished":
        error = message if body["outcome"] == "failed" else None
        bare = Finished(outcome=body["outcome"], is_retryable=body.get("is_retryable", False), error=error)
    else:
        bare = Log(level="error", message=message)
    return json.dumps(event | {"body": bare.model_dump()})


def _explain(error: Exception) -> str:
    """Why events do not arrive, in words for the run's owner."""
    if isinstance(error, httpx.HTTPStatusError) and error.response.is_client_error:
        answer = error.response
        if error.request.url.path.endswith(_TOKEN_PATH) and answer.status_code in _UNWELCOME:
            return (
                f"The control plane does not take this worker's starter: {answer.status_code} {_detail(answer)}. "
                "Either this attempt is over, or somebody else has read the starter and reports in its place: "
                "see the run's log and the audit log."
            )
        return f"The control plane does not take this worker's events: {answer.status_code} {_detail(answer)}."
    if isinstance(error, httpx.HTTPError):
        return f"Cannot reach the control plane ({error})."
    if isinstance(error, OSError):
        return f"Cannot read or mark the events on disk ({error})."
    return f"The control plane's answer cannot be understood ({error})."


def _detail(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["detail"]).rstrip(".")
    except (ValueError, LookupError, TypeError):
        return answer.reason_phrase


def earlier_spools(storage_dir: Path, attempt: int) -> list[SpoolReader]:
    """Spools that earlier attempts of the run left behind, oldest first."""
    numbered = ((int(f.name.removeprefix("attempt-")), f) for f in storage_dir.glob("attempt-*"))
    return [SpoolReader(folder / "spool") for number, folder in sorted(numbered) if number < attempt]
