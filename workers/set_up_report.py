"""How far set-up has come, as the dashboard shows it."""

from collections.abc import Iterable

from contract.telemetry.stages import Stage
from workers.stopping import StopWatch
from workers.telemetry.reporter import Reporter
from workers.train.progress import SetUpProgress


class SetUpReport:
    """Reports stages before the first step; each report is also where a stop is seen."""

    def __init__(self, reporter: Reporter, stop: StopWatch) -> None:
        self.reporter, self._stop = reporter, stop

    def enter(self, stage: Stage, fraction: float) -> None:
        """A stage is done to this share."""
        self._stop.check()
        self.reporter.stage(stage, 0, fraction)

    def follow(self, stage: Stage, steps: Iterable[SetUpProgress], begin: float = 0.0, end: float = 1.0) -> None:
        """Report a stage's steps, which take it from one share to another."""
        self.enter(stage, begin)
        for progress in steps:
            self.enter(stage, begin + (end - begin) * progress.step / progress.num_steps)
            self.reporter.metrics(progress.step, progress.metrics)
