"""What generation asks of a drafter. Any proposal is lossless as long as its probabilities are told truly.

Shape suffixes: R rows, K drafted tokens, J = new tokens of the last pass, V vocabulary, F features.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from torch import Tensor

from workers.rollout.packed_weights import PackedPolicy
from workers.rollout.prompts import PromptBlock
from workers.rollout.rows import Row
from workers.rollout.sampler import Sampler


class Draft(NamedTuple):
    """One proposal for every row."""

    token_ids_RK: Tensor
    probs_RKV: Tensor | None
    """float32 distribution each token was drawn from; None where tokens were determined, not drawn."""
    num_drafted_R: Tensor | None = None
    """int64: how many of each row's tokens, from the front, are proposals and not padding; None where all are."""


class Verified(NamedTuple):
    """What one pass of the policy made of the rows."""

    start_R: Tensor
    """int64: position of the pass's first token, the last one of the row before it."""
    token_ids_RJ: Tensor
    """int64: the tokens that follow each position: accepted ones, the correction or bonus, and what does not count."""
    num_new_R: Tensor
    """int64: how many of them count, in 1 .. J."""
    features_RJF: Tensor | None
    """The tapped layers' outputs at each position, where the drafter taps any."""


class DraftSession(Protocol):
    """A drafter's state for the rows of one generate() call."""

    def prefill(self, block: PromptBlock) -> None:
        """Take note of prompts before any of them is admitted."""

    def admit(self, rows: Tensor, prompts: Tensor, first_tokens: Tensor) -> None:
        """Rows now start with these prompts of the last block and these first response tokens."""

    def draft(self, rows: Sequence[Row], start_R: Tensor, draft_length: int) -> Draft | None:
        """Propose up to draft_length tokens after each row's last, which stands at start_R; the length may differ from
        call to call, and there may be passes without a draft in between. None where no row gets a proposal."""

    def observe(self, verified: Verified) -> None:
        """Take note of a pass, drafted or not."""

    def retire(self, row: int, token_ids: list[int]) -> None:
        """The row's response is complete: its tokens. The row is moved over or admitted anew after that."""

    def move_row(self, source: int, target: int) -> None:
        """Row `source` is now at `target`."""


class Drafter(Protocol):
    """A drafter's weights and settings."""

    @property
    def tap_layers(self) -> tuple[int, ...]:
        """Layers of the policy whose outputs it reads; empty for a drafter that reads none."""

    def start(self, num_rows: int, capacity: int, sampler: Sampler) -> DraftSession:
        """State for at most num_rows rows of at most capacity tokens."""


@runtime_checkable
class Remembering(Drafter, Protocol):
    """A drafter that learns from the responses of each call for the next."""

    def forgetful(self) -> Drafter:
        """One that knows the same for one call, and what it learns in it is forgotten with it."""


@dataclass(frozen=True, slots=True)
class Drafting:
    """How an engine drafts."""

    build: Callable[[PackedPolicy, Mapping[str, Tensor] | None], Drafter]
    """The drafter of a policy; the mapping holds the draft's weights, whose tensors it copies, or is None for a drafter
    that has none. Called anew at every sync of a draft's weights, else once."""
    has_weights: bool
    draft_length: int
    """Tokens proposed per round; the most of them where the length is controlled."""
    is_controlled: bool = False
    """Whether measured costs and acceptance choose each round's length."""
