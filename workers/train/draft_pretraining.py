"""Training of a draft on the starting policy's own rollouts, before the first step or as a job of its own."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from contract.config import RunConfig
from contract.config.drafter import (
    DraftModelDrafter,
    DraftPretraining,
    Eagle3Drafter,
    MtpDrafter,
    MtpShape,
    TrainedDrafter,
)
from contract.config.trainer import TrainerConfig
from workers.data.batch import select_rows
from workers.model.config import ModelConfig
from workers.model.draft import DraftModule, PolicyPass
from workers.model.draft_checkpoint import save_draft
from workers.model.draft_model import DraftModel
from workers.model.eagle3 import Eagle3Head, EagleConfig
from workers.model.mtp import MtpConfig, MtpModule
from workers.model.qwen3 import Qwen3Policy
from workers.train.cache import cache_folder, write_folder
from workers.train.draft_trainer import DraftTrainer
from workers.train.logprobs import autocast_dtype
from workers.train.progress import SetUpProgress
from workers.train.schedule import scheduled_fraction
from workers.train.trainer import TrainingBatch

_RECIPE = 4
"""Counts changes that change the result, so that older cached results are not taken for new ones: of this module and
of those that it trains with, workers.data, model, rollout, train.draft_trainer, train.optimizer and train.schedule."""

HELD_OUT_FILE = "held_out.json"
"""`expected`: metrics from the overlap of draft and policy; `measured`: metrics of speculative generation by draft
length, which the driver fills in."""


def draft_pretraining_folder(
    cache_dir: Path, policy: str, config: RunConfig, drafter: TrainedDrafter, *, task: Mapping[str, Any]
) -> Path:
    """Where the pretrained draft lies or would lie.

    policy: what the starting policy is, its folder's name. task: what decides the prompts.
    """
    inputs = {
        "recipe": _RECIPE,
        "policy": policy,
        "task": task,
        "drafter": drafter.model_dump(mode="json", exclude={"draft_length", "draft_length_control", "path", "online"}),
        "rollout": config.rollout.model_dump(mode="json"),
        "precision": config.trainer.precision,
        "num_threads": config.trainer.num_threads,
        "max_grad_norm": config.trainer.max_grad_norm,
        "seed": config.seed,
    }
    return cache_folder(cache_dir, "draft", inputs)


@dataclass(frozen=True, slots=True)
class Rollouts:
    """Responses of the policy."""

    training: TrainingBatch
    held_out: TrainingBatch
    """To held-out prompts of the run's task."""


def pretrain_draft(
    folder: Path,
    policy: Qwen3Policy,
    rollouts: Rollouts,
    drafter: TrainedDrafter,
    *,
    trainer: TrainerConfig,
    seed: int,
) -> Iterator[SetUpProgress]:
    """Train on the rollouts, drawn in random order again and again, and write the draft's folder.

    Each step's features and logits come from a pass of the policy without gradient. Reports every step. Beside the
    weights stands HELD_OUT_FILE: how much of the held-out responses the draft is expected to get accepted. All of it
    on the policy's device.
    """
    recipe, device = drafter.pretraining, next(policy.parameters()).device
    draft = DraftTrainer(
        new_draft(drafter, policy, rollouts.training, seed).to(device),
        recipe.learning_rate_matrices,
        recipe.learning_rate_others,
        trainer.max_grad_norm,
        autocast_dtype=autocast_dtype(trainer),
    )
    rows = _endless_rows(len(rollouts.training.token_ids_BT), seed)
    for step in range(recipe.num_steps):
        part = select_rows(rollouts.training, torch.tensor([next(rows) for _ in range(recipe.batch_size)])).to(device)
        seen, logits_BTV = policy_pass(draft, policy, part)
        update = draft.update(
            seen,
            part.response_mask_BT,
            logits_BTV,
            recipe.unroll_length,
            temperature=part.temperature,
            learning_rate_scale=scheduled_fraction(step, recipe.num_steps),
        )
        metrics = {
            "draft_pretraining/loss_nats": update.loss_nats,
            "draft_pretraining/expected_acceptance_length_tokens": update.expected_acceptance_length,
        }
        yield SetUpProgress(step + 1, recipe.num_steps, metrics)
    held_out = {"expected": _held_out_metrics(draft, policy, rollouts.held_out, recipe), "measured": {}}
    write_folder(folder, lambda part: _save(part, draft.draft, held_out))


def _save(folder: Path, draft: DraftModule, held_out: Mapping[str, Any]) -> None:
    save_draft(draft, folder)
    (folder / HELD_OUT_FILE).write_text(json.dumps(held_out, indent=2))


