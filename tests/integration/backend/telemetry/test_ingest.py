import math
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select, text

from backend.db import Database
from backend.errors import ApiError
from backend.models import EmitterMark, LogLine, Notice, RolloutSample, Run
from backend.telemetry.ingest import ingest
from contract.telemetry.events import (
    Event,
    Finished,
    Heartbeat,
    IngestRequest,
    Log,
    Metrics,
    Round,
    Sample,
    Samples,
    Started,
)
from contract.telemetry.stages import Stage

LOSS, REWARD = "policy/loss", "reward/train_mean"
DRIVER = (1, "driver/0")


def metrics(step: int, value: float = 0.5, name: str = LOSS) -> Metrics:
    return Metrics(step=step, values={name: value})


def points(database: Database, run_id: UUID) -> list[tuple[str, int, int, float]]:
    statement = text(
        "SELECT name, step, attempt, value FROM point JOIN series ON series.id = series_id WHERE run_id = :run_id "
        "ORDER BY name, attempt, step"
    )
    with database.transaction() as session:
        return [tuple(row) for row in session.execute(statement, {"run_id": run_id})]


def series(database: Database, run_id: UUID) -> dict[str, tuple[int, int, int | None, int | None, float | None]]:
    statement = text(
        "SELECT name, num_points, num_non_finite, last_attempt, last_step, last_value "
        "FROM series WHERE run_id = :run_id"
    )
    with database.transaction() as session:
        return {row[0]: tuple(row[1:]) for row in session.execute(statement, {"run_id": run_id})}


def sample(**changes: object) -> Sample:
    first = Round(drafted=[5, 6], num_accepted=1, emitted=7, draft_logprobs=[-0.5, -math.inf], policy_logprobs=[-1, -2])
    fields = {"prompt": "1+1=", "response": "2", "reward": 1.0, "advantage": math.nan, "is_truncated": False}
    return Sample(**fields | {"rounds": [first], "vocabulary": {5: "2", 6: "3", 7: "\n"}} | changes)


def test_a_batch_sent_twice_is_stored_once(database, make_run, make_event, send) -> None:
    run_id = make_run()
    bodies = [metrics(1), Log(level="info", message="hello"), Samples(step=1, samples=[sample()]), metrics(2, 0.25)]
    events = [make_event(run_id, seq, body) for seq, body in enumerate(bodies, 1)]
    assert send(events) == {DRIVER: 4}
    assert send(events) == {DRIVER: 4}
    assert points(database, run_id) == [(LOSS, 1, 1, 0.5), (LOSS, 2, 1, 0.25)]
    assert series(database, run_id) == {LOSS: (2, 0, 1, 2, 0.25)}
    with database.transaction() as session:
        assert len(session.scalars(select(LogLine)).all()) == len(session.scalars(select(RolloutSample)).all()) == 1


def test_order_within_a_batch_does_not_matter(database, make_run, make_event, send) -> None:
    run_id = make_run()
    assert send([make_event(run_id, seq, metrics(seq)) for seq in (3, 1, 2, 2)]) == {DRIVER: 3}
    assert [step for _, step, *_ in points(database, run_id)] == [1, 2, 3]


def test_behind_a_gap_nothing_is_stored_or_acknowledged(database, make_run, make_event, send) -> None:
    run_id = make_run()
    events = {seq: make_event(run_id, seq, metrics(seq)) for seq in (1, 2, 3, 4)}
    assert send([events[1], events[3], events[4]]) == {DRIVER: 1}
    assert send([events[3]]) == {DRIVER: 1}
    assert [step for _, step, *_ in points(database, run_id)] == [1]
    assert send([events[2], events[3], events[4]]) == {DRIVER: 4}
    assert [step for _, step, *_ in points(database, run_id)] == [1, 2, 3, 4]


