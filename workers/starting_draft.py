"""The draft that a run starts with: trained on the starting policy's rollouts, measured, and kept for other runs."""

import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contract.config import RunConfig
from contract.config.drafter import NoDrafter, TrainedDrafter
from contract.config.task import ArithmeticTask
from contract.telemetry.stages import Stage
from workers.algo.sampling import Truncation
from workers.data.batch import to_training_batch
from workers.data.draft_prompts import generic_problems
from workers.data.problem import Problem, Task
from workers.data.tokenizer import load_tokenizer
from workers.model.config import ModelConfig
from workers.model.hf_checkpoint import read_json
from workers.placement.balance import share_out
from workers.placement.engines import RemoteEngines
from workers.placement.trainers import RemoteTrainer
from workers.ray_calls import RayCalls
from workers.rollout.engine import Completion, SamplingParams, SpeculationCounters
from workers.seeds import derive_seed
from workers.set_up_report import SetUpReport
from workers.train.draft_pretraining import HELD_OUT_FILE, Rollouts, draft_pretraining_folder
from workers.train.trainer import TrainingBatch

log = logging.getLogger(__name__)

_ROLLOUT_CHUNKS = 6
"""generate() calls that the draft's training data is cut into, so that progress is seen."""
_ROLLOUTS_DONE, _TRAINING_DONE = 0.35, 0.95
"""Shares of the stage's time after its rollouts and after its training, for the progress bar."""
NUM_HELD_OUT = 64
"""Prompts on which a draft is measured."""
_AREA = "draft_pretraining/held_out_acceptance"


