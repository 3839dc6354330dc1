"""Alarms from the worker's event to what a reader is told."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import delete, select

from backend.auth import service as auth
from backend.main import create_app
from backend.models import Alarm as AlarmRow
from backend.models import Notice, Run, User
from backend.settings import Settings
from contract.telemetry.alarms import ALARMS, AlarmName
from contract.telemetry.events import Alarm, Metrics, Started

DRIFT, COLLAPSE = AlarmName.DISTRIBUTION_DRIFT, AlarmName.ACCEPTANCE_COLLAPSE


def alarm(step: int, name: AlarmName = DRIFT, *, is_raised: bool = True, message: str = "distance 0.2") -> Alarm:
    return Alarm(step=step, name=name, is_raised=is_raised, message=message)


@pytest.fixture
def read(database_url, redis_url, database):
    """read(path): what a reader is answered, under /api/v1."""
    with database.transaction() as session:
        user = User(name="u", is_admin=True)
        session.add(user)
        session.flush()
        token = auth.issue_user_token(session, user, "t", ["read"])
    with TestClient(create_app(Settings(DATABASE_URL=database_url, REDIS_URL=redis_url))) as client:
        yield lambda path: client.get(f"/api/v1{path}", headers={"Authorization": f"Bearer {token}"})


def alarms(read, run_id: UUID) -> dict[str, Any]:
    return read(f"/runs/{run_id}/alarms").raise_for_status().json()


def test_an_alarm_comes_with_the_words_of_the_catalogue(make_run, make_event, send, read) -> None:
    run_id = make_run()
    send([make_event(run_id, 1, alarm(12))])
    answer = alarms(read, run_id)
    (item,) = answer["items"]
    kind = ALARMS[DRIFT]
    assert answer["num_active"] == 1
    assert (item["title"], item["meaning"], item["what_to_do"]) == (kind.title, kind.meaning, kind.what_to_do)
    assert (item["step"], item["attempt"], item["message"], item["is_active"]) == (12, 1, "distance 0.2", True)


def test_the_number_of_active_alarms_stands_in_the_list_and_at_the_run(make_run, make_event, send, read) -> None:
    run_id, other = make_run(), make_run()
    send([make_event(run_id, 1, alarm(3)), make_event(run_id, 2, alarm(4, COLLAPSE))])
    numbers = {item["id"]: item["num_active_alarms"] for item in read("/runs").json()["items"]}
    assert numbers == {str(run_id): 2, str(other): 0}
    send([make_event(run_id, 3, alarm(9, is_raised=False))])
    assert read(f"/runs/{run_id}").json()["num_active_alarms"] == 1
    first, second = alarms(read, run_id)["items"]
    assert (first["name"], first["is_active"]) == (COLLAPSE, True), "the active ones come first"
    assert (second["name"], second["ending"], second["ended_step"]) == (DRIFT, "cleared", 9)


def test_a_batch_sent_twice_raises_once(database, make_run, make_event, send, read) -> None:
    run_id = make_run()
    events = [make_event(run_id, 1, alarm(3)), make_event(run_id, 2, alarm(4, is_raised=False))]
    send([*events, make_event(run_id, 3, alarm(6))])
    send(events)
    with database.transaction() as session:
        assert session.scalars(select(AlarmRow.step).order_by(AlarmRow.id)).all() == [3, 4, 6]
    assert [item["step"] for item in alarms(read, run_id)["items"]] == [6, 3]


def test_order_within_a_batch_is_that_of_the_events(make_run, make_event, send, read) -> None:
    run_id = make_run()
    words = [alarm(step, is_raised=step % 2 == 1) for step in range(1, 42)]
    events = [make_event(run_id, seq, word) for seq, word in enumerate(words, 1)]
    send(events[::-1])
    answer = alarms(read, run_id)
    assert answer["num_active"] == 1
    ends = sorted((item["step"], item["ended_step"]) for item in answer["items"])
    assert ends == [*((step, step + 1) for step in range(1, 41, 2)), (41, None)]


def test_a_new_attempt_undoes_what_came_after_where_it_goes_on(make_run, make_event, send, read) -> None:
    run_id = make_run(num_attempts=2)
    send([make_event(run_id, 1, alarm(15)), make_event(run_id, 2, alarm(4, COLLAPSE))])
    assert read(f"/runs/{run_id}").json()["num_active_alarms"] == 2
    send([make_event(run_id, 1, Started(resumed_from_step=10, host="h", versions={}), attempt=2)])
    assert read(f"/runs/{run_id}").json()["num_active_alarms"] == 1
    undone = next(item for item in alarms(read, run_id)["items"] if item["name"] == DRIFT)
    assert (undone["ending"], undone["ended_step"]) == ("undone", 10)
    send([make_event(run_id, 2, alarm(15), attempt=2)])
    assert read(f"/runs/{run_id}").json()["num_active_alarms"] == 2
    assert [item["attempt"] for item in alarms(read, run_id)["items"] if item["name"] == DRIFT] == [2, 1]


def test_what_an_earlier_attempt_says_late_does_not_count_as_news(make_run, make_event, send, read) -> None:
    run_id = make_run(num_attempts=2)
    send([make_event(run_id, 1, Started(resumed_from_step=10, host="h", versions={}), attempt=2)])
    send([make_event(run_id, 1, alarm(15))])
    assert read(f"/runs/{run_id}").json()["num_active_alarms"] == 0
    assert [item["ending"] for item in alarms(read, run_id)["items"]] == ["undone"]


def test_streams_hear_what_was_raised_and_cleared_and_how_many_are_active(database, make_run, make_event, send) -> None:
    run_id = make_run()
    send([make_event(run_id, 1, alarm(3)), make_event(run_id, 2, alarm(5, COLLAPSE))])
    send(
        [
            make_event(run_id, 3, alarm(8, is_raised=False)),
            make_event(run_id, 4, Metrics(step=8, values={"policy/loss": 1})),
        ]
    )
    with database.transaction() as session:
        notices = session.scalars(select(Notice).where(Notice.run_id == run_id).order_by(Notice.id)).all()
        heard = [notice.body for notice in notices if notice.kind == "alarm"]
        numbers = [notice.body["num_active_alarms"] for notice in notices if notice.kind == "run"]
    assert heard == [
        {"raised": [COLLAPSE, DRIFT], "cleared": [], "step": 5},
        {"raised": [], "cleared": [DRIFT], "step": 8},
    ]
    assert numbers == [2, 1]


def test_a_name_that_the_catalogue_has_no_more_is_still_told(database, make_run, make_event, send, read) -> None:
    run_id = make_run()
    send([make_event(run_id, 1, alarm(3, message="a\x00b"))])
    with database.transaction() as session:
        session.scalars(select(AlarmRow)).one().name = "moon_phase"
    (item,) = alarms(read, run_id)["items"]
    assert (item["title"], item["what_to_do"], item["message"]) == ("Moon phase", "", "ab")


def test_an_unknown_run_is_a_404(read) -> None:
    assert read(f"/runs/{uuid4()}/alarms").status_code == 404


def test_alarms_go_with_their_run(database, make_run, make_event, send) -> None:
    run_id = make_run()
    send([make_event(run_id, 1, alarm(3))])
    with database.transaction() as session:
        session.execute(delete(Run).where(Run.id == run_id))
        assert session.scalars(select(AlarmRow)).all() == []
