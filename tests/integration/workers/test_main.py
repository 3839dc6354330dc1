"""`python -m workers.main` as Ray would start it: real processes, real Ray, and a server that takes the events."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
import yaml
from ray.exceptions import RaySystemError, RayTaskError

from contract.config import RunConfig
from contract.telemetry.events import ASSIGNMENT_VARIABLE, Event, WorkerAssignment
from contract.telemetry.stages import Stage
from tests.ports import free_base_port
from workers import main
from workers.data.open_task import open_task
from workers.data.tokenizer import character_tokenizer
from workers.model.hf_checkpoint import save_policy
from workers.model.qwen3 import Qwen3Policy
from workers.stopping import StopWatch
from workers.telemetry.sender import earlier_spools
from workers.train.warm_up import model_config

ROOT = Path(__file__).parents[3]
WHOLE = yaml.safe_load((ROOT / "examples" / "smoke.yaml").read_text())["config"]
SMOKE = WHOLE | {"rollout": WHOLE["rollout"] | {"num_engines": 1}}
"""With as few processes as there can be: each takes seconds to start."""
DEADLINE_S = 120
MARK = "FOREDECK_TEST_RAY"
"""Variable by which the processes of this module's Ray are told from others on the machine."""


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory):
    """Shared, so that only the first test warms up."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def ray_environment(tmp_path_factory):
    """One Ray for all tests, as on a cluster: what a killed driver leaves behind, Ray clears away."""
    port = free_base_port()
    environment = {**os.environ, "RAY_worker_niceness": "0", "RAY_AUTH_MODE": "disabled", MARK: str(port)}
    environment["AUTOSCALER_METRIC_PORT"] = "-1"  # a fixed port, on which another Ray of these tests may serve
    command = ["start", "--head", "--block", f"--port={port}", "--node-ip-address=127.0.0.1", "--num-cpus=4"]
    command += ["--include-dashboard=false", "--disable-usage-stats"]
    log = tmp_path_factory.mktemp("ray") / "log"
    with log.open("w") as output:
        head = subprocess.Popen(
            [sys.executable, "-m", "ray.scripts.scripts", *command],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=output,
        )
        deadline = time.monotonic() + DEADLINE_S
        while "Ray runtime started" not in log.read_text():
            assert head.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield environment | {"RAY_ADDRESS": f"127.0.0.1:{port}"}
        head.terminate()
        head.wait(DEADLINE_S)


class _Worker:
    """Attempts of one run."""

    def __init__(self, server, folder, cache_dir, config, environment):
        self._server, self._storage, self._cache_dir = server, folder / "storage", cache_dir
        self._folder, self._environment = folder, environment
        self.config = RunConfig.model_validate(config)
        self._run_id = uuid.uuid4()
        self._processes = []

    def start(self, attempt=1, variables=None, **changes):
        self._server.current_attempt = max(attempt, self._server.current_attempt)
        assignment = WorkerAssignment(
            run_id=self._run_id,
            run_name="test",
            attempt=attempt,
            api_url=self._server.url,
            starter=f"starter-{uuid.uuid4()}",
            storage_dir=str(self._storage),
            cache_dir=str(self._cache_dir),
            config_json=self.config.model_dump_json(),
            config_sha256=self.config.sha256(),
        ).model_copy(update=changes)
        return self.run({ASSIGNMENT_VARIABLE: assignment.model_dump_json(), **(variables or {})})

    def run(self, variables):
        """Errors go to a file and not to a pipe, which Ray's processes would keep open."""
        with (self._folder / "stderr").open("w") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "workers.main"],
                cwd=ROOT,
                env=self._environment | variables,
                stdout=errors,
                stderr=errors,
            )
        self._processes.append(process)
        return process

    def end(self, process):
        """The exit code; fails with the process's own words where it takes too long."""
        try:
            return process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            pytest.fail(f"the worker still runs: {self.errors()}")

    def undelivered_outcomes(self):
        """As the next attempt finds them."""
        [spool] = earlier_spools(self._storage, 2)
        bodies = [Event.model_validate_json(line).body for line in spool.read(10**6, 10**9)]
        return [body.outcome for body in bodies if body.kind == "finished"]

    def errors(self):
        return (self._folder / "stderr").read_text()[-4000:]

    def close(self):
        for process in self._processes:
            process.kill()
            process.wait()


@pytest.fixture
def make_worker(ingest_server, ray_environment, tmp_path, cache_dir):
    made = []

    def make(**changes):
        made.append(_Worker(ingest_server, tmp_path, cache_dir, SMOKE | changes, ray_environment))
        return made[-1]

    yield make
    for worker in made:
        worker.close()


