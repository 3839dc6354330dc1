"""Where a run's configuration comes from, and what a launch may ask for."""

import threading

import pytest
from sqlalchemy import text

from backend.auth.service import issue_user_token
from backend.models import Project, ProjectMember, User

CONFIG = {"grpo": {"num_steps": 7}, "drafter": {"kind": "none"}}
DATASET = {
    "task": {"kind": "dataset", "train": {"kind": "jsonl", "path": "/data.jsonl"}},
    "policy": {"kind": "checkpoint", "path": "/m"},
    "drafter": {"kind": "none"},
}


def errors_of(response):
    assert response.status_code == 422, response.text
    return {error["pointer"]: error["detail"] for error in response.json()["errors"]}


def examples_of(client):
    return {example["name"]: example["config"] for example in client.get("/api/v1/run-config/examples").json()}


def test_a_run_starts_from_an_example(client):
    run = client.post("/api/v1/runs", json={"name": "x", "example": "smoke"})
    assert run.status_code == 202, run.text
    assert run.json()["config"] == examples_of(client)["smoke"]


def test_overrides_are_laid_over_an_example(client):
    overrides = {"grpo": {"num_steps": 2}, "drafter": {"kind": "ngram"}}
    run = client.post("/api/v1/runs", json={"name": "x", "example": "smoke", "overrides": overrides}).json()
    example = examples_of(client)["smoke"]
    assert (run["num_steps"], run["config"]["drafter"]["kind"]) == (2, "ngram")
    assert run["config"]["grpo"] == example["grpo"] | {"num_steps": 2}


def test_overrides_are_laid_over_a_configuration(client):
    body = {"name": "x", "config": CONFIG, "overrides": {"grpo": {"num_steps": 3}, "drafter": {"kind": "eagle3"}}}
    run = client.post("/api/v1/runs", json=body).json()
    assert (run["num_steps"], run["config"]["drafter"]["kind"]) == (3, "eagle3")


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, {"/config"}),
        ({"config": None}, {"/config"}),
        ({"config": CONFIG, "example": "smoke"}, {"/example"}),
        ({"example": ""}, {"/example"}),
        ({"example": 5}, {"/example"}),
        ({"example": "smoke", "overrides": [1]}, {"/overrides"}),
        ({"example": "smoke", "overrides": {"grpo": {"num_steps": 0}, "typo": 1}},
         {"/overrides/grpo/num_steps", "/overrides/typo"}),
        ({"example": "smoke", "overrides": {"seed": -1}, "name": "", "cluster": "moon"},
         {"/overrides/seed", "/name", "/cluster"}),
        ({"config": {"seed": -1}, "overrides": {"seed": 1}}, {"/config/seed"}),
        ({"config": {"seed": 1}, "overrides": {"seed": -1}}, {"/overrides/seed"}),
        ({"example": "nowhere", "cluster": "moon"}, {"/example", "/cluster"}),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_where_it_can_be_mended(client, body, pointers):
    assert set(errors_of(client.post("/api/v1/runs", json={"name": "x", **body}))) == pointers


def test_an_unknown_example_is_answered_with_those_there_are(client):
    (detail,) = errors_of(client.post("/api/v1/runs", json={"name": "x", "example": "sm0ke"})).values()
    assert detail.startswith("no such example; there are: ")
    assert "smoke" in detail.partition(": ")[2].split(", ")


@pytest.mark.parametrize("example", ["../settings", "/etc/passwd", "smoke.yaml", "data/../smoke"])
def test_an_example_is_a_name_and_no_path(client, example):
    assert "/example" in errors_of(client.post("/api/v1/runs", json={"name": "x", "example": example}))


@pytest.mark.parametrize(
    ("function", "is_allowed"),
    [("ours:f", True), ("ours.deep:f", True), ("oursx:f", False), ("os:system", False)],
)
def test_a_reward_functions_module_has_to_be_allowed_by_the_cluster(client, database, function, is_allowed):
    with database.transaction() as session:
        session.execute(text("UPDATE cluster SET reward_modules = ARRAY['ours', 'theirs']"))
    reward = {"kind": "python", "function": function}
    config = DATASET | {"task": DATASET["task"] | {"reward": reward}}
    response = client.post("/api/v1/runs", json={"name": "x", "config": config})
    if is_allowed:
        assert response.status_code == 202, response.text
        return
    module = function.partition(":")[0]
    assert errors_of(response) == {
        "/config/task/reward/function": "cluster local allows reward functions of these modules: ours, theirs. "
        f"Let an administrator add {module} to its reward_modules"
    }
    origin = client.post("/api/v1/runs", json={"name": "x", "config": DATASET}).json()["id"]
    overrides = {"task": {"reward": reward}}
    clone = client.post(f"/api/v1/runs/{origin}/clone", json={"overrides": overrides})
    assert set(errors_of(clone)) == {"/overrides/task/reward/function"}


