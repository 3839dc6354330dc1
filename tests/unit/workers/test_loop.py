"""The loop with a real engine and a real trainer in this process, both tiny."""

import json
import uuid

import pytest

from contract.config import RunConfig
from contract.telemetry.alarms import AlarmName
from contract.telemetry.events import Event
from contract.telemetry.stages import Stage
from workers.data.open_task import open_task
from workers.data.tokenizer import character_tokenizer
from workers.loop import GrpoLoop, Parts
from workers.model.eagle3 import Eagle3Head, EagleConfig
from workers.model.hf_checkpoint import save_policy
from workers.model.qwen3 import Qwen3Policy
from workers.rewards.local import LocalScorer
from workers.rewards.open_scorer import open_scorer
from workers.rollout.drafters.trained import trained_drafting
from workers.rollout.torch_engine import TorchRolloutEngine
from workers.telemetry.reporter import Reporter
from workers.telemetry.spool import Spool
from workers.train.checkpoint import CheckpointStore, RunProgress
from workers.train.torch_trainer import TorchPolicyTrainer
from workers.train.warm_up import model_config

CONFIG = {
    "task": {"num_terms": 2, "max_term": 19},
    "policy": {
        "kind": "scratch",
        "num_layers": 3,
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
    },
    "rollout": {"max_new_tokens": 37, "max_batch_size": 8, "precision": "float32"},
    "drafter": {
        "kind": "eagle3",
        "draft_length": 2,
        "draft_length_control": "fixed",
        "online": {"batch_size": 4, "unroll_length": 2},
    },
    "grpo": {"num_steps": 3, "num_prompts_per_step": 2, "num_generations_per_prompt": 3},
    "trainer": {"precision": "float32", "optimizer": {"kind": "adamw", "learning_rate": 0.01}},
    "probe": {"interval_steps": 2},
    "validation": {"interval_steps": 2, "num_prompts": 3},
    "checkpoint": {"interval_steps": 2},
    "samples": {"interval_steps": 2, "num_samples": 2},
}


class _DirectSync:
    """Trainer and engine in one process."""

    def __init__(self, trainer, engine):
        self._trainer, self._engine = trainer, engine

    def sync(self):
        parts = ("policy", "draft") if self._engine.drafting is not None else ("policy",)
        for part in parts:
            self._engine.update_weights(part, self._trainer.export_weights(part))
        return {"weight_sync/num_buckets": float(len(parts))}


class _Run:
    """One run in a folder; started again, it goes on from its checkpoint."""

    def __init__(self, folder, attempt=1, check_stop=lambda: None, scorer=None, **changes):
        self.config = RunConfig.model_validate(CONFIG | changes)
        self.spool = Spool(folder / str(attempt), uuid.uuid4(), attempt, "driver/0")
        self.store = CheckpointStore(folder / "checkpoints", 2)
        shape = model_config(SHAPE, character_tokenizer())
        policy, head = Qwen3Policy(shape), None
        policy.initialize(5)
        if self.config.drafter.kind == "eagle3":
            head = Eagle3Head(EagleConfig(shape))
            head.initialize(policy, 6)
        drafting = trained_drafting(self.config.drafter, head) if head else None
        engine = TorchRolloutEngine(shape, 1, 8, "float32", drafting)
        trainer = TorchPolicyTrainer(
            policy,
            None,
            head,
            trainer=self.config.trainer,
            grpo=self.config.grpo,
            online=CONFIG_ONLINE,
            seed=1,
        )
        self.progress = RunProgress()
        if found := self.store.newest():
            trainer.load(found[0])
            self.progress = found[1]
        sync, reporter = _DirectSync(trainer, engine), Reporter(self.spool)
        task, scorer = open_task(self.config), scorer or open_scorer(self.config, [], check_stop)
        parts = Parts(engine, trainer, sync, character_tokenizer(), task, scorer, reporter, self.store, check_stop)
        self.loop = GrpoLoop(self.config, parts)

    def run(self):
        return self.loop.run(self.progress)

    def bodies(self, kind):
        bodies = [Event.model_validate_json(line).body for line in self.spool.read(10_000, 10**9)]
        return [body for body in bodies if body.kind == kind]

    def metrics(self):
        """Values by (step, name)."""
        return {(body.step, name): value for body in self.bodies("metrics") for name, value in body.values.items()}

    def repeatable(self):
        """The metrics that the seed decides."""
        return {key: value for key, value in self.metrics().items() if not _is_timed(key[1])}


