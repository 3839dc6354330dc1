"""The optimiser of the ranks' parts of the policy."""

from typing import Any

import torch
from megatron.core.distributed import DistributedDataParallel
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.optimizer.clip_grads import clip_grad_by_total_norm_fp32
from megatron.core.optimizer.muon import get_megatron_muon_optimizer

from contract.config.trainer import AdamWOptimizer, MegatronTrainer, MuonOptimizer
from workers.train.megatron.model import parameter_dtype


class PolicyOptimizer:
    """Megatron-core's optimiser with the recipe of workers.train.optimizer, and steps that can be refused."""

    def __init__(self, model: DistributedDataParallel, trainer: MegatronTrainer) -> None:
        self.model = model
        self._max_grad_norm = trainer.max_grad_norm
        optimizer = trainer.optimizer
        self.inner: Any = (
            # Without overrides, for by default vectors are spared the weight decay, here as little as in PyTorch.
            get_megatron_optimizer(_adam_config(trainer, optimizer), [model], config_overrides={})
            if isinstance(optimizer, AdamWOptimizer)
            else _muon(model, trainer, optimizer)
        )

    def zero_gradients(self) -> None:
        """Before the first micro-batch of an update."""
        self.model.zero_grad_buffer()
        self.inner.zero_grad()

    @torch.no_grad()
    def grad_norm(self) -> float:
        """Over all parameters of all ranks, each counted once; the same on every rank."""
        self.inner.prepare_grads()
        return float(self.inner.get_grad_norm())

    def step(self, grad_norm: float) -> None:
        """Scale gradients down to max_grad_norm and update; grad_norm() comes first."""
        for part in self.inner.chained_optimizers:
            if parameters := part.get_parameters():
                clip_grad_by_total_norm_fp32(parameters, self._max_grad_norm, grad_norm)
        self.inner.step_with_ready_grads()


def _adam_config(trainer: MegatronTrainer, adam: AdamWOptimizer) -> OptimizerConfig:
    """The constants of workers.train.optimizer."""
    return OptimizerConfig(
        optimizer="adam",
        lr=adam.learning_rate,
        weight_decay=adam.weight_decay,
        adam_beta1=0.9,
        adam_beta2=0.98,
        adam_eps=1e-8,
        bf16=trainer.precision == "bfloat16",
        params_dtype=parameter_dtype(trainer),
        use_distributed_optimizer=trainer.distributed_optimizer,
    )


def _muon(model: DistributedDataParallel, trainer: MegatronTrainer, muon: MuonOptimizer) -> Any:
    """Never run by this project, for its package is on no registry: written from Megatron-core's sources.

    The step's scale is sqrt(max(1, rows / columns)) as in workers.train.optimizer, of queries, keys and values each
    for itself; gate and up projections are one matrix here.
    """
    config = _adam_config(trainer, AdamWOptimizer(learning_rate=muon.learning_rate_matrices, weight_decay=0.0))
    config.muon_momentum, config.muon_use_nesterov = 0.95, True
    config.muon_scale_mode, config.muon_tp_mode = "shape_scaling", "duplicated"
    chained = get_megatron_muon_optimizer(config, [model], config_overrides={})
    for part in chained.chained_optimizers:
        is_muon = "Muon" in type(part.optimizer).__name__
        for group in part.param_groups:
            group["lr"] = muon.learning_rate_matrices if is_muon else muon.learning_rate_others
    return chained
