"""Commands about logging in."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from cli.output import console, print_json
from cli.service import connect


def register(app: typer.Typer) -> None:
    app.command("login")(login)
    tokens = typer.Typer(help="API tokens.", no_args_is_help=True)
    tokens.command("create")(create_token)
    app.add_typer(tokens, name="token")


def login(is_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
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
    days: Annotated[float | None, typer.Option(min=0.01, help="Works for this many days; for ever without.")] = None,
    is_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make an API token. It is shown this once."""
    expires_at = None if days is None else datetime.now(UTC) + timedelta(days=days)
    with connect() as service:
        token = service.access.create_token(name, scopes, expires_at)
    if is_json:
        print_json(token)
    else:
        console.print(token.token, markup=False, soft_wrap=True)