def test_emitters_and_attempts_have_marks_of_their_own(database, make_run, make_event, send) -> None:
    run_id = make_run(num_attempts=2)
    first = make_event(run_id, 1, metrics(1, 0.1), attempt=1)
    second = make_event(run_id, 1, metrics(1, 0.2), attempt=2)
    other = make_event(run_id, 2, metrics(1, 0.3), emitter="engine/1")
    assert send([first, second, other]) == {DRIVER: 1, (2, "driver/0"): 1, (1, "engine/1"): 0}
    assert points(database, run_id) == [(LOSS, 1, 1, 0.1), (LOSS, 1, 2, 0.2)]


def test_two_threads_deliver_the_same_events_at_once(database, make_run, make_event, send) -> None:
    run_id = make_run()
    bodies = [body for step in range(1, 61) for body in (metrics(step), Log(level="info", message=f"step {step}"))]
    bodies += [Samples(step=1, samples=[sample()])]
    events = [make_event(run_id, seq, body) for seq, body in enumerate(bodies, 1)]
    barrier = threading.Barrier(4)

    def deliver(number: int) -> None:
        barrier.wait()
        for start in range(0, len(events), 20 + number):  # overlapping batches, cut differently
            send(events[start : start + 40])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(deliver, range(4)))
    assert series(database, run_id) == {LOSS: (60, 0, 1, 60, 0.5)}
    with database.transaction() as session:
        messages = session.scalars(select(LogLine.message).order_by(LogLine.id)).all()
        assert messages == [f"step {step}" for step in range(1, 61)]
        assert len(session.scalars(select(RolloutSample)).all()) == 1
        assert session.scalars(select(EmitterMark.seq)).all() == [len(events)]


def test_any_way_of_cutting_and_repeating_stores_each_event_once(database, make_run, make_event, send) -> None:
    """A sender that sends from its last acknowledgement on, loses answers, and whose batches are cut at random."""
    for seed in range(5):
        chance = random.Random(seed)
        run_id = make_run()
        events = [make_event(run_id, seq, metrics(chance.randint(0, 9), seq)) for seq in range(1, 41)]
        acknowledged = 0
        while acknowledged < len(events):
            start = chance.randint(0, acknowledged)
            batch = events[start : start + chance.randint(1, 15)]
            chance.shuffle(batch)
            answer = send(batch)[DRIVER]
            acknowledged = chance.choice([acknowledged, answer])
        expected = {event.body.step: event.body.values[LOSS] for event in events}  # of the same step the later event
        assert {step: value for _, step, _, value in points(database, run_id)} == expected
        assert series(database, run_id)[LOSS][0] == len(events)


def test_non_finite_values_are_kept_and_counted(database, make_run, make_event, send) -> None:
    run_id = make_run()
    values = [math.nan, math.inf, -math.inf, 1.0]
    events = [make_event(run_id, seq, metrics(seq, value)) for seq, value in enumerate(values, 1)]
    wire = IngestRequest(events=events).model_dump_json()
    send(IngestRequest.model_validate_json(wire).events)
    assert str([value for *_, value in points(database, run_id)]) == "[nan, inf, -inf, 1.0]"
    assert series(database, run_id) == {LOSS: (4, 3, 1, 4, 1.0)}


def test_latest_value_is_that_of_the_newest_attempt(database, make_run, send_metrics) -> None:
    run_id = make_run(num_attempts=2)
    send_metrics(run_id, {step: {LOSS: step} for step in range(1, 16)}, 1)
    send_metrics(run_id, {11: {LOSS: 11.5}}, 2)
    assert series(database, run_id) == {LOSS: (16, 0, 2, 11, 11.5)}
    assert len(points(database, run_id)) == 16


