"""The first report of an attempt's worker, which ends what its cluster shows to others."""

from sqlalchemy.orm import Session

from backend.auth.workers import repository
from backend.models import ApiToken


def is_unused(token: ApiToken) -> bool:
    """Whether it came from a starter and nobody has reported with it."""
    return token.attempt is not None and token.last_used_at is None and "ingest" in token.scopes


def begin_to_report(session: Session, token: ApiToken) -> bool:
    """The starters of the token's attempt are worthless from here on. Those of attempts before are not: their workers
    may come late, and hear that they are replaced. False when another exchange has taken the token's place meanwhile.
    """
    assert token.run_id is not None
    assert token.attempt is not None
    repository.lock_attempt(session, token.run_id, token.attempt)
    if not repository.note_first_use(session, token.id):
        return False
    repository.revoke_starters(session, token.run_id, token.attempt)
    return True