def new_draft(drafter: TrainedDrafter, policy: Qwen3Policy, rollouts: TrainingBatch, seed: int) -> DraftModule:
    """An untrained draft of the configured kind. Raises ValueError for a shape that does not go with the policy."""
    draft: DraftModule
    match drafter:
        case Eagle3Drafter(draft_vocabulary_size=size, shape=shape):
            layer = _layer_config(shape, policy.config, shape.hidden_size or _half(policy.config.hidden_size))
            draft = Eagle3Head(
                EagleConfig(policy.config, draft_vocab_size=size, layer=layer, norm_before_residual=True)
            )
            if draft.config.draft_vocab_size is not None:
                draft.choose_vocabulary(
                    _most_frequent(rollouts, policy.config.vocab_size, draft.config.draft_vocab_size)
                )
        case MtpDrafter(shape=shape):
            draft = MtpModule(MtpConfig(policy.config, _layer_config(shape, policy.config, policy.config.hidden_size)))
        case DraftModelDrafter():
            draft = DraftModel(_draft_model_config(drafter, policy.config))
    draft.initialize(policy, seed)
    return draft


def policy_pass(draft: DraftTrainer, policy: Qwen3Policy, batch: TrainingBatch) -> tuple[PolicyPass, torch.Tensor]:
    """(what the draft reads, the policy's logits), without gradient."""
    dtype = draft.autocast_dtype
    device = batch.token_ids_BT.device.type
    with torch.no_grad(), torch.autocast(device, dtype, enabled=dtype is not None):
        output = policy(batch.token_ids_BT, draft.draft.tap_layers)
    return PolicyPass(policy, batch.token_ids_BT, output.features_BTF), output.logits_BTV


def _held_out_metrics(
    draft: DraftTrainer, policy: Qwen3Policy, batch: TrainingBatch, recipe: DraftPretraining
) -> dict[str, float]:
    """Expected acceptance on responses that the draft was not trained on, pooled over all of them."""
    sums, counts = torch.zeros(recipe.unroll_length).double(), torch.zeros(recipe.unroll_length).double()
    device = next(policy.parameters()).device
    for rows in torch.arange(len(batch.token_ids_BT)).split(recipe.batch_size):
        part = select_rows(batch, rows).to(device)
        seen, logits_BTV = policy_pass(draft, policy, part)
        with torch.no_grad():
            loss = draft.loss(seen, part.response_mask_BT, logits_BTV, recipe.unroll_length, part.temperature)
        num_starts = torch.tensor(loss.num_starts).double()
        sums += torch.tensor(loss.expected_acceptance).double() * num_starts
        counts += num_starts
    area, chances = "draft_pretraining/held_out_expected_acceptance", (sums / counts.clamp_min(1)).tolist()
    positions = {f"{area}_position_{i}_fraction": chance for i, chance in enumerate(chances, start=1)}
    return {f"{area}_length_tokens": 1 + sum(chances), **positions}


def _layer_config(shape: MtpShape, policy: ModelConfig, hidden_size: int) -> ModelConfig:
    """Of a draft of one layer. Raises ModelConfigError where its heads do not go together."""
    num_heads = shape.num_attention_heads or _half(policy.num_attention_heads)
    return replace(
        policy,
        num_hidden_layers=1,
        hidden_size=hidden_size,
        intermediate_size=shape.intermediate_size or _half(policy.intermediate_size),
        num_attention_heads=num_heads,
        # Where half of the policy's does not divide the heads, the largest number that divides both.
        num_key_value_heads=shape.num_key_value_heads or math.gcd(num_heads, _half(policy.num_key_value_heads)),
    )


def _half(size: int) -> int:
    return max(1, size // 2)


def _draft_model_config(drafter: DraftModelDrafter, policy: ModelConfig) -> ModelConfig:
    shape = drafter.shape
    return ModelConfig(
        vocab_size=policy.vocab_size,
        hidden_size=shape.hidden_size,
        intermediate_size=shape.intermediate_size,
        num_hidden_layers=shape.num_layers,
        num_attention_heads=shape.num_attention_heads,
        num_key_value_heads=shape.num_key_value_heads,
        head_dim=shape.hidden_size // shape.num_attention_heads,
        rope_theta=policy.rope_theta,
        max_position_embeddings=policy.max_position_embeddings,
        eos_token_ids=policy.eos_token_ids,
    )


def _most_frequent(rollouts: TrainingBatch, vocab_size: int, count: int) -> torch.Tensor:
    """The response tokens that occur most often; of equally frequent ones the first by id."""
    emitted = rollouts.token_ids_BT[rollouts.response_mask_BT > 0]
    counts = torch.bincount(emitted, minlength=vocab_size)
    return counts.argsort(descending=True, stable=True)[:count]


def _endless_rows(num_rows: int, seed: int) -> Iterator[int]:
    """Every row once in random order, then again in another."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield from torch.randperm(num_rows, generator=generator).tolist()
