"""What people read: tables, problems, numbers."""

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, TextIO

from pydantic import BaseModel
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from cli.errors import CommandError
from foredeck import ProblemError
from foredeck.models import Alarm, LogLine, Run, RunFields, RunSummary

WIDTH_IN_FILES = 160


def _console(file: TextIO) -> Console:
    return Console(file=file, highlight=False, width=None if file.isatty() else WIDTH_IN_FILES)


console = _console(sys.stdout)
errors = _console(sys.stderr)

STATUS_STYLES = {
    "queued": "dim",
    "dispatching": "blue",
    "running": "blue",
    "lost": "yellow",
    "succeeded": "green",
    "failed": "red",
    "stopped": "bright_black",
}
LEVEL_STYLES = {"debug": "dim", "info": "", "warning": "yellow", "error": "red"}


def print_json(value: BaseModel | Sequence[BaseModel] | dict[str, Any]) -> None:
    """One JSON document on standard output."""
    if isinstance(value, BaseModel):
        plain: Any = value.model_dump(mode="json")
    elif isinstance(value, dict):
        plain = value
    else:
        plain = [item.model_dump(mode="json") for item in value]
    print(json.dumps(plain, indent=2, ensure_ascii=False))


def print_error(error: CommandError, is_json: bool = False) -> None:
    """The message, and below it each field with its value and the mend."""
    if is_json:
        problem = error.problem.model_dump(mode="json") if error.problem else None
        print(json.dumps({"error": str(error), "code": int(error.code), "problem": problem}, indent=2))
        return
    problems = error.problem.errors if error.problem else ()
    if not problems:
        errors.print(Text.assemble(("Error: ", "bold red"), str(error)), soft_wrap=True)
        return
    errors.print(Text.assemble(("Error: ", "bold red"), f"{len(problems)} thing{'s' * (len(problems) != 1)} to mend"))
    for each in problems:
        errors.print(_problem_line(each), soft_wrap=True)


def _problem_line(problem: ProblemError) -> Text:
    pointer = problem.pointer
    field = pointer.removeprefix("/").replace("/", ".") if pointer else problem.parameter or "request"
    given = "" if problem.value is None else f" = {json.dumps(problem.value, ensure_ascii=False)}"
    return Text.assemble("  ", (field, "bold"), given, ": ", problem.detail)


def number(value: float | None, unit: str = "") -> str:
    """Three significant digits; a dash for what was not measured."""
    return "-" if value is None else f"{value:.3g}{unit}"


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def memory(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:.0f} MB"


def status_text(status: str) -> Text:
    return Text(status, style=STATUS_STYLES.get(status, ""))


def run_duration_s(run: RunFields) -> float | None:
    if run.started_at is None:
        return None
    return ((run.ended_at or datetime.now(UTC)) - run.started_at).total_seconds()


