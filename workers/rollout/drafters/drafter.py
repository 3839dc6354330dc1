"""What generation asks of a drafter. Any proposal is lossless as long as its probabilities are told truly.

Shape suffixes: R rows, K drafted tokens, J = new tokens of the last pass, V vocabulary, F features.
"""

from typing import NamedTuple, Protocol

from torch import Tensor

from workers.rollout.prompts import PromptBlock
from workers.rollout.rows import Rows
from workers.rollout.sampler import Sampler


class Draft(NamedTuple):
    """One proposal for every row."""

    token_ids_RK: Tensor
    probs_RKV: Tensor | None
    """float32 distribution each token was drawn from; None where tokens were determined, not drawn."""


class DraftSession(Protocol):
    """A drafter's state for the rows of one generate() call."""

    def prefill(self, block: PromptBlock) -> None:
        """Take note of prompts before any of them is admitted."""

    def admit(self, rows: Tensor, prompts: Tensor) -> None:
        """Rows now start with these prompts of the last block, their first response token drawn."""

    def draft(self, rows: Rows, draft_length: int) -> Draft:
        """Propose draft_length tokens after each live row's last; the length may differ from call to call."""

    def observe(self, features_RJF: Tensor, positions_RJ: Tensor, num_accepted_R: Tensor) -> None:
        """The policy's features for the last token and the drafted ones, of which the first num_accepted hold."""

    def move_row(self, source: int, target: int) -> None:
        """Row `source` is now at `target`."""


class Drafter(Protocol):
    """A drafter's weights and settings."""

    @property
    def tap_layers(self) -> tuple[int, ...]:
        """Layers of the policy whose outputs it reads; empty for a drafter that reads none."""

    def start(self, num_rows: int, capacity: int, sampler: Sampler) -> DraftSession:
        """State for at most num_rows rows of at most capacity tokens."""
