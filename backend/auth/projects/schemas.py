"""What the routes of projects take and give."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field, StringConstraints

from backend.auth.identity import Role
from backend.auth.schemas import Request, Schema
from backend.cursor import Page

ProjectName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]


class ProjectWrite(Request):
    name: ProjectName = Field(examples=["post-training"])


class ProjectRead(Schema):
    """What runs belong to, and what people are given roles in."""

    id: UUID
    name: str
    role: Role
    """Yours; who administers everything has the role admin in all of them."""
    num_runs: int
    num_members: int
    """People with a role in it, without those who administer everything."""
    created_at: datetime


class ProjectPage(Page[ProjectRead]):
    """Projects, by name."""


class MemberWrite(Request):
    role: Role = Field(examples=["launcher"])
    """viewer: sees; launcher: also launches, changes and stops runs; admin: also gives roles and reads the
    audit log."""


class MemberRead(Schema):
    user: str
    """Their name."""
    role: Role
    is_active: bool
