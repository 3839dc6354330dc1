"""Supervised warm-up: a policy from scratch learns the form of worked solutions, and some of their substance.

Shapes: B solutions, T tokens of the longest prompt and solution together.
"""

from collections.abc import Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from contract.config.policy import SCRATCH_POSITIONS, ScratchPolicy
from contract.config.task import ArithmeticTask
from contract.config.trainer import MuonOptimizer, TrainerConfig
from workers.data.arithmetic import ArithmeticProblems
from workers.data.tokenizer import Tokenizer, character_tokenizer
from workers.model.config import ModelConfig
from workers.model.hf_checkpoint import save_policy
from workers.model.qwen3 import Qwen3Policy
from workers.train.cache import cache_folder, write_folder
from workers.train.finite import FiniteGradients
from workers.train.logprobs import autocast_dtype
from workers.train.optimizer import build_optimizers
from workers.train.progress import SetUpProgress
from workers.train.schedule import Schedule

_RECIPE = 2
"""Counts changes that change the result, so that older cached results are not taken for new ones: of this module and
of those that it trains with, workers.data, model, train.optimizer and train.schedule."""


def warm_up_folder(
    cache_dir: Path, policy: ScratchPolicy, task: ArithmeticTask, trainer: TrainerConfig, seed: int
) -> Path:
    """Where the warmed-up policy lies or would lie."""
    inputs = {
        "recipe": _RECIPE,
        "policy": policy.model_dump(mode="json"),
        "task": task.model_dump(mode="json"),
        "precision": trainer.precision,
        "num_threads": trainer.num_threads,
        "max_grad_norm": trainer.max_grad_norm,
        "seed": seed,
    }
    return cache_folder(cache_dir, "warm-up", inputs)


def warm_up(
    folder: Path,
    config: ScratchPolicy,
    task: ArithmeticTask,
    trainer: TrainerConfig,
    seed: int,
    device: torch.device = torch.device("cpu"),
) -> Iterator[SetUpProgress]:
    """Train, reporting every step, and write a checkpoint folder in Hugging Face layout with its tokenizer.

    Loss: cross-entropy at solution tokens, mean over the batch's solution tokens.
    """
    tokenizer = character_tokenizer()
    policy = Qwen3Policy(model_config(config, tokenizer))
    policy.initialize(seed)
    policy.to(device)
    problems = ArithmeticProblems(task, seed, "warm_up")
    recipe = config.warm_up
    optimizers = build_optimizers(
        policy.named_parameters(),
        MuonOptimizer(
            learning_rate_matrices=recipe.learning_rate_matrices, learning_rate_others=recipe.learning_rate_others
        ),
    )
    schedule = Schedule(optimizers, recipe.num_steps)
    finite = FiniteGradients("the warm-up", "lower the learning rates of policy.warm_up")
    for step in range(recipe.num_steps):
        schedule.apply(step)
        token_ids, mask = solution_batch(problems, tokenizer, step * recipe.batch_size, recipe.batch_size)
        loss = _loss(policy, token_ids.to(device), mask.to(device), autocast_dtype(trainer))
        loss.backward()
        is_applied = finite.allow(clip_grad_norm_(policy.parameters(), trainer.max_grad_norm).item())
        for optimizer in optimizers:
            if is_applied:
                optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        yield SetUpProgress(step + 1, recipe.num_steps, {"warm_up/loss_nats": loss.item()})
    write_folder(folder, lambda part: _save(part, policy, tokenizer))


def model_config(config: ScratchPolicy, tokenizer: Tokenizer) -> ModelConfig:
    """The shape that the configuration asks for."""
    return ModelConfig(
        vocab_size=tokenizer.vocabulary_size,
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        num_hidden_layers=config.num_layers,
        num_attention_heads=config.num_attention_heads,
        num_key_value_heads=config.num_key_value_heads,
        head_dim=config.hidden_size // config.num_attention_heads,
        max_position_embeddings=SCRATCH_POSITIONS,
        eos_token_ids=(tokenizer.eos_id,),
    )


def solution_batch(problems: ArithmeticProblems, tokenizer: Tokenizer, start: int, count: int) -> tuple[Tensor, Tensor]:
    """(token ids, mask of solution tokens), both [B, T], the end of sequence belonging to the solution."""
    rows = [
        (tokenizer.encode(p.prompt), [*tokenizer.encode(p.solution), tokenizer.eos_id])
        for p in problems.problems(start, count)
    ]
    width = max(len(prompt) + len(solution) for prompt, solution in rows)
    token_ids = torch.full((count, width), tokenizer.pad_id)
    mask = torch.zeros(count, width)
    for row, (prompt, solution) in enumerate(rows):
        end = len(prompt) + len(solution)
        token_ids[row, :end] = torch.tensor(prompt + solution)
        mask[row, len(prompt) : end] = 1
    return token_ids, mask


def _loss(policy: Qwen3Policy, token_ids: Tensor, mask: Tensor, dtype: torch.dtype | None) -> Tensor:
    with torch.autocast(token_ids.device.type, dtype, enabled=dtype is not None):
        logits = policy(token_ids[:, :-1]).logits_BTV
    per_token = F.cross_entropy(logits.float().flatten(0, 1), token_ids[:, 1:].flatten(), reduction="none")
    weights = mask[:, 1:].flatten()
    return (per_token * weights).sum() / weights.sum()


def _save(folder: Path, policy: Qwen3Policy, tokenizer: Tokenizer) -> None:
    save_policy(policy, folder)
    tokenizer.save(folder)
