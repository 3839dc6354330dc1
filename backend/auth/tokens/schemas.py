"""What the routes of tokens take and give."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from backend.auth.projects.schemas import ProjectName
from backend.auth.schemas import Moment, Name, Request, Schema
from backend.cursor import Page


class TokenCreate(Request):
    """A token of your own. It can never do more than you may, whatever becomes of your roles."""

    name: Name = Field(examples=["ci"])
    scopes: list[Literal["read", "write", "admin"]] = Field(min_length=1, max_length=3, examples=[["read", "write"]])
    """write includes read, admin includes both."""
    project: ProjectName | None = None
    """The one project that it is good for; null for all of yours."""
    expires_at: Moment | None = None
    """When it stops working; null for never."""


class TokenRead(Schema):
    id: UUID
    prefix: str
    """The visible part of the token."""
    name: str
    user: str | None
    """Whose it is."""
    scopes: list[str]
    project: str | None
    """The one project that it is good for; null for all of its user's."""
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


class TokenPage(Page[TokenRead]):
    """Tokens, newest first."""


class TokenCreated(TokenRead):
    token: str
    """The token itself, shown this once."""