def _values(server, attempt):
    """Metrics by (name, step)."""
    bodies = server.bodies("metrics", attempt)
    return {(name, body.step): value for body in bodies for name, value in body.values.items()}


def test_a_whole_run_from_nothing(make_worker, ingest_server, tmp_path):
    worker = make_worker(**WHOLE)
    assert worker.end(worker.start()) == 0, worker.errors()
    kinds = [event.body.kind for event in ingest_server.of()]
    assert kinds[0] == "started"
    assert kinds[-1] == "finished"
    assert ingest_server.bodies("finished")[0].outcome == "succeeded"
    assert ingest_server.bodies("started")[0].resumed_from_step is None
    assert [event.seq for event in ingest_server.of()] == list(range(1, len(kinds) + 1))

    stages = [body.stage for body in ingest_server.bodies("heartbeat")]
    order = [stage for i, stage in enumerate(stages) if stage not in stages[:i]]
    assert order[:3] == [Stage.START, Stage.WARM_UP, Stage.DRAFT_PRETRAINING]
    assert set(order) == set(Stage)

    values = _values(ingest_server, 1)
    assert {step for name, step in values if name == "warm_up/loss_nats"} == set(range(1, 31))
    assert {step for name, step in values if name == "draft_pretraining/loss_nats"} == set(range(1, 11))
    assert {step for name, step in values if name == "validation/accuracy_fraction"} == {0, 2}
    assert 1 < values["rollout/acceptance_length_tokens", 2] <= 4
    assert values["mismatch/token_mult_prob_error_ratio", 2] < 1.05
    assert [step for name, step in values if name == "weight_sync/transfer_s"] == [1, 2]
    low, high = values["speedup/generation_low_ratio", 2], values["speedup/generation_high_ratio", 2]
    assert 0 < low <= values["speedup/generation_ratio", 2] <= high
    assert [body.step for body in ingest_server.bodies("samples")] == [1, 2]
    checkpoints = ingest_server.bodies("checkpoint")
    assert [body.step for body in checkpoints] == [1, 2]
    assert Path(checkpoints[-1].path).is_relative_to(tmp_path)
    assert (Path(checkpoints[-1].path) / "policy" / "tokenizer.json").is_file()


def test_a_draft_is_trained_alone_and_given_to_a_run(make_worker, ingest_server):
    drafter = {**SMOKE["drafter"], "draft_vocabulary_size": 20}
    trainer = make_worker(job="draft_training", drafter=drafter)
    assert trainer.end(trainer.start()) == 0, trainer.errors()
    assert ingest_server.bodies("finished")[0].outcome == "succeeded"
    (checkpoint,) = ingest_server.bodies("checkpoint")
    assert checkpoint.step == 0
    assert checkpoint.size_bytes > 10_000
    stages = {body.stage for body in ingest_server.bodies("heartbeat")}
    assert stages <= {Stage.START, Stage.WARM_UP, Stage.DRAFT_PRETRAINING}
    values = {name: value for (name, _), value in _values(ingest_server, 1).items()}
    area = "draft_pretraining/held_out"
    positions = [values[f"{area}_acceptance_position_{i}_fraction"] for i in (1, 2, 3)]
    assert values[f"{area}_acceptance_length_tokens"] == pytest.approx(1 + sum(positions))
    assert f"{area}_acceptance_position_4_fraction" not in values
    assert positions[0] == pytest.approx(values[f"{area}_expected_acceptance_position_1_fraction"], abs=0.15)

    del drafter["pretraining"]
    run = make_worker(grpo=SMOKE["grpo"] | {"num_steps": 1}, drafter=drafter | {"path": checkpoint.path})
    assert run.end(run.start(attempt=2)) == 0, run.errors()
    values = _values(ingest_server, 2)
    assert 1 < values["rollout/acceptance_length_tokens", 1] <= 4
    assert values["draft/loss_nats", 1] > 0
    assert not any(name.startswith("draft_pretraining") for name, _ in values)


