"""A run's progress on a terminal, or one line a change where there is none."""

import time
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from cli.errors import ExitCode
from cli.outcome import exit_code, time_is_up
from cli.output import log_text, number, percent, run_table, step_text
from foredeck import Foredeck, ForedeckError
from foredeck.models import Run

POLL_S = 1.0
"""Between two looks of a person at the progress."""
UNSEEN_POLL_S = 5.0
"""Between two lines of a log; a run's end is told at once."""
PATIENCE_S = 120.0
"""A service that does not answer for longer is given up; the run goes on without it."""


def describe(run: Run) -> str:
    """What it does now and how it does, in one line."""
    if run.stage is None or run.status != "running":
        return run.status_reason or run.status
    share = "" if run.stage_progress_fraction is None else f" {percent(run.stage_progress_fraction)}"
    latest = run.latest
    figures = [
        f"{title} {number(latest.get(name), unit)}"
        for title, name, unit in (
            ("reward", "reward/train_mean", ""),
            ("acceptance", "rollout/acceptance_length_tokens", ""),
            ("speedup", "speedup/generation_ratio", "x"),
        )
        if latest.get(name) is not None
    ]
    return ", ".join([f"{run.stage.replace('_', ' ')}{share}", *figures])


@dataclass
class Follower:
    """Waits for a run's end, and shows its way there on `console`."""

    service: Foredeck
    console: Console
    timeout_s: float | None = None
    is_quiet: bool = False
    _silent_since: float | None = field(default=None, init=False)

    @property
    def is_watched(self) -> bool:
        return self.console.is_terminal and not self.is_quiet

    def until_ended(self, run: Run) -> Run:
        """Raises CommandError when time is up; the run goes on."""
        deadline = None if self.timeout_s is None else time.monotonic() + self.timeout_s
        if not self.is_watched:
            return self._in_lines(run, deadline)
        with _bar(self.console) as bar:
            task = bar.add_task("", total=run.num_steps or 1)
            while True:
                done = run.num_steps or 1 if run.status == "succeeded" else max(0, run.step - 1)
                bar.update(task, completed=done, description=describe(run))
                if run.is_settled:
                    return run
                run = self._next(run, deadline)

    def _in_lines(self, run: Run, deadline: float | None) -> Run:
        shown: tuple[object, ...] = ()
        while True:
            now = (run.status, run.stage if run.step == 0 else None, run.step)
            if now != shown and not self.is_quiet:
                self.console.print(f"[{step_text(run)}] {describe(run)}", markup=False)
            shown = now
            if run.is_settled:
                return run
            run = self._next(run, deadline)

    def _next(self, run: Run, deadline: float | None) -> Run:
        poll_s = POLL_S if self.is_watched else UNSEEN_POLL_S
        left_s = poll_s if deadline is None else min(poll_s, deadline - time.monotonic())
        if deadline is not None and left_s <= 0:
            assert self.timeout_s is not None
            raise time_is_up(self.service, run, self.timeout_s)
        try:
            run = self.service.runs.wait(run.id, left_s)
            self._silent_since = None
        except ForedeckError as error:
            self._bear(error)
            time.sleep(min(left_s, POLL_S))
        return run

    def _bear(self, error: ForedeckError) -> None:
        """A service that restarts is no reason to give up on a run."""
        if not error.is_infrastructure:
            raise error
        now = time.monotonic()
        self._silent_since = self._silent_since or now
        if now - self._silent_since > PATIENCE_S:
            raise error


def finish(console: Console, run: Run) -> ExitCode:
    """Prints the summary; returns what the command exits with."""
    console.print()
    console.print(run_table(run))
    return exit_code(run)


def follow_log(service: Foredeck, console: Console, run: Run, after: int = 0) -> Run:
    """Prints the log as it grows, across interruptions, until the run has ended."""
    for line in service.runs.follow_log(run.id, after, patience_s=PATIENCE_S):
        console.print(log_text(line), soft_wrap=True)
    return service.runs.get(run.id)


def _bar(console: Console) -> Progress:
    return Progress(
        SpinnerColumn(),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=console,
        refresh_per_second=4,
    )