@pytest.fixture
def member(database, make_client):
    """A client of a launcher, or of who else, in a project of their own."""

    def member(name, role="launcher", scopes=("read", "write", "admin")):
        with database.transaction() as session:
            user, project = User(name=name), Project(name=f"project of {name}")
            session.add_all([user, project])
            session.flush()
            session.add(ProjectMember(project_id=project.id, user_id=user.id, role=role))
            token = issue_user_token(session, user, "test", list(scopes))
        client = make_client()
        client.headers["Authorization"] = f"Bearer {token}"
        return client

    return member


def test_high_priorities_are_for_administrators_of_the_project(member):
    launcher, admin = member("ann"), member("bob", "admin")
    body = {"name": "x", "config": CONFIG}
    run = launcher.post("/api/v1/runs", json=body | {"priority": 50})
    assert (run.status_code, run.json()["priority"]) == (202, 50)
    refused = launcher.post("/api/v1/runs", json=body | {"priority": 51})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (403, "/priority")
    assert launcher.patch(f"/api/v1/runs/{run.json()['id']}", json={"priority": 51}).status_code == 403
    assert launcher.patch(f"/api/v1/runs/{run.json()['id']}", json={"priority": -100}).json()["priority"] == -100
    assert admin.post("/api/v1/runs", json=body | {"priority": 100}).json()["priority"] == 100
    assert set(errors_of(admin.post("/api/v1/runs", json=body | {"priority": 101}))) == {"/priority"}


def test_a_clone_does_not_take_the_priority_over(client, launch):
    origin = launch(priority=80)
    clone = client.post(f"/api/v1/runs/{origin['id']}/clone", json={}).json()
    assert (origin["priority"], clone["priority"]) == (80, 0)


@pytest.fixture
def narrow(app):
    """A service in which two runs of a user may wait, and three of a project."""
    limits = {"max_queued_runs_per_user": 2, "max_queued_runs_per_project": 3}
    app.state.settings = app.state.settings.model_copy(update=limits)


def test_nobody_floods_the_queue(narrow, client, launch, member):
    run_ids = [launch()["id"] for _ in range(2)]
    refused = client.post("/api/v1/runs", json={"name": "x", "config": CONFIG})
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
    assert refused.json()["detail"] == "2 runs of yours wait already, and at most 2 may: stop some, or try again later."
    axes = {"seed": [1]}
    assert client.post("/api/v1/sweeps", json={"name": "x", "config": CONFIG, "axes": axes}).status_code == 429
    assert client.post(f"/api/v1/runs/{run_ids[0]}/clone", json={}).status_code == 429
    other = member("ann").post("/api/v1/runs", json={"name": "x", "config": CONFIG})
    assert other.status_code == 202
    client.post(f"/api/v1/runs/{run_ids[0]}/stop")
    launch()


def test_nobody_floods_the_queue_with_one_sweep(narrow, client, database):
    body = {"name": "x", "config": CONFIG, "axes": {"seed": [1, 2, 3]}}
    assert client.post("/api/v1/sweeps", json=body).status_code == 429
    with database.transaction() as session:
        assert session.scalar(text("SELECT count(*) FROM run")) == 0


def test_a_project_has_a_limit_of_its_own(narrow, client, launch, database):
    for _ in range(2):
        launch()
    with database.transaction() as session:
        session.execute(text("UPDATE run SET created_by_id = NULL"))
    launch()
    refused = client.post("/api/v1/runs", json={"name": "x", "config": CONFIG})
    assert (refused.status_code, "3 runs of project default wait" in refused.json()["detail"]) == (429, True)


def test_launches_at_the_same_time_do_not_pass_the_limit_together(narrow, client, database):
    barrier, statuses = threading.Barrier(4), []

    def post():
        barrier.wait(10)
        statuses.append(client.post("/api/v1/runs", json={"name": "x", "config": CONFIG}).status_code)

    threads = [threading.Thread(target=post) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(statuses) == [202, 202, 429, 429]
    with database.transaction() as session:
        assert session.scalar(text("SELECT count(*) FROM run")) == 2