@pytest.mark.parametrize(("kind", "placement"), [("mtp", "colocated"), ("draft_model", "separate")])
def test_drafts_of_other_kinds_are_trained_before_and_along_a_run(make_worker, ingest_server, kind, placement):
    """Their weights go to the engines in buckets that are verified: by shared memory, or broadcast over gloo."""
    nodes = {"num_nodes": 2, "num_generation_nodes": 1} if placement == "separate" else {}
    worker = make_worker(
        grpo=SMOKE["grpo"] | {"num_steps": 1},
        drafter=SMOKE["drafter"] | {"kind": kind},
        weight_sync={"bucket_mib": 1, "verify_checksum": True},
        resources={"placement": placement, **nodes},
    )
    assert worker.end(worker.start()) == 0, worker.errors()
    values = _values(ingest_server, 1)
    assert values["weight_sync/num_buckets", 1] >= 2
    assert values["weight_sync/size_bytes", 1] > 2**18
    assert values["mismatch/token_mult_prob_error_ratio", 1] < 1.05
    assert {step for name, step in values if name == "draft_pretraining/loss_nats"} == set(range(1, 11))
    assert ("draft_pretraining/held_out_acceptance_length_tokens", 10) in values
    assert values["draft/loss_nats", 1] > 0
    (checkpoint,) = ingest_server.bodies("checkpoint")
    assert (Path(checkpoint.path) / "draft" / "model.safetensors").is_file()


@pytest.mark.parametrize(("kind", "control"), [("ngram", "fixed"), ("suffix", "measured")])
def test_looked_up_drafts_run_without_training_and_with_truncated_sampling(make_worker, ingest_server, kind, control):
    drafter = {"kind": kind, "draft_length": 4, "draft_length_control": control, "min_match_tokens": 1}
    rollout = SMOKE["rollout"] | {"top_k": 12, "top_p": 0.95, "min_p": 0.01}
    worker = make_worker(drafter=drafter, rollout=rollout)
    assert worker.end(worker.start()) == 0, worker.errors()
    assert Stage.DRAFT_PRETRAINING not in {body.stage for body in ingest_server.bodies("heartbeat")}
    values = _values(ingest_server, 1)
    assert values["mismatch/token_mult_prob_error_ratio", 2] < 1.05
    samples = [sample for body in ingest_server.bodies("samples") for sample in body.samples]
    assert len(samples) == 4
    if control == "fixed":  # else speculation may never pay
        assert 1 < values["rollout/acceptance_length_tokens", 2] <= 5
        assert ("speedup/generation_ratio", 2) in values
        assert {0, 4} <= {len(one.drafted) for sample in samples for one in sample.rounds}


def test_a_killed_attempt_is_followed_by_one_that_goes_on(make_worker, ingest_server):
    never = {"interval_steps": 0}
    worker = make_worker(
        grpo=SMOKE["grpo"] | {"num_steps": 30},
        checkpoint={"interval_steps": 2, "max_kept": 1},
        probe=never,
        validation=never,
    )
    first = worker.start(1)
    ingest_server.wait_for(
        lambda: any(e.body.kind == "checkpoint" for e in ingest_server.events[1, "driver/0"].values()), DEADLINE_S
    )
    first.send_signal(signal.SIGKILL)
    first.wait()

    assert worker.end(worker.start(2)) == 0, worker.errors()
    resumed_from = ingest_server.bodies("started", 2)[0].resumed_from_step
    assert resumed_from in range(2, 30, 2)
    before, after = _values(ingest_server, 1), _values(ingest_server, 2)
    steps = {step for name, step in after if name == "reward/train_mean"}
    assert steps == set(range(resumed_from + 1, 31))
    assert not any(name.startswith("warm_up/") for name, _ in after)
    for total in ("progress/num_tokens_total", "progress/elapsed_s"):
        assert after[total, resumed_from + 1] > before[total, resumed_from - 1]
    assert ingest_server.bodies("finished", 2)[0].outcome == "succeeded"


def test_an_actor_that_dies_ends_the_attempt_so_that_another_may_follow(make_worker, ingest_server, ray_environment):
    worker = make_worker(grpo=SMOKE["grpo"] | {"num_steps": 2000})
    process = worker.start()
    ingest_server.wait_for(
        lambda: any(e.body.kind == "checkpoint" for e in ingest_server.events[1, "driver/0"].values()), DEADLINE_S
    )
    pid = _actor_pid("RolloutActor", ray_environment)
    os.kill(pid, signal.SIGKILL)
    assert worker.end(process) == 1
    finished = ingest_server.bodies("finished")[0]
    assert (finished.outcome, finished.is_retryable) == ("failed", True)
    assert "Rollout engine" in finished.error
    assert "process died" in finished.error
    assert f"It was process {pid} on {socket.gethostname()}. Its log, " in finished.error


