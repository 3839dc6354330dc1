"""Login links and API tokens."""

from collections.abc import Sequence
from datetime import datetime

from foredeck.models import CreatedToken, LoginLink
from foredeck.transport import Transport


class Access:
    """`Foredeck.access`; all of it needs an administrator's token."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def login_link(self) -> LoginLink:
        """A link that opens the dashboard logged in."""
        return self._transport.read(LoginLink, "POST", "/login-links")

    def create_token(self, name: str, scopes: Sequence[str], expires_at: datetime | None = None) -> CreatedToken:
        """A token of scopes `read`, `write` or `admin`; it is shown this once."""
        body = {"name": name, "scopes": list(scopes), "expires_at": expires_at and expires_at.isoformat()}
        return self._transport.read(CreatedToken, "POST", "/tokens", json=body)
