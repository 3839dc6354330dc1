"""What engines and trainers are made of, by their kind. Each kind's libraries are loaded only where it is used."""

# ruff: noqa: PLC0415  a machine that runs PyTorch's engine need not have vLLM, and the other way round

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contract.config import RunConfig
from contract.config.drafter import NgramDrafter, OnlineDraftTraining, SuffixDrafter, TrainedDrafter
from contract.config.rollout import VllmRollout
from contract.config.trainer import MegatronTrainer
from workers.seeds import derive_seed


@dataclass(frozen=True, slots=True)
class Rank:
    """A process among those that train together."""

    index: int
    num_ranks: int
    master_address: str
    """Where rank 0 listens, for the processes to find each other."""
    master_port: int


def build_engine(config: RunConfig, policy_folder: Path, draft_folder: Path | None) -> Any:
    """A RolloutEngine that is a WeightTarget, too, with the weights of these folders in place."""
    if isinstance(config.rollout, VllmRollout):
        from workers.rollout.vllm.build import build_vllm_engine

        return build_vllm_engine(config, policy_folder, draft_folder)
    return _torch_engine(config, policy_folder, draft_folder)


def build_trainer(config: RunConfig, policy_folder: Path, draft_folder: Path | None, rank: Rank) -> Any:
    """A PolicyTrainer that is a WeightSource, too, or this rank's part of one."""
    if isinstance(config.trainer, MegatronTrainer):
        from workers.train.megatron.process import RankProcess, make_rank

        process = RankProcess(rank.index, rank.num_ranks, f"tcp://{rank.master_address}:{rank.master_port}")
        draft = str(draft_folder) if draft_folder else None
        return make_rank(config.model_dump_json(), process, str(policy_folder), draft)
    return _torch_trainer(config, policy_folder, draft_folder)


def num_trainer_processes(config: RunConfig) -> int:
    return config.trainer.num_processes if isinstance(config.trainer, MegatronTrainer) else 1


def _torch_engine(config: RunConfig, policy_folder: Path, draft_folder: Path | None) -> Any:
    from workers.data.tokenizer import load_tokenizer
    from workers.model.draft_checkpoint import load_draft
    from workers.model.hf_checkpoint import load_policy
    from workers.rollout.drafters.looked_up import looked_up_drafting
    from workers.rollout.drafters.trained import trained_drafting
    from workers.rollout.torch_engine import TorchRolloutEngine

    policy = load_policy(policy_folder)
    draft = load_draft(draft_folder, policy.config, config.drafter.kind) if draft_folder else None
    drafting = None
    if isinstance(config.drafter, TrainedDrafter) and draft is not None:
        drafting = trained_drafting(config.drafter, draft)
    elif isinstance(config.drafter, NgramDrafter | SuffixDrafter):
        drafting = looked_up_drafting(config.drafter)
    engine = TorchRolloutEngine(
        policy.config,
        sorted({load_tokenizer(policy_folder).eos_id, *policy.config.eos_token_ids}),
        config.rollout.max_batch_size,
        config.rollout.precision,
        drafting,
    )
    engine.update_policy(policy.state_dict())
    if draft is not None:
        engine.update_draft(draft.export(policy))
    return engine


def _torch_trainer(config: RunConfig, policy_folder: Path, draft_folder: Path | None) -> Any:
    from workers.model.draft_checkpoint import load_draft
    from workers.model.hf_checkpoint import load_policy
    from workers.train.torch_trainer import TorchPolicyTrainer

    drafter = config.drafter
    policy = load_policy(policy_folder)
    return TorchPolicyTrainer(
        policy,
        load_policy(policy_folder) if config.grpo.kl_penalty else None,
        load_draft(draft_folder, policy.config, drafter.kind) if draft_folder else None,
        trainer=config.trainer,
        grpo=config.grpo,
        online=drafter.online if isinstance(drafter, TrainedDrafter) else OnlineDraftTraining(num_updates_per_step=0),
        seed=derive_seed(config.seed, "trainer"),
    )
