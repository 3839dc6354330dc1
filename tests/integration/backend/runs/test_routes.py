import threading
import time
from uuid import uuid4

import pytest
import yaml
from sqlalchemy import text

from backend.runs import attempts, repository, service
from contract.config import RunConfig

CONFIG = {"grpo": {"num_steps": 7}, "drafter": {"kind": "none"}}


def test_launching_answers_what_was_stored(client):
    body = {"name": " my run ", "config": CONFIG, "labels": {"team": "rl"}, "notes": "why\nnot"}
    response = client.post("/api/v1/runs", json=body)
    run = response.json()
    assert response.status_code == 202
    assert response.headers["location"] == f"/api/v1/runs/{run['id']}"
    assert client.get(response.headers["location"]).json() == run
    assert (run["name"], run["labels"], run["notes"]) == ("my run", {"team": "rl"}, "why\nnot")
    assert (run["status"], run["is_ended"], run["cluster"], run["current_attempt"]) == ("queued", False, "local", 0)
    assert (run["num_steps"], run["max_attempts"], run["created_by"]) == (7, 3, "admin")
    assert run["config"] == RunConfig.model_validate(CONFIG).model_dump(mode="json")
    assert list(run["config"]) == list(RunConfig.model_fields)
    assert (run["latest"], run["attempts"], run["eta_s"]) == ({}, [], None)


def test_a_refused_run_leaves_nothing(client, database):
    response = client.post("/api/v1/runs", json={"name": "x", "config": CONFIG, "cluster": "moon"})
    assert response.status_code == 422
    problem = response.json()["errors"][0]
    assert (problem["pointer"], problem["value"]) == ("/cluster", "moon")
    assert "there are: local" in problem["detail"]
    with database.transaction() as session:
        assert session.scalar(text("SELECT count(*) FROM run")) == 0
        assert session.scalar(text("SELECT count(*) FROM outbox")) == 0


@pytest.mark.parametrize("verb", ["get", "patch", "stop", "clone", "wait", "config.yaml"])
def test_unknown_runs(client, verb):
    url = f"/api/v1/runs/{uuid4()}"
    calls = {
        "get": lambda: client.get(url),
        "patch": lambda: client.patch(url, json={}),
        "stop": lambda: client.post(f"{url}/stop"),
        "clone": lambda: client.post(f"{url}/clone", json={}),
        "wait": lambda: client.get(f"{url}/wait?timeout_s=0"),
        "config.yaml": lambda: client.get(f"{url}/config.yaml"),
    }
    response = calls[verb]()
    assert (response.status_code, response.headers["content-type"]) == (404, "application/problem+json")


def test_pages_hold_every_run_once_newest_first_while_new_ones_come(client, launch):
    names = [launch(name=f"run {n}")["name"] for n in range(7)]
    seen, cursor = [], None
    while True:
        page = client.get("/api/v1/runs", params={"limit": 3, **({"cursor": cursor} if cursor else {})}).json()
        seen += [run["name"] for run in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
        launch(name="later")
    assert seen == names[::-1]


def test_runs_of_the_same_moment_are_not_lost_between_pages(client, launch, database):
    ids = {launch()["id"] for _ in range(5)}
    with database.transaction() as session:
        session.execute(text("UPDATE run SET created_at = '2026-01-01T00:00:00.123456Z'"))
    first = client.get("/api/v1/runs?limit=2").json()
    second = client.get("/api/v1/runs", params={"limit": 3, "cursor": first["next_cursor"]}).json()
    assert {run["id"] for run in first["items"] + second["items"]} == ids
    assert second["next_cursor"] is None


def test_filters(client, launch):
    first = launch(name="Alpha 100%", labels={"team": "rl", "size": "s"})
    second = launch(name="beta", notes="see alpha_", labels={"team": "rl"})
    third = launch(name="gamma")
    client.post(f"/api/v1/runs/{third['id']}/stop")

    def found(**parameters):
        return {run["id"] for run in client.get("/api/v1/runs", params=parameters).json()["items"]}

    one, two, three = first["id"], second["id"], third["id"]
    assert found(search="ALPHA") == {one, two}
    assert found(search="100%") == {one}
    assert found(search="a_") == {two}
    assert found(search="%") == {one}
    assert found(search=three[:13]) == {three}
    assert found(status="stopped") == {three}
    assert found(status="queued,stopped") == {one, two, three}
    assert found(label="team:rl") == {one, two}
    assert found(label=["team:rl", "size:s"]) == {one}
    assert found(label="team:x") == set()
    assert found(search="alpha", label="size:s", status="running") == set()


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("limit", "0"), ("limit", "201"), ("cursor", "nonsense"), ("status", "running,dead"), ("label", "team")],
)
def test_bad_parameters_are_named(client, parameter, value):
    response = client.get("/api/v1/runs", params={parameter: value})
    assert response.status_code == 422
    assert response.json()["errors"][0]["parameter"] == parameter


