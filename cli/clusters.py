"""Commands about clusters."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.table import Table
from rich.text import Text

from cli.errors import CommandError, ExitCode
from cli.options import Json
from cli.output import console, errors, print_json
from cli.service import connect
from foredeck.models import ClusterCheck

POLL_S = 1.0
ClusterName = Annotated[str, typer.Argument(metavar="CLUSTER", help="Its name.")]


def register(app: typer.Typer) -> None:
    clusters = typer.Typer(help="Ray clusters that runs go to.", no_args_is_help=True)
    clusters.command("list")(list_clusters)
    clusters.command("add")(add)
    clusters.command("check")(check)
    app.add_typer(clusters, name="cluster")


def list_clusters(*, is_json: Json = False) -> None:
    """List clusters, and whether each answers."""
    with connect() as service:
        clusters = service.clusters.list()
    if is_json:
        print_json(clusters)
        return
    table = Table(box=None, pad_edge=False)
    for title in ("name", "state", "runs", "waiting", "GPUs", "code", "address"):
        table.add_column(title)
    for cluster in clusters:
        gpus = (cluster.resources or {}).get("GPU")
        table.add_row(
            cluster.name,
            cluster.reachability.state if cluster.reachability else "",
            f"{cluster.num_live_runs} of {cluster.max_concurrent_runs}",
            str(cluster.num_queued_runs),
            f"{gpus.used:g} of {gpus.total:g} used" if gpus else "",
            str(cluster.code.get("kind", "")),
            cluster.address or "this machine",
        )
    console.print(table)


def add(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The registration in YAML: see docs/operations.")],
    is_json: Json = False,
) -> None:
    """Register a cluster, and say whether it answers."""
    with connect() as service:
        cluster = service.clusters.add(_read(file))
    if is_json:
        print_json(cluster)
        return
    answer = cluster.reachability.detail if cluster.reachability else ""
    console.print(f"Registered {cluster.name}. {answer}", markup=False)
    console.print(f"foredeck cluster check {cluster.name}: looks at its machines.", markup=False)


def check(
    *,
    name: ClusterName,
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", min=1, help="Wait no longer.")] = 900.0,
    is_json: Json = False,
) -> int:
    """Have a job look at every machine of a cluster: versions, GPUs, the shared folder, the way to this service."""
    deadline = time.monotonic() + timeout
    with connect() as service:
        result = service.clusters.get_check(name, check_id := service.clusters.begin_check(name))
        while not result.is_ended:
            if time.monotonic() > deadline:
                errors.print(f"The check {check_id} is {result.state} after {timeout:.0f} s.", markup=False)
                return ExitCode.TIMEOUT
            time.sleep(POLL_S)
            result = service.clusters.get_check(name, check_id)
    if is_json:
        print_json(result)
    else:
        _print(result)
    return ExitCode.SUCCEEDED if result.state == "passed" else ExitCode.FAILED


def _print(result: ClusterCheck) -> None:
    for finding in result.findings:
        mark = ("ok  ", "green") if finding.is_ok else ("bad ", "bold red")
        console.print(Text.assemble(mark, (f"{finding.name}: ", "bold"), finding.detail), soft_wrap=True)
    if not result.findings:
        console.print("The check ended without findings. Its last lines:")
        for line in result.log:
            console.print(line, markup=False, soft_wrap=True)


def _read(file: Path) -> dict[str, Any]:
    try:
        body = yaml.safe_load(file.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CommandError(f"{file} cannot be read: {error}") from error
    if not isinstance(body, dict):
        raise CommandError(f"{file} must hold keys and values: name, address, storage_dir, api_url.")
    return body
