"""Where the policy's weights come from."""

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat

from contract.config.base import ConfigModel, Count, FolderPath

KnownModel = Literal[
    "Qwen3-0.6B", "Qwen3-1.7B", "Qwen3-4B", "Qwen3-8B", "Qwen3-14B", "Qwen3-32B", "Qwen3-30B-A3B", "Qwen3-235B-A22B"
]
"""Models whose shapes are known here: contract.sizing.architecture."""

SCRATCH_POSITIONS = 2048
"""Tokens of the longest sequence, prompt and response, of a policy built from scratch."""


class WarmUpConfig(ConfigModel):
    """Supervised training on worked solutions before reinforcement learning starts; its result is cached."""

    num_steps: Count = 150
    """Optimiser steps of supervised training."""
    batch_size: Count = 32
    """Worked solutions per step."""
    learning_rate_matrices: PositiveFloat = 0.02
    """Muon's learning rate, for the weight matrices inside the layers."""
    learning_rate_others: PositiveFloat = 0.002
    """AdamW's learning rate, for embeddings, head and norms."""


class ScratchPolicy(ConfigModel):
    """A Qwen3-family transformer built from its shape and warmed up on the task's own worked solutions."""

    kind: Literal["scratch"] = "scratch"
    num_layers: Count = 6
    """Transformer layers."""
    hidden_size: Count = 256
    """Width of the residual stream."""
    intermediate_size: Count = 768
    """Width inside the SwiGLU feed-forward block."""
    num_attention_heads: Count = 4
    """Query heads; hidden_size must divide by it."""
    num_key_value_heads: Count = 2
    """Key and value heads (grouped-query attention); num_attention_heads must divide by it."""
    warm_up: WarmUpConfig = WarmUpConfig()
    """The supervised warm-up."""


class CheckpointPolicy(ConfigModel):
    """A Qwen3 checkpoint in Hugging Face layout: config.json, safetensors and tokenizer.json in one folder."""

    kind: Literal["checkpoint"] = "checkpoint"
    path: FolderPath = Field(examples=["/models/Qwen3-8B"])
    """Folder of the checkpoint, as the cluster's machines see it."""
    model: KnownModel | None = None
    """Whose shape it has, for the estimate of memory before the run starts; the run ends at once where the folder holds
    another shape. Without one nothing is estimated."""


PolicyConfig = Annotated[ScratchPolicy | CheckpointPolicy, Field(discriminator="kind")]
