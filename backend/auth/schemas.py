"""What the auth routes take and give."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from backend.wording import MOMENT


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must hold printable characters only")
    return text


Name = Annotated[
    str, StringConstraints(min_length=1, max_length=120, strip_whitespace=True), AfterValidator(_printable)
]


def _no_number(value: object) -> object:
    if isinstance(value, bool | int | float):
        raise ValueError(MOMENT)
    return value


Id = Annotated[UUID, Field(strict=False)]
Moment = Annotated[AwareDatetime, BeforeValidator(_no_number), Field(strict=False)]


class Schema(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True, from_attributes=True)


class Request(Schema):
    """Unknown keys are refused, so that a misspelt one cannot pass unnoticed, and so are values of another type: true
    is no number. What JSON can only write as text is an `Id` or a `Moment`."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SessionCreate(Request):
    code: str = Field(min_length=1, max_length=200, examples=["Jx0c..."])
    """The code of a one-time login link: what follows #code= in it."""


class UserRead(Schema):
    id: UUID
    name: str
    email: str | None
    is_admin: bool
    """May do everything, in every project and with clusters and users."""
    is_active: bool
    """Whoever is not is refused, whatever tokens they hold."""
    oidc_subject: str | None
    """Who it is at the identity provider; null for users who log in by links alone."""
    created_at: datetime


class SessionRead(Schema):
    user: UserRead
    csrf_token: str
    """Send it as X-CSRF-Token with every change."""


class LoginLinkRead(Schema):
    url: str
    """Opens the dashboard logged in; works once."""
    expires_at: datetime
