"""What must hold of a run: from options and files to verdicts, reports and exit codes."""

import re
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer
import yaml
from pydantic import ValidationError
from rich.table import Table
from rich.text import Text

from cli.errors import CommandError
from cli.output import console, number, printable
from foredeck import Foredeck, Gate
from foredeck.models import GateEvaluation, GateResult

_SPEAKS_OF_BASELINE = re.compile(r"\bbaseline\b")
AREA = "Gates"

Assertions = Annotated[
    list[str] | None,
    typer.Option(
        "--gate",
        metavar="ASSERTION",
        help="What must hold: 'acceptance_length >= 2.8'. May be given again.",
        rich_help_panel=AREA,
    ),
]
GateFile = Annotated[
    Path | None, typer.Option("--gates", metavar="FILE", help="More of them, in YAML.", rich_help_panel=AREA)
]
Baseline = Annotated[
    str | None,
    typer.Option(
        metavar="WHICH",
        help="What `baseline` is in a gate: label:branch=main (the newest green run so labelled), run:ID or origin.",
        rich_help_panel=AREA,
    ),
]
Junit = Annotated[
    Path | None, typer.Option("--junit", metavar="FILE", help="Write the verdict as JUnit XML.", rich_help_panel=AREA)
]
Summary = Annotated[
    Path | None,
    typer.Option("--summary", metavar="FILE", help="Append the verdict as Markdown.", rich_help_panel=AREA),
]


def read(assertions: list[str] | None, file: Path | None, baseline: str | None) -> list[Gate]:
    """All gates that were asked for; `baseline` is that of those which need one and name none.

    Raises:
        CommandError: the file is not there or holds something else, or a baseline is given that no gate speaks of.
    """
    gates = [Gate(assertion=text) for text in assertions or []] + (_from_file(file) if file else [])
    needy = [gate for gate in gates if _SPEAKS_OF_BASELINE.search(gate.assertion)]
    if baseline is None:
        return gates
    if not needy:
        raise CommandError(f"--baseline {baseline}: no gate speaks of it, as 'reward >= baseline - 0.02' does.")
    which = {"baseline": _as_the_service_writes(baseline)}
    return [gate.model_copy(update=which) if gate in needy and not gate.baseline else gate for gate in gates]


def _as_the_service_writes(baseline: str) -> str:
    """label:branch=main is label:branch:main; values may hold both signs."""
    kind, colon, rest = baseline.partition(":")
    return kind + colon + (re.sub(r"(^|,)([^:=,]+)=", r"\1\2:", rest) if kind == "label" else rest)


def _from_file(file: Path) -> list[Gate]:
    try:
        content = yaml.safe_load(file.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CommandError(f"{file} cannot be read: {error}") from error
    items = content.get("gates") if isinstance(content, dict) else content
    if not isinstance(items, list):
        raise CommandError(f"{file} must hold a list of gates, each an assertion or a mapping with `assertion`.")
    return [_gate(file, place, item) for place, item in enumerate(items)]


def _gate(file: Path, place: int, item: Any) -> Gate:
    try:
        gate = Gate(assertion=item) if isinstance(item, str) else Gate.model_validate(item)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, (place, *first["loc"])))
        raise CommandError(f"{file}: gates.{where}: {first['msg']}.") from error
    return gate.model_copy(update={"baseline": gate.baseline and _as_the_service_writes(gate.baseline)})


def write_reports(
    service: Foredeck, run_id: UUID, junit: Path | None, summary: Path | None, evaluation_id: UUID | None = None
) -> None:
    """JUnit XML into one file, and Markdown at the end of another, as CI systems read them."""
    try:
        if junit is not None:
            junit.write_text(service.gates.junit(run_id, evaluation_id))
        if summary is not None:
            with summary.open("a") as file:
                file.write(service.gates.markdown(run_id, evaluation_id))
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}.") from error


def show(evaluation: GateEvaluation) -> None:
    """A line for each gate."""
    table = Table(box=None, pad_edge=False)
    for title in ("gate", "verdict", "estimate", "interval", "limit", "why"):
        table.add_column(title, header_style="bold")
    for result in evaluation.results:
        table.add_row(
            Text(printable(result.name)),
            Text(result.verdict.replace("_", " "), style="green" if result.is_passed else "bold red"),
            number(result.estimate),
            _interval(result),
            number(result.limit),
            Text(printable(result.reason)),
        )
    console.print(table)
    passed = f"{evaluation.num_gates - evaluation.num_failed} of {evaluation.num_gates} gates passed."
    console.print(Text(passed, style="green" if evaluation.verdict == "passed" else "bold red"))


def _interval(result: GateResult) -> str:
    if result.low is None and result.high is None:
        return "-"
    return f"{number(result.low)} to {number(result.high)}"
