"""Arguments and options that several commands share."""

from typing import Annotated

import typer

RunName = Annotated[str, typer.Argument(metavar="RUN", help="Id, start of an id, or name.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Assignments = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change the configuration: grpo.num_steps=20.")
]
Name = Annotated[str | None, typer.Option("--name", help="Name of the new run.")]
Labels = Annotated[
    list[str] | None, typer.Option("--label", metavar="KEY=VALUE", help="For finding it again. May be given again.")
]
Project = Annotated[str | None, typer.Option(help="Name of the project it belongs to.")]
Statuses = Annotated[str | None, typer.Option("--status", help="Comma-separated: running,queued.")]
Search = Annotated[str | None, typer.Option("--search", help="Part of the name or notes.")]
LabelFilter = Annotated[
    list[str] | None, typer.Option("--label", metavar="KEY=VALUE", help="May be given again: all must match.")
]
InProject = Annotated[str | None, typer.Option("--project", help="Of this project alone.")]
Metrics = Annotated[
    list[str] | None, typer.Option("--metric", help="reward/train_mean; may be given again. All without it.")
]
Priority = Annotated[
    int, typer.Option(min=-100, max=100, help="In the queue: each level is worth ten minutes of waiting.")
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for its end and exit with its result.")]
Follow = Annotated[bool, typer.Option("--follow", help="Print its log until it ends; implies --wait.")]
Timeout = Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", min=0, help="Wait no longer.")]
StopOnInterrupt = Annotated[
    bool, typer.Option("--stop-on-interrupt", help="Stop the run when this command is interrupted while it waits.")
]
