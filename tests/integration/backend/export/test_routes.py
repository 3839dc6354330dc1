"""Exports of runs with attempts, several pages and names that mean harm."""

import csv
import io
import json
import math

import pytest
from fastapi.testclient import TestClient
from pyarrow import parquet
from sqlalchemy import text

from backend.auth.service import issue_user_token
from backend.export import service
from backend.export.series_file import COLUMNS
from backend.models import User
from backend.settings import REPOSITORY

RUNS = "/api/v1/runs"
SAMPLE = {
    "prompt": "=1+1",
    "answer": "-2",
    "response": 'two, "so"\nto speak',
    "reward": 1.0,
    "advantage": -0.5,
    "is_truncated": False,
    "rounds": [
        {"drafted": [], "num_accepted": 0, "emitted": 5, "draft_logprobs": [], "policy_logprobs": []},
        {"drafted": [1, 2], "num_accepted": 1, "emitted": 3, "draft_logprobs": [0, 0], "policy_logprobs": [-1, -1]},
    ],
    "vocabulary": {"1": "a", "2": "b", "3": "c", "5": "d"},
}


def add_points(database, run_id, name, points):
    """(step, attempt, value), in order."""
    with database.transaction() as session:
        series_id = session.scalar(
            text("INSERT INTO series (run_id, name, last_attempt) VALUES (:run, :name, :last) RETURNING id"),
            {"run": run_id, "name": name, "last": points[-1][1]},
        )
        session.execute(
            text("INSERT INTO point VALUES (:series, :step, :attempt, 'trainer/0', :value, '2026-01-02T03:04:05Z')"),
            [{"series": series_id, "step": step, "attempt": att, "value": value} for step, att, value in points],
        )


@pytest.fixture(params=["csv", "parquet"])
def export(request, client):
    """Fetches a file of this format; its rows with their types."""

    def export(path, by=client, **parameters):
        answer = by.get(f"{path}.{request.param}", params=parameters)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-disposition"].endswith(f'series.{request.param}"')
        if request.param == "parquet":
            assert answer.headers["content-type"] == "application/vnd.apache.parquet"
            rows = parquet.read_table(io.BytesIO(answer.content)).to_pylist()
            return [row | {"time": row["time"].isoformat()} for row in rows]
        assert answer.headers["content-type"] == "text/csv; charset=utf-8; header=present"
        rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
        kinds = {"step": int, "attempt": int, "value": float}
        return [{name: kinds.get(name, str)(value) for name, value in row.items()} for row in rows]

    return export


def short(rows):
    return [(row["metric"], row["step"], row["attempt"], row["value"]) for row in rows]


def test_all_points_of_a_run_in_the_order_of_the_catalogue(export, launch, database):
    run = launch(name="one")
    add_points(database, run["id"], "policy/loss", [(1, 1, 0.5), (2, 1, 1e-300)])
    add_points(database, run["id"], "reward/train_mean", [(1, 1, 0.1)])
    add_points(database, launch()["id"], "reward/train_mean", [(1, 1, 9.0)])
    rows = export(f"{RUNS}/{run['id']}/series")
    assert list(rows[0]) == list(COLUMNS)
    assert rows[0] == {
        "run_id": run["id"],
        "run": "one",
        "metric": "reward/train_mean",
        "step": 1,
        "attempt": 1,
        "emitter": "trainer/0",
        "value": 0.1,
        "time": "2026-01-02T03:04:05+00:00",
    }
    assert short(rows[1:]) == [("policy/loss", 1, 1, 0.5), ("policy/loss", 2, 1, 1e-300)]
    assert short(export(f"{RUNS}/{run['id']}/series", names="policy/loss")) == short(rows[1:])


def test_the_newest_attempt_counts_or_all_of_them(export, launch, database):
    run_id = launch()["id"]
    add_points(database, run_id, "policy/loss", [(1, 1, 1.0), (2, 1, 2.0), (3, 1, 3.0), (2, 2, 2.5)])
    path = f"{RUNS}/{run_id}/series"
    newest = [("policy/loss", 1, 1, 1.0), ("policy/loss", 2, 2, 2.5), ("policy/loss", 3, 1, 3.0)]
    assert short(export(path)) == newest
    assert short(export(path, attempts="all")) == [*newest[:1], ("policy/loss", 2, 1, 2.0), *newest[1:]]


def test_values_that_are_no_finite_numbers_come_out_as_they_came_in(export, launch, database):
    run_id = launch()["id"]
    add_points(database, run_id, "policy/loss", [(1, 1, math.nan), (2, 1, math.inf), (3, 1, -math.inf)])
    values = [row["value"] for row in export(f"{RUNS}/{run_id}/series")]
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 100])
def test_pages_lose_and_repeat_nothing(export, launch, database, monkeypatch, size):
    monkeypatch.setattr(service, "POINTS_PER_PAGE", size)
    runs = [launch(labels={"sweep": "a"})["id"] for _ in range(2)]
    for run_id in runs:
        add_points(database, run_id, "policy/loss", [(step, 1, float(step)) for step in range(4)])
        add_points(database, run_id, "reward/train_mean", [(0, 1, 0.0), (0, 2, 1.0), (1, 2, 2.0)])
    rows = export("/api/v1/export/series", label="sweep:a", attempts="all")
    assert [(row["run_id"], row["metric"], row["step"], row["attempt"]) for row in rows] == [
        (run_id, *point)
        for run_id in runs
        for point in [
            *[("reward/train_mean", step, attempt) for step, attempt in [(0, 1), (0, 2), (1, 2)]],
            *[("policy/loss", step, 1) for step in range(4)],
        ]
    ]


