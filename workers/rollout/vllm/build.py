"""From a run's configuration and folders to a vLLM engine."""

import importlib
import os
import tempfile
from pathlib import Path
from typing import Any

import torch

from contract.config import RunConfig
from contract.config.drafter import NoDrafter, TrainedDrafter
from contract.config.rollout import VllmRollout
from workers.data.tokenizer import load_tokenizer
from workers.rollout.vllm.checks import check_draft, max_sequence_tokens, policy_shape
from workers.rollout.vllm.drafters import LOOKED_UP, speculative_config, stage_draft
from workers.rollout.vllm.engine import EngineShape, VllmRolloutEngine
from workers.rollout.vllm.library import load_vllm

_EXTENSION = "workers.rollout.vllm.worker_extension"
_TOKENS_PER_STEP_ON_CPU = 2048
_GIB = 2**30


def build_vllm_engine(config: RunConfig, policy_folder: Path, draft_folder: Path | None) -> VllmRolloutEngine:
    """The engine for the policy and the draft of two folders, with their weights.

    Raises ValueError, CheckpointError among them, for what does not go together, and ImportError for what is not
    installed, before anything is started.
    """
    policy = policy_shape(policy_folder)
    max_tokens = max_sequence_tokens(config, policy, policy_folder)
    check_draft(config, policy, draft_folder)
    rollout, drafter = config.rollout, config.drafter
    assert isinstance(rollout, VllmRollout)
    vllm = load_vllm()
    importlib.import_module(_EXTENSION)  # mends vLLM in this process too
    with tempfile.TemporaryDirectory(prefix="foredeck-") as stage:
        draft = stage_draft(draft_folder, Path(stage)) if draft_folder else None
        speculative = speculative_config(
            drafter, draft, max_batch_size=rollout.max_batch_size, max_new_tokens=rollout.max_new_tokens
        )
        llm = vllm.LLM(str(policy_folder), speculative_config=speculative, **_settings(config, rollout, max_tokens))
    drafts = not isinstance(drafter, NoDrafter)
    shape = EngineShape(
        eos_token_ids=frozenset({load_tokenizer(policy_folder).eos_id, *policy.eos_token_ids}),
        vocabulary_size=policy.vocab_size,
        max_sequence_tokens=max_tokens,
        max_batch_size=rollout.max_batch_size,
        draft_length=0 if isinstance(drafter, NoDrafter) else drafter.draft_length,
        is_controlled=drafts and drafter.draft_length_control == "measured",
        is_lookup=drafter.kind in LOOKED_UP,
        has_draft_weights=isinstance(drafter, TrainedDrafter),
        bucket_bytes=config.weight_sync.bucket_mib * 2**20,
    )
    return VllmRolloutEngine(llm, shape)


def _settings(config: RunConfig, rollout: VllmRollout, max_tokens: int) -> dict[str, Any]:
    """The rest of what vLLM is told."""
    drafted = 0 if isinstance(config.drafter, NoDrafter) else config.drafter.draft_length
    settings: dict[str, Any] = {
        "skip_tokenizer_init": True,
        "dtype": rollout.precision,
        "seed": config.seed,
        "max_model_len": max_tokens,
        "max_num_seqs": rollout.max_batch_size,
        "tensor_parallel_size": rollout.tensor_parallel_size,
        "enforce_eager": rollout.enforce_eager,
        "enable_prefix_caching": True,
        "logprobs_mode": "processed_logprobs",
        "worker_extension_cls": f"{_EXTENSION}.RolloutWorker",
        # Draft lengths are chosen, and rounds timed, step by step.
        "async_scheduling": False,
    }
    if torch.cuda.is_available():
        return settings | {"gpu_memory_utilization": rollout.gpu_memory_fraction}
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    tokens = max(_TOKENS_PER_STEP_ON_CPU, rollout.max_batch_size * (drafted + 1))
    return settings | {"kv_cache_memory_bytes": int(rollout.kv_cache_gib * _GIB), "max_num_batched_tokens": tokens}
