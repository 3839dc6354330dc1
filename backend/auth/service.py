"""Rules of authentication."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import cast
from uuid import UUID

from sqlalchemy.orm import Session

from backend.auth import audit, repository, secrets
from backend.auth.identity import CSRF_HEADER, USER_SCOPES, Principal, Role, Scope, effective_scopes
from backend.auth.schemas import LoginLinkRead, SessionRead, UserRead
from backend.auth.workers.first_use import begin_to_report, is_unused
from backend.errors import ApiError
from backend.models import ApiToken, User
from backend.settings import Settings


def principal_of_token(session: Session, token: str) -> Principal | None:
    """The token's caller; None when it is unknown, wrong, expired or revoked, without telling which."""
    parts = secrets.split_token(token)
    row = repository.get_live_token(session, parts[0]) if parts else None
    if parts is None or row is None or not secrets.is_equal(secrets.sha256(parts[1]), row.secret_sha256):
        return None
    if is_unused(row):
        if not begin_to_report(session, row):
            return None
    elif row.last_used_at is None or row.last_used_at < datetime.now(UTC) - repository.LAST_USED_PRECISION:
        repository.touch_token(session, row)
    scopes = effective_scopes(row.scopes)
    if row.run_id is not None:
        return Principal(f"run:{row.run_id}", scopes, run_id=row.run_id, attempt=row.attempt, token_id=row.id)
    user = repository.get_user(session, row.user_id) if row.user_id else None
    if user is None or not user.is_active:
        return None
    caller = _user_principal(session, user, f"token:{user.name}/{row.name}", scopes, row.project_id)
    return replace(caller, expires_at=row.expires_at)


def principal_of_session(session: Session, secret: str) -> Principal | None:
    """The browser session's user; None when the session is unknown or over."""
    found = repository.get_browser_session(session, secrets.sha256(secret))
    if found is None:
        return None
    browser, user = found
    return _user_principal(session, user, f"user:{user.name}", USER_SCOPES, csrf_token=browser.csrf_token)


def _user_principal(
    session: Session,
    user: User,
    name: str,
    scopes: frozenset[Scope],
    project_id: UUID | None = None,
    csrf_token: str | None = None,
) -> Principal:
    """With the user's roles as they are now; one who administers everything does so through a token of one project in
    that project alone."""
    roles = repository.list_roles(session, user.id, project_id)
    if user.is_admin and project_id is not None:
        roles = {project_id: "admin"}
    return Principal(
        name,
        scopes,
        is_admin=user.is_admin and project_id is None,
        roles=cast("dict[UUID, Role]", roles),
        user_id=user.id,
        project_id=project_id,
        csrf_token=csrf_token,
    )


def check_csrf(principal: Principal, given: str | None) -> None:
    """Refuses a change that a foreign page could have sent with the browser's cookie."""
    if not principal.csrf_token or not secrets.is_equal(principal.csrf_token, given or ""):
        detail = f"Send the csrf_token of GET /api/v1/session in the header {CSRF_HEADER}."
        raise ApiError(HTTPStatus.FORBIDDEN, detail)


def log_in(session: Session, code: str, caller: Principal, lifetime_s: int) -> tuple[str, SessionRead] | None:
    """(secret for the cookie, what the page needs); None, and noted in the audit log, when the code is worthless."""
    user = repository.use_login_link(session, secrets.sha256(code))
    if user is None or not user.is_active:
        audit.record(session, caller, "session.refuse", "login link")
        return None
    return open_session(session, user, caller, lifetime_s, by="link")


def open_session(session: Session, user: User, caller: Principal, lifetime_s: int, by: str) -> tuple[str, SessionRead]:
    """A new browser session of the user's."""
    secret, csrf_token = secrets.new_secret(), secrets.new_secret()
    lifetime = timedelta(seconds=lifetime_s)
    repository.insert_browser_session(session, secrets.sha256(secret), csrf_token, user.id, lifetime)
    audit.record(session, replace(caller, name=f"user:{user.name}"), "session.create", user.name, by=by)
    return secret, SessionRead(user=UserRead.model_validate(user), csrf_token=csrf_token)


def read_session(session: Session, principal: Principal) -> SessionRead:
    user = repository.get_user(session, principal.user_id) if principal.user_id else None
    if user is None or principal.csrf_token is None:
        raise ApiError(HTTPStatus.NOT_FOUND, "This caller has a token, not a browser session.")
    return SessionRead(user=UserRead.model_validate(user), csrf_token=principal.csrf_token)


def log_out(session: Session, secret: str | None, principal: Principal, everywhere: bool) -> None:
    """Ends this browser's session, or all of the user's."""
    if principal.user_id is None:
        return
    if everywhere:
        repository.delete_browser_sessions(session, principal.user_id)
    elif secret:
        repository.delete_browser_session(session, secrets.sha256(secret))
    audit.record(session, principal, "session.delete", principal.name, everywhere=everywhere)


def end_former_session(session: Session, secret: str | None) -> None:
    """Whoever logs in leaves nothing of the browser's former session behind."""
    if secret:
        repository.delete_browser_session(session, secrets.sha256(secret))


def make_login_link(session: Session, settings: Settings, principal: Principal) -> LoginLinkRead:
    """A link for the caller's own user. Raises ApiError: 403 for a token of one project, which the link would widen."""
    user = repository.get_user(session, principal.user_id) if principal.user_id else None
    if user is None or principal.project_id is not None:
        raise ApiError(
            HTTPStatus.FORBIDDEN, "A token of one project makes no login links: they open all of its user's."
        )
    link = login_link_of(session, settings, user)
    audit.record(session, principal, "login_link.create", user.name)
    return link


FIRST_USER = "admin"


def login_link_of(session: Session, settings: Settings, user: User) -> LoginLinkRead:
    code = secrets.new_secret()
    lifetime = timedelta(seconds=settings.login_link_lifetime_s)
    link = repository.insert_login_link(session, secrets.sha256(code), user.id, lifetime)
    # Behind the #, the code is neither sent to nor logged by any server on the way.
    return LoginLinkRead(url=f"{settings.public_url}/login#code={code}", expires_at=link.expires_at)


def issue_user_token(session: Session, user: User, name: str, scopes: list[str]) -> str:
    """A token of a user's own, for the command line on the service's machine."""
    token, row = issue(session, name, scopes, user.id)
    audit.record(session, f"user:{user.name}", "token.create", row.id, name=name, scopes=scopes)
    return token


def issue_worker_token(
    session: Session, run_id: UUID, attempt: int | None = None, expires_at: datetime | None = None
) -> str:
    """A token that may only report to this run; of attempts up to the given one, or of all."""
    name = f"worker of {run_id}"
    return issue(session, name, ["ingest"], None, run_id=run_id, attempt=attempt, expires_at=expires_at)[0]


def issue(
    session: Session,
    name: str,
    scopes: list[str],
    user_id: UUID | None,
    run_id: UUID | None = None,
    expires_at: datetime | None = None,
    project_id: UUID | None = None,
    attempt: int | None = None,
) -> tuple[str, ApiToken]:
    """(the token, what is kept of it)."""
    token, prefix, sha256 = secrets.new_token()
    row = ApiToken(
        prefix=prefix,
        secret_sha256=sha256,
        name=name,
        scopes=scopes,
        user_id=user_id,
        run_id=run_id,
        expires_at=expires_at,
        project_id=project_id,
        attempt=attempt,
    )
    repository.insert_token(session, row)
    return token, row
