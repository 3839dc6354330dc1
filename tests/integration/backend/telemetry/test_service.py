import io
import json
import math
import random
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from pyarrow import parquet
from sqlalchemy import func, select, update

from backend.db import Database
from backend.errors import ApiError
from backend.models import LogLine, Notice
from backend.telemetry import service
from backend.telemetry.ingest_repository import insert_points
from backend.telemetry.notices import append_log, publish
from backend.telemetry.schemas import LogQuery
from contract.telemetry.events import Round, Sample, Samples

LOSS, REWARD, DRAFT = "policy/loss", "reward/train_mean", "draft/loss_nats"


def data(
    database: Database, run_id: UUID, names: list[str], from_step: int = 0, max_points: int = 100
) -> dict[str, Any]:
    with database.transaction() as session:
        return json.loads(service.series_data(session, run_id, names, from_step, max_points))


def by_hand(points: dict[tuple[int, int], float], width: int) -> dict[str, Any]:
    """Columns from {(step, attempt): value}, slowly."""
    newest = {step: max(a for s, a in points if s == step) for step, _ in points}
    buckets: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for step, attempt in newest.items():
        buckets[step // width * width].append((attempt, points[step, attempt]))
    columns: dict[str, Any] = {"step": sorted(buckets), "value": [], "min": [], "max": [], "attempt": []}
    for start in columns["step"]:
        finite = [value for _, value in buckets[start] if math.isfinite(value)]
        columns["value"].append(math.fsum(finite) / len(finite) if finite else None)
        columns["min"].append(min(finite, default=None))
        columns["max"].append(max(finite, default=None))
        columns["attempt"].append(max(attempt for attempt, _ in buckets[start]))
    columns["num_non_finite"] = sum(not math.isfinite(v) for bucket in buckets.values() for _, v in bucket)
    return columns


def test_buckets_equal_those_made_by_hand(database, make_run, send_metrics) -> None:
    for seed in range(8):
        _compare_with_those_made_by_hand(database, make_run, send_metrics, random.Random(seed))


def _compare_with_those_made_by_hand(database, make_run, send_metrics, chance: random.Random) -> None:
    run_id = make_run(num_attempts=3)
    points: dict[tuple[int, int], float] = {}
    for attempt in (1, 2, 3):
        steps = sorted(chance.sample(range(200), chance.randint(1, 80)))
        odd = [math.nan, math.inf, -math.inf, 0.0, -1e300, 1e300]
        values = {step: chance.choice(odd) if chance.random() < 0.2 else chance.gauss(0, 1) for step in steps}
        values = {step: value if abs(value) < 1e299 else math.nan for step, value in values.items()}
        send_metrics(run_id, {step: {LOSS: value} for step, value in values.items()}, attempt)
        points |= {(step, attempt): value for step, value in values.items()}
    max_points = chance.choice([1, 7, 50, 1000])
    answer = data(database, run_id, [LOSS], max_points=max_points)
    width = answer["bucket_width"]
    last_step = max(step for step, _ in points)
    assert last_step // width + 1 <= max_points
    assert width == 1 or last_step // (width // 2) + 1 > max_points
    (columns,) = answer["series"]
    expected = by_hand(points, width)
    assert columns.pop("name") == LOSS
    assert columns["value"] == pytest.approx(expected.pop("value"))
    assert columns.pop("value") is not None
    assert columns == expected


def test_buckets_stay_where_they_are_until_the_width_doubles(database, make_run, send_metrics) -> None:
    run_id = make_run()
    send_metrics(run_id, {0: {LOSS: 0}})
    before: dict[str, Any] | None = None
    widths = []
    for step in range(1, 40):
        send_one(database, run_id, step)
        now = data(database, run_id, [LOSS], max_points=8)
        if before is not None and before["bucket_width"] == now["bucket_width"]:
            old, new = before["series"][0]["step"], now["series"][0]["step"]
            complete = len(old) - 1
            assert new[: len(old)] == old
            assert now["series"][0]["value"][:complete] == before["series"][0]["value"][:complete]
        widths.append(now["bucket_width"])
        before = now
    assert sorted(set(widths)) == [1, 2, 4, 8]
    assert widths == sorted(widths)


def send_one(database: Database, run_id: UUID, step: int) -> None:
    with database.transaction() as session:
        insert_points(session, run_id, 1, "driver/0", [(LOSS, step, float(step), datetime.now(UTC))])


def test_a_spike_survives_the_buckets(database, make_run, send_metrics) -> None:
    run_id = make_run()
    send_metrics(run_id, {step: {LOSS: 100.0 if step == 613 else 0.0} for step in range(1024)})
    answer = data(database, run_id, [LOSS], max_points=10)
    assert answer["bucket_width"] == 128
    assert answer["series"][0]["max"] == [0, 0, 0, 0, 100, 0, 0, 0]
    assert answer["series"][0]["value"][4] == 100 / 128


def test_numbers_near_the_limits_of_double_precision_do_no_harm(database, make_run, send_metrics) -> None:
    run_id = make_run()
    extreme = [1.7e308, 1.7e308, -1.7e308, 5e-324]
    send_metrics(run_id, {step: {LOSS: value} for step, value in enumerate(extreme)})
    single = data(database, run_id, [LOSS])["series"][0]
    assert single["value"] == single["min"] == single["max"] == extreme
    pooled = data(database, run_id, [LOSS], max_points=1)["series"][0]
    assert (pooled["min"], pooled["max"]) == ([-1.7e308], [1.7e308])
    assert -1.7e308 <= pooled["value"][0] <= 1.7e308


def test_after_a_resume_the_newest_attempt_counts_where_it_has_been(database, make_run, send_metrics) -> None:
    run_id = make_run(num_attempts=2)
    send_metrics(run_id, {step: {LOSS: 1.0} for step in range(1, 16)}, 1)
    send_metrics(run_id, {step: {LOSS: 2.0} for step in (11, 12)}, 2)
    columns = data(database, run_id, [LOSS])["series"][0]
    assert columns["step"] == list(range(1, 16))
    assert columns["attempt"] == [1] * 10 + [2] * 2 + [1] * 3
    assert columns["value"] == [1.0] * 10 + [2.0] * 2 + [1.0] * 3


def test_a_tail_is_the_end_of_the_whole(database, make_run, send_metrics) -> None:
    run_id = make_run()
    send_metrics(run_id, {step: {LOSS: step, REWARD: -step} for step in range(1, 101)})
    whole = data(database, run_id, [REWARD, LOSS], max_points=30)
    tail = data(database, run_id, [REWARD, LOSS], from_step=50, max_points=30)
    assert whole["bucket_width"] == tail["bucket_width"] == 4
    for long, short in zip(whole["series"], tail["series"], strict=True):
        start = long["step"].index(48)  # the bucket that holds step 50, whole
        assert short["name"] == long["name"]
        for column in ("step", "value", "min", "max", "attempt"):
            assert short[column] == long[column][start:]


def test_series_without_points_are_answered_empty_and_once(database, make_run, send_metrics) -> None:
    run_id = make_run()
    send_metrics(run_id, {1: {LOSS: 1.0}})
    answer = data(database, run_id, [DRAFT, LOSS, DRAFT])
    assert [series["name"] for series in answer["series"]] == [DRAFT, LOSS]
    assert answer["series"][0] == {
        "name": DRAFT, "step": [], "value": [], "min": [], "max": [], "attempt": [], "num_non_finite": 0
    }  # fmt: skip


def test_an_undeclared_name_and_an_unknown_run_are_refused(database, make_run) -> None:
    run_id = make_run()
    with pytest.raises(ApiError, match="no metric of this name") as caught:
        data(database, run_id, [LOSS, "policy/lost"])
    assert (caught.value.status, caught.value.errors[0].value) == (422, "policy/lost")
    with pytest.raises(ApiError, match="no run") as caught:
        data(database, uuid4(), [LOSS])
    assert caught.value.status == 404


def test_series_are_listed_with_their_meaning(database, make_run, send_metrics) -> None:
    run_id = make_run()
    send_metrics(run_id, {1: {LOSS: 2.0, REWARD: math.nan}, 2: {REWARD: math.inf}})
    with database.transaction() as session:
        listed = service.list_series(session, run_id)
    assert [series.name for series in listed] == [REWARD, LOSS], "in the order of the catalogue"
    reward, loss = listed
    assert (reward.num_points, reward.num_non_finite, reward.last_step, reward.last_value) == (2, 2, 2, None)
    assert (loss.unit, loss.axis, loss.last_value) == ("1", "step", 2.0)
    assert loss.meaning.endswith(".")


def one_sample(response: str) -> Sample:
    fields = {"reward": 0.0, "advantage": 0.0, "is_truncated": False, "rounds": [], "vocabulary": {}}
    return Sample(prompt="p", response=response, **fields)


def test_samples_are_of_the_last_step_and_the_newest_attempt(database, make_run, make_event, send) -> None:
    run_id = make_run(num_attempts=2)
    send([make_event(run_id, 1, Samples(step=5, samples=[one_sample("old")]), 1)])
    send([make_event(run_id, 1, Samples(step=5, samples=[one_sample("a"), one_sample("b")]), 2)])
    send([make_event(run_id, 2, Samples(step=10, samples=[one_sample("c")]), 2)])
    with database.transaction() as session:
        last = json.loads(service.samples(session, run_id, None, 16))
        fifth = json.loads(service.samples(session, run_id, 5, 16))
        first_of_fifth = json.loads(service.samples(session, run_id, 5, 1))
        none = json.loads(service.samples(session, run_id, 7, 16))
    assert (last["steps"], last["step"], [item["response"] for item in last["items"]]) == ([5, 10], 10, ["c"])
    assert [(item["response"], item["attempt"], item["step"]) for item in fifth["items"]] == [("a", 2, 5), ("b", 2, 5)]
    assert len(first_of_fifth["items"]) == 1
    assert (none["step"], none["items"]) == (7, [])


@pytest.fixture
def logged_run(database, make_run) -> UUID:
    """Lines `line 0` to `line 9`, every third a warning, one error, and another run's line between them."""
    run_id, other = make_run(), make_run()
    with database.transaction() as session:
        for number in range(10):
            append_log(session, run_id, 1, "warning" if number % 3 == 0 else "info", f"line {number}")
            append_log(session, other, 1, "info", "of another run")
        append_log(session, run_id, 1, "error", "100% of A_B \\ done")
    return run_id


def messages(database: Database, run_id: UUID, **query: Any) -> list[str]:
    with database.transaction() as session:
        return [line.message.removeprefix("line ") for line in service.logs(session, run_id, LogQuery(**query)).items]


def test_exported_samples_are_all_of_each_steps_newest_attempt_page_by_page(
    database, make_run, make_event, send, monkeypatch
) -> None:
    monkeypatch.setattr(service, "_SAMPLES_PER_PAGE", 2)
    run_id, other = make_run(num_attempts=2), make_run(num_attempts=2)
    stored = [(1, 1, 1, "ab"), (1, 2, 3, "cde"), (2, 1, 3, "fghij"), (2, 2, 5, "k")]
    first = Round(drafted=[], num_accepted=0, emitted=1, draft_logprobs=[], policy_logprobs=[])
    for attempt, seq, step, responses in stored:
        samples = [
            Sample(prompt="p", response=r, reward=0, advantage=0, is_truncated=False, rounds=[first], vocabulary={1: r})
            for r in responses
        ]
        send([make_event(run_id, seq, Samples(step=step, samples=samples), attempt)])
        send([make_event(other, seq, Samples(step=step, samples=samples), attempt)])
    file = io.BytesIO(b"".join(service.samples_parquet(database, run_id)))
    rows = parquet.read_table(file).to_pylist()
    assert [row["response"] for row in rows] == list("abfghijk")
    assert [(row["step"], row["attempt"]) for row in rows] == [(1, 1)] * 2 + [(3, 2)] * 5 + [(5, 2)]
    assert parquet.ParquetFile(file).num_row_groups == 4
    with pytest.raises(ApiError):
        service.samples_parquet(database, uuid4())


def test_log_pages_ascend_and_join(database, logged_run) -> None:
    with database.transaction() as session:
        newest = service.logs(session, logged_run, LogQuery(limit=4))
    assert [line.message for line in newest.items] == ["line 7", "line 8", "line 9", "100% of A_B \\ done"]
    assert newest.last_id == newest.items[-1].id
    before = newest.items[0].id
    assert messages(database, logged_run, before=before, limit=3) == ["4", "5", "6"]
    assert messages(database, logged_run, after=before, limit=2) == ["8", "9"]
    assert messages(database, logged_run, after=newest.last_id) == []


def test_search_takes_every_character_literally(database, logged_run) -> None:
    odd = ["100% of A_B \\ done"]
    for search, found in (("LINE 3", ["3"]), ("100%", odd), ("a_b", odd), ("\\", odd), ("l%3", []), ("_ine", [])):
        assert messages(database, logged_run, search=search) == found, search
    assert len(messages(database, logged_run, search="")) == 11


def test_level_is_a_lower_limit(database, logged_run) -> None:
    assert messages(database, logged_run, level="error") == ["100% of A_B \\ done"]
    assert messages(database, logged_run, level="warning")[:4] == ["0", "3", "6", "9"]
    assert len(messages(database, logged_run, level="debug")) == 11


def test_trim_deletes_the_old_and_keeps_where_history_begins(database, make_run) -> None:
    run_id = make_run()
    for step in range(5):
        with database.transaction() as session:
            publish(session, run_id, "samples", {"step": step})
    with database.transaction() as session:
        ids = session.scalars(select(Notice.id).order_by(Notice.id)).all()
        old = (
            update(Notice).where(Notice.id <= ids[2]).values(created_at=func.now() - func.make_interval(0, 0, 0, 0, 2))
        )
        session.execute(old)
        assert service.trim(session) == 2
        assert session.scalars(select(Notice.id).order_by(Notice.id)).all() == ids[2:]
        assert service.trim(session) == 0
        assert session.scalar(select(func.count()).select_from(LogLine)) == 0
