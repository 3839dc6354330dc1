"""Commands that launch runs and wait for their ends."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from cli import gates, overrides
from cli.errors import CommandError, ExitCode
from cli.interruption import stopping
from cli.labels import parsed
from cli.options import (
    Assignments,
    Follow,
    Json,
    Labels,
    Name,
    Priority,
    Project,
    RunName,
    StopOnInterrupt,
    Timeout,
    Wait,
)
from cli.output import console, errors, print_json
from cli.progress import Follower, finish, follow_log
from cli.service import connect, find
from foredeck import Foredeck
from foredeck.models import Run


def register(app: typer.Typer) -> None:
    for command in (launch, clone, wait, gate):
        app.command(command.__name__)(command)


@dataclass(frozen=True, slots=True)
class Waiting:
    """How to wait for a run's end, and what to leave behind."""

    follow: bool
    timeout_s: float | None
    junit: Path | None
    summary: Path | None
    stop_on_interrupt: bool
    is_json: bool

    def __post_init__(self) -> None:
        if self.follow and self.timeout_s is not None:
            raise CommandError("--follow prints the log to its end: it goes without --timeout.")

    def until_ended(self, service: Foredeck, run: Run) -> int:
        """Shows how the run gets on; returns what the command exits with."""
        with stopping(service, run, self.stop_on_interrupt):
            if not self.is_json:
                console.print(f"{run.name}: {service.url}/runs/{run.id}", markup=False)
            ended = self._watched(service, run)
        judged = service.gates.verdict(run.id).evaluation if ended.gates_verdict else None
        gates.write_reports(service, run.id, self.junit, self.summary)
        if self.is_json:
            evaluation = judged.model_dump(mode="json") if judged else None
            print_json(ended.model_dump(mode="json") | {"gates_evaluation": evaluation})
        code = finish(errors if self.is_json else console, ended)
        if judged and not self.is_json:
            gates.show(judged)
        return code

    def _watched(self, service: Foredeck, run: Run) -> Run:
        # Progress goes to standard error, so that the output is the result alone.
        if self.follow:
            run = follow_log(service, errors if self.is_json else console, run)
        return Follower(service, errors, self.timeout_s, is_quiet=self.is_json or self.follow).until_ended(run)


def launch(
    *,
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="A run configuration: see examples/.")] = None,
    example: Annotated[str | None, typer.Option(metavar="NAME", help="One of the service's, in place of FILE.")] = None,
    assignments: Assignments = None,
    name: Name = None,
    labels: Labels = None,
    project: Project = None,
    cluster: Annotated[str, typer.Option(help="Name of a registered cluster.")] = "local",
    priority: Priority = 0,
    max_attempts: Annotated[
        int, typer.Option(min=1, help="Attempts that may end without a new checkpoint before the run fails.")
    ] = 3,
    wait: Wait = False,
    follow: Follow = False,
    timeout: Timeout = None,
    stop_on_interrupt: StopOnInterrupt = False,
    assertions: gates.Assertions = None,
    gate_file: gates.GateFile = None,
    baseline: gates.Baseline = None,
    junit: gates.Junit = None,
    summary: gates.Summary = None,
    is_json: Json = False,
) -> int:
    """Launch a run."""
    waiting = _waiting(wait, follow, timeout, junit, summary, stop_on_interrupt, is_json)
    body = {
        **_what(file, example, assignments or [], name),
        "labels": parsed(labels or []),
        **({} if project is None else {"project": project}),
        "cluster": cluster,
        "priority": priority,
        "max_attempts": max_attempts,
        **_gates(assertions, gate_file, baseline),
    }
    with connect() as service:
        return _launched(service, service.runs.launch(body), waiting, is_json)


