"""What the routes of users take and give."""

from typing import Annotated

from pydantic import Field, StringConstraints

from backend.auth.schemas import Request, UserRead
from backend.cursor import Page

UserName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@+-]{0,119}$")]
"""It stands in addresses and in the audit log."""
Email = Annotated[str, StringConstraints(pattern=r"^[^\s@\x00]+@[^\s@\x00]+$", max_length=254)]
Subject = Annotated[str, StringConstraints(pattern=r"^[\x20-\x7e]+$", max_length=255)]


class UserCreate(Request):
    """A person. Without a role in a project they see nothing, unless they administer everything."""

    name: UserName = Field(examples=["grace"])
    """Stays as it is: the audit log holds it."""
    email: Email | None = None
    is_admin: bool = False
    """May do everything, in every project and with clusters and users."""
    oidc_subject: Subject | None = None
    """Who it is at the identity provider: `sub` of its ID tokens. Without one they log in by links."""


class UserPage(Page[UserRead]):
    """Users, by name."""


class UserUpdate(Request):
    """What is left out stays."""

    email: Email | None = None
    is_admin: bool | None = None
    is_active: bool | None = None
    """Whoever is not is refused, whatever tokens they hold; their sessions and login links end for good."""
    oidc_subject: Subject | None = None
    """Links the user with that person at the identity provider."""
