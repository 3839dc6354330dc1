"""What one forward pass says about the tokens of a batch.

Shapes: B responses, T tokens, V vocabulary. Log-probabilities are in nats and aligned with the tokens: [b, t] is that
of the token at t given the tokens before t, and 0 where the response mask is 0.
"""

import torch
from torch import Tensor

from contract.config.trainer import TrainerConfig
from workers.train.trainer import TrainingBatch


def autocast_dtype(config: TrainerConfig) -> torch.dtype | None:
    """None where everything is computed in float32."""
    return torch.bfloat16 if config.precision == "bfloat16" else None


def distributions(logits_BTV: Tensor, temperature: float) -> Tensor:
    """Log-probabilities over the vocabulary of the token *after* each position, float32 [B, T, V]; gradient flows."""
    return (logits_BTV.float() / temperature).log_softmax(-1)


def token_logprobs(log_p_BTV: Tensor, batch: TrainingBatch) -> Tensor:
    """[B, T] log-probability of each token itself; gradient flows."""
    chosen = log_p_BTV[:, :-1].gather(2, batch.token_ids_BT[:, 1:, None])[:, :, 0]
    aligned = torch.nn.functional.pad(chosen, (1, 0))
    return torch.where(batch.response_mask_BT > 0, aligned, 0.0)


def token_entropies(log_p_BTV: Tensor, batch: TrainingBatch) -> Tensor:
    """[B, T] entropy in nats, -sum_x p(x) log p(x), of the distribution that each token was drawn from."""
    entropy = -(log_p_BTV.exp() * log_p_BTV).sum(-1)
    return torch.nn.functional.pad(entropy[:, :-1], (1, 0)) * batch.response_mask_BT
