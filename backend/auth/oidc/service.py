"""Rules of logins through the identity provider: who becomes which user."""

import hashlib
import logging
from dataclasses import replace
from typing import Any, Literal

from sqlalchemy.orm import Session

from backend.auth import audit
from backend.auth.identity import Principal
from backend.auth.projects import repository as projects
from backend.auth.repository import get_project
from backend.auth.service import FIRST_USER
from backend.auth.users import repository as users
from backend.models import User
from backend.settings import Settings

logger = logging.getLogger(__name__)

MAX_NAME_LENGTH = 120
Reason = Literal["state", "provider", "domain", "inactive"]
"""Why nobody is logged in: the answer belongs to no login of this browser; the provider refused, or what it said is not
to be trusted; its address is of no domain that is let in; the user is shut out."""


class RefusedError(Exception):
    """The provider knows them, and this service does not let them in."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def find_user(session: Session, settings: Settings, claims: dict[str, Any], caller: Principal) -> User:
    """The user that the provider's issuer and subject stand for, made at the first login. An address alone is nobody:
    providers let people change it. Raises RefusedError."""
    issuer, subject = str(claims["iss"]), str(claims["sub"])
    user = users.get_by_subject(session, issuer, subject)
    if user is None:
        if not _is_let_in(settings, claims):
            raise RefusedError("domain", f"subject {subject!r:.200} has no verified address of a domain that is let in")
        user = _create(session, settings, claims, caller)
    if not user.is_active:
        raise RefusedError("inactive", f"user {user.name} is not active")
    _follow_admin_claim(session, settings, user, claims, caller)
    return user


def _verified_email(claims: dict[str, Any]) -> str | None:
    email = claims.get("email")
    return email if isinstance(email, str) and claims.get("email_verified") is True else None


def _is_let_in(settings: Settings, claims: dict[str, Any]) -> bool:
    if "*" in settings.oidc_email_domains:
        return True
    domain = (_verified_email(claims) or "").rpartition("@")[2].lower()
    return domain in {known.lower() for known in settings.oidc_email_domains}


def _create(session: Session, settings: Settings, claims: dict[str, Any], caller: Principal) -> User:
    name, email = _name(claims), _verified_email(claims)
    identity = {"email": email, "oidc_issuer": str(claims["iss"]), "oidc_subject": str(claims["sub"])}
    user = None if name == FIRST_USER else users.insert(session, name=name, **identity)
    if user is None:  # the name is another's; this one is not
        mark = hashlib.sha256("\n".join((identity["oidc_issuer"] or "", identity["oidc_subject"] or "")).encode())
        users.insert(session, name=f"{name[: MAX_NAME_LENGTH - 9]}-{mark.hexdigest()[:8]}", **identity)
        user = users.get_by_subject(session, str(claims["iss"]), str(claims["sub"]))
    if user is None:
        raise LookupError("the user that was made is not there")
    newcomer = replace(caller, name=f"user:{user.name}")
    audit.record(session, newcomer, "user.create", user.name, by="oidc", email=email)
    project = get_project(session, settings.oidc_default_project)
    if project and settings.oidc_default_role != "none":
        projects.set_role(session, project.id, user.id, settings.oidc_default_role)
        audit.record(session, newcomer, "member.set", user.name, project.id, role=settings.oidc_default_role)
    return user


def _name(claims: dict[str, Any]) -> str:
    """The verified address, which is theirs; else what they call themselves there. Only what user names may hold."""
    wish = _verified_email(claims) or claims.get("preferred_username") or claims["sub"]
    kept = "".join(sign for sign in str(wish) if sign.isascii() and (sign.isalnum() or sign in "._@+-"))
    return kept.lstrip("._@+-")[:MAX_NAME_LENGTH] or "user"


def _follow_admin_claim(
    session: Session, settings: Settings, user: User, claims: dict[str, Any], caller: Principal
) -> None:
    """The provider's word counts at each login, but the last one who administers everything stays."""
    if settings.oidc_admin_claim is None:
        return
    name, _, wanted = settings.oidc_admin_claim.partition(":")
    held = claims.get(name)
    is_admin = wanted in held if isinstance(held, list) else str(held) == wanted
    if is_admin == user.is_admin:
        return
    if not is_admin and [admin.id for admin in users.list_active_admins_locked(session)] == [user.id]:
        logger.warning("the last administrator stays one, against the admin claim", extra={"user": user.name})
        return
    user.is_admin = is_admin
    session.flush()
    actor = replace(caller, name=f"user:{user.name}")
    audit.record(session, actor, "user.update", user.name, by="oidc", is_admin=is_admin)
