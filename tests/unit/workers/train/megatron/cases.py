"""Tiny policies, one batch and the configurations that ranks are compared under; imports nothing of Megatron-core."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors.torch import save_file

from contract.config import RunConfig
from contract.config.drafter import Eagle3Drafter, OnlineDraftTraining
from contract.config.policy import CheckpointPolicy
from contract.config.trainer import AdamWOptimizer, MegatronTrainer
from workers.model.draft_checkpoint import save_draft
from workers.model.eagle3 import Eagle3Head, EagleConfig
from workers.model.hf_checkpoint import load_policy
from workers.model.mtp import MtpConfig, MtpModule
from workers.rollout.engine import DraftEvidence
from workers.train.megatron.correspondence import Correspondence
from workers.train.megatron.shape import PolicyShape
from workers.train.trainer import TrainingBatch

VOCABULARY = 49
"""Odd, so that two tensor-parallel ranks pad it."""
DENSE = {
    "model_type": "qwen3",
    "architectures": ["Qwen3ForCausalLM"],
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "rope_theta": 10_000.0,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "attention_bias": False,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
    "eos_token_id": 1,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
POLICIES = {
    "dense": DENSE,
    "tied": DENSE | {"tie_word_embeddings": True},
    "yarn": DENSE | {"rope_scaling": YARN},
    "mixture": DENSE
    | {
        "model_type": "qwen3_moe",
        "architectures": ["Qwen3MoeForCausalLM"],
        "num_hidden_layers": 2,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 24,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    },
}
ADVANTAGES = torch.tensor([1.0, 0.0, -0.5, 2.0, -1.0, 0.0, 0.7])
ONLINE = OnlineDraftTraining(num_updates_per_step=1, batch_size=7, unroll_length=2)


@dataclass(frozen=True)
class Case:
    """One configuration under one layout."""

    name: str
    policy: str = "dense"
    trainer: dict = field(default_factory=dict)
    grpo: dict = field(default_factory=dict)
    draft: str | None = None
    num_steps: int = 3
    saves_after: int | None = None
    """After so many steps the trainer saves, another loads, and both take two more."""
    is_spoiled: bool = False
    """Whether a step follows whose gradient is not finite."""
    alone: str | None = None
    """The case of one rank that it must agree with."""


def trainer_config(**changes):
    defaults = {
        "precision": "float32",
        "micro_batch_size": 2,
        "max_grad_norm": 0.5,
        "optimizer": AdamWOptimizer(learning_rate=0.003, weight_decay=0.1),
    }
    return MegatronTrainer(**(defaults | changes))


def run_config(root: Path, **trainer) -> RunConfig:
    """What the case `dense` is, as a run is configured."""
    return RunConfig(
        policy=CheckpointPolicy(path=str(root / "dense")),
        drafter=Eagle3Drafter(online=ONLINE),
        trainer=trainer_config(**trainer),
    )


def make_folders(root: Path) -> None:
    """Every policy and every draft, in Hugging Face layout."""
    for number, (name, document) in enumerate(POLICIES.items()):
        write_policy(root / name, document, seed=number)
    policy = load_policy(root / "dense")
    for kind, draft in (
        ("eagle3", Eagle3Head(EagleConfig(policy.config))),
        ("mtp", MtpModule(MtpConfig(policy.config))),
    ):
        draft.initialize(policy, 5)
        save_draft(draft, root / kind)


def write_policy(folder: Path, document: dict, seed: int, dtype: torch.dtype = torch.float32) -> None:
    """A checkpoint of random weights, as large as those of a trained model beside its norms."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(document))
    generator = torch.Generator().manual_seed(seed)
    shape = PolicyShape.from_hf_json(document)
    units = Correspondence(shape, padded_vocabulary=document["vocab_size"], pipeline_size=1, expert_size=1).units()
    tensors = {}
    for unit in units:
        for name, size in zip(unit.hf_names, unit.hf_shapes, strict=True):
            noise = torch.randn(size, generator=generator)
            tensors[name] = (1 + 0.1 * noise if len(size) == 1 else noise * size[1] ** -0.5).to(dtype)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def make_batch(num_rows: int = 7) -> TrainingBatch:
    """Responses of 3 to 9 tokens after prompts of two; some of them with evidence of drafts."""
    generator = torch.Generator().manual_seed(3)
    token_ids = torch.randint(2, VOCABULARY, (num_rows, 11), generator=generator)
    mask = torch.zeros(num_rows, 11)
    for row, length in enumerate([8, 3, 5, 4, 9, 6, 7][:num_rows]):
        mask[row, 2 : 2 + length] = 1
        token_ids[row, 2 + length :] = 0
    engine = -torch.rand(num_rows, 11, generator=generator) * mask
    rows = torch.tensor([0, 0, 3, 4])
    positions = torch.tensor([0, 4, 1, 8])
    drafted = token_ids[rows, positions + 2].clone()
    drafted[1] = (drafted[1] + 1) % VOCABULARY
    is_accepted = torch.tensor([True, False, True, True])
    top_ids = torch.stack([drafted, (drafted + 5) % VOCABULARY], dim=1)
    evidence = DraftEvidence(
        rows, positions, drafted, is_accepted, torch.full((4,), 0.5), top_ids, torch.tensor([[0.5, 0.2]]).repeat(4, 1)
    )
    return TrainingBatch(token_ids, mask, engine, 0.9, evidence=evidence)


