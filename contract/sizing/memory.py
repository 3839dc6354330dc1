"""Expected memory of each device of a run, from its configuration alone; an estimate, which says what it is made of.

Training follows Megatron-core's own layout: weights and gradients of a rank's share, the optimiser's state cut over the
data-parallel ranks where that is chosen, and the activations of one pipeline stage under the 1F1B schedule, whose
first stage holds as many micro-batches as there are stages (Narayanan et al. 2021, arXiv:2104.04473; Korthikanti et al.
2022, arXiv:2205.05198). Attention is taken not to store its scores.
"""

from dataclasses import replace
from math import gcd
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel

from contract.config.drafter import DraftModelDrafter, Eagle3Drafter, MtpDrafter, MtpShape, TrainedDrafter
from contract.config.rollout import VllmRollout
from contract.config.trainer import MegatronTrainer, MuonOptimizer
from contract.sizing.architecture import Architecture, architecture_of

if TYPE_CHECKING:
    from contract.config.run import RunConfig

GIB = 2.0**30
TRAINING_OVERHEAD_GIB = 3.0
"""CUDA context, NCCL buffers and fragmentation of a trainer's GPU."""
GENERATION_OVERHEAD_GIB = 2.0
"""CUDA context, captured graphs and activations of an engine's GPU."""


class MemoryPart(BaseModel):
    """One thing that takes memory."""

    name: str
    gib: float


class DeviceMemory(BaseModel):
    """What each device of one kind holds."""

    role: Literal["training", "generation", "training and generation"]
    num_devices: int
    parts: list[MemoryPart]
    total_gib: float


class MemoryEstimate(BaseModel):
    """Expected memory by kind of device."""

    unit: Literal["GPU", "process"]
    """What a device is: processes share the memory of their machine."""
    devices: list[DeviceMemory]
    capacity_gib: float | None
    """Memory of each GPU, where the configuration names it."""


def estimate_memory(config: "RunConfig") -> MemoryEstimate | None:
    """None where the policy's shape is not known; see policy.model."""
    shape = architecture_of(config.policy)
    if shape is None:
        return None
    training, generation = _training_parts(config, shape), _generation_parts(config, shape)
    num_trainers, num_generators = num_training_devices(config), num_generation_devices(config)
    resources = config.resources
    if resources.gpus_per_node and resources.placement == "colocated":
        devices = [_device("training and generation", max(num_trainers, num_generators), training + generation)]
    else:
        devices = [
            _device("training", num_trainers, training),
            _device("generation", num_generators, generation),
        ]
    unit: Literal["GPU", "process"] = "GPU" if resources.gpus_per_node else "process"
    return MemoryEstimate(unit=unit, devices=devices, capacity_gib=resources.gpu_memory_gib)


def num_training_devices(config: "RunConfig") -> int:
    """Processes of the trainer, one a GPU where there are any."""
    return config.trainer.num_processes if isinstance(config.trainer, MegatronTrainer) else 1


def num_generation_devices(config: "RunConfig") -> int:
    """GPUs of all engines, or processes where there are none."""
    rollout = config.rollout
    return rollout.num_engines * (rollout.tensor_parallel_size if isinstance(rollout, VllmRollout) else 1)


def sequence_tokens(config: "RunConfig") -> int:
    """The longest prompt and response together."""
    return config.task.longest_prompt() + config.rollout.max_new_tokens


def draft_parameters(config: "RunConfig", shape: Architecture) -> int:
    """Matrices of the draft made from the configuration, its frozen embedding included; norms left out."""
    drafter, vocabulary = config.drafter, shape.vocabulary_size
    match drafter:
        case Eagle3Drafter():
            width = drafter.shape.hidden_size or _half(shape.hidden_size)
            head = (drafter.draft_vocabulary_size or vocabulary) * width
            return (
                3 * shape.hidden_size * width + _draft_layer(drafter.shape, shape, width, 2) + head + vocabulary * width
            )
        case MtpDrafter():
            return 2 * shape.hidden_size**2 + _draft_layer(drafter.shape, shape, shape.hidden_size, 1)
        case DraftModelDrafter(shape=small):
            return replace(
                shape,
                num_layers=small.num_layers,
                hidden_size=small.hidden_size,
                intermediate_size=small.intermediate_size,
                num_attention_heads=small.num_attention_heads,
                num_key_value_heads=small.num_key_value_heads,
                head_dim=small.hidden_size // small.num_attention_heads,
                is_tied=False,
                num_experts=0,
            ).num_parameters
    return 0


