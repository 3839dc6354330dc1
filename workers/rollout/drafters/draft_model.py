"""Drafting with a small language model (workers.model.draft_model) that keeps keys and values of its own.

After a pass the model's cache holds the row up to the last drafted token that it read and that was accepted, so that at
most two tokens are new to it; passes without a draft add theirs. It reads what is new to any row, at one go for all:
reading a token again changes nothing.

Shape suffixes: R rows, J positions of one pass, K drafted tokens, T capacity, V vocabulary.
"""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from workers.algo.acceptance import Randomness
from workers.rollout.decoder import policy_forward
from workers.rollout.drafters.drafter import Draft, Verified
from workers.rollout.operations import KvCache
from workers.rollout.packed_weights import PackedPolicy
from workers.rollout.prompts import PromptBlock
from workers.rollout.rows import Row
from workers.rollout.sampler import Sampler, column

_NEW_AFTER_A_DRAFT = 2
"""The last drafted token, which the model proposed but never read, and the bonus, where all were accepted."""


class DraftModelDrafter:
    """The model's packed weights."""

    def __init__(self, model: PackedPolicy) -> None:
        self.model = model

    @property
    def tap_layers(self) -> tuple[int, ...]:
        return ()

    def start(self, num_rows: int, capacity: int, sampler: Sampler) -> "DraftModelSession":
        return DraftModelSession(self.model, num_rows, capacity, sampler)


class DraftModelSession:
    """The model's cache, and the tokens of every row."""

    def __init__(self, model: PackedPolicy, num_rows: int, capacity: int, sampler: Sampler) -> None:
        self.model, self.sampler = model, sampler
        self.device = model.embedding_VD.device
        config, self.operations = model.config, model.operations
        self.cache = self.operations.keep_cache(
            "rows", config, config.num_hidden_layers, num_rows, capacity, is_verified=False
        )
        self.token_ids_RT = torch.zeros(num_rows, capacity, dtype=torch.int64, device=self.device)
        self.num_new = 0
        """Tokens at the end of a row that the model has not read, in the row that has most of them, or more."""

    def prefill(self, block: PromptBlock) -> None:
        """Read prompts, once for all samples of each."""
        num_prompts, width = block.token_ids_PT.shape
        self.block = block
        self.block_cache = self._allocate(num_prompts, width)
        start_P = torch.zeros(num_prompts, dtype=torch.int64, device=self.device)
        policy_forward(self.model, block.token_ids_PT, start_P, width, self.block_cache)

    def admit(self, rows: Tensor, prompts: Tensor, first_tokens: Tensor) -> None:
        """Take over what was read of the prompts."""
        width = self.block.token_ids_PT.shape[1]
        self.cache.copy_rows(rows, self.block_cache, prompts, width)
        self.token_ids_RT[rows, :width] = self.block.token_ids_PT[prompts]
        self.token_ids_RT[rows, self.block.lengths_P[prompts]] = first_tokens
        self.num_new = max(self.num_new, 1)

    def draft(self, rows: Sequence[Row], start_R: Tensor, draft_length: int) -> Draft:
        """Draw draft_length tokens one after the other."""
        longest = max(len(row.token_ids) for row in rows)
        logits_RV = self._read(start_R, min(self.num_new, longest), longest)
        self.num_new = 0
        randomness = self.operations.randomness(len(start_R), draft_length, self.sampler.generator)
        span = self.operations.round_span(longest + draft_length)
        steps, settings = partial(self._steps, draft_length, span), (draft_length, span, self.sampler.settings)
        return Draft(*self.operations.region("draft", steps, (logits_RV, start_R, randomness), settings))

    def _steps(
        self, draft_length: int, span: int, logits_RV: Tensor, start_R: Tensor, randomness: Randomness
    ) -> tuple[Tensor, Tensor]:
        """Token ids [R, K] and their distributions, from the first one's logits."""
        probs = [self.sampler.probs(logits_RV)]
        token_ids = [self.sampler.draw(probs[-1], column(randomness, 0))]
        for step in range(1, draft_length):
            normed, _ = policy_forward(self.model, token_ids[-1].unsqueeze(1), start_R + step, span, self.cache)
            probs.append(self.sampler.probs(self.model.head(normed.squeeze(1))))
            token_ids.append(self.sampler.draw(probs[-1], column(randomness, step)))
        return torch.stack(token_ids, 1), torch.stack(probs, 1)

    def observe(self, verified: Verified) -> None:
        """Note a pass's tokens; those that do not count are overwritten by the next pass's."""
        num_rows, num_new = verified.token_ids_RJ.shape
        columns = verified.start_R.unsqueeze(1) + 1 + torch.arange(num_new, device=self.device)
        self.token_ids_RT[:num_rows].scatter_(1, columns, verified.token_ids_RJ)
        # num_new is 0 after a draft, whose tokens the model has read but for the last.
        self.num_new = self.num_new + num_new if self.num_new else min(num_new, _NEW_AFTER_A_DRAFT)

    def retire(self, row: int, token_ids: list[int]) -> None:
        """Nothing to keep."""

    def move_row(self, source: int, target: int) -> None:
        self.cache.move_row(source, target)
        self.token_ids_RT[target] = self.token_ids_RT[source]

    def _read(self, start_R: Tensor, width: int, longest: int) -> Tensor:
        """Logits [R, V] after each row's last token, at start_R, having read the last `width` tokens of every row.

        A row that is shorter is read from its first token on; what is read beyond its end is overwritten before any
        token attends to it.
        """
        first_R = (start_R + 1 - width).clamp_min(0)
        columns = first_R.unsqueeze(1) + torch.arange(width, device=self.device)
        token_ids_RJ = self.token_ids_RT[: len(start_R)].gather(1, columns)
        span = self.operations.round_span(longest)
        inputs = (token_ids_RJ, first_R, start_R)
        return self.operations.region("read", partial(self._logits, span), inputs, span)[0]

    def _logits(self, span: int, token_ids_RJ: Tensor, first_R: Tensor, last_R: Tensor) -> tuple[Tensor]:
        normed, _ = policy_forward(self.model, token_ids_RJ, first_R, span, self.cache)
        return (self.model.head(normed[torch.arange(len(last_R), device=self.device), last_R - first_R]),)

    def _allocate(self, num_rows: int, capacity: int) -> KvCache:
        config = self.model.config
        return self.model.operations.allocate_cache(
            config, config.num_hidden_layers, num_rows, capacity, is_verified=False
        )
