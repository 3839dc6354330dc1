"""What one step's tokens say, as the trainer's pass sees them.

Shape suffixes: N audited tokens, M tested drafts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor


def _no_numbers() -> Tensor:
    return torch.zeros(0, dtype=torch.float64)


@dataclass(frozen=True, slots=True)
class AuditObservations:
    """Numbers whose count does not depend on the vocabulary; all on the CPU, without gradient."""

    pit_N: Tensor = field(default_factory=_no_numbers)
    """float64: transforms of the audited tokens, by descending policy probability."""
    num_excluded: int = 0
    """Audited tokens that the trainer's distribution gives no probability at all."""
    ordered_pit_M: Tensor = field(default_factory=_no_numbers)
    """float64: transforms of the tokens emitted where a draft was tested, by descending q / p."""
    is_accepted_M: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.bool))
    """Whether the draft was accepted."""
    acceptance_probs_M: Tensor = field(default_factory=_no_numbers)
    """float64: min(1, p / q) of the draft."""
    num_contradictions: int = 0
    """Tested drafts whose outcome does not go with the response: an accepted draft that is not in it, or a rejected one
    that is, which no residual distribution contains."""

    @classmethod
    def joined(cls, parts: Sequence["AuditObservations"]) -> "AuditObservations":
        """Of all parts of a step."""
        parts = [cls(), *parts]
        return cls(
            torch.cat([part.pit_N for part in parts]),
            sum(part.num_excluded for part in parts),
            torch.cat([part.ordered_pit_M for part in parts]),
            torch.cat([part.is_accepted_M for part in parts]),
            torch.cat([part.acceptance_probs_M for part in parts]),
            sum(part.num_contradictions for part in parts),
        )
