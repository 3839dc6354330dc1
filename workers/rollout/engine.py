"""What the loop asks of a rollout engine, whatever it is made of."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from contract.telemetry.metrics import MAX_DRAFT_LENGTH
from workers.algo.sampling import Truncation


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How responses are drawn."""

    temperature: float
    """0 is greedy."""
    max_new_tokens: int
    seed: int
    """Equal seeds, weights and prompts give equal responses on the same engine, where the draft length is fixed and the
    drafter has no memory of earlier responses, as suffix has."""
    truncation: Truncation = field(default_factory=Truncation)
    """Which tokens may be drawn at all."""


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
    """Log-probability of each response token under the distribution it was drawn from, by the engine."""
    is_truncated: bool
    """Cut at max_new_tokens before an end-of-sequence token."""
    rounds: list[RoundRecord] = field(default_factory=list)
    """Filled for the completions whose rounds were asked for."""


@dataclass(frozen=True, slots=True)
class DraftEvidence:
    """Drafted tokens that were put to the test, one a row, in responses chosen before anything was drawn.

    A row is a response position at which a drafted token was accepted or rejected, all before it in its round having
    been accepted; drafted tokens behind a rejection, and positions behind the response's end, are not in it.

    Shape suffixes: M tested tokens, N tokens kept of the draft's distribution.
    """

    completion_M: Tensor
    """int64: index of the response in the result."""
    position_M: Tensor
    """int64: index of the tested position among the response's tokens."""
    drafted_M: Tensor
    """int64: the token that was proposed there; the emitted one stands in the response."""
    is_accepted_M: Tensor
    """bool."""
    draft_probs_M: Tensor
    """float32: q of the proposed token; 1 where it was determined, not drawn."""
    top_ids_MN: Tensor
    """int64: the most probable tokens under the draft's distribution; -1 where there are fewer."""
    top_probs_MN: Tensor
    """float32: their q, 0 where there is none."""


@dataclass(frozen=True, slots=True)
class RoundCost:
    """Rounds of one draft length and one number of sequences in one generate() call."""

    num_sequences: int
    """Sequences decoded together, rounded up to a power of two."""
    draft_length: int
    """0 where the round did not speculate."""
    num_rounds: int
    measured_s: float
    """Wall time of all of them."""
    predicted_s: float
    """What the controller expected of them; 0 without a controller."""


@dataclass(slots=True)
class SpeculationCounters:
    """Counters of one generate() call, to be added up over engines before any ratio is taken.

    All stay 0 when nothing was speculated, and the ratios are then None: no measurement is not 0 or 1.
    """

    num_drafts: int = 0
    """Verification rounds in which the sequence had a draft, counted per sequence."""
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


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """How busy an engine with a queue was, added up over its steps; steps of several engines add up too."""

    num_steps: int = 0
    kv_cache_use_sum: float = 0.0
    """Share of the KV cache that holds sequences."""
    kv_cache_use_max: float = 0.0
    num_running_sum: int = 0
    num_waiting_sum: int = 0

    def __add__(self, other: "EngineLoad") -> "EngineLoad":
        return EngineLoad(
            self.num_steps + other.num_steps,
            self.kv_cache_use_sum + other.kv_cache_use_sum,
            max(self.kv_cache_use_max, other.kv_cache_use_max),
            self.num_running_sum + other.num_running_sum,
            self.num_waiting_sum + other.num_waiting_sum,
        )


@dataclass(slots=True)
class RolloutResult:
    """What one generate() call made."""

    completions: list[Completion]
    """num_samples for each prompt, grouped by prompt in the order of the prompts."""
    counters: SpeculationCounters
    generation_s: float
    """Wall time of the call inside the engine."""
    round_costs: list[RoundCost] = field(default_factory=list)
    """What the call's rounds cost, where it speculated or could have."""
    evidence: DraftEvidence | None = None
    """Of the responses asked for by evidence_of; None where nothing was drafted."""
    load: EngineLoad = EngineLoad()
    """Without steps for an engine that has no queue."""


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
        evidence_of: Sequence[int] = (),
        remember: bool = True,
    ) -> RolloutResult:
        """Draw num_samples responses for each prompt.

        speculate=False generates autoregressively on the same engine, which is what the speedup probe compares with.
        record_rounds_of, evidence_of: indices of completions, in the order of the result, whose rounds are recorded and
        whose tested tokens are kept for the audit.
        remember=False leaves the drafter's memory of earlier responses, where it has one, as it was before the call.
        Raises ValueError for an empty prompt or a prompt that leaves no room for max_new_tokens.
        """
