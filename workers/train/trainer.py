"""What the loop asks of a policy trainer, whatever it is made of."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import torch

from workers.algo.lossless.observations import AuditObservations
from workers.algo.sampling import Truncation
from workers.rollout.engine import DraftEvidence


@dataclass(frozen=True, slots=True)
class TrainingBatch:
    """One step's responses, right-padded. B responses of at most T tokens, prompt and response together."""

    token_ids_BT: torch.Tensor
    """int64; padding is 0 and masked."""
    response_mask_BT: torch.Tensor
    """float32; 1 at response tokens (the end-of-sequence token included), 0 at prompt and padding."""
    engine_logprobs_BT: torch.Tensor
    """float32; the engine's log-probability of the token at t given the tokens before t; 0 where the mask is 0."""
    temperature: float
    """Sampling temperature of the responses."""
    truncation: Truncation = field(default_factory=Truncation)
    """What of the distribution they were drawn from; loss and gradient know nothing of it, the audit does."""
    evidence: DraftEvidence | None = None
    """Tested draft tokens; completion_M are rows of the batch."""
    is_audited_B: torch.Tensor | None = None
    """bool: responses that the audit looks at, chosen before anything was drawn; all of them where it is None."""

    def to(self, device: torch.device) -> "TrainingBatch":
        """What a forward pass and its loss read, on a device; the evidence stays where it is."""
        return replace(
            self,
            token_ids_BT=self.token_ids_BT.to(device),
            response_mask_BT=self.response_mask_BT.to(device),
            engine_logprobs_BT=self.engine_logprobs_BT.to(device),
            is_audited_B=None if self.is_audited_B is None else self.is_audited_B.to(device),
        )


@dataclass(frozen=True, slots=True)
class LogprobResult:
    """One pass of the current policy over a batch, and what it says about the engine that generated it."""

    logprobs_BT: torch.Tensor
    """float32, aligned with token_ids_BT as engine_logprobs_BT is; no gradient."""
    reference_logprobs_BT: torch.Tensor | None
    """The same under the starting policy; None when there is no KL penalty."""
    metrics: dict[str, float]
    """Entropy and mismatch by catalogue name."""
    audit: AuditObservations
    """What the batch's tokens say about the engine; see workers.audit."""


class PolicyTrainer(Protocol):
    """Holds the policy's parameters and optimiser, and the draft head's where there is one."""

    def compute_logprobs(self, batch: TrainingBatch) -> LogprobResult:
        """Log-probabilities under the current policy, before any update of this step."""

    def train_step(self, batch: TrainingBatch, logprobs: LogprobResult, advantages_B: torch.Tensor) -> dict[str, float]:
        """One policy update; returns metrics by catalogue name."""

    def train_draft(self, batch: TrainingBatch) -> dict[str, float]:
        """The step's draft updates on detached features; returns metrics, empty when nothing is trained."""

    def save(self, path: Path) -> None:
        """Write parameters, optimiser state and generator state into a folder."""

    def load(self, path: Path) -> None:
        """Take up what save() wrote, so that the next step is the one that would have followed."""
