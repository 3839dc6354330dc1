"""From logits to the distribution that tokens are drawn from; engine, draft and audit share it.

Shape suffixes: V vocabulary.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Truncation:
    """Which tokens may be drawn; the rest get probability 0 and what is left is scaled to 1."""

    top_k: int = 0
    """The most probable this many; 0 keeps all. Tokens as probable as the last of them are kept too."""
    top_p: float = 1.0
    """The fewest most probable ones that together reach this probability; 1 keeps all."""
    min_p: float = 0.0
    """Those at least this share as probable as the most probable one; 0 keeps all."""

    def __post_init__(self) -> None:
        """Raise ValueError for what would keep nothing."""
        if self.top_k < 0:
            raise ValueError(f"top_k = {self.top_k}: must be at least 1, or 0 to keep all tokens")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p = {self.top_p}: must be above 0 and at most 1, which keeps all tokens")
        if not 0 <= self.min_p < 1:
            raise ValueError(f"min_p = {self.min_p}: must be below 1 and at least 0, which keeps all tokens")

    @property
    def is_active(self) -> bool:
        """Whether anything is cut."""
        return self.top_k > 0 or self.top_p < 1 or self.min_p > 0


def sampling_probs(logits: Tensor, temperature: float, truncation: Truncation = Truncation()) -> Tensor:
    """softmax(logits / temperature) over the tokens that truncation keeps, float32 [..., V]; no gradient is meant.

    Temperature first, then top-k, top-p of what is left scaled to 1, and min-p, in the order of Hugging Face; vLLM
    takes min-p before top-p, whose share is then one of fewer tokens. Temperature 0 gives 1 to the largest logit, the
    first of equal ones.
    """
    if temperature == 0:
        # one_hot() would have the host look at the indices.
        return torch.zeros_like(logits, dtype=torch.float32).scatter_(-1, logits.argmax(-1, keepdim=True), 1.0)
    probs = (logits.float() / temperature).softmax(-1)
    return truncate(probs, truncation) if truncation.is_active else probs


def truncate(probs: Tensor, truncation: Truncation) -> Tensor:
    """Apply truncation to probabilities [..., V].

    Tokens of equal probability are kept or cut together, in top-p too, where Hugging Face and vLLM keep those of them
    that their sorting puts first: what is kept depends on the probabilities alone.
    """
    num_tokens = probs.shape[-1]
    threshold = torch.zeros_like(probs[..., :1])
    if 0 < truncation.top_k < num_tokens:
        threshold = probs.topk(truncation.top_k, dim=-1).values[..., -1:]
    if truncation.top_p < 1:
        kept = torch.where(probs >= threshold, probs, 0.0)
        descending = kept.sort(dim=-1, descending=True).values
        before = descending.cumsum(-1) - descending
        is_inside = before < truncation.top_p * kept.sum(-1, keepdim=True)
        last = (is_inside.sum(-1, keepdim=True) - 1).clamp_min(0)
        threshold = torch.maximum(threshold, descending.gather(-1, last))
    if truncation.min_p > 0:
        threshold = torch.maximum(threshold, truncation.min_p * probs.amax(-1, keepdim=True))
    kept = torch.where(probs >= threshold, probs, 0.0)
    return kept / kept.sum(-1, keepdim=True)
