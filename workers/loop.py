"""One run of GRPO, its steps one after another.

It knows protocols only: an engine generates, a trainer learns, a sync carries weights from one to the other.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from contract.config import RunConfig
from contract.telemetry.events import Alarm, Sample
from contract.telemetry.stages import Stage
from workers.algo.advantage import group_advantages
from workers.algo.sampling import Truncation
from workers.audit.run_audit import AuditedResponses, RunAudit
from workers.clock import StageClock
from workers.data.batch import to_training_batch
from workers.data.problem import Problem, Task
from workers.data.tokenizer import Tokenizer
from workers.probe import measure_speedup, num_probed_prompts, speedup_metrics
from workers.rewards.run_rewards import Rewards, RunRewards
from workers.rewards.scorer import Scorer
from workers.rollout.engine import RolloutEngine, RolloutResult, SamplingParams
from workers.rollout_metrics import reward_metrics, rollout_metrics
from workers.samples import sampled_rows, to_sample
from workers.seeds import derive_seed
from workers.telemetry.reporter import Reporter
from workers.throughput import Sizing, throughput_metrics
from workers.train.checkpoint import CheckpointStore, RunProgress
from workers.train.trainer import PolicyTrainer, TrainingBatch
from workers.train.weight_sync import WeightSync

log = logging.getLogger(__name__)

_UNTRAINED_STAGES = (Stage.PROBE, Stage.VALIDATION, Stage.CHECKPOINT)
"""Stages that no training needs, and that the step speedup therefore leaves out."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """One step's responses: P problems with G responses each."""

    problems: list[Problem]
    prompts: list[list[int]]
    result: RolloutResult
    rewards: Rewards
    rewards_PG: torch.Tensor
    advantages_PG: torch.Tensor
    audited: AuditedResponses


@dataclass(frozen=True, slots=True)
class Parts:
    """What the loop is made of."""

    engine: RolloutEngine
    trainer: PolicyTrainer
    sync: WeightSync
    tokenizer: Tokenizer
    task: Task
    scorer: Scorer
    reporter: Reporter
    checkpoints: CheckpointStore
    check_stop: Callable[[], None]
    """Called as each stage begins; raises to end the run."""
    hardware: Callable[[], Mapping[str, float]] = dict
    """What machines did since the last call, by catalogue name."""
    sizing: Sizing | None = None
    """What throughput is counted by."""


