"""Ways in."""

from datetime import datetime
from uuid import UUID

from foredeck.models.base import Answer


class LoginLink(Answer):
    """Opens the dashboard logged in; works once."""

    url: str
    expires_at: datetime


class CreatedToken(Answer):
    """An API token, shown this once."""

    id: UUID
    name: str
    scopes: list[str]
    token: str
    expires_at: datetime | None = None
