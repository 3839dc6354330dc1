"""What the login page needs to know."""

from backend.auth.schemas import Schema


class OidcLoginRead(Schema):
    name: str
    """What the identity provider is called here."""
    path: str
    """Where the browser goes to log in through it."""


class LoginMethods(Schema):
    oidc: OidcLoginRead | None
    """Null where login links are the only way in."""
