"""Drafts of nothing but a fixed token, free of cost: what is left of a round is the policy's part of it."""

from collections.abc import Sequence

import torch
from torch import Tensor

from workers.rollout.drafters.drafter import Draft, Verified
from workers.rollout.prompts import PromptBlock
from workers.rollout.rows import Row
from workers.rollout.sampler import Sampler


class PaddingDrafter:
    """Measures what verification takes: for looked-up drafts, and for the bound that a free draft would reach."""

    tap_layers: tuple[int, ...] = ()

    def start(self, num_rows: int, capacity: int, sampler: Sampler) -> "PaddingDrafter":
        return self

    def prefill(self, block: PromptBlock) -> None:
        """Nothing to note."""

    def admit(self, rows: Tensor, prompts: Tensor, first_tokens: Tensor) -> None:
        """Nothing to note."""

    def draft(self, rows: Sequence[Row], start_R: Tensor, draft_length: int) -> Draft:
        """Token 0 over and over."""
        return Draft(torch.zeros(len(rows), draft_length, dtype=torch.int64, device=start_R.device), None)

    def observe(self, verified: Verified) -> None:
        """Nothing to note."""

    def retire(self, row: int, token_ids: list[int]) -> None:
        """Nothing to note."""

    def move_row(self, source: int, target: int) -> None:
        """Nothing to note."""