SHAPE = RunConfig.model_validate(CONFIG).policy
CONFIG_ONLINE = RunConfig.model_validate(CONFIG).drafter.online


def on_dataset(folder, num_rows=10, **task):
    """The changes by which a run has rows of a file, next to a policy that has a folder as checkpoints do."""
    policy = Qwen3Policy(model_config(SHAPE, character_tokenizer()))
    save_policy(policy, folder / "policy")
    character_tokenizer().save(folder / "policy")
    rows = [{"prompt": f"{a}+1=", "answer": a + 1} for a in range(num_rows)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"prompt": "0+2="}, rows[0]]))
    source = {"kind": "jsonl", "path": str(folder / "rows.jsonl")}
    task = {"kind": "dataset", "chat_template": "plain", "reward": {"kind": "exact", "mark": "#"}} | task
    return {
        "task": task | {"train": source},
        "policy": {"kind": "checkpoint", "path": str(folder / "policy")},
    }


def _is_timed(name):
    others = ("progress/elapsed_s", "rollout/tokens_per_second", "controller/round_s", "controller/predicted_round_s")
    return name.startswith(("time/", "speedup/")) or name in others


@pytest.fixture(scope="module")
def start():
    """Makes runs and closes their files in the end."""
    runs = []

    def make(*args, **kwargs):
        runs.append(_Run(*args, **kwargs))
        return runs[-1]

    yield make
    for run in runs:
        run.spool.close()


@pytest.fixture(scope="module")
def finished(start, tmp_path_factory):
    run = start(tmp_path_factory.mktemp("run"))
    run.last = run.run()
    return run


def test_every_step_reports_and_the_totals_add_up(finished):
    metrics = finished.metrics()
    for step in (1, 2, 3):
        assert {"reward/train_mean", "policy/entropy_nats", "draft/loss_nats", "time/step_s"} <= {
            name for at, name in metrics if at == step
        }
        parts = [v for (at, n), v in metrics.items() if at == step and n.startswith("time/") and n != "time/step_s"]
        assert sum(parts) == pytest.approx(metrics[step, "time/step_s"])
    tokens = [metrics[step, "rollout/num_generated_tokens"] for step in (1, 2, 3)]
    assert metrics[3, "progress/num_tokens_total"] == sum(tokens) == finished.last.num_tokens_total
    assert (finished.last.step, finished.last.next_problem) == (3, 6)


def test_intervals_decide_when_the_rest_happens(finished):
    metrics = finished.metrics()
    assert [at for at, name in metrics if name == "validation/accuracy_fraction"] == [0, 2, 3]
    assert [at for at, name in metrics if name == "speedup/generation_ratio"] == [2]
    assert [body.step for body in finished.bodies("checkpoint")] == [2, 3]
    assert [body.step for body in finished.bodies("samples")] == [1, 2]
    assert all(len(sample.rounds) > 0 for body in finished.bodies("samples") for sample in body.samples)


def test_stages_come_in_the_order_of_a_step(finished):
    stages = [body.stage for body in finished.bodies("heartbeat") if body.step == 2]
    assert stages == [
        Stage.DATA,
        Stage.PREPARE,
        Stage.GENERATION,
        Stage.REWARD,
        Stage.LOGPROB,
        Stage.TRAIN,
        Stage.DRAFT,
        Stage.PROBE,
        Stage.PREPARE,  # the new weights, for validation
        Stage.VALIDATION,
        Stage.CHECKPOINT,
    ]


def test_only_times_are_reported_after_a_checkpoint_and_they_count_it(finished):
    bodies = [Event.model_validate_json(line).body for line in finished.spool.read(10_000, 10**9)]
    for step in (2, 3):
        kinds = [body.kind for body in bodies if body.kind != "heartbeat" and body.step == step]
        assert kinds[-2:] == ["checkpoint", "metrics"]
        last = [body for body in bodies if body.kind == "metrics" and body.step == step][-1].values
        assert {"time/checkpoint_s", "time/step_s", "progress/elapsed_s"} <= last.keys()
        assert all(name.startswith("time/") or name == "progress/elapsed_s" for name in last)
    assert [body.kind for body in bodies if body.kind in ("samples", "checkpoint")][:3] == [
        "samples",
        "samples",
        "checkpoint",
    ]
    metrics = finished.metrics()
    elapsed = sum(metrics[step, "time/step_s"] for step in (1, 2, 3))
    assert metrics[3, "progress/elapsed_s"] == pytest.approx(elapsed)
    assert finished.last.elapsed_s == metrics[3, "progress/elapsed_s"]


