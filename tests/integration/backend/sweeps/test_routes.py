"""Sweeps over HTTP and a real database."""

from uuid import uuid4

import pytest
from sqlalchemy import text

from backend.auth.service import issue_user_token
from backend.models import Project, ProjectMember, User

CONFIG = {"grpo": {"num_steps": 7}, "drafter": {"kind": "eagle3", "draft_length": 3}}
K = "drafter.draft_length"


@pytest.fixture
def sweep(client):
    def sweep(**fields):
        body = {"name": "lengths", "config": CONFIG, "axes": {K: [1, 3, 5]}} | fields
        response = client.post("/api/v1/sweeps", json={key: value for key, value in body.items() if value is not None})
        assert response.status_code == 202, response.text
        return response.json()

    return sweep


@pytest.fixture
def refusal(client, database):
    """What is wrong with a sweep, of which nothing is left."""

    def refusal(**fields):
        body = {"name": "lengths", "config": CONFIG, "axes": {K: [1, 3, 5]}} | fields
        response = client.post("/api/v1/sweeps", json={key: value for key, value in body.items() if value is not None})
        assert response.status_code == 422, response.text
        with database.transaction() as session:
            counts = "SELECT (SELECT count(*) FROM run), (SELECT count(*) FROM sweep), (SELECT count(*) FROM outbox)"
            assert session.execute(text(counts)).one() == (0, 0, 0)
        return {error["pointer"]: error["detail"] for error in response.json()["errors"]}

    return refusal


def test_a_grid_becomes_a_run_for_each_combination(client, sweep):
    axes = {K: [1, 3], "rollout.temperature": [0.5, 1.0]}
    made = sweep(axes=axes, labels={"branch": "main"}, notes="why", priority=7, max_attempts=5, max_concurrent=2)
    assert (made["num_runs"], made["num_runs_by_status"], made["is_ended"]) == (4, {"queued": 4}, False)
    assert (made["keys"], made["max_concurrent"], made["created_by"]) == (list(axes), 2, "admin")
    assert [run["sweep_point"] for run in made["runs"]] == [
        {K: k, "rollout.temperature": t} for k in (1, 3) for t in (0.5, 1.0)
    ]
    assert [run["queue_position"] for run in made["runs"]] == [1, 2, 3, 4]
    run = client.get(f"/api/v1/runs/{made['runs'][2]['id']}").json()
    assert run["name"] == "lengths draft_length=3, temperature=0.5"
    assert (run["config"]["drafter"]["draft_length"], run["config"]["rollout"]["temperature"]) == (3, 0.5)
    assert (run["labels"], run["notes"], run["priority"], run["max_attempts"]) == ({"branch": "main"}, "why", 7, 5)
    assert (run["sweep_id"], run["num_steps"]) == (made["id"], 7)
    assert client.get(f"/api/v1/sweeps/{made['id']}").json() == made


def test_where_it_was_made_is_told(client):
    response = client.post("/api/v1/sweeps", json={"name": "x", "config": CONFIG, "axes": {K: [1]}})
    assert response.headers["location"] == f"/api/v1/sweeps/{response.json()['id']}"


def test_listed_points_may_differ_in_different_keys(sweep):
    made = sweep(axes=None, points=[{"drafter": {"kind": "none"}}, {K: 5}, {K: None}])
    assert made["keys"] == ["drafter", K]
    assert [run["name"] for run in made["runs"]] == [
        'lengths drafter={"kind": "none"}',
        "lengths draft_length=5",
        "lengths draft_length=null",
    ]


def test_a_sweep_starts_from_an_example(client, sweep):
    made = sweep(config=None, example="arithmetic-eagle3", overrides={"grpo": {"num_steps": 2}}, axes={K: [2]})
    run = client.get(f"/api/v1/runs/{made['runs'][0]['id']}").json()
    assert (run["config"]["drafter"]["kind"], run["config"]["drafter"]["draft_length"]) == ("eagle3", 2)
    assert run["num_steps"] == made["config"]["grpo"]["num_steps"] == 2


def test_a_sweep_starts_from_a_run(client, launch, sweep):
    origin = launch(config=CONFIG)
    made = sweep(config=None, base_run_id=origin["id"], axes={K: [2]})
    run = client.get(f"/api/v1/runs/{made['runs'][0]['id']}").json()
    assert (run["cloned_from_id"], run["num_steps"]) == (origin["id"], 7)
    assert run["config"] == origin["config"] | {"drafter": origin["config"]["drafter"] | {"draft_length": 2}}