@pytest.mark.parametrize("way", ["owner", "sigterm", "replaced"])
def test_a_run_ends_early_when_it_should(make_worker, ingest_server, way):
    worker = make_worker(grpo=SMOKE["grpo"] | {"num_steps": 2000}, drafter={"kind": "none"})
    process = worker.start()
    ingest_server.wait_for(
        lambda: any(
            e.body.kind == "metrics" and "reward/train_mean" in e.body.values
            for e in ingest_server.events[1, "driver/0"].values()
        ),
        DEADLINE_S,
    )
    if way == "sigterm":
        process.terminate()
    elif way == "owner":
        ingest_server.is_stop_requested = True
    else:
        ingest_server.current_attempt = 2
    code = worker.end(process)
    outcomes = [body.outcome for body in ingest_server.bodies("finished")]
    if way == "sigterm" and code == 4:  # its last event took longer than it had: the next attempt delivers it
        assert worker.undelivered_outcomes() == ["stopped"]
    else:
        assert (code, outcomes) == ((3, []) if way == "replaced" else (0, ["stopped"]))


@pytest.fixture
def make_attempt(ingest_server, tmp_path, monkeypatch):
    """Attempts in this process."""
    monkeypatch.setattr(StopWatch, "install", lambda _: None)
    monkeypatch.setattr(main, "_FLUSH_S", 1.0)

    def make(attempt, **changes):
        config = RunConfig.model_validate(SMOKE)
        assignment = WorkerAssignment(
            run_id=uuid.UUID(int=1),
            run_name="test",
            attempt=attempt,
            api_url=ingest_server.url,
            starter=f"starter-{uuid.uuid4()}",
            storage_dir=str(tmp_path),
            cache_dir=str(tmp_path),
            config_json=config.model_dump_json(),
            config_sha256=config.sha256(),
        )
        return main.Attempt(assignment.model_copy(update=changes))

    return make


@pytest.fixture
def is_trained_at_once(monkeypatch):
    monkeypatch.setattr(main.Attempt, "_train", lambda _: None)


@pytest.mark.usefixtures("is_trained_at_once")
def test_a_success_that_nobody_has_heard_of_is_none_until_the_next_attempt_has_told_it(make_attempt, ingest_server):
    ingest_server.down()
    assert make_attempt(1).run() == main.EXIT_UNDELIVERED
    ingest_server.up()
    ingest_server.current_attempt = 2
    assert make_attempt(2).run() == main.EXIT_DONE
    assert [body.outcome for attempt in (1, 2) for body in ingest_server.bodies("finished", attempt)] == [
        "succeeded",
        "succeeded",
    ]


@pytest.mark.parametrize(
    ("error", "is_retryable"),
    [
        (RaySystemError("the raylet is gone"), True),
        (ConnectionError("no route"), True),
        (RayTaskError("call", "...", ValueError("no such path")), False),
        (ValueError("no such path"), False),
    ],
)
def test_what_another_attempt_could_do_better_is_said(make_attempt, ingest_server, monkeypatch, error, is_retryable):
    def fail(_):
        raise error

    monkeypatch.setattr(main.Attempt, "_train", fail)
    assert make_attempt(1).run() == main.EXIT_FAILED
    (finished,) = ingest_server.bodies("finished")
    assert (finished.outcome, finished.is_retryable) == ("failed", is_retryable)


@pytest.mark.usefixtures("is_trained_at_once")
def test_the_cluster_gets_its_gpus_back_before_events_are_waited_for(make_attempt, ingest_server, monkeypatch):
    order = []
    monkeypatch.setattr(main.ray, "shutdown", lambda: order.append("shutdown"))
    flush = main.Sender.flush
    monkeypatch.setattr(main.Sender, "flush", lambda *arguments: (order.append("flush"), flush(*arguments))[1])
    assert make_attempt(1).run() == main.EXIT_DONE
    assert order[:2] == ["shutdown", "flush"]


def test_a_configuration_of_another_version_is_refused(make_attempt, ingest_server):
    assert make_attempt(1, config_sha256="0" * 64).run() == main.EXIT_FAILED
    finished = ingest_server.bodies("finished")[0]
    assert (finished.outcome, finished.is_retryable) == ("failed", False)
    assert "install the same version" in finished.error


REWARD = """
def reward(prompt, response, answer):
    if prompt[0] in "12":
        raise ValueError(f"nothing to say about {prompt}")
    return len(set(response)) / answer["most"]
"""


