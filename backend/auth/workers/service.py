"""Rules of workers' tokens.

A job is given a starter, which its cluster shows to whoever may read its jobs and logs. It does nothing but be
exchanged for a token to report with, again and again until such a token is used: with that the starter is worthless. Of
those it was exchanged for only the last one works, so that two who have the starter cannot both report. All that is
decided under the lock of the attempt's row.
"""

import logging
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from uuid import UUID

from sqlalchemy.orm import Session

from backend.auth import audit, secrets
from backend.auth.identity import Principal
from backend.auth.service import issue, issue_worker_token
from backend.auth.workers import repository
from backend.errors import ApiError
from backend.models import ApiToken
from backend.runs import repository as runs
from backend.telemetry.notices import append_log
from contract.telemetry.events import WorkerToken

logger = logging.getLogger(__name__)

STARTER_LIFETIME_S = 24 * 3600.0
"""Begins anew as long as the launcher waits for the attempt's worker."""


def issue_starter(session: Session, run_id: UUID, attempt: int) -> str:
    """What the attempt's job is given."""
    expires_at = datetime.now(UTC) + timedelta(seconds=STARTER_LIFETIME_S)
    name = f"starter of {run_id}-{attempt}"
    return issue(session, name, ["start"], None, run_id=run_id, attempt=attempt, expires_at=expires_at)[0]


def exchange(session: Session, starter: Principal) -> WorkerToken:
    """A token to report with, in place of those that were exchanged for before and that nobody has used.

    Raises ApiError: 401 when one was used after the caller had been let in.
    """
    run_id, attempt = starter.run_id, starter.attempt
    assert run_id is not None
    assert attempt is not None
    repository.lock_attempt(session, run_id, attempt)
    row = repository.get_unrevoked(session, starter.token_id)
    if row is None:
        detail = "Somebody has begun to report for this attempt: its starter is worthless."
        raise ApiError(HTTPStatus.UNAUTHORIZED, detail, headers={"WWW-Authenticate": "Bearer"})
    num_replaced = repository.revoke_unused(session, run_id, attempt)
    is_current = runs.get_orders(session, run_id)[0] == attempt
    token = issue_worker_token(session, run_id, attempt, None if is_current else row.expires_at)
    project_id = runs.get_project_id(session, run_id)
    fields = {"attempt": attempt, "num_replaced": num_replaced}
    audit.record(session, starter, "worker_token.issue", run_id, project_id, **fields)
    return WorkerToken(token=token)


def tell_of_refusal(session: Session, credentials: str, caller: Principal) -> None:
    """Says so, once for each token, where a stranger has one of a run's that was good before: two have had its starter,
    and one of them is not the worker."""
    token = _revoked(session, credentials)
    if token is None or token.run_id is None or token.attempt is None:
        return
    run_id, attempt = token.run_id, token.attempt
    kind = "starter" if "start" in token.scopes else "token"
    fields = {"attempt": attempt, "token": kind}
    audit.record(session, caller, "worker_token.refuse", run_id, runs.get_project_id(session, run_id), **fields)
    words = _WARNINGS[kind].format(address=caller.address, attempt=attempt)
    append_log(session, run_id, attempt, "warning", words)
    logger.warning("a worker's token was refused", extra={"run_id": str(run_id), "address": caller.address, **fields})


def trim(session: Session, ended_for_s: float) -> None:
    """Deletes what is over; starters of workers that are still waited for are not, however long that takes."""
    repository.renew_starters(session, STARTER_LIFETIME_S)
    repository.delete_over(session, ended_for_s)


def _revoked(session: Session, credentials: str) -> ApiToken | None:
    """The worker's token, if it is one that was revoked and that was not presented since."""
    parts = secrets.split_token(credentials)
    token = repository.get_worker_token(session, parts[0]) if parts else None
    if parts is None or token is None or not secrets.is_equal(secrets.sha256(parts[1]), token.secret_sha256):
        return None
    return token if repository.note_refusal(session, token.id) else None


_WARNINGS = {
    "starter": (
        "{address} has presented the starter of attempt {attempt} after somebody had begun to report with it. If the "
        "worker reports, somebody else has read its starter on the cluster, and has got nothing for it. If it is the "
        "worker that was refused, somebody else reports in its place: stop the run, and see who can read the cluster's "
        "jobs and logs."
    ),
    "token": (
        "{address} has presented a token of attempt {attempt} after its starter was exchanged for another one. Unless "
        "an answer was late, somebody else has read the starter on the cluster."
    ),
}
