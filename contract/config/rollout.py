"""How responses are generated: the engine and the speedup probe."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat

from contract.config.base import ConfigModel, Count, CountOrNone


class ProbeConfig(ConfigModel):
    """Measures the speedup: as many of a step's prompts as fill every engine are also generated without speculation.

    Both ways are generated several times in turns, which takes as long as a few steps' generation.
    """

    interval_steps: CountOrNone = 20
    """Steps between probes; 0 switches the probe off."""


class _Rollout(ConfigModel):
    """What every engine has."""

    kind: str
    num_engines: Count = 1
    """Engines side by side, each in a process of its own with a share of the prompts."""
    max_batch_size: Count = 32
    """Sequences decoded together in one engine."""
    max_new_tokens: Count = 128
    """Longest response; a longer one is cut and counted as truncated."""
    temperature: NonNegativeFloat = 1.0
    """Sampling temperature in training; 0 is greedy and is refused, for GRPO needs a spread of samples."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Samples come from the fewest most probable tokens that together have at least this probability; 1 keeps all."""
    top_k: CountOrNone = 0
    """Samples come from this many most probable tokens; 0 keeps all."""
    min_p: float = Field(0.0, ge=0, lt=1)
    """Tokens less probable than this share of the most probable one's probability are never drawn; 0 keeps all."""
    precision: Literal["bfloat16", "float32"] = "bfloat16"
    """Arithmetic of the engine's matrix products."""


class TorchRollout(_Rollout):
    """Foredeck's own engine in PyTorch: static KV cache, speculative decoding with exact rejection sampling."""

    kind: Literal["torch"] = "torch"


class VllmRollout(_Rollout):
    """vLLM: for models that need more than one device or long contexts; runs on processors too, slowly."""

    kind: Literal["vllm"] = "vllm"
    tensor_parallel_size: Count = 1
    """GPUs that one engine's weights are cut over."""
    max_sequence_tokens: Count | None = None
    """Longest prompt and response together; what the policy's positions allow where not given. Memory for one such
    sequence must be there."""
    gpu_memory_fraction: float = Field(0.6, gt=0, lt=1)
    """Share of each GPU's memory for the engine's weights and KV cache. Colocated, the trainer has the rest."""
    kv_cache_gib: PositiveFloat = 1.0
    """KV cache of an engine that runs on processors; on a GPU gpu_memory_fraction decides."""
    enforce_eager: bool = False
    """Runs without CUDA graphs and compilation: a quicker start and slower rounds."""


RolloutConfig = Annotated[TorchRollout | VllmRollout, Field(discriminator="kind")]
