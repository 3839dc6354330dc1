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


class TorchTrainer(ConfigModel):
    """Plain PyTorch on one device."""

    kind: Literal["torch"] = "torch"
    optimizer: OptimizerConfig = MuonOptimizer()
    """The policy's optimiser."""
    micro_batch_size: Count = 32
    """Responses per forward and backward pass; changes memory and speed, not the result."""
    max_grad_norm: PositiveFloat = 1.0
    """Gradients are scaled down to this norm; the draft head has a norm of its own."""
    precision: Literal["bfloat16", "float32"] = "bfloat16"
    """Autocast precision of the forward passes; parameters stay in float32."""
    num_threads: Count = 1
    """CPU threads of the trainer's process."""


TrainerConfig = TorchTrainer
