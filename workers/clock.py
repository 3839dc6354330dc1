"""Where a step's time goes."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from contract.telemetry.stages import STEP_STAGES, Stage


class StageClock:
    """Times the leaf stages of one step; stages do not nest, and one entered again adds up."""

    def __init__(self, on_enter: Callable[[Stage], None], now: Callable[[], float] = time.monotonic) -> None:
        """on_enter is called as each stage begins, and may raise to end the run there."""
        self._on_enter = on_enter
        self._now = now
        self._started = now()
        self._seconds: dict[Stage, float] = {}
        self._current: Stage | None = None

    @contextmanager
    def stage(self, stage: Stage) -> Iterator[None]:
        """Raises ValueError inside another stage: times would be counted twice."""
        if self._current is not None:
            raise ValueError(f"stage {stage} begins inside stage {self._current}")
        self._on_enter(stage)
        self._current, begun = stage, self._now()
        try:
            yield
        finally:
            self._seconds[stage] = self._seconds.get(stage, 0.0) + self._now() - begun
            self._current = None

    def seconds(self, stage: Stage) -> float:
        """Seconds spent in a stage so far; 0 for one that did not run."""
        return self._seconds.get(stage, 0.0)

    def total(self) -> float:
        """Seconds since the step began."""
        return self._now() - self._started

    def metrics(self) -> dict[str, float]:
        """Catalogue names; stages that did not run took 0 s, and the parts add up to time/step_s."""
        total = self.total()
        parts = {f"time/{stage.value}_s": self.seconds(stage) for stage in STEP_STAGES}
        return {**parts, "time/other_s": max(0.0, total - sum(parts.values())), "time/step_s": total}
