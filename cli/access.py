"""Commands about logging in, API tokens and the audit log."""

import json
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Annotated
from uuid import UUID

import typer
from rich.table import Table

from cli.errors import CommandError
from cli.options import Json
from cli.output import console, print_json, printable
from cli.service import connect

TokenName = Annotated[str, typer.Argument(metavar="TOKEN", help="Its id, or the part of it that is shown: 0c1d2e3f.")]


def register(app: typer.Typer) -> None:
    app.command("login")(login)
    app.command("audit")(audit)
    tokens = typer.Typer(help="API tokens.", no_args_is_help=True)
    tokens.command("create")(create_token)
    tokens.command("list")(list_tokens)
    tokens.command("revoke")(revoke_token)
    app.add_typer(tokens, name="token")


def login(is_json: Json = False) -> None:
    """Print a new one-time link that opens the dashboard logged in."""
    with connect() as service:
        link = service.access.login_link()
    if is_json:
        print_json(link)
    else:
        console.print(link.url, markup=False, soft_wrap=True)


def create_token(
    name: Annotated[str, typer.Argument(help="What it is for: ci.")],
    scopes: Annotated[list[str], typer.Option("--scope", help="read, write or admin; may be given again.")] = ["read"],  # noqa: B006
    project: Annotated[str | None, typer.Option(help="Good for this project alone; for all of yours without.")] = None,
    days: Annotated[float | None, typer.Option(min=0.01, help="Works for this many days; for ever without.")] = None,
    is_json: Json = False,
) -> None:
    """Make an API token. It is shown this once."""
    expires_at = None if days is None else datetime.now(UTC) + timedelta(days=days)
    with connect() as service:
        token = service.access.create_token(name, scopes, expires_at, project)
    if is_json:
        print_json(token)
    else:
        console.print(token.token, markup=False, soft_wrap=True)


def list_tokens(*, is_json: Json = False) -> None:
    """List your API tokens; everybody's, if you administer the service."""
    with connect() as service:
        tokens = service.access.tokens()
    if is_json:
        print_json(tokens)
        return
    table = _table("token", "name", "user", "scopes", "project", "expires", "last used")
    for token in tokens:
        table.add_row(
            token.prefix,
            printable(token.name),
            token.user or "",
            ", ".join(token.scopes),
            token.project or "all",
            _day(token.expires_at) or "never",
            _day(token.last_used_at) or "never",
        )
    console.print(table, markup=False)


def revoke_token(*, token: TokenName) -> None:
    """Make an API token worthless."""
    with connect() as service:
        found = [each for each in service.access.tokens() if token in (str(each.id), each.prefix)]
        if not found:
            raise CommandError(f"There is no token {token}: `foredeck token list` lists them.")
        token_id: UUID = found[0].id
        service.access.revoke_token(token_id)
    console.print(f"Revoked {printable(found[0].name)}.", markup=False)


def audit(
    *,
    actor: Annotated[str | None, typer.Option(help="A user's name, or an actor as it is listed.")] = None,
    action: Annotated[str | None, typer.Option(help="run.launch, or run for all of run.*")] = None,
    target: Annotated[str | None, typer.Option(help="An id or a name.")] = None,
    project: Annotated[str | None, typer.Option(help="Name of a project.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Newest entries that are shown.")] = 50,
    is_json: Json = False,
) -> None:
    """Who changed what, and from where, newest first."""
    with connect() as service:
        entries = list(islice(service.access.audit(actor, action, target, project), limit))
    if is_json:
        print_json(entries)
        return
    table = _table("time", "actor", "action", "target", "project", "from", "detail")
    for entry in entries:
        table.add_row(
            f"{entry.time.astimezone():%Y-%m-%d %H:%M:%S}",
            printable(entry.actor),
            entry.action,
            printable(entry.target),
            entry.project or "",
            entry.address or "",
            printable(json.dumps(entry.detail, ensure_ascii=False)) if entry.detail else "",
        )
    console.print(table, markup=False)


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in titles:
        table.add_column(title, overflow="fold")
    return table


def _day(time: datetime | None) -> str:
    return f"{time.astimezone():%Y-%m-%d}" if time else ""
