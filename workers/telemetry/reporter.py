"""What the loop calls to report: each call becomes one spooled event."""

import logging
import threading
from collections.abc import Mapping, Sequence

from contract.telemetry.events import Alarm, Checkpoint, Finished, Heartbeat, Log, Metrics, Sample, Samples, Started
from contract.telemetry.stages import Stage
from workers.telemetry.spool import Spool

HEARTBEAT_INTERVAL_S = 5.0
_MAX_TEXT = 20_000
_QUIET_LOGGERS = ("httpx", "httpcore", "workers.telemetry")
"""Their lines are about writing and delivering events, so they would beget events."""

log = logging.getLogger(__name__)


class Reporter:
    """Reports one attempt's progress; a thread repeats the present stage as a heartbeat."""

    def __init__(self, spool: Spool, heartbeat_interval_s: float = HEARTBEAT_INTERVAL_S) -> None:
        self._spool = spool
        self._interval_s = heartbeat_interval_s
        self._now = Heartbeat(stage=Stage.START, step=0)
        self._beating = threading.Lock()
        """Held from looking at the present stage to its event, or the thread could repeat an old one behind a new."""
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name="telemetry-heartbeat", daemon=True)

    def start(self) -> None:
        """Begin heartbeats."""
        self._spool.append(self._now)
        self._thread.start()

    def close(self) -> None:
        """End heartbeats."""
        self._is_closing.set()
        if self._thread.is_alive():
            self._thread.join()

    def started(self, resumed_from_step: int | None, host: str, versions: dict[str, str]) -> None:
        self._spool.append(Started(resumed_from_step=resumed_from_step, host=host, versions=versions))

    def stage(self, stage: Stage, step: int, progress_fraction: float | None = None) -> None:
        """Enter a stage, or tell how far it has come."""
        with self._beating:
            self._now = Heartbeat(stage=stage, step=step, stage_progress_fraction=progress_fraction)
            self._spool.append(self._now)

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Raises ValueError for a name that the catalogue lacks."""
        if values:
            self._spool.append(Metrics(step=step, values=dict(values)))

    def samples(self, step: int, samples: Sequence[Sample]) -> None:
        self._spool.append(Samples(step=step, samples=list(samples)))

    def checkpoint(self, step: int, path: str, size_bytes: int) -> None:
        self._spool.append(Checkpoint(step=step, path=path, size_bytes=size_bytes))

    def alarm(self, alarm: Alarm) -> None:
        """Raised or cleared."""
        self._spool.append(alarm)

    def log(self, level: str, message: str) -> None:
        self._spool.append(Log(level=level, message=_cut(message)))

    def finished(self, outcome: str, *, error: str | None = None, is_retryable: bool = False) -> None:
        """The last event."""
        text = None if error is None else _cut(error)
        self._spool.append(Finished(outcome=outcome, error=text, is_retryable=is_retryable))

    def _repeat(self) -> None:
        while not self._is_closing.wait(self._interval_s):
            try:
                with self._beating:
                    self._spool.append(self._now)
            except OSError as error:  # room may come back; a worker without heartbeats would be given up as lost
                log.warning("Cannot write a heartbeat: %s.", error)


class ReportingHandler(logging.Handler):
    """Turns log records into Log events."""

    def __init__(self, reporter: Reporter) -> None:
        super().__init__()
        self._reporter = reporter
        self.addFilter(lambda record: not record.name.startswith(_QUIET_LOGGERS))

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._reporter.log(_level(record.levelno), self.format(record))
        except Exception:  # a log line must never end a run
            self.handleError(record)


def _level(number: int) -> str:
    for least, name in ((logging.ERROR, "error"), (logging.WARNING, "warning"), (logging.INFO, "info")):
        if number >= least:
            return name
    return "debug"


def _cut(text: str) -> str:
    """Keep the end, where the cause of a traceback stands."""
    return text if len(text) <= _MAX_TEXT else "…" + text[-(_MAX_TEXT - 1) :]
