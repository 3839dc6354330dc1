"""What a fresh database needs before anybody can use it, and how its owner gets in.

    python -m backend.bootstrap                      the first user and the cluster `local`
    python -m backend.bootstrap --credentials FILE   the same, and a token for the command line in FILE (mode 0600)
    python -m backend.bootstrap --login-link         prints a one-time login link

Runs after `alembic upgrade head`; twice is as once.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from sqlalchemy.orm import Session

from backend.auth import repository as auth_repository
from backend.auth import service as auth
from backend.auth.identity import USER_SCOPES
from backend.clusters import service as clusters
from backend.db import Database
from backend.models import User
from backend.settings import Settings, load


def ensure(session: Session, settings: Settings) -> User:
    """The first user and the cluster `local` exist. Returns the user."""
    clusters.ensure_local(session, settings)
    return auth_repository.ensure_first_user(session, auth.FIRST_USER)


def ensure_credentials(session: Session, settings: Settings, user: User, path: Path) -> None:
    """The file holds a token that works; a token that works is kept."""
    known = _read(path)
    token = known.get("token", "")
    if auth.principal_of_token(session, token) is None:
        token = auth.issue_user_token(session, user, "foredeck command line", sorted(USER_SCOPES))
    wanted = {"url": settings.public_url, "token": token}
    if known != wanted:
        _write(path, wanted)


def _read(path: Path) -> dict[str, str]:
    try:
        known = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _write(path: Path, credentials: dict[str, str]) -> None:
    """Never readable by others, not even for a moment, and never half-written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(credentials, file, indent=2)
    new.replace(path)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m backend.bootstrap", description=__doc__.partition("\n")[0])
    parser.add_argument("--credentials", type=Path, metavar="FILE", help="write the command line's token to FILE")
    parser.add_argument("--login-link", action="store_true", help="print a one-time login link")
    options = parser.parse_args(arguments)
    settings = load()
    database = Database(settings)
    with database.transaction() as session:
        user = ensure(session, settings)
        if options.credentials:
            ensure_credentials(session, settings, user, options.credentials)
        link = auth.login_link_of(session, settings, user) if options.login_link else None
    database.close()
    if link:
        sys.stdout.write(f"{link.url}\n")


if __name__ == "__main__":
    main()