def test_a_nul_character_is_no_server_error(client, launch):
    assert client.get("/api/v1/runs", params={"search": "a\x00b"}).status_code == 422
    config = {**CONFIG, "policy": {"kind": "checkpoint", "path": "/a\x00b"}}
    assert client.post("/api/v1/runs", json={"name": "x", "config": config}).status_code == 422


def add_series(database, run_id, **values):
    """name with / as __ -> [(step, attempt, value), ...]; the last counts as latest."""
    with database.transaction() as session:
        for name, points in values.items():
            step, attempt, value = points[-1]
            series_id = session.scalar(
                text(
                    "INSERT INTO series (run_id, name, num_points, last_step, last_attempt, last_value)"
                    " VALUES (:run, :name, :n, :step, :attempt, :value) RETURNING id"
                ),
                {
                    "run": run_id,
                    "name": name.replace("__", "/"),
                    "n": len(points),
                    "step": step,
                    "attempt": attempt,
                    "value": value,
                },
            )
            for step, attempt, value in points:
                session.execute(
                    text("INSERT INTO point VALUES (:s, :step, :attempt, 'driver/0', :value, now())"),
                    {"s": series_id, "step": step, "attempt": attempt, "value": value},
                )


def test_a_run_shows_its_latest_values_and_when_it_will_be_done(client, launch, database):
    run_id = launch()["id"]
    with database.transaction() as session:
        session.execute(text("UPDATE run SET status = 'running'"))
    add_series(
        database,
        run_id,
        reward__train_mean=[(1, 1, 0.25), (2, 1, 0.5)],
        rollout__acceptance_length_tokens=[(2, 1, 3.25)],
        policy__loss=[(2, 1, float("nan"))],
        time__step_s=[(1, 1, 2.0), (2, 1, 4.0)],
    )
    run = client.get(f"/api/v1/runs/{run_id}").json()
    assert run["latest"] == {
        "reward/train_mean": 0.5,
        "rollout/acceptance_length_tokens": 3.25,
        "policy/loss": None,
        "time/step_s": 4.0,
    }
    assert run["eta_s"] == (7 - 2) * 3.0
    (summary,) = client.get("/api/v1/runs").json()["items"]
    assert (summary["reward"], summary["acceptance_length"]) == (0.5, 3.25)
    assert (summary["generation_speedup"], summary["validation_accuracy"]) == (None, None)
    assert "config" not in summary


def test_what_may_change_after_the_launch(client, launch):
    run = launch(labels={"a": "1"}, notes="old")
    changed = client.patch(f"/api/v1/runs/{run['id']}", json={"name": "new", "labels": {"b": "2"}}).json()
    assert (changed["name"], changed["labels"], changed["notes"]) == ("new", {"b": "2"}, "old")
    assert changed["updated_at"] > run["updated_at"]
    assert client.patch(f"/api/v1/runs/{run['id']}", json={"status": "running"}).status_code == 422
    assert client.patch(f"/api/v1/runs/{run['id']}", json={"name": ""}).status_code == 422