class StartingDraft:
    """Finds, makes and measures the draft of one configuration."""

    def __init__(
        self,
        config: RunConfig,
        task: Task,
        cache_dir: Path,
        trainer: RemoteTrainer,
        engines: RemoteEngines,
        calls: RayCalls,
    ) -> None:
        assert isinstance(config.drafter, TrainedDrafter)
        self._config, self._drafter, self._task, self._cache_dir = config, config.drafter, task, cache_dir
        self._trainer, self._engines, self._calls = trainer, engines, calls

    def folder(self, policy: Path, report: SetUpReport) -> Path:
        """Where the draft lies, trained now unless it is there already."""
        if self._drafter.path is not None:
            return Path(self._drafter.path)
        folder = draft_pretraining_folder(
            self._cache_dir, _identity(policy), self._config, self._drafter, task=self._task.identity
        )
        if folder.is_dir():
            log.info("The starting draft comes from %s.", folder)
        else:
            count = self._drafter.pretraining.num_rollouts
            log.info("Training the starting draft on %d responses of the policy. It will be kept.", count)
            rollouts = self._rollouts(policy, report)
            call = self._trainer.first.pretrain_draft.options(num_returns="streaming")
            steps = self._calls.stream("Trainer rank 0", call.remote(str(folder), str(policy), rollouts))
            report.follow(Stage.DRAFT_PRETRAINING, steps, _ROLLOUTS_DONE, _TRAINING_DONE)
        return folder

    def measure(self, policy: Path, folder: Path, report: SetUpReport) -> dict[str, float]:
        """Report what the draft is worth on held-out prompts; measured once for each draft and draft length.

        The engines are built for that with the draft length fixed. A draft that was not trained here is not measured.
        """
        if self._drafter.path is not None:
            return {}
        known = json.loads((folder / HELD_OUT_FILE).read_text())
        length = str(self._drafter.draft_length)
        if length not in known["measured"]:
            report.enter(Stage.DRAFT_PRETRAINING, _TRAINING_DONE)
            counters = self._speculate(policy, folder)
            known["measured"][length] = held_out_metrics(counters, self._drafter.draft_length)
            _replace(folder / HELD_OUT_FILE, known)
        metrics: dict[str, float] = known["expected"] | known["measured"][length]
        report.reporter.metrics(self._drafter.pretraining.num_steps, metrics)
        log.info(
            "On held-out prompts the starting draft's acceptance length is %.2f at draft length %s.",
            metrics.get(f"{_AREA}_length_tokens", 1.0),
            length,
        )
        return metrics

    def _rollouts(self, policy: Path, report: SetUpReport) -> Rollouts:
        """Responses drawn by the starting policy without speculation, one for each prompt."""
        report.enter(Stage.DRAFT_PRETRAINING, 0.0)
        self._engines.build(self._config.model_copy(update={"job": "grpo", "drafter": NoDrafter()}), policy, None)
        problems = self._problems(policy)
        return Rollouts(self._respond(policy, problems, report), self._respond(policy, self._held_out(), None))

    def _problems(self, policy: Path) -> Sequence[Problem]:
        """Of the task or of other sizes, as drafter.pretraining.prompts says."""
        recipe, config = self._drafter.pretraining, self._config
        if recipe.prompts == "task":
            return self._task.split("draft_pretraining").problems(0, recipe.num_rollouts)
        assert isinstance(config.task, ArithmeticTask)
        return generic_problems(
            config.task,
            config.seed,
            recipe.num_rollouts,
            max_new_tokens=config.rollout.max_new_tokens,
            max_positions=ModelConfig.from_hf_json(read_json(policy / "config.json")).max_position_embeddings,
        )

    def _respond(self, policy: Path, problems: Sequence[Problem], report: SetUpReport | None) -> TrainingBatch:
        prompts, count = _prompts(policy, problems), len(problems)
        completions: list[Completion] = []
        for chunk in share_out(count, min(_ROLLOUT_CHUNKS, count) if report else 1):
            result = self._engines.generate(
                [prompts[i] for i in chunk], 1, self._sampling("rollouts", chunk.start), speculate=False
            )
            for completion in result.completions:
                completion.prompt_index += chunk.start
            completions += result.completions
            if report:
                report.enter(Stage.DRAFT_PRETRAINING, _ROLLOUTS_DONE * chunk.stop / count)
        params = self._sampling("rollouts", 0)
        return to_training_batch(prompts, completions, params.temperature, params.truncation)

    def _speculate(self, policy: Path, draft: Path) -> SpeculationCounters:
        drafter = self._drafter.model_copy(update={"draft_length_control": "fixed"})
        self._engines.build(self._config.model_copy(update={"drafter": drafter}), policy, draft)
        prompts = _prompts(policy, self._held_out())
        return self._engines.generate(prompts, 1, self._sampling("held_out", 0)).counters

    def _held_out(self) -> list[Problem]:
        return self._task.split("validation").distinct(NUM_HELD_OUT)

    def _sampling(self, purpose: str, number: int) -> SamplingParams:
        rollout = self._config.rollout
        seed = derive_seed(self._config.seed, "draft_pretraining", purpose, number)
        truncation = Truncation(rollout.top_k, rollout.top_p, rollout.min_p)
        return SamplingParams(rollout.temperature, rollout.max_new_tokens, seed, truncation)


def held_out_metrics(counters: SpeculationCounters, draft_length: int) -> dict[str, float]:
    """Acceptance by catalogue name; empty where every response ended before anything could be drafted."""
    if counters.acceptance_length is None:
        return {}
    fractions = {
        f"{_AREA}_position_{i + 1}_fraction": counters.accepted_at_position[i] / counters.num_drafts
        for i in range(draft_length)
    }
    return {f"{_AREA}_length_tokens": counters.acceptance_length, **fractions}


def _replace(path: Path, content: Any) -> None:
    part = path.with_suffix(f".{os.getpid()}")  # other runs may measure the same draft
    part.write_text(json.dumps(content, indent=2))
    part.replace(path)


def _prompts(policy: Path, problems: Sequence[Problem]) -> list[list[int]]:
    tokenizer = load_tokenizer(policy)
    return [tokenizer.encode(problem.prompt) for problem in problems]


def _identity(policy: Path) -> str:
    """What a policy folder holds, as far as its name and its files' times tell."""
    files = sorted(policy.glob("*.safetensors"))
    return "|".join([str(policy.resolve()), *(f"{file.name}:{file.stat().st_mtime_ns}" for file in files)])
