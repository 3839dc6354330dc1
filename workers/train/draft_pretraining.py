"""Training of the draft head on the starting policy's own rollouts, before the first step."""

from collections.abc import Iterator
from pathlib import Path

import torch

from contract.config.drafter import Eagle3Drafter
from contract.config.rollout import TorchRollout
from contract.config.task import ArithmeticTask
from contract.config.trainer import TorchTrainer
from workers.data.batch import select_rows
from workers.model.draft_checkpoint import save_draft
from workers.model.eagle3 import Eagle3Head, EagleConfig
from workers.model.qwen3 import Qwen3Policy
from workers.train.cache import cache_folder, write_folder
from workers.train.draft_trainer import DraftTrainer
from workers.train.logprobs import autocast_dtype
from workers.train.progress import SetUpProgress
from workers.train.schedule import scheduled_fraction
from workers.train.trainer import TrainingBatch

_RECIPE = 2
"""Counts changes that change the result, so that older cached results are not taken for new ones: of this module and
of those that it trains with, workers.data, model, rollout, train.draft_trainer, train.optimizer and train.schedule."""


def draft_pretraining_folder(
    cache_dir: Path,
    policy: str,
    task: ArithmeticTask,
    drafter: Eagle3Drafter,
    *,
    rollout: TorchRollout,
    trainer: TorchTrainer,
    seed: int,
) -> Path:
    """Where the pretrained draft head lies or would lie. policy: what the starting policy is, its folder's name."""
    inputs = {
        "recipe": _RECIPE,
        "policy": policy,
        "task": task.model_dump(mode="json"),
        "pretraining": drafter.pretraining.model_dump(mode="json"),
        "rollout": rollout.model_dump(mode="json"),
        "precision": trainer.precision,
        "num_threads": trainer.num_threads,
        "max_grad_norm": trainer.max_grad_norm,
        "seed": seed,
    }
    return cache_folder(cache_dir, "draft", inputs)


def pretrain_draft(
    folder: Path,
    policy: Qwen3Policy,
    rollouts: TrainingBatch,
    drafter: Eagle3Drafter,
    *,
    trainer: TorchTrainer,
    seed: int,
) -> Iterator[SetUpProgress]:
    """Train on the rollouts, drawn in random order again and again, and write the head's folder.

    Each step's features and logits come from a pass of the policy without gradient. Reports every step.
    """
    recipe = drafter.pretraining
    head = Eagle3Head(EagleConfig(policy.config))
    head.initialize(policy, seed)
    dtype = autocast_dtype(trainer)
    draft = DraftTrainer(
        head, recipe.learning_rate_matrices, recipe.learning_rate_others, trainer.max_grad_norm, autocast_dtype=dtype
    )
    rows = _endless_rows(len(rollouts.token_ids_BT), seed)
    for step in range(recipe.num_steps):
        part = select_rows(rollouts, torch.tensor([next(rows) for _ in range(recipe.batch_size)]))
        with torch.no_grad(), torch.autocast("cpu", dtype, enabled=dtype is not None):
            output = policy(part.token_ids_BT, head.config.tap_layers)
        assert output.features_BTF is not None
        update = draft.update(
            output.features_BTF,
            part.token_ids_BT,
            part.response_mask_BT,
            output.logits_BTV,
            recipe.unroll_length,
            temperature=part.temperature,
            learning_rate_scale=scheduled_fraction(step, recipe.num_steps),
        )
        metrics = {
            "draft_pretraining/loss_nats": update.loss_nats,
            "draft_pretraining/expected_acceptance_length_tokens": update.expected_acceptance_length,
        }
        yield SetUpProgress(step + 1, recipe.num_steps, metrics)
    write_folder(folder, lambda part: save_draft(head, part))


def _endless_rows(num_rows: int, seed: int) -> Iterator[int]:
    """Every row once in random order, then again in another."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield from torch.randperm(num_rows, generator=generator).tolist()