def runs_table(runs: Sequence[RunSummary]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column, justify in (
        ("ID", "left"), ("Name", "left"), ("Status", "left"), ("Step", "right"), ("Reward", "right"),
        ("Accept. length", "right"), ("Gen. speedup", "right"), ("Validation", "right"), ("Took", "right"),
    ):  # fmt: skip
        table.add_column(column, justify=justify, header_style="bold", no_wrap=column == "ID")  # type: ignore[arg-type]
    for run in runs:
        table.add_row(
            str(run.id)[:8],
            escape(run.name),
            Text.assemble(status_text(run.status), *alarm_mark(run)),
            step_text(run),
            number(run.reward),
            number(run.acceptance_length),
            number(run.generation_speedup, "x"),
            percent(run.validation_accuracy),
            duration(run_duration_s(run)),
        )
    return table


def step_text(run: RunFields) -> str:
    """How far it has come; a job without steps says what it is instead."""
    return f"{run.step}/{run.num_steps}" if run.num_steps else run.job.replace("_", " ")


def alarm_mark(run: RunFields) -> list[tuple[str, str]]:
    """Nothing, or how many alarms are active."""
    number = run.num_active_alarms
    return [(f"  {number} alarm{'s' if number > 1 else ''}", "bold red")] if number else []


def run_table(run: Run, alarms: Sequence[Alarm] | None = None) -> Table:
    """One run, a line a fact; without its alarms only their number."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    facts: list[tuple[str, str | Text]] = [
        ("Run", Text(f"{run.name}  ({run.id})")),
        ("Status", Text.assemble(status_text(run.status), f"  {run.status_reason}")),
        ("Cluster", Text(run.cluster)),
        *_alarms(run, alarms),
        *_gates(run),
        ("Step", step_text(run) + (f", now {run.stage}" if run.stage and not run.is_ended else "")),
        ("Took", duration(run_duration_s(run))),
        *measurements(run),
        ("Configuration", Text(f"SHA-256 {run.config_sha256[:12]}")),
    ]
    if run.labels:
        facts.append(("Labels", Text(", ".join(f"{key}: {value}" for key, value in run.labels.items()))))
    facts += [(f"Attempt {attempt.number}", Text(_attempt(attempt))) for attempt in run.attempts]
    for name, value in facts:
        table.add_row(name, value)
    return table


def _alarms(run: Run, alarms: Sequence[Alarm] | None) -> list[tuple[str, str | Text]]:
    if alarms is None:
        words = f"{run.num_active_alarms} active: `foredeck show {run.id}` says what to do"
        return [("Alarms", Text(words, style="red"))] if run.num_active_alarms else []
    return [("Alarm", alarm_text(alarm)) for alarm in alarms]


def _gates(run: Run) -> list[tuple[str, Text]]:
    if run.gates_verdict is None:
        return []
    style = {"passed": "green", "failed": "red"}.get(run.gates_verdict, "")
    return [("Gates", Text.assemble((run.gates_verdict, style), f": `foredeck gate {str(run.id)[:8]}` says why"))]


def alarm_text(alarm: Alarm) -> Text:
    """What is wrong and what to do about it, or when it ended."""
    message = printable(alarm.message)
    if alarm.is_active:
        head = Text.assemble((alarm.title, "bold red"), f" since step {alarm.step}: {message}")
        return Text("\n").join([head, Text(alarm.meaning, style="dim"), Text(alarm.what_to_do)])
    ended = "cleared at" if alarm.ending == "cleared" else "undone by an attempt that went on from"
    return Text(f"{alarm.title} at step {alarm.step}, {ended} step {alarm.ended_step}: {message}", style="dim")


def _attempt(attempt: Any) -> str:
    resumed = f" from step {attempt.resumed_from_step}" if attempt.resumed_from_step is not None else ""
    return f"{attempt.outcome or 'going on'}{resumed}" + (f": {attempt.error}" if attempt.error else "")


def measurements(run: Run) -> list[tuple[str, str]]:
    """The four figures that say whether it learns, accepts, is faster and still exact."""
    latest = run.latest
    if run.job == "draft_training":
        return _draft_measurements(run)
    low, high = latest.get("speedup/generation_low_ratio"), latest.get("speedup/generation_high_ratio")
    distance, p_value = number(latest.get("lossless/ks_distance")), number(latest.get("lossless/ks_p_value"))
    evidence = latest.get("lossless/log10_e_value")
    gathered = "" if evidence is None else f", log10 e-value of the run {number(evidence)}"
    interval = f" (95 % interval {low:.2f} to {high:.2f})" if low is not None and high is not None else ""
    return [
        ("Reward", number(latest.get("reward/train_mean"))),
        ("Validation accuracy", percent(latest.get("validation/accuracy_fraction"))),
        ("Acceptance length", number(latest.get("rollout/acceptance_length_tokens"))),
        ("Generation speedup", number(latest.get("speedup/generation_ratio"), "x") + interval),
        ("Step speedup", number(latest.get("speedup/step_ratio"), "x")),
        ("Losslessness", f"KS distance {distance}, p = {p_value}{gathered}"),
    ]


def _draft_measurements(run: Run) -> list[tuple[str, str]]:
    """What a trained draft is worth on prompts it was not trained on, and where it lies."""
    area = "draft_pretraining/held_out"
    positions = [run.latest.get(f"{area}_acceptance_position_{place}_fraction") for place in range(1, 17)]
    measured = [percent(share) for share in positions if share is not None]
    return [
        ("Held-out acceptance length", number(run.latest.get(f"{area}_acceptance_length_tokens"))),
        ("Held-out acceptance", ", ".join(measured) + " by position" if measured else "-"),
        ("Draft", escape(run.last_checkpoint_path or "-")),
    ]


def printable(text: str) -> str:
    """A text from afar as it is: control characters, which could drive the terminal, are shown and not obeyed."""
    return "".join(char if char.isprintable() or char == "\t" else repr(char)[1:-1] for char in text)


def log_text(line: LogLine) -> Text:
    message = printable(line.message)
    clock = line.time.astimezone().strftime("%H:%M:%S")
    return Text.assemble((f"{clock} ", "dim"), (message, LEVEL_STYLES.get(line.level, "")))
