"""Path traversal by a configuration: nobody reads foreign files of a cluster, or the checkpoints of other projects."""

import pytest

from backend.auth.access import DEFAULT_PROJECT
from backend.auth.service import issue_user_token
from backend.models import Project, ProjectMember, User

CLUSTER = {
    "name": "shared",
    "address": "http://127.0.0.1:9",
    "storage_dir": "/mnt/foredeck",
    "api_url": "https://foredeck.example.org",
    "data_dirs": ["/models", "/mnt/data/"],
}
CHECKPOINT = {"drafter": {"kind": "none"}}


def of_policy(path):
    return {
        "policy": {"kind": "checkpoint", "path": path},
        "drafter": {"kind": "none"},
        "task": of_dataset("jsonl", "/models/a"),
    }


def of_dataset(kind, path):
    return {"kind": "dataset", "train": {"kind": kind, "name" if kind == "hub" else "path": path}}


@pytest.fixture
def launch_at(client):
    assert client.post("/api/v1/clusters", json=CLUSTER).status_code == 201

    def launch(config, cluster="shared", caller=client):
        response = caller.post("/api/v1/runs", json={"name": "x", "cluster": cluster, "config": config})
        errors = response.json().get("errors", [])
        return response.status_code, [error["pointer"] for error in errors]

    return launch


@pytest.mark.parametrize("path", ["/models/Qwen3-8B", "/models", "/models//Qwen3-8B/", "/mnt/data/a/b"])
def test_folders_of_the_registration_may_be_read(launch_at, path):
    assert launch_at(of_policy(path)) == (202, [])


@pytest.mark.parametrize(
    "path",
    [
        "/etc",
        "/models2/x",
        "/modelsx",
        "/models/../etc",
        "/models/./../../etc",
        "models/x",
        "../models/x",
        "~/models",
        "file:///models/x",
        "//etc",
        "/mnt",
        "/mnt/foredeck",
        "/mnt/foredeck/cache/x",
        "/mnt/foredeck/runs",
        "/mnt/foredeck/runs/x",
        "/mnt/foredeck/runs/0b9c1d9e-0000-4000-8000-000000000000/checkpoints",
        "/proc/self/environ",
        "https://evil.example/x",
    ],
)
def test_nothing_else_is_read(launch_at, path):
    assert launch_at(of_policy(path)) == (422, ["/config/policy/path"])


@pytest.mark.parametrize(
    ("kind", "path", "field"),
    [
        ("jsonl", "/etc/passwd", "path"),
        ("parquet", "/mnt/foredeck", "path"),
        ("hub", "/etc", "name"),
        ("hub", "../a/b", "name"),
        ("hub", "https://evil.example/a", "name"),
        ("hub", "a/../../b", "name"),
    ],
)
def test_datasets_are_held_to_the_same(launch_at, kind, path, field):
    config = of_policy("/models/x") | {"task": of_dataset(kind, path)}
    assert launch_at(config) == (422, [f"/config/task/train/{field}"])
    validation = {**of_dataset("hub", "a/b"), "validation": of_dataset(kind, path)["train"]}
    assert launch_at(of_policy("/models/x") | {"task": validation}) == (422, [f"/config/task/validation/{field}"])
    assert launch_at(of_policy("/models/x") | {"task": of_dataset("hub", "BytedTsinghua-SIA/DAPO-Math-17k")}) == (
        202,
        [],
    )


def test_a_draft_is_held_to_the_same(launch_at):
    assert launch_at({"drafter": {"kind": "eagle3", "path": "/root/draft"}}) == (422, ["/config/drafter/path"])


@pytest.mark.parametrize("cluster", ["shared", "local"])
def test_the_checkpoints_of_another_project_are_not_read(launch_at, client, database, settings, cluster):
    storage = CLUSTER["storage_dir"] if cluster == "shared" else settings.local_storage_dir
    mine, theirs = client_of(database, DEFAULT_PROJECT, client), client_of(database, "theirs", client)
    run = mine.post("/api/v1/runs", json={"name": "x", "config": CHECKPOINT, "cluster": cluster}).json()
    left = f"{storage}/runs/{run['id']}/checkpoints/step-1"
    for path in (
        left,
        left.replace("/runs/", "/./runs/"),
        left.replace("/runs/", "/../" + str(storage).split("/")[-1] + "/runs/"),
    ):
        assert launch_at(of_policy(path), cluster, theirs)[0] == 422, path
    assert launch_at(of_policy(left), cluster, mine) == (202, [])


def client_of(database, project, like):
    """A client of a launcher of one project."""
    with database.transaction() as session:
        found = session.query(Project).filter_by(name=project).one_or_none() or Project(name=project)
        user = User(name=f"launcher of {project}")
        session.add_all([found, user])
        session.flush()
        session.add(ProjectMember(project_id=found.id, user_id=user.id, role="launcher"))
        token = issue_user_token(session, user, "t", ["write"])
    return type(like)(like.app, headers={"Authorization": f"Bearer {token}"})


def test_neither_clones_nor_sweeps_are_a_way_round(launch_at, client):
    run = client.post("/api/v1/runs", json={"name": "x", "cluster": "shared", "config": of_policy("/models/x")}).json()
    overrides = {"policy": {"path": "/etc"}}
    clone = client.post(f"/api/v1/runs/{run['id']}/clone", json={"overrides": overrides})
    assert (clone.status_code, clone.json()["errors"][0]["pointer"]) == (422, "/overrides/policy/path")
    sweep = {
        "name": "s",
        "cluster": "shared",
        "config": of_policy("/models/x"),
        "axes": {"policy.path": ["/etc", "/models/x"]},
    }
    refused = client.post("/api/v1/sweeps", json=sweep)
    assert refused.status_code == 422
    assert "data_dirs" in refused.text


def test_the_local_clusters_folders_follow_the_settings(settings):
    assert settings.local_data_dirs is None
    away = settings.model_copy(update={"ray_address": "http://ray:8265"})
    assert away.local_data_dirs == []
    assert away.model_copy(update={"cluster_data_dirs": ("/models",)}).local_data_dirs == ["/models"]
