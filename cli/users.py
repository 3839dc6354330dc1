"""Commands about users."""

from typing import Annotated

import typer
from rich.table import Table

from cli.options import Json
from cli.output import console, print_json
from cli.service import connect

UserName = Annotated[str, typer.Argument(metavar="USER", help="Their name.")]


def register(app: typer.Typer) -> None:
    users = typer.Typer(help="People who may log in.", no_args_is_help=True)
    users.command("list")(list_users)
    users.command("add")(add_user)
    users.command("update")(update_user)
    users.command("link")(link)
    users.command("log-out")(log_out)
    app.add_typer(users, name="user")


def list_users(*, is_json: Json = False) -> None:
    """List users."""
    with connect() as service:
        users = service.access.users()
    if is_json:
        print_json(users)
        return
    table = _table("name", "email", "administers", "state")
    for user in users:
        state = "active" if user.is_active else "shut out"
        table.add_row(user.name, user.email or "", "everything" if user.is_admin else "", state)
    console.print(table, markup=False)


def add_user(
    *,
    name: UserName,
    email: Annotated[str | None, typer.Option(help="Where they are reached.")] = None,
    is_admin: Annotated[bool, typer.Option("--admin", help="May do everything, in every project.")] = False,
    is_json: Json = False,
) -> None:
    """Add a user, and print a one-time link that lets them in."""
    with connect() as service:
        user = service.access.create_user(name, email, is_admin)
        made = service.access.login_link(user.name)
    if is_json:
        print_json({"user": user.model_dump(mode="json"), "login_link": made.model_dump(mode="json")})
    else:
        console.print(made.url, markup=False, soft_wrap=True)


def update_user(
    *,
    name: UserName,
    is_active: Annotated[bool | None, typer.Option("--active/--inactive", help="Whether they get in at all.")] = None,
    is_admin: Annotated[bool | None, typer.Option("--admin/--no-admin", help="Whether they may do everything.")] = None,
    email: Annotated[str | None, typer.Option(help="Where they are reached.")] = None,
    subject: Annotated[str | None, typer.Option(help="Who they are at the identity provider: its `sub`.")] = None,
    is_json: Json = False,
) -> None:
    """Change a user, or shut one out."""
    asked = {"is_active": is_active, "is_admin": is_admin, "email": email, "oidc_subject": subject}
    with connect() as service:
        user = service.access.update_user(name, {key: value for key, value in asked.items() if value is not None})
    if is_json:
        print_json(user)
    else:
        console.print(f"{user.name} is {'active' if user.is_active else 'shut out'}.", markup=False)


def link(*, name: UserName, is_json: Json = False) -> None:
    """Print a one-time link that lets a user in."""
    with connect() as service:
        made = service.access.login_link(name)
    if is_json:
        print_json(made)
    else:
        console.print(made.url, markup=False, soft_wrap=True)


def log_out(*, name: UserName) -> None:
    """Log a user out of every browser."""
    with connect() as service:
        service.access.end_sessions(name)
    console.print(f"{name} is logged out everywhere.", markup=False)


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in titles:
        table.add_column(title)
    return table