def test_without_validation_no_prompt_is_looked_for(start, tmp_path):
    run = start(tmp_path, validation={"interval_steps": 0}, grpo=CONFIG["grpo"] | {"num_steps": 1})
    run.run()
    assert not any(name.startswith("validation/") for _, name in run.metrics())


def test_the_engine_and_the_trainer_agree(finished):
    metrics = finished.metrics()
    for step in (1, 2, 3):  # float32 on both sides: a stale weight sync would show here
        assert metrics[step, "mismatch/kl_nats"] < 1e-6
        assert metrics[step, "weight_sync/num_buckets"] == 2  # also where a validation has put the weights there
        assert metrics[step, "lossless/ks_p_value"] > 1e-4
        assert metrics[step, "lossless/ordered_ks_p_value"] > 1e-4
        assert abs(metrics[step, "lossless/acceptance_z_score"]) < 4
        assert metrics[step, "lossless/log10_e_value"] < 2
        assert metrics[step, "lossless/num_count_violations"] == metrics[step, "lossless/num_excluded_tokens"] == 0


def test_weights_that_miss_their_sync_raise_an_alarm_at_the_next_step(start, tmp_path, monkeypatch):
    synced = []
    sync = _DirectSync.sync
    monkeypatch.setattr(_DirectSync, "sync", lambda self: {} if synced else synced.append(sync(self)) or {})
    # A policy as untrained as this one gets no reward, and without any would not move.
    scorer = LocalScorer(lambda text, _: float(text[:1] < "a"))
    changes = on_dataset(tmp_path, overlong={"kind": "scored"})
    run = start(tmp_path, scorer=scorer, validation={"interval_steps": 0}, **changes)
    run.run()
    alarms = [alarm for alarm in run.bodies("alarm") if alarm.name is AlarmName.LOGPROB_MISMATCH]
    assert [(alarm.step, alarm.is_raised) for alarm in alarms] == [(2, True)]
    assert "token_mult_prob_error is 1." in alarms[0].message


def test_truncated_sampling_is_audited_as_such(start, tmp_path):
    rollout = CONFIG["rollout"] | {"top_p": 0.7, "top_k": 20, "min_p": 0.01}
    run = start(tmp_path, rollout=rollout, grpo=CONFIG["grpo"] | {"num_steps": 2})
    run.run()
    metrics = run.metrics()
    for step in (1, 2):
        assert metrics[step, "mismatch/kl_nats"] < 1e-6
        assert metrics[step, "lossless/ks_p_value"] > 1e-4
        assert metrics[step, "lossless/num_excluded_tokens"] == 0
    untruncated = start(tmp_path / "all", grpo=CONFIG["grpo"] | {"num_steps": 1})
    untruncated.run()
    assert untruncated.metrics()[1, "lossless/ks_distance"] != metrics[1, "lossless/ks_distance"]


def test_the_audit_looks_at_no_more_than_its_budget(start, tmp_path):
    audit = {"max_tokens_per_step": 2 * 37, "max_evidence_tokens_per_step": 37}
    run = start(tmp_path, audit=audit, grpo=CONFIG["grpo"] | {"num_steps": 1})
    run.run()
    metrics = run.metrics()
    assert 0 < metrics[1, "lossless/num_tokens"] <= 2 * 37
    assert 0 < metrics[1, "lossless/num_tested_drafts"] <= 37


def test_the_seed_decides_the_run(start, finished, tmp_path):
    again = start(tmp_path / "again")
    again.run()
    assert again.repeatable() == finished.repeatable()
    other = start(tmp_path / "other", seed=1)
    other.run()
    assert other.repeatable() != finished.repeatable()


