"""Whether the service lives, and whether what it needs is there."""

from functools import cache
from http import HTTPStatus
from typing import Literal

import redis
from fastapi import APIRouter, Response
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from backend.auth.schemas import Schema
from backend.db import Database
from backend.deps import DatabaseDep, SettingsDep
from backend.settings import REPOSITORY

router = APIRouter(tags=["health"])


class Health(Schema):
    status: Literal["ok"] = "ok"


class Readiness(Schema):
    status: Literal["ready", "degraded", "unavailable"]
    """Degraded: everything works, but live updates come by polling."""
    checks: dict[str, str]
    """`ok` or what is wrong, for postgres, its schema and redis."""


@router.get("/health", operation_id="health", summary="The process answers")
def health() -> Health:
    return Health()


@router.get(
    "/ready",
    operation_id="ready",
    summary="PostgreSQL is there with its tables, and Redis answers",
    responses={503: {"model": Readiness}},
)
def ready(response: Response, database: DatabaseDep, settings: SettingsDep) -> Readiness:
    checks = {
        "postgres": _postgres(database),
        "schema": _schema(database),
        "redis": _redis(settings.redis_url),
    }
    if (checks["postgres"], checks["schema"]) != ("ok", "ok"):
        response.status_code = HTTPStatus.SERVICE_UNAVAILABLE
        return Readiness(status="unavailable", checks=checks)
    return Readiness(status="ready" if checks["redis"] == "ok" else "degraded", checks=checks)


def _postgres(database: Database) -> str:
    try:
        database.ping()
    except Exception as error:  # whatever it is, the answer is that it does not answer
        return f"does not answer ({type(error).__name__})"
    return "ok"


def _schema(database: Database) -> str:
    """Whether the tables are those of this version: between a new version and its migration nothing works."""
    try:
        with database.engine.connect() as connection:
            found = connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all()
    except SQLAlchemyError as error:
        return f"cannot be read ({type(error).__name__}): run `alembic upgrade head`"
    is_ours = found == [_newest_migration()]
    return "ok" if is_ours else f"is at {', '.join(found)}, this version needs {_newest_migration()}: migrate"


@cache
def _newest_migration() -> str:
    from alembic.script import ScriptDirectory  # noqa: PLC0415 (asked once, not at every start)

    return str(ScriptDirectory(str(REPOSITORY / "alembic")).get_current_head())


def _redis(url: str) -> str:
    try:
        with redis.Redis.from_url(url, socket_connect_timeout=0.5, socket_timeout=0.5, retry=None) as client:
            client.ping()
    except (redis.RedisError, OSError) as error:
        return f"does not answer ({type(error).__name__})"
    return "ok"
