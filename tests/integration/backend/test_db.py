import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import event, text

from backend.db import CommitUnknownError, after_commit
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


def lose_the_connection_at_commit(database):
    """The server ends the connection between the last statement and COMMIT."""

    @event.listens_for(database.engine, "commit", once=True)
    def lose(connection):
        pid = connection.connection.dbapi_connection.info.backend_pid
        with database.engine.connect() as other:
            other.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})


def test_a_connection_lost_at_the_commit_leaves_open_what_happened(database):
    def insert():
        with database.transaction() as session:
            session.execute(INSERT, {"name": "t9"})
            lose_the_connection_at_commit(database)

    with pytest.raises(CommitUnknownError):
        insert()


@pytest.mark.parametrize(
    ("method", "read", "words"),
    [("PATCH", "get_locked", "It is not known whether"), ("GET", "get", "Nothing was changed")],
)
def test_a_change_whose_commit_was_lost_is_not_called_undone(
    client, database, launch, monkeypatch, method, read, words
):
    run, read_run = launch(), getattr(repository, read)

    def lose_after_authentication(session, run_id):
        lose_the_connection_at_commit(database)
        return read_run(session, run_id)

    monkeypatch.setattr(repository, read, lose_after_authentication)
    response = client.request(method, f"/api/v1/runs/{run['id']}", json={"notes": "n"} if method == "PATCH" else None)
    assert (response.status_code, response.headers["retry-after"]) == (503, "2")
    assert words in response.json()["detail"]


def test_what_two_do_at_once_is_a_conflict(app, client):
    @app.get("/api/v1/twice")
    def twice(session: SessionDep):
        for _ in range(2):
            session.execute(INSERT, {"name": "t7"})

    app.router.routes.insert(0, app.router.routes.pop())
    response = client.get("/api/v1/twice")
    assert (response.status_code, response.headers["content-type"]) == (409, "application/problem+json")
    assert "t7" not in response.text
