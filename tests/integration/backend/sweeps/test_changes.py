"""What can be changed of a sweep, and the best of its runs in a list of sweeps."""

from uuid import uuid4

import pytest
from sqlalchemy import text

CONFIG = {"grpo": {"num_steps": 7}, "drafter": {"kind": "eagle3", "draft_length": 3}}
K = "drafter.draft_length"


@pytest.fixture
def sweep(client):
    def sweep(**fields):
        body = {"name": "lengths", "config": CONFIG, "axes": {K: [1, 3, 5]}} | fields
        response = client.post("/api/v1/sweeps", json=body)
        assert response.status_code == 202, response.text
        return response.json()

    return sweep


@pytest.fixture
def measure(database):
    """measure(run, "reward/train_mean", 0.5): the latest value of that series."""

    def measure(run, name, value):
        insert = text(
            "INSERT INTO series (run_id, name, num_points, last_step, last_value) VALUES (:id, :name, 1, 1, :value)"
        )
        with database.transaction() as session:
            session.execute(insert, {"id": run["id"], "name": name, "value": value})

    return measure


def test_name_labels_and_notes_change_and_the_runs_keep_theirs(client, sweep, database):
    made = sweep(labels={"team": "rl"})
    path = f"/api/v1/sweeps/{made['id']}"
    changed = client.patch(path, json={"name": "draft lengths", "labels": {"team": "x"}, "notes": "why"}).json()
    assert (changed["name"], changed["labels"], changed["notes"]) == ("draft lengths", {"team": "x"}, "why")
    assert client.get(path).json() == changed
    run = client.get(f"/api/v1/runs/{made['runs'][0]['id']}").json()
    assert (run["name"], run["labels"]) == ("lengths draft_length=1", {"team": "rl"})
    with database.transaction() as session:
        (action, detail) = session.execute(
            text("SELECT action, detail FROM audit_entry ORDER BY id DESC LIMIT 1")
        ).one()
    assert (action, detail) == ("sweep.update", {"fields": ["labels", "name", "notes"]})
    assert client.patch(path, json={"notes": ""}).json()["name"] == "draft lengths"


@pytest.mark.parametrize(
    "body", [{"name": ""}, {"name": None, "max_concurrent": 3}, {"labels": {"": "x"}}, {"notes": 7}, []]
)
def test_what_it_cannot_be_changed_to(client, sweep, body):
    response = client.patch(f"/api/v1/sweeps/{sweep()['id']}", json=body)
    assert (response.status_code, response.headers["content-type"]) == (422, "application/problem+json")


def test_no_sweep_no_change(client):
    assert client.patch(f"/api/v1/sweeps/{uuid4()}", json={"notes": "x"}).status_code == 404


def best(client, by=None):
    query = f"?best_by={by}" if by else ""
    return [item["best"] for item in client.get(f"/api/v1/sweeps{query}").json()["items"]]


def test_a_list_tells_the_best_run_of_each_by_the_figure_asked_for(client, sweep, measure):
    first, second = sweep()["runs"], sweep(name="more")["runs"]
    for run, reward in zip(first, (0.5, 0.75, 0.25), strict=True):
        measure(run, "reward/train_mean", reward)
    measure(second[2], "speedup/generation_ratio", 1.5)
    of_first = {"run_id": first[1]["id"], "name": first[1]["name"], "point": {K: 3}, "metric": "reward", "value": 0.75}
    assert best(client) == best(client, "reward") == [None, of_first]
    faster = {"run_id": second[2]["id"], "name": second[2]["name"], "point": {K: 5}}
    assert best(client, "generation_speedup") == [{**faster, "metric": "generation_speedup", "value": 1.5}, None]
    assert best(client, "acceptance_length") == [None, None]
    refused = client.get("/api/v1/sweeps?best_by=loss")
    assert (refused.status_code, refused.json()["errors"][0]["parameter"]) == (422, "best_by")


def test_what_is_no_number_is_not_the_best_and_of_equals_the_first_is(client, sweep, measure):
    runs = sweep(axes={K: [1, 2, 3, 4, 5]})["runs"]
    for run, value in zip(runs, (float("nan"), float("inf"), None, 2.0, 2.0), strict=True):
        measure(run, "rollout/acceptance_length_tokens", value)
    assert [each["run_id"] for each in best(client, "acceptance_length")] == [runs[3]["id"]]


def test_training_of_drafts_is_compared_by_what_it_is_for(client, sweep, measure):
    drafts = sweep(config=CONFIG | {"job": "draft_training"})["runs"]
    whole = sweep()["runs"]
    for run in (drafts[0], whole[0]):
        measure(run, "draft_pretraining/held_out_acceptance_length_tokens", 3.0)
    measure(whole[1], "rollout/acceptance_length_tokens", 2.0)
    assert [each["run_id"] for each in best(client, "acceptance_length")] == [whole[1]["id"], drafts[0]["id"]]
    assert best(client, "validation_accuracy") == [None, None]


def test_sweeps_of_one_project(client, sweep):
    client.post("/api/v1/projects", json={"name": "vision"})
    made = [sweep(project=project)["id"] for project in ("vision", "default")]
    listed = {
        project: client.get(f"/api/v1/sweeps?project={project}").json()["items"] for project in ("vision", "none")
    }
    assert ([item["id"] for item in listed["vision"]], listed["none"]) == (made[:1], [])
