"""What the loop asks of a rollout engine, whatever it is made of."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from contract.telemetry.metrics import MAX_DRAFT_LENGTH


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How responses are drawn."""

    temperature: float
    """0 is greedy."""
    max_new_tokens: int
    seed: int
    """Equal seeds, weights and prompts give equal responses on the same engine."""


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """One verification round of one sequence; see contract.telemetry.events.Round for the meaning of each field."""

    drafted: list[int]
    num_accepted: int
    emitted: int | None
    draft_logprobs: list[float]
    policy_logprobs: list[float]


@dataclass(slots=True)
class Completion:
    """One response."""

    prompt_index: int
    """Index into the prompts given to generate()."""
    token_ids: list[int]
    """Response tokens, the end-of-sequence token included where it was drawn."""
    logprobs: list[float]
    """Log-probability of each response token under the policy at the sampling temperature, by the engine."""
    is_truncated: bool
    """Cut at max_new_tokens before an end-of-sequence token."""
    rounds: list[RoundRecord] = field(default_factory=list)
    """Filled for the completions whose rounds were asked for."""


@dataclass(slots=True)
class SpeculationCounters:
    """Counters of one generate() call, to be added up over engines before any ratio is taken.

    All stay 0 when nothing was speculated, and the ratios are then None: no measurement is not 0 or 1.
    """

    num_drafts: int = 0
    """Verification rounds with a draft, counted per sequence."""
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0
    accepted_at_position: list[int] = field(default_factory=lambda: [0] * MAX_DRAFT_LENGTH)
    """[i] counts rounds in which the token at draft position i + 1 was accepted."""

    @property
    def acceptance_length(self) -> float | None:
        """1 + accepted / drafts, in [1, k + 1]; a round ended by an end-of-sequence token counts whole."""
        return 1 + self.num_accepted_tokens / self.num_drafts if self.num_drafts else None

    def __add__(self, other: "SpeculationCounters") -> "SpeculationCounters":
        return SpeculationCounters(
            self.num_drafts + other.num_drafts,
            self.num_draft_tokens + other.num_draft_tokens,
            self.num_accepted_tokens + other.num_accepted_tokens,
            [a + b for a, b in zip(self.accepted_at_position, other.accepted_at_position, strict=True)],
        )


@dataclass(slots=True)
class RolloutResult:
    """What one generate() call made."""

    completions: list[Completion]
    """num_samples for each prompt, grouped by prompt in the order of the prompts."""
    counters: SpeculationCounters
    generation_s: float
    """Wall time of the call inside the engine."""


class RolloutEngine(Protocol):
    """Generates responses with the policy's exact distribution, speculating or not. A WeightSync brings its weights."""

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        num_samples: int,
        params: SamplingParams,
        *,
        speculate: bool = True,
        record_rounds_of: Sequence[int] = (),
    ) -> RolloutResult:
        """Draw num_samples responses for each prompt.

        speculate=False generates autoregressively on the same engine, which is what the speedup probe compares with.
        record_rounds_of: indices of completions, in the order of the result, whose rounds are recorded.
        Raises ValueError for an empty prompt or a prompt that leaves no room for max_new_tokens.
        """