def test_every_problem_of_every_point_is_told_at_once_with_its_key(refusal):
    found = refusal(axes={K: [3, 0, 1000], "drafter.typo": [1], "seed": [-1]}, cluster="moon", name="")
    assert set(found) == {"/name", "/cluster", f"/axes/{K}/1", f"/axes/{K}/2", "/axes/drafter.typo/0", "/axes/seed/0"}
    assert found[f"/axes/{K}/1"] == "point 2 (draft_length=0, typo=1, seed=-1): must be at least 1"
    assert found["/axes/seed/0"] == "point 1 (draft_length=3, typo=1, seed=-1): must be at least 0, and of 2 more"


def test_a_problem_of_a_listed_point_names_it(refusal):
    found = refusal(axes=None, points=[{K: 1}, {K: 0}, {"drafter": {"kind": "magic"}}])
    assert found[f"/points/1/{K}"] == "point 2 (draft_length=0): must be at least 1"
    assert found["/points/2/drafter"].startswith('point 3 (drafter={"kind": "magic"}): knows no kind magic')


@pytest.mark.parametrize(
    ("fields", "pointer", "detail"),
    [
        ({"config": None}, "/config", "is required"),
        ({"example": "smoke"}, "/example", "takes the place of `config`"),
        ({"config": None, "example": "sm0ke"}, "/example", "there are: "),
        ({"base_run_id": str(uuid4())}, "/base_run_id", "takes the place"),
        ({"config": None, "base_run_id": str(uuid4())}, "/base_run_id", "no such run"),
        ({"config": {"seed": -1}}, "/config/seed", "must be at least 0"),
        ({"axes": None}, "/axes", "is required"),
        ({"axes": {}}, "/axes", "must not be empty"),
        ({"axes": {K: []}}, f"/axes/{K}", "must not be empty"),
        ({"axes": {K: list(range(1, 15)), "seed": list(range(15))}}, "/axes", "make 210 runs; a sweep may have 200"),
        ({"axes": {"drafter": [{}], K: [1]}}, f"/axes/{K}", "lies in drafter"),
        ({"max_concurrent": 0}, "/max_concurrent", "must be at least 1"),
        ({"color": "red"}, "/color", "unknown key"),
        ({"project": "secret"}, "/project", "no such project"),
    ],
)
def test_sweeps_that_cannot_be(refusal, fields, pointer, detail):
    assert detail in refusal(**fields)[pointer]


def test_a_body_that_is_no_object_is_refused(client):
    assert client.post("/api/v1/sweeps", json=[1]).status_code == 422


def test_a_reward_function_of_a_module_that_the_cluster_does_not_allow(refusal, database):
    task = {"kind": "dataset", "train": {"kind": "jsonl", "path": "/data.jsonl"}}
    reward = [{"kind": "math"}, {"kind": "python", "function": "ours.scoring:reward"}]
    with database.transaction() as session:
        session.execute(text("UPDATE cluster SET reward_modules = ARRAY['theirs']"))
    base = {"task": task, "policy": {"kind": "checkpoint", "path": "/m"}, "drafter": {"kind": "none"}}
    found = refusal(config=base, axes={"task.reward": reward})
    assert list(found) == ["/axes/task.reward/1"], found
    (detail,) = found.values()
    assert "cluster local allows reward functions of these modules: theirs." in detail


def test_a_sweep_tells_how_its_runs_do(client, sweep, database):
    made = sweep()
    first, second, _ = (run["id"] for run in made["runs"])
    with database.transaction() as session:
        session.execute(text("UPDATE run SET status = 'succeeded' WHERE id = :id"), {"id": first})
        for name, value in (("rollout/acceptance_length_tokens", 2.5), ("speedup/generation_ratio", 1.75)):
            columns = "run_id, name, num_points, last_step, last_value"
            insert = text(f"INSERT INTO series ({columns}) VALUES (:id, :name, 1, 1, :value)")
            session.execute(insert, {"id": second, "name": name, "value": value})
    now = client.get(f"/api/v1/sweeps/{made['id']}").json()
    assert now["num_runs_by_status"] == {"queued": 2, "succeeded": 1}
    table = [(run["sweep_point"][K], run["acceptance_length"], run["generation_speedup"]) for run in now["runs"]]
    assert table == [(1, None, None), (3, 2.5, 1.75), (5, None, None)]