def _on_dataset(folder, **task):
    """The changes by which a run has rows of a file and an untrained policy in a folder."""
    tokenizer = character_tokenizer()
    policy = Qwen3Policy(model_config(RunConfig.model_validate(SMOKE).policy, tokenizer))
    policy.initialize(0)
    save_policy(policy, folder / "policy")
    tokenizer.save(folder / "policy")
    (folder / "policy" / "chat_template.jinja").write_text("{{ messages[0].content }}=")
    rows = [{"question": f"{number}+1", "limits": {"most": 50}} for number in range(10, 50)]
    (folder / "rows.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    source = {"kind": "jsonl", "path": str(folder / "rows.jsonl"), "answer_field": "limits"}
    given = {"kind": "dataset", "train": source, "overlong": {"kind": "scored"}} | task
    return {"task": given, "policy": {"kind": "checkpoint", "path": str(folder / "policy")}}


def test_a_dataset_with_a_reward_of_the_users_is_trained_on(make_worker, ingest_server, tmp_path):
    (tmp_path / "my_rewards.py").write_text(REWARD)
    reward = {"kind": "python", "function": "my_rewards:reward", "num_processes": 2}
    short = {
        "grpo": SMOKE["grpo"] | {"num_steps": 1},
        "drafter": SMOKE["drafter"] | {"pretraining": {"num_rollouts": 8, "num_steps": 1, "batch_size": 4}},
    }
    worker = make_worker(**_on_dataset(tmp_path, reward=reward), **short)
    variables = {"PYTHONPATH": str(tmp_path)}
    assert worker.end(worker.start(variables=variables, reward_modules=["my_rewards"])) == 0, worker.errors()
    values = {name: value for (name, _), value in _values(ingest_server, 1).items()}
    drawn = open_task(worker.config).split("train").problems(0, 4)
    assert values["reward/num_failures_raised"] == 4 * sum(problem.prompt[0] in "12" for problem in drawn) > 0
    assert values["reward/num_failures"] == values["reward/num_failures_raised"]
    assert (values["data/num_train_prompts"], values["data/num_validation_prompts"]) == (38, 2)
    assert 0 < values["reward/train_mean"] < 1
    assert values["policy/grad_norm"] > 0
    assert values["mismatch/token_mult_prob_error_ratio"] < 1.05
    assert "draft_pretraining/held_out_acceptance_length_tokens" in values
    assert any("got no score and count as 0 (raised)" in body.message for body in ingest_server.bodies("log"))


@pytest.mark.parametrize(
    ("reward", "source", "said"),
    [
        ({"kind": "exact"}, {"answer_field": "solution"}, "none of 40 rows can be used: 40 have no answer"),
        ({"kind": "python", "function": "my_rewards:reward"}, {}, "reward functions of these modules: none"),
    ],
)
def test_what_is_wrong_with_data_or_reward_is_told_before_anything_is_taken(
    make_attempt, ingest_server, monkeypatch, tmp_path, reward, source, said
):
    monkeypatch.setattr(main, "connect", lambda _: pytest.fail("the cluster was asked for something"))
    changes = _on_dataset(tmp_path, reward=reward)
    changes["task"]["train"] |= source
    config = RunConfig.model_validate(SMOKE | changes)
    attempt = make_attempt(1, config_json=config.model_dump_json(), config_sha256=config.sha256())
    assert attempt.run() == main.EXIT_FAILED
    finished = ingest_server.bodies("finished")[0]
    assert (finished.outcome, finished.is_retryable) == ("failed", False)
    assert said in finished.error


def test_a_policy_that_is_not_there_is_named(make_worker, ingest_server, tmp_path):
    missing = str(tmp_path / "nowhere")
    worker = make_worker(policy={"kind": "checkpoint", "path": missing})
    assert worker.end(worker.start()) == 1
    finished = ingest_server.bodies("finished")[0]
    assert (finished.outcome, finished.is_retryable) == ("failed", False)
    assert missing in finished.error


def test_without_an_assignment_it_says_what_is_missing(make_worker):
    worker = make_worker()
    assert worker.end(worker.run({})) == 2
    assert ASSIGNMENT_VARIABLE in worker.errors()


def test_an_assignment_that_is_none_is_told_as_such(monkeypatch, caplog):
    monkeypatch.setenv(ASSIGNMENT_VARIABLE, json.dumps({"run_id": "x"}))
    assert main.main() == main.EXIT_UNUSABLE
    assert f"{ASSIGNMENT_VARIABLE} is not a valid assignment" in caplog.text


def _actor_pid(name, environment):
    """Process id of an actor of this module's Ray: Ray names its processes, which inherit its environment."""
    mark = f"{MARK}={environment[MARK]}\0".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_actor = (folder / "cmdline").read_text().startswith(f"ray::{name}")
            if is_actor and mark in (folder / "environ").read_bytes():
                return int(folder.name)
        except OSError:
            continue
    return pytest.fail(f"no process of {name}")
