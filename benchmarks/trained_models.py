"""A policy and its drafts by the shipped examples' recipe at another size, on any device, kept in a folder.

Speculation has something to gain only where the policy's next token is often plain to a draft, which random weights do
not give: so the policy learns worked solutions, and each draft what the policy makes of them.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from contract.config.drafter import DraftModelDrafter, Eagle3Drafter, MtpDrafter, TrainedDrafter
from contract.config.policy import ScratchPolicy, WarmUpConfig
from contract.config.task import ArithmeticTask
from contract.config.trainer import TorchTrainer
from workers.data.arithmetic import ArithmeticProblems
from workers.data.batch import select_rows, to_training_batch
from workers.data.tokenizer import load_tokenizer
from workers.model.draft_checkpoint import save_draft
from workers.model.hf_checkpoint import load_policy
from workers.rollout.engine import SamplingParams
from workers.rollout.torch_engine import TorchRolloutEngine
from workers.train.draft_pretraining import new_draft, policy_pass
from workers.train.draft_trainer import DraftTrainer
from workers.train.logprobs import autocast_dtype
from workers.train.schedule import scheduled_fraction
from workers.train.warm_up import warm_up

DRAFTERS: dict[str, type[TrainedDrafter]] = {
    "eagle3": Eagle3Drafter,
    "mtp": MtpDrafter,
    "draft_model": DraftModelDrafter,
}
_SEED = 42
_HEAD_DIM = 64
_NUM_ROLLOUTS, _MAX_NEW_TOKENS, _ROLLOUT_BATCH = 768, 128, 256
_WIDTH_OF_RATES = 256
"""Width of the shipped examples' policy, for which their learning rates are."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is trained."""

    num_layers: int
    hidden_size: int
    num_steps: int
    """Of the policy, and of each draft."""

    def policy(self) -> ScratchPolicy:
        """The examples' proportions. Learning rates fall with the width."""
        heads, scale = max(self.hidden_size // _HEAD_DIM, 2), _WIDTH_OF_RATES / max(self.hidden_size, _WIDTH_OF_RATES)
        return ScratchPolicy(
            num_layers=self.num_layers,
            hidden_size=self.hidden_size,
            intermediate_size=3 * self.hidden_size,
            num_attention_heads=heads,
            num_key_value_heads=heads // 2,
            warm_up=WarmUpConfig(
                num_steps=self.num_steps,
                learning_rate_matrices=0.02 * scale,
                learning_rate_others=0.002 * scale,
            ),
        )


def train_missing(folder: Path, drafters: list[str], recipe: Recipe, device: torch.device) -> None:
    """Make `policy` and a folder for each drafter where they are not there, telling the loss now and then."""
    trainer = TorchTrainer()
    if not (folder / "policy").is_dir():
        for progress in warm_up(folder / "policy", recipe.policy(), ArithmeticTask(), trainer, _SEED, device):
            if progress.step % 50 == 0 or progress.step == progress.num_steps:
                print(f"policy: step {progress.step}, {progress.metrics}", flush=True)
    for name in drafters:
        if not (folder / name).is_dir():
            train_draft(folder, name, recipe, trainer, device)


def train_draft(folder: Path, name: str, recipe: Recipe, trainer: TorchTrainer, device: torch.device) -> None:
    """On responses that the policy draws on the device."""
    config, policy = DRAFTERS[name](), load_policy(folder / "policy")
    tokenizer = load_tokenizer(folder / "policy")
    problems = ArithmeticProblems(ArithmeticTask(), _SEED, "draft_pretraining").problems(0, _NUM_ROLLOUTS)
    prompts = [tokenizer.encode(problem.prompt) for problem in problems]
    engine = TorchRolloutEngine(policy.config, tokenizer.eos_id, _ROLLOUT_BATCH, trainer.precision, device=device)
    engine.update_policy(policy.state_dict())
    completions = engine.generate(prompts, 1, SamplingParams(1.0, _MAX_NEW_TOKENS, _SEED)).completions
    rollouts = to_training_batch(prompts, completions, 1.0)
    draft, policy = new_draft(config, policy, rollouts, _SEED).to(device), policy.to(device)
    rates, pretraining = recipe.policy().warm_up, config.pretraining
    learning = DraftTrainer(
        *(draft, rates.learning_rate_matrices, rates.learning_rate_others, trainer.max_grad_norm),
        autocast_dtype=autocast_dtype(trainer),
    )
    generator = torch.Generator().manual_seed(_SEED)
    for step in range(recipe.num_steps):
        rows = torch.randint(len(completions), (pretraining.batch_size,), generator=generator)
        part = select_rows(rollouts, rows)
        part = replace(
            part, token_ids_BT=part.token_ids_BT.to(device), response_mask_BT=part.response_mask_BT.to(device)
        )
        seen, logits_BTV = policy_pass(learning, policy, part)
        update = learning.update(
            *(seen, part.response_mask_BT, logits_BTV, pretraining.unroll_length),
            temperature=1.0,
            learning_rate_scale=scheduled_fraction(step, recipe.num_steps),
        )
        if (step + 1) % 50 == 0 or step + 1 == recipe.num_steps:
            length = update.expected_acceptance_length
            print(f"{name}: step {step + 1}, loss {update.loss_nats:.3f}, acceptance {length:.2f}", flush=True)
    save_draft(draft, folder / name)
