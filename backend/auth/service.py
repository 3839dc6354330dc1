"""Rules of authentication."""

from sqlalchemy.orm import Session

from backend.auth.identity import Principal


def principal_of_token(session: Session, token: str) -> Principal | None:
    raise RuntimeError


def principal_of_session(session: Session, secret: str) -> Principal | None:
    raise RuntimeError


def check_csrf(principal: Principal, given: str | None) -> None:
    raise RuntimeError
