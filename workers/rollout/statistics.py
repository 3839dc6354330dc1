"""What the rounds of one generate() call amounted to, and what they cost."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from contract.telemetry.metrics import MAX_DRAFT_LENGTH
from workers.algo.positions import at_least
from workers.rollout.engine import RoundCost, SpeculationCounters


@dataclass(slots=True)
class _Cost:
    num_rounds: int = 0
    measured_s: float = 0.0
    predicted_s: float = 0.0


@dataclass(slots=True)
class RoundStatistics:
    """Counts up as rounds end."""

    num_drafts: int = 0
    num_draft_tokens: int = 0
    accepted_at_position: list[int] = field(default_factory=lambda: [0] * MAX_DRAFT_LENGTH)
    _costs: dict[tuple[int, int], _Cost] = field(default_factory=dict)

    def count(self, num_drafted: Sequence[int], num_accepted: Sequence[int]) -> None:
        """A round's drafts, by row; accepted tokens are those that are part of the response."""
        self.num_drafts += sum(n > 0 for n in num_drafted)
        self.num_draft_tokens += sum(num_drafted)
        for position, count in enumerate(at_least(num_accepted, max(num_drafted, default=0))):
            self.accepted_at_position[position] += count

    def time(self, num_sequences: int, draft_length: int, measured_s: float, predicted_s: float) -> None:
        """A round's wall time."""
        key = (1 << (num_sequences - 1).bit_length(), draft_length)
        cost = self._costs.setdefault(key, _Cost())
        cost.num_rounds += 1
        cost.measured_s += measured_s
        cost.predicted_s += predicted_s

    def counters(self) -> SpeculationCounters:
        """Of the whole call."""
        return SpeculationCounters(
            self.num_drafts, self.num_draft_tokens, sum(self.accepted_at_position), list(self.accepted_at_position)
        )

    def costs(self) -> list[RoundCost]:
        """By number of sequences and draft length."""
        return [
            RoundCost(*key, cost.num_rounds, cost.measured_s, cost.predicted_s)
            for key, cost in sorted(self._costs.items())
        ]
