"""The command that lists sweeps."""

import json
from collections.abc import Sequence
from itertools import islice
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from cli.options import InProject, Json
from cli.output import console, number, print_json
from cli.service import connect
from foredeck.models import SweepSummary
from foredeck.models.sweeps import SweepFields
from foredeck.sweeps import BestBy


def list_sweeps(
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Newest sweeps that are shown.")] = 20,
    project: InProject = None,
    best_by: Annotated[BestBy, typer.Option("--best-by", help="The figure by which the best run is told.")] = "reward",
    is_json: Json = False,
) -> None:
    """List sweeps, newest first: how their runs do, and which is the best."""
    with connect() as service:
        found = list(islice(service.sweeps.list(project=project, best_by=best_by), limit))
    if is_json:
        print_json(found)
    elif found:
        console.print(_list(found, best_by))
    else:
        console.print("No sweeps. Launch one: foredeck sweep create NAME --example EXAMPLE --axis KEY=[VALUES]")


def counts(sweep: SweepFields) -> str:
    """`2 running, 1 queued`."""
    return ", ".join(f"{num} {status}" for status, num in sweep.num_runs_by_status.items())


def _list(sweeps: Sequence[SweepSummary], best_by: BestBy) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("ID", no_wrap=True)
    for title in ("Name", "Runs", f"Best {best_by.replace('_', ' ')}", "Of"):
        table.add_column(title, overflow="fold")
    for sweep in sweeps:
        best = sweep.best
        own = [key for key in sweep.keys if best and key in best.point]
        point = ", ".join(f"{key}={json.dumps(best.point[key])}" for key in own) if best else ""
        table.add_row(
            str(sweep.id)[:8], escape(sweep.name), counts(sweep), number(best.value if best else None), escape(point)
        )
    return table
