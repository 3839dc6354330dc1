"""Commands about projects, and who may do what in them."""

from typing import Annotated, Literal

import typer
from rich.table import Table

from cli.options import Json
from cli.output import console, print_json
from cli.service import connect

ProjectName = Annotated[str, typer.Argument(metavar="PROJECT", help="Its name.")]
UserName = Annotated[str, typer.Argument(metavar="USER", help="Their name.")]
Role = Annotated[
    Literal["viewer", "launcher", "admin"],
    typer.Argument(metavar="ROLE", help="viewer, launcher or admin."),
]


def register(app: typer.Typer) -> None:
    projects = typer.Typer(help="What runs belong to, and who may do what there.", no_args_is_help=True)
    projects.command("list")(list_projects)
    projects.command("create")(create)
    projects.command("rename")(rename)
    projects.command("delete")(delete)
    projects.command("members")(members)
    projects.command("grant")(grant)
    projects.command("revoke")(revoke)
    app.add_typer(projects, name="project")


def list_projects(*, is_json: Json = False) -> None:
    """List the projects in which you have a role."""
    with connect() as service:
        projects = service.access.projects()
    if is_json:
        print_json(projects)
        return
    table = _table("name", "your role", "runs", "members")
    for project in projects:
        table.add_row(project.name, project.role, str(project.num_runs), str(project.num_members))
    console.print(table, markup=False)


def create(*, name: ProjectName, is_json: Json = False) -> None:
    """Make a project."""
    with connect() as service:
        project = service.access.create_project(name)
    if is_json:
        print_json(project)
    else:
        console.print(f"Made {project.name}. foredeck project grant {project.name} USER ROLE: lets people in.")


def rename(*, project: ProjectName, name: Annotated[str, typer.Argument(metavar="NEW_NAME")]) -> None:
    """Rename a project."""
    with connect() as service:
        renamed = service.access.rename_project(project, name)
    console.print(f"{project} is now {renamed.name}.", markup=False)


def delete(*, project: ProjectName) -> None:
    """Remove an empty project."""
    with connect() as service:
        service.access.delete_project(project)
    console.print(f"Removed {project}.", markup=False)


def members(*, project: ProjectName, is_json: Json = False) -> None:
    """List who has a role in a project."""
    with connect() as service:
        found = service.access.members(project)
    if is_json:
        print_json(found)
        return
    table = _table("user", "role", "state")
    for member in found:
        table.add_row(member.user, member.role, "active" if member.is_active else "shut out")
    console.print(table, markup=False)


def grant(*, project: ProjectName, user: UserName, role: Role) -> None:
    """Give a user a role in a project."""
    with connect() as service:
        member = service.access.set_role(project, user, role)
    console.print(f"{member.user} is {member.role} in {project}.", markup=False)


def revoke(*, project: ProjectName, user: UserName) -> None:
    """Take a user's role in a project away."""
    with connect() as service:
        service.access.remove_member(project, user)
    console.print(f"{user} has no role in {project}.", markup=False)


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in titles:
        table.add_column(title)
    return table