def clone(
    *,
    run: RunName,
    assignments: Assignments = None,
    name: Name = None,
    labels: Labels = None,
    wait: Wait = False,
    follow: Follow = False,
    timeout: Timeout = None,
    stop_on_interrupt: StopOnInterrupt = False,
    assertions: gates.Assertions = None,
    gate_file: gates.GateFile = None,
    baseline: gates.Baseline = None,
    junit: gates.Junit = None,
    summary: gates.Summary = None,
    is_json: Json = False,
) -> int:
    """Launch a run like another, with changes."""
    waiting = _waiting(wait, follow, timeout, junit, summary, stop_on_interrupt, is_json)
    body: dict[str, Any] = {
        "overrides": overrides.parse(assignments or []),
        **({} if name is None else {"name": name}),
        **({} if labels is None else {"labels": parsed(labels)}),
        **_gates(assertions, gate_file, baseline),
    }
    with connect() as service:
        return _launched(service, service.runs.clone(find(service, run), body), waiting, is_json)


def wait(
    *,
    run: RunName,
    timeout: Timeout = None,
    follow: Follow = False,
    stop_on_interrupt: StopOnInterrupt = False,
    junit: gates.Junit = None,
    summary: gates.Summary = None,
    is_json: Json = False,
) -> int:
    """Wait for a run's end and exit with its result."""
    waiting = Waiting(follow, timeout, junit, summary, stop_on_interrupt, is_json)
    with connect() as service:
        return waiting.until_ended(service, service.runs.get(find(service, run)))


def gate(
    *,
    run: RunName,
    assertions: gates.Assertions = None,
    gate_file: gates.GateFile = None,
    baseline: gates.Baseline = None,
    junit: gates.Junit = None,
    summary: gates.Summary = None,
    is_json: Json = False,
) -> int:
    """Judge a run by what it has measured: by these gates, or without any by its own."""
    asked = gates.read(assertions, gate_file, baseline)
    with connect() as service:
        evaluation = service.gates.evaluate(find(service, run), asked)
        gates.write_reports(service, evaluation.run_id, junit, summary, evaluation.id)
    if is_json:
        print_json(evaluation)
    else:
        gates.show(evaluation)
    return ExitCode.SUCCEEDED if evaluation.verdict == "passed" else ExitCode.GATE_FAILED


def _waiting(
    wait: bool,
    follow: bool,
    timeout: float | None,
    junit: Path | None,
    summary: Path | None,
    stop_on_interrupt: bool,
    is_json: bool,
) -> Waiting | None:
    """None where nobody waits, and nothing was asked for that comes of waiting."""
    if wait or follow:
        return Waiting(follow, timeout, junit, summary, stop_on_interrupt, is_json)
    given = {
        "--timeout": timeout is not None,
        "--junit": junit is not None,
        "--summary": summary is not None,
        "--stop-on-interrupt": stop_on_interrupt,
    }
    if vain := [option for option, is_given in given.items() if is_given]:
        raise CommandError(f"{', '.join(vain)}: only with --wait or --follow.")
    return None


def _what(file: Path | None, example: str | None, assignments: list[str], name: str | None) -> dict[str, Any]:
    if (file is None) == (example is None):
        raise CommandError("Give either FILE, a run configuration, or --example with the name of one of the service's.")
    patch = overrides.parse(assignments)
    if file is None:
        return {"name": name or example, "example": example, "overrides": patch}
    own_name, config = overrides.read_file(file)
    return {"name": name or own_name, "config": overrides.merged(config, patch)}


def _launched(service: Foredeck, run: Run, waiting: Waiting | None, is_json: bool) -> int:
    if waiting is not None:
        return waiting.until_ended(service, run)
    if is_json:
        print_json(run)
    else:
        console.print(f"Launched {run.name}: {run.id}\n{service.url}/runs/{run.id}", markup=False)
    return ExitCode.SUCCEEDED


def _gates(assertions: list[str] | None, file: Path | None, baseline: str | None) -> dict[str, Any]:
    """Nothing where none were asked for: a clone keeps those of its origin."""
    asked = gates.read(assertions, file, baseline)
    return {"gates": [gate.model_dump(mode="json") for gate in asked]} if asked else {}