def _draft_layer(sizes: MtpShape, policy: Architecture, width: int, num_inputs: int) -> int:
    """Of a decoder layer whose queries, keys and values read num_inputs vectors of its width side by side."""
    heads = sizes.num_attention_heads or _half(policy.num_attention_heads)
    key_value_heads = sizes.num_key_value_heads or gcd(heads, _half(policy.num_key_value_heads))
    intermediate = sizes.intermediate_size or _half(_dense_width(policy))
    attention = (num_inputs * (heads + 2 * key_value_heads) + heads) * policy.head_dim
    return width * (attention + 3 * intermediate)


def _half(size: int) -> int:
    return max(1, size // 2)


def _dense_width(shape: Architecture) -> int:
    """Inner width of a dense layer as costly as one of the model's."""
    return shape.intermediate_size * max(1, shape.num_active_experts)


def _training_parts(config: "RunConfig", shape: Architecture) -> list[tuple[str, float]]:
    """Bytes by name, of the rank that holds the most."""
    trainer = config.trainer
    tensor = pipeline = expert = data = 1
    is_cut = False
    if isinstance(trainer, MegatronTrainer):
        tensor, pipeline, expert = (
            trainer.tensor_parallel_size,
            trainer.pipeline_parallel_size,
            trainer.expert_parallel_size,
        )
        data = max(1, trainer.num_processes // (tensor * pipeline))
        is_cut = trainer.distributed_optimizer
    layers = -(-shape.num_layers // pipeline)
    # With one stage the tied head is the embedding; with more, first and last hold one each.
    ends = 1 if pipeline > 1 or shape.is_tied else 2
    dense = (layers * shape.dense_layer_parameters + ends * shape.embedding_parameters) / tensor
    experts = layers * shape.num_experts * shape.feed_forward_parameters / expert
    weight_bytes, state_bytes = _bytes_per_parameter(config)
    state = dense * state_bytes / (data if is_cut else 1)
    state += experts * state_bytes / (max(1, data * tensor // expert) if is_cut else 1)
    parts = [
        ("weights", (dense + experts) * weight_bytes),
        ("gradients", (dense + experts) * 4.0),
        ("optimizer", state),
        ("activations", _activation_bytes(config, shape, layers, tensor, pipeline)),
    ]
    if config.grpo.kl_penalty:
        parts.append(("reference policy", (dense + experts) * weight_bytes))
    drafter = config.drafter
    if isinstance(drafter, TrainedDrafter):
        per_parameter = 16.0 if drafter.online.num_updates_per_step else 4.0
        parts.append(("draft and its optimizer", draft_parameters(config, shape) * per_parameter))
    return parts + [("overhead", TRAINING_OVERHEAD_GIB * GIB)] * bool(config.resources.gpus_per_node)


def _bytes_per_parameter(config: "RunConfig") -> tuple[float, float]:
    """(of a weight, of its optimiser's state). In bfloat16 Megatron's optimiser keeps the float32 weight."""
    trainer = config.trainer
    moments = 4.0 if isinstance(trainer.optimizer, MuonOptimizer) else 8.0
    if trainer.precision == "float32":
        return 4.0, moments
    if isinstance(trainer, MegatronTrainer):
        return 2.0, 4.0 + moments
    return 6.0, moments  # float32 weights and autocast's bfloat16 copies


def _activation_bytes(config: "RunConfig", shape: Architecture, layers: int, tensor: int, pipeline: int) -> float:
    """What a backward pass needs of its forward pass, two bytes a value in bfloat16."""
    trainer, value_bytes = config.trainer, 2.0 if config.trainer.precision == "bfloat16" else 4.0
    tokens = trainer.micro_batch_size * sequence_tokens(config)
    width, heads, e = shape.hidden_size, shape.num_attention_heads, shape.head_dim
    inner = 2 * (heads + shape.num_key_value_heads) * e + 3 * _dense_width(shape)
    is_recomputed = isinstance(trainer, MegatronTrainer) and trainer.recompute == "full"
    is_sequence_cut = isinstance(trainer, MegatronTrainer) and trainer.sequence_parallel
    residual = 4 * width / (tensor if is_sequence_cut else 1)
    whole_layer = residual + inner / tensor
    kept = layers * pipeline * (width / (tensor if is_sequence_cut else 1) if is_recomputed else whole_layer)
    working = whole_layer if is_recomputed else 0.0
    logits = 10.0 * shape.vocabulary_size / tensor  # bfloat16, and float32 with its gradient
    return tokens * (value_bytes * (kept + working) + logits)


def _generation_parts(config: "RunConfig", shape: Architecture) -> list[tuple[str, float]]:
    """Bytes by name of one engine's device; the KV cache is what the sequences decoded together can fill."""
    rollout = config.rollout
    tensor = rollout.tensor_parallel_size if isinstance(rollout, VllmRollout) else 1
    weight_bytes = 2.0 if rollout.precision == "bfloat16" else 4.0
    parts = [("engine's weights", shape.num_parameters * weight_bytes / tensor)]
    if draft := draft_parameters(config, shape):
        parts.append(("engine's draft", draft * weight_bytes / tensor))
    parts.append(("KV cache", _kv_cache_bytes(config, shape, tensor, _engine_room(config, sum(b for _, b in parts)))))
    return parts + [("engine's overhead", GENERATION_OVERHEAD_GIB * GIB)] * bool(config.resources.gpus_per_node)


def _kv_cache_bytes(config: "RunConfig", shape: Architecture, tensor: int, room: float | None) -> float:
    """Of a full batch of the longest sequences, or what there is room for; one such sequence at least."""
    rollout = config.rollout
    value_bytes = 2 if isinstance(rollout, VllmRollout) and rollout.precision == "bfloat16" else 4
    # Key heads cannot be cut further than one a GPU.
    one = sequence_tokens(config) * shape.kv_cache_bytes(value_bytes) / min(tensor, shape.num_key_value_heads)
    wanted = rollout.max_batch_size * one
    return wanted if room is None else max(one, min(wanted, room))


def _engine_room(config: "RunConfig", weights: float) -> float | None:
    """What is left to the KV cache; None where the whole batch is allocated."""
    rollout, resources = config.rollout, config.resources
    if not isinstance(rollout, VllmRollout):
        return None
    if not resources.gpus_per_node:
        return rollout.kv_cache_gib * GIB
    if resources.gpu_memory_gib is None:
        return None
    return rollout.gpu_memory_fraction * resources.gpu_memory_gib * GIB - weights - GENERATION_OVERHEAD_GIB * GIB


def too_large(estimate: MemoryEstimate) -> str | None:
    """What does not fit, in words with a mend; None where everything fits or no capacity is named."""
    for device in estimate.devices:
        if estimate.capacity_gib is not None and device.total_gib > estimate.capacity_gib:
            largest = sorted(device.parts, key=lambda part: -part.gib)[:3]
            of_it = ", ".join(f"{part.name} {part.gib:.1f}" for part in largest)
            return (
                f"{device.role} needs about {device.total_gib:.0f} GiB on each GPU ({of_it}): take GPUs with more "
                "memory, or lower trainer.micro_batch_size, raise tensor_parallel_size or pipeline_parallel_size, "
                "recompute activations, or give engines nodes of their own (resources.placement)"
            )
    return None


def _device(
    role: Literal["training", "generation", "training and generation"], count: int, parts: list[tuple[str, float]]
) -> DeviceMemory:
    sized = [MemoryPart(name=name, gib=size / GIB) for name, size in parts]
    return DeviceMemory(role=role, num_devices=count, parts=sized, total_gib=sum(part.gib for part in sized))
