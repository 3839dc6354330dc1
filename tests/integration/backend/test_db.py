import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import text

from backend.db import after_commit
from backend.deps import SessionDep
from backend.runs import repository


def count(database):
    with database.transaction() as session:
        return session.scalar(text("SELECT count(*) FROM user_account WHERE name LIKE 't%'"))


INSERT = text("INSERT INTO user_account (name) VALUES (:name)")


def test_hooks_run_after_the_commit_once_a_key_and_their_failure_is_only_logged(database, caplog):
    seen = []

    def fail():
        raise ConnectionError("redis is down")

    with database.transaction() as session:
        session.execute(INSERT, {"name": "t1"})
        after_commit(session, "bad", fail)
        after_commit(session, "good", lambda: seen.append(count(database)))
        after_commit(session, "good", lambda: seen.append("twice"))
        assert seen == []
    assert seen == [1]
    assert "after-commit hook failed" in caplog.text


def test_what_fails_leaves_nothing_and_tells_nobody(database):
    seen = []

    def fail():
        with database.transaction() as session:
            session.execute(INSERT, {"name": "t2"})
            after_commit(session, "key", lambda: seen.append(1))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (count(database), seen) == (0, [])


def test_a_success_is_durable_before_it_is_answered(database):
    """A deferred constraint fails at the commit: the answer must not be a success."""
    app = FastAPI()
    app.state.database = database

    @app.post("/")
    def insert(session: SessionDep) -> str:
        session.execute(text("CREATE TEMP TABLE t (a int UNIQUE DEFERRABLE INITIALLY DEFERRED) ON COMMIT DROP"))
        session.execute(text("INSERT INTO t VALUES (1), (1)"))
        return "done"

    assert TestClient(app, raise_server_exceptions=False).post("/").status_code == 500


def test_sessions_are_in_utc_and_give_up_after_a_while(database):
    with database.transaction() as session:
        assert session.scalar(text("SHOW timezone")) == "UTC"
        assert session.scalar(text("SHOW statement_timeout")) == "30s"


def test_a_locked_row_is_read_anew(database, launch):
    run_id = launch()["id"]
    with database.transaction() as session:
        run = repository.get(session, run_id)
        with database.transaction() as other:
            other.execute(text("UPDATE run SET name = 'changed'"))
        assert repository.get_locked(session, run_id) is run
        assert run.name == "changed"