def test_a_resumed_run_takes_the_very_steps_that_would_have_followed(start, finished, tmp_path):
    class Killed(Exception):
        pass

    stages = []

    def kill():
        stages.append(1)
        if len(stages) > 26:  # in the third step
            raise Killed

    first = start(tmp_path, check_stop=kill)
    with pytest.raises(Killed):
        first.run()
    second = start(tmp_path, attempt=2)
    assert second.progress.step == 2
    last = second.run()
    assert (last.step, last.num_tokens_total) == (3, finished.last.num_tokens_total)
    assert last.elapsed_s > second.progress.elapsed_s > 0
    third_step = {key: value for key, value in finished.repeatable().items() if key[0] == 3}
    assert second.repeatable() == third_step


def test_without_a_drafter_nothing_is_claimed_about_speculation(start, tmp_path):
    run = start(tmp_path, drafter={"kind": "none"})
    run.run()
    names = {name for _, name in run.metrics()}
    assert not any(name.startswith(("speedup/", "draft/", "rollout/acceptance")) for name in names)
    assert {"reward/train_mean", "lossless/ks_distance", "validation/accuracy_fraction"} <= names


def test_the_log_tells_of_steps_validations_and_checkpoints(start, tmp_path, caplog):
    caplog.set_level("INFO", logger="workers")
    run = start(tmp_path, grpo=CONFIG["grpo"] | {"num_steps": 2})
    run.run()
    said = [record.message for record in caplog.records if record.name == "workers.loop"]
    assert [line.split(":")[0] for line in said if not line.startswith("Step")] == [
        "Validation after step 0",
        "Validation after step 2",
        "The checkpoint of step 2 is complete.",
    ]
    steps = [line for line in said if line.startswith("Step")]
    assert [line.split(" took ")[0] for line in steps] == ["Step 1/2", "Step 2/2"]
    for step, line in enumerate(steps, start=1):
        reward, length = (
            run.metrics()[step, name] for name in ("reward/train_mean", "rollout/acceptance_length_tokens")
        )
        assert f"reward {reward:.3f}, acceptance length {length:.2f}" in line


def test_a_dataset_is_drawn_from_epoch_after_epoch_and_what_was_left_out_is_told(start, tmp_path):
    run = start(tmp_path, validation=CONFIG["validation"], **on_dataset(tmp_path, num_rows=5))
    run.run()
    metrics = run.metrics()
    counts = {name: value for (step, name), value in metrics.items() if name.startswith("data/") and step == 0}
    assert counts == {
        "data/num_train_prompts": 4,
        "data/num_validation_prompts": 1,
        "data/num_rows_without_answer": 1,
        "data/num_rows_duplicate": 1,
        "data/num_rows_without_prompt": 0,
        "data/num_rows_in_validation": 0,
        "data/num_rows_too_long": 0,
    }
    assert metrics[3, "reward/train_mean"] == 0  # an untrained policy
    assert not any("failures" in name for _, name in metrics)  # texts are compared, which cannot fail
    prompts = [sample.prompt for body in run.bodies("samples") for sample in body.samples]
    assert set(prompts) <= {f"{a}+1=" for a in range(5)}


def test_a_resumed_run_goes_on_with_the_datasets_very_next_prompts(start, tmp_path):
    class Killed(Exception):
        pass

    def kill():
        if len(stages) > 21:
            raise Killed
        stages.append(1)

    stages, grpo = [], CONFIG["grpo"] | {"num_steps": 4}
    shared = {"checkpoint": {"interval_steps": 1}, "samples": {"interval_steps": 1, "num_samples": 2}, "grpo": grpo}
    changes = on_dataset(tmp_path) | shared | {"probe": {"interval_steps": 0}, "validation": {"interval_steps": 0}}
    whole = start(tmp_path / "whole", **changes)
    whole.run()
    first = start(tmp_path / "cut", check_stop=kill, **changes)
    with pytest.raises(Killed):
        first.run()
    second = start(tmp_path / "cut", attempt=2, **changes)
    assert 0 < second.progress.step < 4
    second.run()
    drawn = [_drawn(run, second.progress.step) for run in (whole, second)]
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) == 4 - second.progress.step


def _drawn(run, after_step):
    """Stored prompts and responses by step."""
    return {
        body.step: [(sample.prompt, sample.response) for sample in body.samples]
        for body in run.bodies("samples")
        if body.step > after_step
    }