def scores() -> tuple[torch.Tensor, torch.Tensor]:
    """(scores [B, T, V] for make_batch(), gradients [B, T] of its log-probabilities)."""
    generator = torch.Generator().manual_seed(4)
    return torch.randn(7, 11, VOCABULARY, generator=generator) * 3, torch.randn(7, 11, generator=generator)


HELD = {"kl_penalty": 0.1, "num_updates_per_step": 2}
TENSOR = {"tensor_parallel_size": 2, "num_processes": 2}
PIPELINE = {"pipeline_parallel_size": 2, "num_processes": 2}
DATA = {"num_processes": 2}
EXPERT = {"expert_parallel_size": 2, "num_processes": 2}
GROUPS = {
    1: (
        Case("dense", draft="eagle3", is_spoiled=True),
        Case("dense-reference", grpo={"kl_penalty": 0.1}, draft="mtp"),
        Case("dense-held", grpo=HELD, draft="mtp", num_steps=2),
        Case("tied", policy="tied", num_steps=2),
        Case("yarn", policy="yarn", num_steps=1),
        Case("yarn-packed", policy="yarn", trainer={"pack_sequences": True}, num_steps=1, alone="yarn"),
        Case("mixture", policy="mixture", draft="mtp"),
        Case("packed", trainer={"pack_sequences": True}, draft="eagle3", num_steps=2, alone="dense"),
        Case("selective", trainer={"recompute": "selective"}, num_steps=1, alone="dense"),
        Case("full", trainer={"recompute": "full"}, draft="eagle3", num_steps=1, alone="dense"),
        Case("whole-optimizer", trainer={"distributed_optimizer": False}, num_steps=2, alone="dense"),
        Case("bfloat16", trainer={"precision": "bfloat16"}, num_steps=1),
    ),
    2: (
        Case("cut_scores", trainer=TENSOR),
        Case("miss_a_rank", trainer=DATA),
        Case("tensor", trainer=TENSOR, draft="eagle3", alone="dense"),
        Case("tensor-whole-sequences", trainer=TENSOR | {"sequence_parallel": False}, alone="dense"),
        Case(
            "tensor-packed-held",
            trainer=TENSOR | {"pack_sequences": True},
            grpo=HELD,
            draft="mtp",
            num_steps=2,
            alone="dense-held",
        ),
        Case("tensor-mixture", policy="mixture", trainer=TENSOR, draft="mtp", alone="mixture"),
        Case("tensor-expert-mixture", policy="mixture", trainer=TENSOR | EXPERT, num_steps=2, alone="mixture"),
        Case("pipeline", trainer=PIPELINE | {"recompute": "full"}, draft="eagle3", alone="dense"),
        Case("pipeline-tied", policy="tied", trainer=PIPELINE | {"pack_sequences": True}, num_steps=2, alone="tied"),
        Case("pipeline-held", trainer=PIPELINE, grpo=HELD, draft="mtp", num_steps=2, alone="dense-held"),
        Case("data", trainer=DATA, draft="eagle3", alone="dense"),
        Case(
            "data-whole-optimizer-held",
            trainer=DATA | {"distributed_optimizer": False},
            grpo=HELD,
            draft="mtp",
            num_steps=2,
            alone="dense-held",
        ),
        Case("expert-mixture", policy="mixture", trainer=EXPERT, draft="mtp", alone="mixture"),
        Case(
            "data-resumed",
            trainer=DATA | {"precision": "bfloat16"},
            grpo={"kl_penalty": 0.1},
            draft="eagle3",
            num_steps=2,
            saves_after=1,
        ),
        Case("tensor-mixture-resumed", policy="mixture", trainer=TENSOR, num_steps=2, saves_after=1),
        Case("resumed-at-start", trainer=TENSOR, num_steps=1, saves_after=0),
        Case(
            "whole-optimizer-resumed-at-start",
            trainer=DATA | {"distributed_optimizer": False},
            num_steps=1,
            saves_after=0,
        ),
        Case(
            "whole-optimizer-resumed",
            trainer=DATA | {"distributed_optimizer": False, "precision": "bfloat16"},
            num_steps=2,
            saves_after=1,
        ),
    ),
    4: (
        Case(
            "all-mixture",
            policy="mixture",
            trainer=TENSOR | PIPELINE | EXPERT | {"num_processes": 4, "recompute": "selective"},
            draft="mtp",
            alone="mixture",
        ),
    ),
}
"""By the number of ranks."""
CASES = {case.name: case for members in GROUPS.values() for case in members}
