"""What the rejection sampler was given for some sequences, kept where the probabilities are: in the worker.

Shape suffixes: K a sequence's drafted tokens in one round, V vocabulary, N tokens kept of a distribution.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

MAX_KEPT_OF_DRAFT = 64
"""Tokens of a draft's distribution that are kept as evidence."""


class Verified(NamedTuple):
    """One sequence's drafted tokens in one round."""

    policy_probs_K: Tensor
    """float32: p of each, by the distribution that is sampled from."""
    draft_probs_K: Tensor
    """float32: q of each; 1 where it was determined, not drawn."""
    top_ids_KN: Tensor
    """int64: the most probable tokens under the draft's distribution; no columns where no evidence is kept."""
    top_probs_KN: Tensor
    """float32: their q."""


@dataclass(frozen=True, slots=True)
class _Round:
    """Arguments of vLLM's rejection_sample()."""

    draft_token_ids: Tensor
    num_draft_tokens: list[int]
    draft_probs: Tensor | None
    target_logits: Tensor
    sampling_metadata: Any

    def is_greedy(self, row: int) -> bool:
        metadata = self.sampling_metadata
        return bool(metadata.all_greedy) or bool(metadata.temperature[row] == 0)

    def policy_probs(self, rows: slice, is_greedy: bool) -> Tensor:
        """[K, V]; all of it at the largest logit where the sequence is greedy."""
        logits_KV = self.target_logits[rows].float()
        if is_greedy:
            return torch.nn.functional.one_hot(logits_KV.argmax(-1), logits_KV.shape[-1]).float()
        return logits_KV.softmax(-1)


class VerificationLog:
    """Stands in the rejection sampler's place, looks at what it is given and calls it."""

    def __init__(self, sample: Callable[..., Tensor], row_ids: Callable[[], Sequence[str]]) -> None:
        """sample: vLLM's rejection_sample(). row_ids: the requests in the order of the batch's rows."""
        self._sample, self._row_ids = sample, row_ids
        self._recorded: frozenset[str] = frozenset()
        self._evident: frozenset[str] = frozenset()
        self._rounds: dict[str, list[Verified]] = {}

    def watch(self, recorded: Collection[str], evident: Collection[str]) -> None:
        """From now on keep what these requests draft; the names are those that requests were added with."""
        self._recorded, self._evident, self._rounds = frozenset(recorded), frozenset(evident), {}

    def take(self) -> dict[str, list[Verified]]:
        """What was kept, by request, in the order of its rounds; nothing is watched any longer."""
        rounds = self._rounds
        self.watch((), ())
        return rounds

    def __call__(
        self,
        draft_token_ids: Tensor,
        num_draft_tokens: list[int],
        max_spec_len: int,
        cu_num_draft_tokens: Tensor,
        draft_probs: Tensor | None,
        target_logits: Tensor,
        bonus_token_ids: Tensor,
        sampling_metadata: Any,
        **options: Any,
    ) -> Tensor:
        if self._recorded or self._evident:
            self._keep(_Round(draft_token_ids, num_draft_tokens, draft_probs, target_logits, sampling_metadata))
        return self._sample(
            draft_token_ids,
            num_draft_tokens,
            max_spec_len,
            cu_num_draft_tokens,
            draft_probs,
            target_logits,
            bonus_token_ids,
            sampling_metadata,
            **options,
        )

    def _keep(self, played: _Round) -> None:
        first = 0
        for row, (request, number) in enumerate(zip(self._row_ids(), played.num_draft_tokens, strict=True)):
            name = added_name(request)
            if number and (name in self._recorded or name in self._evident):
                verified = _verified(played, row, slice(first, first + number), name in self._evident)
                self._rounds.setdefault(name, []).append(verified)
            first += number


def added_name(request: str) -> str:
    """The name that a request was added with, of the one that vLLM gave it."""
    return request.split("-", maxsplit=1)[0]


def _verified(played: _Round, row: int, tokens: slice, is_evident: bool) -> Verified:
    drafted_K = played.draft_token_ids[tokens].long()
    is_greedy = played.is_greedy(row)
    p_K = played.policy_probs(tokens, is_greedy).gather(1, drafted_K[:, None])[:, 0]
    if played.draft_probs is None or is_greedy:
        ones_K = torch.ones_like(p_K)
        top_ids_KN, top_probs_KN = drafted_K[:, None], ones_K[:, None]
        q_K = ones_K
    else:
        q_KV = played.draft_probs[tokens]
        q_K = q_KV.gather(1, drafted_K[:, None])[:, 0]
        top_probs_KN, top_ids_KN = q_KV.topk(min(MAX_KEPT_OF_DRAFT, q_KV.shape[1]), dim=1)
    if not is_evident:
        top_ids_KN, top_probs_KN = top_ids_KN[:, :0], top_probs_KN[:, :0]
    return Verified(p_K.cpu(), q_K.float().cpu(), top_ids_KN.cpu(), top_probs_KN.float().cpu())
