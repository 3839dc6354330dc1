"""How the policy is updated."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat

from contract.config.base import ConfigModel, Count


class AdamWOptimizer(ConfigModel):
    """AdamW for all parameters."""

    kind: Literal["adamw"] = "adamw"
    learning_rate: PositiveFloat = 1.5e-4
    """Constant learning rate."""
    weight_decay: NonNegativeFloat = 0.0
    """Decoupled weight decay."""


class MuonOptimizer(ConfigModel):
    """Muon for the matrices inside the layers, AdamW for embeddings, head and norms."""

    kind: Literal["muon"] = "muon"
    learning_rate_matrices: PositiveFloat = 0.002
    """Muon's learning rate."""
    learning_rate_others: PositiveFloat = 1e-4
    """AdamW's learning rate."""


OptimizerConfig = Annotated[AdamWOptimizer | MuonOptimizer, Field(discriminator="kind")]


class _Trainer(ConfigModel):
    """What every trainer has."""

    kind: str
    optimizer: OptimizerConfig = MuonOptimizer()
    """The policy's optimiser."""
    micro_batch_size: Count = 32
    """Responses per forward and backward pass; changes memory and speed, not the result."""
    max_grad_norm: PositiveFloat = 1.0
    """Gradients are scaled down to this norm; the draft head has a norm of its own."""
    precision: Literal["bfloat16", "float32"] = "bfloat16"
    """Precision of the forward passes; the optimiser's parameters stay in float32."""
    num_threads: Count = 1
    """CPU threads of each of the trainer's processes."""


class TorchTrainer(_Trainer):
    """Plain PyTorch on one device."""

    kind: Literal["torch"] = "torch"


class MegatronTrainer(_Trainer):
    """Megatron-core over many processes, one a GPU: tensor, pipeline, expert and data parallel."""

    kind: Literal["megatron"] = "megatron"
    optimizer: OptimizerConfig = AdamWOptimizer()
    """The policy's optimiser; Muon needs the package emerging_optimizers on the cluster."""
    micro_batch_size: Count = 4
    """Responses per forward and backward pass of one data-parallel rank. Where a step's responses do not divide by it
    and the ranks, the last passes are smaller."""
    num_processes: Count = 1
    """Ranks. What tensor and pipeline parallelism leave of them is data parallel."""
    tensor_parallel_size: Count = 1
    """Ranks that each layer's matrices are cut over; keep it within a node. It divides the policy's heads of either
    kind."""
    pipeline_parallel_size: Count = 1
    """Ranks that the layers are cut over, one after another; it divides their number."""
    expert_parallel_size: Count = 1
    """Ranks of a stage, tensor and data parallel together, that a mixture's experts are shared out over; an expert is
    never cut."""
    sequence_parallel: bool = True
    """Between the matrices of a layer, cut the sequence over the tensor-parallel ranks too, where there are several;
    saves activations. A policy with experts needs it then."""
    distributed_optimizer: bool = True
    """Cut the optimiser's state over the data-parallel ranks."""
    recompute: Literal["none", "selective", "full"] = "none"
    """Activations computed again in the backward pass: none, those of attention, or those of whole layers."""
    pack_sequences: bool = False
    """Responses one after another without padding in between."""


TrainerConfig = Annotated[TorchTrainer | MegatronTrainer, Field(discriminator="kind")]
