"""Rules of users."""

from http import HTTPStatus

from sqlalchemy.orm import Session

from backend import etag
from backend.auth import audit
from backend.auth.identity import Principal
from backend.auth.repository import delete_browser_sessions
from backend.auth.schemas import LoginLinkRead, UserRead
from backend.auth.service import login_link_of
from backend.auth.users import repository
from backend.auth.users.schemas import UserCreate, UserPage, UserUpdate
from backend.cursor import cut, decode
from backend.errors import ApiError, ProblemError, conflict, invalid, not_found
from backend.models import User
from backend.settings import Settings


def list_page(session: Session, limit: int, cursor: str | None) -> UserPage:
    after = decode(cursor, str) if cursor else None
    page, next_cursor = cut(repository.list_page(session, limit + 1, after), limit, lambda user: (user.name,))
    return UserPage(items=[UserRead.model_validate(user) for user in page], next_cursor=next_cursor)


def read(session: Session, name: str) -> UserRead:
    return UserRead.model_validate(_get(session, name))


def create(session: Session, settings: Settings, body: UserCreate, principal: Principal) -> UserRead:
    issuer = _issuer_for(session, settings, body.oidc_subject)
    user = repository.insert(session, **body.model_dump(), oidc_issuer=issuer)
    if user is None:
        error = ProblemError(pointer="/name", detail="there is a user of this name", value=body.name)
        raise ApiError(HTTPStatus.CONFLICT, f"There is a user {body.name} already.", errors=[error])
    audit.record(session, principal, "user.create", user.name, is_admin=user.is_admin)
    return UserRead.model_validate(user)


def update(
    session: Session,
    settings: Settings,
    name: str,
    body: UserUpdate,
    principal: Principal,
    if_match: str | None = None,
) -> UserRead:
    """Raises ApiError: 404, 409 where nobody would be left who administers everything, 412 when the user was edited
    since the caller loaded what they have the tag of."""
    changes = body.model_dump(exclude_none=True)
    if False in (body.is_admin, body.is_active):
        _refuse_for_last_admin(session, name)
    user = _get(session, name)
    session.refresh(user, with_for_update=True)
    etag.require(if_match, user, UserUpdate)
    if body.oidc_subject not in (None, user.oidc_subject):
        changes["oidc_issuer"] = _issuer_for(session, settings, body.oidc_subject)
    for field, value in changes.items():
        setattr(user, field, value)
    if body.is_active is False:
        end_sessions_of(session, user)
    if changes:
        audit.record(session, principal, "user.update", user.name, **changes)
    return UserRead.model_validate(user)


def _refuse_for_last_admin(session: Session, name: str) -> None:
    if [user.name for user in repository.list_active_admins_locked(session)] == [name]:
        raise conflict(
            f"User {name} stays as it is: nobody else administers this service. Make another user one first."
        )


def _issuer_for(session: Session, settings: Settings, subject: str | None) -> str | None:
    """The issuer whose subject it is. Raises ApiError: 422 where none is configured, 409 where another user has it."""
    if subject is None:
        return None
    if settings.oidc_issuer is None:
        detail = "nobody logs in through an identity provider here: set FOREDECK_OIDC_ISSUER first"
        raise invalid([ProblemError(pointer="/oidc_subject", detail=detail, value=subject)])
    if other := repository.get_by_subject(session, settings.oidc_issuer, subject):
        error = ProblemError(pointer="/oidc_subject", detail=f"belongs to the user {other.name}", value=subject)
        raise ApiError(HTTPStatus.CONFLICT, f"This person is the user {other.name} already.", errors=[error])
    return settings.oidc_issuer


def make_login_link(session: Session, settings: Settings, name: str, principal: Principal) -> LoginLinkRead:
    """Lets a person in where there is no identity provider."""
    user = _get(session, name)
    if not user.is_active:
        raise conflict(f"User {name} is not active, and no link would let them in. Make them active first.")
    audit.record(session, principal, "login_link.create", user.name)
    return login_link_of(session, settings, user)


def end_sessions(session: Session, name: str, principal: Principal) -> None:
    user = _get(session, name)
    end_sessions_of(session, user)
    audit.record(session, principal, "user.end_sessions", user.name)


def end_sessions_of(session: Session, user: User) -> None:
    """In every browser; links that were not used end, too."""
    delete_browser_sessions(session, user.id)
    repository.delete_login_links(session, user.id)


def _get(session: Session, name: str) -> User:
    user = repository.get(session, name)
    if user is None:
        raise not_found("user", name)
    return user