class GrpoLoop:
    """Runs a configuration from a given progress to its last step."""

    def __init__(self, config: RunConfig, parts: Parts) -> None:
        self._config = config
        self._parts = parts
        self._problems = parts.task.split("train")
        self._held_out: list[Problem] = []
        if config.validation.interval_steps:
            self._held_out = parts.task.split("validation").distinct(config.validation.num_prompts)
        self._rewards = RunRewards(config, parts.scorer, parts.tokenizer)
        self._has_engine_weights = False
        self._synced: dict[str, float] = {}
        """What was measured when the engine got the weights that it has."""
        self._audit = RunAudit(config)

    def run(self, progress: RunProgress) -> RunProgress:
        """All steps after the given progress; validates first where none was done."""
        if progress.audit:
            self._audit.load_state(progress.audit)
        if progress.step == 0:
            self._parts.reporter.metrics(0, self._parts.task.metrics)
        if progress.step == 0 and self._config.validation.interval_steps:
            self._parts.reporter.metrics(0, self._validate(0, self._clock(0)))
        while progress.step < self._config.grpo.num_steps:
            progress = self._step(progress)
        return progress

    def _step(self, before: RunProgress) -> RunProgress:
        """One GRPO step, and its checkpoint where one is due.

        What was measured is reported before the checkpoint, for an attempt that resumes from it does not measure it
        again; only times come after it, the checkpoint's among them.
        """
        step = before.step + 1
        clock, report = self._clock(step), self._parts.reporter.metrics
        rollout = self._roll_out(step, before.next_problem, clock)
        report(step, self._rollout_metrics(rollout, clock) | self._synced)
        report(step, self._train(step, rollout, clock))
        if _is_due(step, self._config.probe.interval_steps) and rollout.result.counters.num_drafts:
            report(step, self._probe(step, before.next_problem, rollout, clock))
        if self._is_validation_due(step):
            report(step, self._validate(step, clock))
        num_tokens = before.num_tokens_total + sum(len(c.token_ids) for c in rollout.result.completions)
        next_problem = before.next_problem + len(rollout.problems)
        self._report_samples(step, rollout)
        report(step, {"progress/num_tokens_total": float(num_tokens)})
        after = RunProgress(step, next_problem, num_tokens, before.elapsed_s + clock.total())
        if self._is_checkpoint_due(step):
            after = replace(after, audit=self._audit.state())
            self._write_checkpoint(after, clock)
        times = clock.metrics()
        after = replace(after, elapsed_s=before.elapsed_s + times["time/step_s"])
        report(step, times | {"progress/elapsed_s": after.elapsed_s} | self._use_of_hardware(rollout, clock))
        self._log_step(step, rollout, times["time/step_s"])
        return after

    def _use_of_hardware(self, rollout: Rollout, clock: StageClock) -> dict[str, float]:
        metrics = dict(self._parts.hardware())
        if self._parts.sizing is not None:
            lengths = [len(prompt) for prompt in rollout.prompts]
            metrics |= throughput_metrics(self._parts.sizing, lengths, rollout.result.completions, clock)
        return metrics

    def _log_step(self, step: int, rollout: Rollout, seconds: float) -> None:
        """The step in one line, for who reads the log and not the charts."""
        accepted = rollout.result.counters.acceptance_length
        log.info(
            "Step %d/%d took %.1f s: reward %.3f%s.",
            step,
            self._config.grpo.num_steps,
            seconds,
            rollout.rewards_PG.mean().item(),
            f", acceptance length {accepted:.2f}" if accepted is not None else "",
        )

    def _roll_out(self, step: int, next_problem: int, clock: StageClock) -> Rollout:
        """Prompts, weights, responses, rewards and advantages."""
        config, grpo, parts = self._config, self._config.grpo, self._parts
        with clock.stage(Stage.DATA):
            problems = self._problems.problems(next_problem, grpo.num_prompts_per_step)
            prompts = [parts.tokenizer.encode(problem.prompt) for problem in problems]
        self._prepare(clock)
        audited = self._audit.choose()
        with clock.stage(Stage.GENERATION):
            result = parts.engine.generate(
                prompts,
                grpo.num_generations_per_prompt,
                self._sampling("train", step, config.rollout.temperature),
                record_rounds_of=self._rows_to_record(step),
                evidence_of=audited.with_evidence,
            )
        with clock.stage(Stage.REWARD):
            rewards = self._rewards.of(problems, result.completions)
            rewards_PG = torch.tensor(rewards.values).view(len(problems), -1)
            advantages = group_advantages(
                rewards_PG, normalize=grpo.normalize_advantages, leave_one_out=grpo.leave_one_out
            )
        return Rollout(problems, prompts, result, rewards, rewards_PG, advantages, audited)

    def _prepare(self, clock: StageClock) -> None:
        """Weights into the engine, unless a validation has just put them there."""
        with clock.stage(Stage.PREPARE):
            if not self._has_engine_weights:
                self._synced = self._parts.sync.sync()
                self._has_engine_weights = True

    def _train(self, step: int, rollout: Rollout, clock: StageClock) -> dict[str, float]:
        """The policy's and the draft's updates, on tokens that the audit has seen."""
        trainer = self._parts.trainer
        with clock.stage(Stage.LOGPROB):
            batch = self._batch(rollout)
            logprobs = trainer.compute_logprobs(batch)
            audited, alarms = self._audit.after_step(step, rollout.result, logprobs)
            self._report_alarms(alarms)
        with clock.stage(Stage.TRAIN):
            trained = trainer.train_step(batch, logprobs, rollout.advantages_PG.flatten())
        with clock.stage(Stage.DRAFT):
            drafted = trainer.train_draft(batch)
            self._audit.after_draft_training(drafted)
        self._has_engine_weights = False
        return logprobs.metrics | audited | trained | drafted

    def _probe(self, step: int, next_problem: int, rollout: Rollout, clock: StageClock) -> dict[str, float]:
        """By the engine that still has the step's weights, on the next step's prompts: a drafter that learns from
        responses knows those no better than it knew the step's own."""
        config, num_samples = self._config.rollout, self._config.grpo.num_generations_per_prompt
        num_prompts = num_probed_prompts(config.num_engines, config.max_batch_size, num_samples)
        step_size = len(rollout.problems)
        problems = self._problems.problems(next_problem + step_size, min(num_prompts, step_size))
        with clock.stage(Stage.PROBE):
            speedup = measure_speedup(
                self._parts.engine,
                [self._parts.tokenizer.encode(problem.prompt) for problem in problems],
                num_samples,
                self._sampling("probe", step, config.temperature),
            )
        acceptance_length = rollout.result.counters.acceptance_length
        assert acceptance_length is not None
        trained_s = clock.total() - sum(clock.seconds(stage) for stage in _UNTRAINED_STAGES)
        metrics = speedup_metrics(
            speedup,
            step_s=trained_s,
            generation_s=clock.seconds(Stage.GENERATION),
            draft_s=clock.seconds(Stage.DRAFT),
            acceptance_length=acceptance_length,
        )
        self._report_alarms(self._audit.after_probe(step, metrics))
        return metrics

    def _validate(self, step: int, clock: StageClock) -> dict[str, float]:
        """Accuracy on the same held-out prompts, drawn with the same seeds, at every validation."""
        prompts = [self._parts.tokenizer.encode(problem.prompt) for problem in self._held_out]
        self._prepare(clock)
        with clock.stage(Stage.VALIDATION):
            params = self._sampling("validation", 0, self._config.validation.temperature)
            result = self._parts.engine.generate(prompts, 1, params)
            rewards = self._rewards.of(self._held_out, result.completions)
            accuracy = sum(rewards.values) / len(prompts)
        log.info("Validation after step %d: %.1f %% of %d prompts right.", step, 100 * accuracy, len(prompts))
        return {
            "validation/accuracy_fraction": accuracy,
            "validation/response_length_mean_tokens": sum(len(c.token_ids) for c in result.completions) / len(prompts),
            **self._rewards.failure_metrics("validation", rewards),
        }

    def _rollout_metrics(self, rollout: Rollout, clock: StageClock) -> dict[str, float]:
        failures = self._rewards.failure_metrics("reward", rollout.rewards)
        generated = rollout_metrics(rollout.result, clock.seconds(Stage.GENERATION))
        return reward_metrics(rollout.rewards_PG) | failures | generated

    def _write_checkpoint(self, progress: RunProgress, clock: StageClock) -> None:
        with clock.stage(Stage.CHECKPOINT):
            path, size_bytes = self._parts.checkpoints.write(progress, self._save)
        self._parts.reporter.checkpoint(progress.step, str(path), size_bytes)
        log.info("The checkpoint of step %d is complete.", progress.step)

    def _save(self, folder: Path) -> None:
        """The trainer's state; the policy's folder gets its tokenizer, so that it can be used anywhere."""
        self._parts.trainer.save(folder)
        self._parts.tokenizer.save(folder / "policy")

    def _report_alarms(self, alarms: Sequence[Alarm]) -> None:
        for alarm in alarms:
            self._parts.reporter.alarm(alarm)

    def _report_samples(self, step: int, rollout: Rollout) -> None:
        """Where they are due."""
        if rows := self._rows_to_record(step):
            self._parts.reporter.samples(step, [self._sample(rollout, row) for row in rows])

    def _sample(self, rollout: Rollout, row: int) -> Sample:
        completion = rollout.result.completions[row]
        return to_sample(
            completion,
            rollout.problems[completion.prompt_index],
            self._parts.tokenizer,
            reward=rollout.rewards_PG.flatten()[row].item(),
            advantage=rollout.advantages_PG.flatten()[row].item(),
        )

    def _batch(self, rollout: Rollout) -> TrainingBatch:
        return to_training_batch(
            rollout.prompts,
            rollout.result.completions,
            self._config.rollout.temperature,
            self._truncation,
            evidence=rollout.result.evidence,
            audited=rollout.audited.tested,
        )

    def _sampling(self, purpose: str, step: int, temperature: float) -> SamplingParams:
        seed = derive_seed(self._config.seed, purpose, step)
        return SamplingParams(temperature, self._config.rollout.max_new_tokens, seed, self._truncation)

    @property
    def _truncation(self) -> Truncation:
        config = self._config.rollout
        return Truncation(config.top_k, config.top_p, config.min_p)

    def _rows_to_record(self, step: int) -> list[int]:
        grpo, samples = self._config.grpo, self._config.samples
        if not (_is_due(step, samples.interval_steps) or (step == 1 and samples.interval_steps)):
            return []
        return sampled_rows(grpo.num_prompts_per_step * grpo.num_generations_per_prompt, samples.num_samples)

    def _is_validation_due(self, step: int) -> bool:
        interval = self._config.validation.interval_steps
        return bool(interval) and (_is_due(step, interval) or step == self._config.grpo.num_steps)

    def _is_checkpoint_due(self, step: int) -> bool:
        return _is_due(step, self._config.checkpoint.interval_steps) or step == self._config.grpo.num_steps

    def _clock(self, step: int) -> StageClock:
        def enter(stage: Stage) -> None:
            self._parts.check_stop()
            self._parts.reporter.stage(stage, step)

        return StageClock(enter)


def _is_due(step: int, interval: int) -> bool:
    """Every `interval` steps; never at interval 0."""
    return bool(interval) and step % interval == 0
