"""Logins that have begun at the identity provider and are not back yet."""

from datetime import timedelta

from sqlalchemy import delete, func, insert
from sqlalchemy.orm import Session

from backend.auth.oidc.provider import Attempt
from backend.auth.secrets import sha256
from backend.models import OidcLogin


def insert_login(session: Session, attempt: Attempt, lifetime: timedelta) -> None:
    values = {"state_sha256": sha256(attempt.state), "nonce": attempt.nonce, "code_verifier": attempt.code_verifier}
    session.execute(insert(OidcLogin).values(**values, expires_at=func.now() + lifetime))


def take_login(session: Session, state: str) -> Attempt | None:
    """Once: of two answers to the same login one gets nothing."""
    is_meant = (OidcLogin.state_sha256 == sha256(state)) & (OidcLogin.expires_at > func.now())
    statement = delete(OidcLogin).where(is_meant).returning(OidcLogin.nonce, OidcLogin.code_verifier)
    row = session.execute(statement).one_or_none()
    return None if row is None else Attempt(state, row.nonce, row.code_verifier)