def test_a_clone_differs_where_it_was_told_to(client, launch):
    origin = launch(name="origin", labels={"a": "1"}, notes="n", max_attempts=5)
    overrides = {"grpo": {"num_steps": 9}, "drafter": {"kind": "eagle3", "draft_length": 2}, "seed": None}
    response = client.post(f"/api/v1/runs/{origin['id']}/clone", json={"overrides": overrides})
    clone = response.json()
    assert response.status_code == 202
    assert response.headers["location"].endswith(clone["id"])
    assert (clone["name"], clone["labels"], clone["notes"], clone["max_attempts"]) == (
        "origin (clone)",
        {"a": "1"},
        "n",
        5,
    )
    assert (clone["cloned_from_id"], clone["num_steps"]) == (origin["id"], 9)
    assert clone["config"]["drafter"]["draft_length"] == 2
    assert clone["config"]["seed"] == 42
    assert clone["config"]["policy"] == origin["config"]["policy"]
    same = client.post(f"/api/v1/runs/{origin['id']}/clone", json={"name": "same"}).json()
    assert (same["name"], same["config_sha256"]) == ("same", origin["config_sha256"])


def test_a_clone_with_another_kind_keeps_nothing_that_the_kind_does_not_know(client, launch):
    origin = launch(config={"drafter": {"kind": "eagle3", "draft_length": 3, "draft_vocabulary_size": 20}})

    def cloned(**overrides):
        response = client.post(f"/api/v1/runs/{origin['id']}/clone", json={"overrides": overrides})
        assert response.status_code == 202, response.text
        return response.json()["config"]

    assert cloned(drafter={"kind": "none"})["drafter"] == {"kind": "none"}
    assert cloned(drafter={"kind": "ngram"})["drafter"] == {
        "kind": "ngram",
        "draft_length": 3,
        "draft_length_control": "measured",
        "min_match_tokens": 2,
        "max_match_tokens": 4,
    }
    checkpoint = {"kind": "checkpoint", "path": "/m"}
    assert cloned(policy=checkpoint)["policy"] == checkpoint | {"model": None}
    optimizer = {"kind": "adamw", "learning_rate": 0.1}
    assert cloned(trainer={"optimizer": optimizer})["trainer"]["optimizer"] == optimizer | {"weight_decay": 0}


@pytest.mark.parametrize(
    ("wrong", "pointers"),
    [
        ({"name": "", "cluster": "moon"}, {"/name", "/cluster"}),
        (
            {"cluster": "moon", "config": {"seed": -1, "rollout": {"temperature": 0}}},
            {"/cluster", "/config/seed", "/config/rollout/temperature"},
        ),
        ({"cluster": "a\x00b", "config": {"grpo": {"num_steps": 10**12}}}, {"/cluster", "/config/grpo/num_steps"}),
        ({"cluster": 5, "color": "red"}, {"/cluster", "/color"}),
        (
            {"cloned_from_id": "0b9c1d9e-0000-4000-8000-000000000000", "max_attempts": 0},
            {"/cloned_from_id", "/max_attempts"},
        ),
        ({"cloned_from_id": "x", "name": None}, {"/cloned_from_id", "/name"}),
    ],
)
def test_what_the_body_and_what_the_database_refuses_is_told_at_once(client, wrong, pointers):
    response = client.post("/api/v1/runs", json={"name": "x", "config": {}, **wrong})
    assert response.status_code == 422
    assert {error["pointer"] for error in response.json()["errors"]} == pointers


def test_a_clone_is_told_of_its_overrides_and_its_cluster_at_once(client, launch):
    body = {"overrides": {"grpo": {"num_steps": 0}, "rollout": {"temperature": 0}}, "cluster": "moon"}
    response = client.post(f"/api/v1/runs/{launch()['id']}/clone", json=body)
    assert {error["pointer"] for error in response.json()["errors"]} == {
        "/overrides/grpo/num_steps",
        "/overrides/rollout/temperature",
        "/cluster",
    }


def test_a_bad_override_is_shown_where_it_was_given(client, launch):
    origin = launch()
    overrides = {"grpo": {"num_steps": 0}, "typo": 1}
    response = client.post(f"/api/v1/runs/{origin['id']}/clone", json={"overrides": overrides})
    assert response.status_code == 422
    assert {error["pointer"] for error in response.json()["errors"]} == {"/overrides/grpo/num_steps", "/overrides/typo"}