def test_stopping_a_sweep_stops_all_that_goes_on(client, sweep, database):
    made = sweep()
    first, second, third = (run["id"] for run in made["runs"])
    with database.transaction() as session:
        session.execute(text("UPDATE run SET status = 'succeeded', ended_at = now() WHERE id = :id"), {"id": first})
        session.execute(text("UPDATE run SET status = 'running' WHERE id = :id"), {"id": second})
    stopped = client.post(f"/api/v1/sweeps/{made['id']}/stop")
    assert stopped.status_code == 202
    assert [run["status"] for run in stopped.json()["runs"]] == ["succeeded", "running", "stopped"]
    assert [run["is_stop_requested"] for run in stopped.json()["runs"]] == [False, True, True]
    assert client.get(f"/api/v1/runs/{third}").json()["status_reason"].startswith("Stopped by token:")
    assert client.post(f"/api/v1/sweeps/{made['id']}/stop").status_code == 202
    with database.transaction() as session:
        kinds = session.scalars(text("SELECT action FROM audit_entry WHERE action LIKE 'sweep%' ORDER BY id")).all()
    assert kinds[:2] == ["sweep.launch", "sweep.stop"]


def test_pages_hold_every_sweep_once_newest_first(client, sweep):
    names = [sweep(name=f"sweep {n}", axes={K: [1]})["name"] for n in range(5)]
    first = client.get("/api/v1/sweeps?limit=3").json()
    second = client.get("/api/v1/sweeps", params={"limit": 3, "cursor": first["next_cursor"]}).json()
    assert [item["name"] for item in first["items"] + second["items"]] == names[::-1]
    assert second["next_cursor"] is None
    assert client.get("/api/v1/sweeps?cursor=x").status_code == 422


@pytest.mark.parametrize("verb", ["get", "stop"])
def test_unknown_sweeps(client, verb):
    url = f"/api/v1/sweeps/{uuid4()}"
    response = client.get(url) if verb == "get" else client.post(f"{url}/stop")
    assert (response.status_code, response.headers["content-type"]) == (404, "application/problem+json")


@pytest.fixture
def member(app, database, make_client):
    """A client of a user with a role in a project of that name, who is no administrator."""

    def member(role, project="theirs"):
        with database.transaction() as session:
            user, place = User(name=f"{role} of {project}"), Project(name=project)
            session.add_all([user, place])
            session.flush()
            session.add(ProjectMember(project_id=place.id, user_id=user.id, role=role))
            token = issue_user_token(session, user, "test", ["read", "write"])
        client = make_client()
        client.headers["Authorization"] = f"Bearer {token}"
        return client

    return member


def test_who_belongs_to_another_project_sees_nothing(client, sweep, member, launch):
    made, stranger = sweep(), member("launcher")
    assert stranger.get("/api/v1/sweeps").json()["items"] == []
    assert stranger.get(f"/api/v1/sweeps/{made['id']}").status_code == 404
    assert stranger.post(f"/api/v1/sweeps/{made['id']}/stop").status_code == 404
    body = {"name": "x", "base_run_id": launch()["id"], "axes": {K: [1]}}
    refused = stranger.post("/api/v1/sweeps", json=body)
    assert [error["detail"] for error in refused.json()["errors"]] == ["no such run"]
    own = stranger.post("/api/v1/sweeps", json={"name": "x", "config": CONFIG, "axes": {K: [1]}})
    assert (own.status_code, own.json()["project"]) == (202, "theirs")


def test_viewers_launch_and_stop_nothing(client, sweep, member, database):
    viewer = member("viewer", "shared")
    made = sweep(project="shared")
    assert viewer.get(f"/api/v1/sweeps/{made['id']}").status_code == 200
    assert viewer.post(f"/api/v1/sweeps/{made['id']}/stop").status_code == 403
    body = {"name": "x", "config": CONFIG, "axes": {K: [1]}, "project": "shared"}
    assert viewer.post("/api/v1/sweeps", json=body).status_code == 403


def test_a_sweep_that_is_repeated_with_its_key_is_made_once(client, database):
    body = {"name": "x", "config": CONFIG, "axes": {K: [1, 2]}}
    answers = [client.post("/api/v1/sweeps", json=body, headers={"Idempotency-Key": "one"}) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    with database.transaction() as session:
        assert session.scalar(text("SELECT count(*) FROM run")) == 2


def test_each_run_has_the_gates_of_its_sweep(client, sweep):
    gates = [{"assertion": "acceptance_length >= 2.8"}]
    made = sweep(gates=gates)
    assert [run["gates_verdict"] for run in made["runs"]] == ["pending"] * 3
    run = client.get(f"/api/v1/runs/{made['runs'][0]['id']}").json()
    assert [gate["assertion"] for gate in run["gates"]] == ["acceptance_length >= 2.8"]


def test_a_baseline_that_is_not_there_is_refused_once_for_all_points(refusal):
    gates = [{"assertion": "reward >= baseline - 0.02", "baseline": f"run:{uuid4()}"}]
    assert "no such run" in refusal(gates=gates)["/gates/0/baseline"]
