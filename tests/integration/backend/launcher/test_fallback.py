import time

import pytest
from sqlalchemy import text

from backend.launcher import fallback as module
from backend.launcher.fallback import Fallback


@pytest.fixture
def make_fallback(database, settings):
    made = []

    def make(**changes):
        values = {"reconcile_interval_s": 0.05, "embedded_ray_dir": settings.home, **changes}
        made.append(Fallback(database, settings.model_copy(update=values)))
        made[-1].start()
        return made[-1]

    yield make
    for each in made:
        each.stop()


def rounds(database):
    with database.transaction() as session:
        return session.scalar(text("SELECT started_at FROM periodic_job WHERE name = 'reconcile'"))


def wait_for(is_there):
    deadline = time.monotonic() + 30
    while not is_there():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_while_nobody_else_reconciles_it_does(make_fallback, database, launch, client):
    run_id = launch()["id"]
    make_fallback()
    read = lambda: client.get(f"/api/v1/runs/{run_id}").json()  # noqa: E731
    wait_for(lambda: read()["status_reason"] == "Starting Ray on this machine.")


def test_while_somebody_does_it_keeps_out_of_the_way(make_fallback, database, monkeypatch):
    asked = []
    original = module.service.reconcile
    monkeypatch.setattr(module.service, "reconcile", lambda *arguments: asked.append(original(*arguments)))
    with database.transaction() as session:
        session.execute(text("INSERT INTO periodic_job VALUES ('reconcile', now() + interval '1 hour')"))
    make_fallback()
    wait_for(lambda: len(asked) >= 3)
    assert not any(asked)


def test_no_trouble_ends_it(make_fallback, database, monkeypatch, caplog):
    original = module.service.reconcile
    troubles = [ZeroDivisionError("a mistake")]

    def reconcile(*arguments):
        if troubles:
            raise troubles.pop()
        return original(*arguments)

    monkeypatch.setattr(module.service, "reconcile", reconcile)
    make_fallback()
    wait_for(lambda: rounds(database) is not None)
    assert "standing in for Celery failed" in caplog.text