def test_the_configuration_as_a_file_launches_the_same_run(client, launch):
    origin = launch(name="a: b", notes="ümläut\nsecond line")
    response = client.get(f"/api/v1/runs/{origin['id']}/config.yaml")
    assert response.headers["content-type"].startswith("text/yaml")
    document = yaml.safe_load(response.text)
    assert (document["name"], document["description"]) == ("a: b", "ümläut\nsecond line")
    again = client.post("/api/v1/runs", json={"name": document["name"], "config": document["config"]}).json()
    assert again["config_sha256"] == origin["config_sha256"]


def test_a_configuration_of_an_older_version_can_still_be_read(client, launch, database):
    run_id = launch()["id"]
    with database.transaction() as session:
        session.execute(text("""UPDATE run SET config = '{"of_old": true}'"""))
    assert client.get(f"/api/v1/runs/{run_id}").json()["config"] == {"of_old": True}


def test_waiting_ends_with_the_time(client, launch):
    run_id = launch()["id"]
    begin = time.monotonic()
    run = client.get(f"/api/v1/runs/{run_id}/wait?timeout_s=0.3").json()
    assert 0.3 <= time.monotonic() - begin < 10
    assert (run["is_ended"], run["status"]) == (False, "queued")


@pytest.mark.parametrize("redis", ["up", "down"])
def test_waiting_ends_with_the_run_and_holds_no_connection(app, client, launch, database, redis):
    if redis == "down":
        app.state.settings = app.state.settings.model_copy(update={"redis_url": "redis://127.0.0.1:1"})
    run_id = launch()["id"]
    answers = []
    waiting = threading.Thread(
        target=lambda: answers.append(client.get(f"/api/v1/runs/{run_id}/wait?timeout_s=60").json())
    )
    with client:
        waiting.start()
        deadline = time.monotonic() + 20
        while database.engine.pool.checkedout() == 0 and time.monotonic() < deadline:
            time.sleep(0.001)
        while database.engine.pool.checkedout() > 0 and time.monotonic() < deadline:
            time.sleep(0.001)
        assert database.engine.pool.checkedout() == 0
        client.post(f"/api/v1/runs/{run_id}/stop")
        waiting.join(20)
    assert [run["status"] for run in answers] == ["stopped"]


def test_waiting_for_an_ended_run_answers_at_once(client, launch):
    run_id = launch()["id"]
    client.post(f"/api/v1/runs/{run_id}/stop")
    assert client.get(f"/api/v1/runs/{run_id}/wait?timeout_s=300").json()["is_ended"]


def test_the_schema_describes_every_field(client):
    schema = client.get("/api/v1/run-config/schema").json()
    assert schema["properties"]["grpo"]
    definitions = [schema, *schema["$defs"].values()]
    fields = [field for model in definitions for field in model.get("properties", {}).items()]
    assert all("description" in field or "const" in field or "$ref" in field for _, field in fields)


def test_a_configuration_can_be_checked_without_launching(client):
    checked = client.post("/api/v1/run-config/validate", json={"config": CONFIG}).json()
    assert checked["config_sha256"] == RunConfig.model_validate(CONFIG).sha256()
    assert checked["config"]["grpo"]["num_steps"] == 7
    assert {device["role"] for device in checked["memory"]["devices"]} == {"training", "generation"}
    refused = client.post("/api/v1/run-config/validate", json={"config": {"seed": -1}})
    assert refused.json()["errors"][0]["pointer"] == "/config/seed"
    assert client.get("/api/v1/runs").json()["items"] == []