def test_runs_are_chosen_by_id_label_or_project(export, launch, database):
    first, second = (launch(name=name, labels={"team": "rl", "name": name})["id"] for name in ("one", "two"))
    for run_id in (first, second):
        add_points(database, run_id, "policy/loss", [(1, 1, 1.0)])

    def names(**parameters):
        return [row["run"] for row in export("/api/v1/export/series", **parameters)]

    assert names(runs=f"{second},{first}") == ["one", "two"]
    assert names(runs=first) == ["one"]
    assert names(label="team:rl") == names(project="default") == names(runs="all") == ["one", "two"]
    assert names(label=["team:rl", "name:two"]) == ["two"]
    assert names(status="queued") == names(status="queued,failed", label="team:rl") == ["one", "two"]
    assert names(search="two") == names(search=second) == names(runs="all", status="queued", search="two") == ["two"]
    assert names(status="failed") == names(runs=first, search="two") == []
    assert names(label="team:x") == names(project="x") == names(runs=first, names="reward/train_mean") == []


@pytest.fixture
def outsider(app, database):
    """A user who may see no project."""
    with database.transaction() as session:
        user = User(name="outsider")
        session.add(user)
        session.flush()
        token = issue_user_token(session, user, "own", ["read", "write"])
    return TestClient(app, headers={"Authorization": f"Bearer {token}"})


def test_others_runs_are_nowhere_in_it(export, outsider, launch, database):
    run_id = launch(labels={"team": "rl"})["id"]
    add_points(database, run_id, "policy/loss", [(1, 1, 1.0)])
    for kind in ("series.csv", "series.parquet", "samples.csv"):
        assert outsider.get(f"{RUNS}/{run_id}/{kind}").status_code == 404
    for kind in ("csv", "parquet"):
        assert outsider.get(f"/api/v1/export/series.{kind}?runs={run_id}").status_code == 404
    for parameters in ({"label": "team:rl"}, {"project": "default"}, {"runs": "all"}):
        assert export("/api/v1/export/series", outsider, **parameters) == []


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("", "runs"),
        ("runs=nonsense", "runs"),
        ("label=team", "label"),
        ("status=over", "status"),
        ("status=,", "runs"),
        ("search=" + "x" * 201, "search"),
        ("project=default&names=made/up", "names"),
        ("project=default&attempts=last", "attempts"),
    ],
)
def test_what_cannot_be_chosen_is_named(client, query, parameter):
    refused = client.get(f"/api/v1/export/series.csv?{query}")
    assert (refused.status_code, refused.headers["content-type"]) == (422, "application/problem+json")
    assert refused.json()["errors"][0]["parameter"] == parameter


def test_there_is_an_end_to_how_many_runs(client, launch, monkeypatch):
    monkeypatch.setattr(service, "MAX_RUNS", 1)
    for _ in range(2):
        launch(labels={"team": "rl"})
    refused = client.get("/api/v1/export/series.csv?label=team:rl")
    assert refused.status_code == 422
    assert "more than 1 runs" in refused.json()["detail"]


def test_names_and_rollouts_compute_nothing_in_a_spreadsheet(client, launch, database):
    run_id = launch(name="=cmd|' /C calc'!A0")["id"]
    add_points(database, run_id, "policy/loss", [(1, 1, -1.0)])
    _, line = client.get(f"{RUNS}/{run_id}/series.csv").text.splitlines()
    assert line.split(",")[1] == "\"'=cmd|' /C calc'!A0\""
    assert line.split(",")[6] == "-1.0"


def test_rollouts_are_a_line_each(client, launch, database):
    run_id = launch()["id"]
    path = f"{RUNS}/{run_id}/samples.csv"
    assert client.get(path).text.startswith('"run_id","attempt","step"')
    with database.transaction() as session:
        session.execute(
            text("INSERT INTO rollout_sample (run_id, attempt, step, body) VALUES (:run, 1, 3, CAST(:body AS jsonb))"),
            {"run": run_id, "body": json.dumps(SAMPLE)},
        )
    answer = client.get(path)
    assert answer.headers["content-disposition"] == f'attachment; filename="{run_id}-samples.csv"'
    (row,) = csv.DictReader(io.StringIO(answer.text, newline=""))
    assert (row["prompt"], row["answer"], row["response"]) == ("'=1+1", "'-2", 'two, "so"\nto speak')
    assert (row["num_rounds"], row["num_drafted"], row["num_accepted"], row["advantage"]) == ("2", "2", "1", "-0.5")


def test_the_columns_are_documented_as_they_are():
    document = (REPOSITORY / "docs" / "operations" / "export.md").read_text()
    for name, (kind, meaning) in COLUMNS.items():
        assert f"| `{name}` | `{kind}` | {meaning} |" in document
    for name, meaning in service.SAMPLE_COLUMNS.items():
        assert f"| `{name}` | {meaning} |" in document
