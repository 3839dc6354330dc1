"""Which optimiser updates which parameter."""

from collections.abc import Iterable

import torch
from torch import nn
from torch.optim import AdamW, Muon, Optimizer

from contract.config.trainer import AdamWOptimizer, OptimizerConfig

_OUTSIDE_LAYERS = ("embed_tokens.weight", "lm_head.weight")


def build_optimizers(named_parameters: Iterable[tuple[str, nn.Parameter]], config: OptimizerConfig) -> list[Optimizer]:
    """Optimisers that together own every parameter that takes a gradient, each exactly once.

    Muon (Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks") takes the matrices inside the
    layers, its step scaled by sqrt(max(1, rows / columns)); embedding, head and norms go to AdamW, as its authors
    advise.
    """
    parameters = [(name, parameter) for name, parameter in named_parameters if parameter.requires_grad]
    if isinstance(config, AdamWOptimizer):
        return [_adamw([p for _, p in parameters], config.learning_rate, config.weight_decay)]
    matrices = [p for name, p in parameters if is_layer_matrix(name, p)]
    others = [p for name, p in parameters if not is_layer_matrix(name, p)]
    return [
        Muon(matrices, lr=config.learning_rate_matrices, weight_decay=0.0, momentum=0.95, nesterov=True),
        _adamw(others, config.learning_rate_others, weight_decay=0.0),
    ]


def is_layer_matrix(name: str, parameter: torch.Tensor) -> bool:
    """Whether Muon may orthogonalise the parameter's update: a matrix that is neither embedding nor head."""
    return parameter.ndim == 2 and not name.endswith(_OUTSIDE_LAYERS)


def _adamw(parameters: list[nn.Parameter], learning_rate: float, weight_decay: float) -> Optimizer:
    # 0.98 and not 0.999: runs are of a few hundred steps, in which a longer memory would never fill.
    return AdamW(parameters, lr=learning_rate, betas=(0.9, 0.98), weight_decay=weight_decay)