def test_what_a_replaced_attempt_left_in_its_spool_is_kept_but_steers_nothing(
    database, make_run, make_event, send
) -> None:
    run_id = make_run(num_attempts=2)
    beat = Heartbeat(stage=Stage.TRAIN, step=5)
    send([make_event(run_id, 1, beat, attempt=2), make_event(run_id, 2, metrics(5, 0.5), attempt=2)])
    late = [Heartbeat(stage=Stage.GENERATION, step=9), metrics(9), Finished(outcome="failed", error="killed")]
    with database.transaction() as session:
        batch = IngestRequest(events=[make_event(run_id, seq, body) for seq, body in enumerate(late, 1)])
        response = ingest(session, batch, run_id)
    assert response.current_attempt == 2
    with database.transaction() as session:
        run = session.get_one(Run, run_id)
        assert (run.status, run.stage, run.step) == ("running", "train", 5)
    assert series(database, run_id)[LOSS] == (2, 0, 2, 5, 0.5)


def test_a_finished_run_tells_its_worker_to_stop(database, make_run, make_event, send) -> None:
    run_id = make_run()
    bodies = [Started(host="h", versions={}), Heartbeat(stage=Stage.TRAIN, step=3), Finished(outcome="succeeded")]
    send([make_event(run_id, seq, body) for seq, body in enumerate(bodies, 1)])
    with database.transaction() as session:
        run = session.get_one(Run, run_id)
        assert (run.status, run.step) == ("succeeded", 3)
        assert ingest(session, IngestRequest(events=[make_event(run_id, 4, metrics(4))]), run_id).is_stop_requested
    assert series(database, run_id)[LOSS][0] == 1, "late points of an ended run are kept"


def test_nul_characters_are_left_out(database, make_run, make_event, send) -> None:
    run_id = make_run()
    texts = {"prompt": "a\x00b", "response": "c\\u0000d", "vocabulary": {5: "\x00"}}
    bodies = [Log(level="error", message="x\x00y"), Samples(step=1, samples=[sample(**texts)])]
    send([make_event(run_id, seq, body) for seq, body in enumerate(bodies, 1)])
    with database.transaction() as session:
        assert session.scalars(select(LogLine.message)).all() == ["xy"]
        body = session.scalars(select(RolloutSample.body)).one()
        assert (body["prompt"], body["response"], body["vocabulary"]) == ("ab", "c\\u0000d", {"5": ""})
        assert (body["rounds"][0]["draft_logprobs"], body["advantage"]) == ([-0.5, "-Infinity"], "NaN")


def test_one_commit_gives_one_notice_of_a_kind(database, make_run, make_event, send) -> None:
    run_id = make_run()
    bodies = [metrics(7), metrics(3, name=REWARD), Log(level="info", message="a"), Log(level="info", message="b")]
    send([make_event(run_id, seq, body) for seq, body in enumerate(bodies, 1)])
    with database.transaction() as session:
        notices = {notice.kind: notice.body for notice in session.scalars(select(Notice))}
        last_id = max(session.scalars(select(LogLine.id)))
    assert notices == {"series": {"names": [LOSS, REWARD], "step": 7, "from_step": 3}, "log": {"last_id": last_id}}


def refusal(database: Database, events: list[Event], allowed_run_id: UUID | None) -> ApiError:
    with pytest.raises(ApiError) as caught, database.transaction() as session:
        ingest(session, IngestRequest(events=events), allowed_run_id)
    return caught.value


def test_a_token_reports_to_its_own_run_only(database, make_run, make_event) -> None:
    mine, other = make_run(), make_run()
    events = [make_event(mine, 1, metrics(1)), make_event(other, 1, metrics(1))]
    refused = refusal(database, events, mine)
    assert refused.status == HTTPStatus.FORBIDDEN
    assert str(other) in refused.detail
    assert refusal(database, events[:1], None).status == HTTPStatus.FORBIDDEN
    assert points(database, mine) == []


def test_an_unknown_attempt_is_a_conflict(database, make_run, make_event) -> None:
    run_id = make_run()
    refused = refusal(database, [make_event(run_id, 1, metrics(1), attempt=2)], run_id)
    assert (refused.status, "attempt 2" in refused.detail) == (HTTPStatus.CONFLICT, True)
    unknown = uuid4()
    assert refusal(database, [make_event(unknown, 1, metrics(1))], unknown).status == HTTPStatus.CONFLICT