def test_what_a_worker_sends_becomes_visible(client, launch, database):
    """The reports, called as ingest calls them."""
    run_id = launch()["id"]
    with database.transaction() as session:
        session.execute(text("UPDATE run SET status = 'dispatching', current_attempt = 1"))
        session.execute(
            text(
                "INSERT INTO attempt (run_id, number, submission_id, config, config_sha256)"
                " VALUES (:id, 1, 's', '{}', '')"
            ),
            {"id": run_id},
        )
    with database.transaction() as session:
        service.record_started(session, run_id, 1, 10)
        service.record_heartbeat(session, run_id, 1, "generation", 11, 0.5)
        service.record_checkpoint(session, run_id, 1, 10, "/runs/10")
        assert service.ingest_reply(session, run_id) == (1, False)
    run = client.get(f"/api/v1/runs/{run_id}").json()
    assert (run["status"], run["stage"], run["step"], run["stage_progress_fraction"]) == (
        "running",
        "generation",
        11,
        0.5,
    )
    assert (run["last_checkpoint_step"], run["attempts"][0]["resumed_from_step"]) == (10, 10)
    assert run["started_at"]
    assert run["last_heartbeat_at"]
    with database.transaction() as session:
        service.record_finished(session, run_id, 1, "failed", True, "an actor was lost")
        assert service.ingest_reply(session, run_id) == (1, False)
        service.record_finished(session, run_id, 1, "succeeded", False, None)
        run = repository.get_locked(session, run_id)
        assert (run.status, run.status_reason) == ("running", "an actor was lost. A new attempt follows.")
        attempts.judge_dead(session, run, "The worker's process ended with exit code 1.")
        assert service.ingest_reply(session, run_id) == (2, False)
        service.record_heartbeat(session, run_id, 1, "train", 99, None)
        service.record_started(session, run_id, 5, None)
    run = client.get(f"/api/v1/runs/{run_id}").json()
    assert (run["status"], run["current_attempt"], run["step"]) == ("dispatching", 2, 11)
    assert run["status_reason"] == "an actor was lost. Attempt 2 goes on from the checkpoint of step 10 in 5 s."
    assert (run["attempts"][0]["outcome"], run["attempts"][0]["error"]) == ("failed", "an actor was lost")
    with database.transaction() as session:
        service.record_finished(session, run_id, 2, "failed", False, "wrong path")
        assert service.ingest_reply(session, run_id) == (2, True)
    run = client.get(f"/api/v1/runs/{run_id}").json()
    assert (run["status"], run["status_reason"], run["eta_s"]) == ("failed", "wrong path", None)


def test_a_configuration_from_before_a_key_is_shown_cloned_and_dispatched_as_it_was_meant(client, launch, database):
    origin = launch(config={"drafter": {"kind": "eagle3", "draft_length": 3}})
    with database.transaction() as session:
        session.execute(text("UPDATE run SET config = config #- '{drafter,draft_length_control}' #- '{rollout,top_p}'"))
    shown = client.get(f"/api/v1/runs/{origin['id']}").json()["config"]
    assert (shown["drafter"]["draft_length_control"], shown["rollout"]["top_p"]) == ("fixed", 1)
    clone = client.post(f"/api/v1/runs/{origin['id']}/clone", json={"overrides": {"drafter": {"draft_length": 5}}})
    assert clone.status_code == 202, clone.text
    assert clone.json()["config"]["drafter"]["draft_length_control"] == "fixed"
    with database.transaction() as session:
        attempts.begin(session, repository.get_locked(session, origin["id"]), "Handing over.")
    with database.transaction() as session:
        attempt = repository.get_attempt(session, origin["id"], 1)
        assert attempt.config == shown
        assert attempt.config_sha256 == RunConfig.model_validate(shown).sha256()


def test_draft_training_has_no_steps_and_ends_with_where_the_draft_lies(client, launch, database):
    run = launch(config={"job": "draft_training", "drafter": {"kind": "eagle3"}})
    assert (run["job"], run["num_steps"], run["last_checkpoint_path"]) == ("draft_training", 0, None)
    with database.transaction() as session:
        attempts.begin(session, repository.get_locked(session, run["id"]), "Handing over.")
    with database.transaction() as session:
        service.record_started(session, run["id"], 1, None)
        service.record_checkpoint(session, run["id"], 1, 0, "/drafts/1")
        service.record_finished(session, run["id"], 1, "succeeded", is_retryable=False, error=None)
    add_series(database, run["id"], draft_pretraining__held_out_acceptance_length_tokens=[(120, 1, 2.75)])
    ended = client.get(f"/api/v1/runs/{run['id']}").json()
    assert (ended["status_reason"], ended["last_checkpoint_path"]) == ("The draft is trained.", "/drafts/1")
    (listed,) = client.get("/api/v1/runs").json()["items"]
    assert (listed["job"], listed["num_steps"], listed["num_active_alarms"]) == ("draft_training", 0, 0)
    assert (listed["acceptance_length"], listed["reward"]) == (2.75, None)
