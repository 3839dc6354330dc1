"""Commands about drafts, which propose tokens to the policy."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from cli import overrides
from cli.errors import ExitCode
from cli.options import Assignments, Json, Name, Timeout, Wait
from cli.output import console, errors, number, print_json
from cli.progress import Follower, finish
from cli.service import connect
from foredeck.models import Run

_AREA = "draft_pretraining/held_out"


def register(app: typer.Typer) -> None:
    drafts = typer.Typer(help="Train the drafts that propose tokens.", no_args_is_help=True)
    drafts.callback()(lambda: None)  # one command alone would otherwise need no name
    drafts.command("train")(train)
    app.add_typer(drafts, name="draft")


def train(
    *,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A run configuration: examples/draft-in-domain.yaml, or that of a run."),
    ],
    assignments: Assignments = None,
    name: Name = None,
    cluster: Annotated[str, typer.Option(help="Name of a registered cluster.")] = "local",
    wait: Wait = False,
    timeout: Timeout = None,
    is_json: Json = False,
) -> int:
    """Train a draft alone: on the starting policy's rollouts, without any step of reinforcement learning."""
    own_name, config = overrides.read_file(file)
    given = overrides.merged(config, {"job": "draft_training"})
    body = {
        "name": name or own_name,
        "config": overrides.merged(given, overrides.parse(assignments or [])),
        "cluster": cluster,
    }
    with connect() as service:
        run = service.runs.launch(body)
        if not is_json:
            console.print(f"Launched {run.name}: {service.url}/runs/{run.id}", markup=False)
        if wait:
            run = Follower(service, errors, timeout, is_quiet=is_json).until_ended(run)
    if is_json:
        print_json(report(run))
    elif run.status == "succeeded":
        _print(run)
    return finish(errors, run) if wait else ExitCode.SUCCEEDED


def report(run: Run) -> dict[str, Any]:
    """What is known of the trained draft, with null for what is not."""
    latest = run.latest
    positions = [
        {
            "position": position,
            "accepted_fraction": measured,
            "expected_fraction": latest.get(f"{_AREA}_expected_acceptance_position_{position}_fraction"),
        }
        for position in range(1, len(latest) + 1)
        if (measured := latest.get(f"{_AREA}_acceptance_position_{position}_fraction")) is not None
    ]
    return {
        "run_id": str(run.id),
        "name": run.name,
        "status": run.status,
        "status_reason": run.status_reason,
        "path": run.last_checkpoint_path,
        "acceptance_length_tokens": latest.get(f"{_AREA}_acceptance_length_tokens"),
        "expected_acceptance_length_tokens": latest.get(f"{_AREA}_expected_acceptance_length_tokens"),
        "positions": positions,
    }


def _print(run: Run) -> None:
    found = report(run)
    table = Table(box=None, pad_edge=False)
    for column in ("Draft position", "Accepted", "Expected"):
        table.add_column(column, justify="right", header_style="bold")
    for row in found["positions"]:
        table.add_row(str(row["position"]), number(row["accepted_fraction"]), number(row["expected_fraction"]))
    table.add_row(
        "Length", number(found["acceptance_length_tokens"]), number(found["expected_acceptance_length_tokens"])
    )
    console.print("\nShare of drafts accepted up to each position, on held-out prompts")
    console.print(table)
    console.print(
        "Accepted: in speculative generation. Expected: from the overlap of draft and policy, as far as unrolled.",
        style="dim",
    )
    console.print(
        f"\nGive the draft to a run by its folder:\n  drafter.path: {found['path']}", markup=False, soft_wrap=True
    )
