"""The audit's share of the log-probability pass: what needs a whole row of the policy's distribution.

Shape suffixes: B responses, T tokens, V vocabulary, N audited tokens, M tested drafts.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from workers.algo.loss import k3
from workers.algo.lossless.acceptance_gap import acceptance_probs
from workers.algo.lossless.observations import AuditObservations
from workers.algo.lossless.pit import draft_ratio_scores, randomized_pit
from workers.algo.sampling import truncate
from workers.train.trainer import TrainingBatch

_ROWS_AT_ONCE = 1024
"""Rows of the vocabulary's width that are held besides the pass's own."""


class Distributions(Protocol):
    """Log-probabilities [B, T, V] of the token after each position, whole or made when they are asked for."""

    @property
    def device(self) -> torch.device:
        """Where they are."""

    def __getitem__(self, at: tuple[Tensor, Tensor]) -> Tensor:
        """[N, V] of N rows and positions."""


@dataclass(frozen=True, slots=True)
class MismatchSums:
    """How far the trainer's log-probabilities lie from the engine's, added up; shares of a step add up too."""

    num_compared: float = 0.0
    kl_sum: float = 0.0
    error_sum: float = 0.0

    def metrics(self) -> dict[str, float]:
        """Averages over the audited tokens.

        mismatch/kl_nats: k3 estimate of KL(engine || trainer), the tokens being the engine's.
        mismatch/token_mult_prob_error_ratio: mean of exp(|engine - trainer|), the measure of NeMo RL.
        Both by the distributions that tokens are drawn from; tokens that the trainer's excludes are counted elsewhere.
        Empty where nothing could be compared.
        """
        if not self.num_compared:
            return {}
        return {
            "mismatch/kl_nats": self.kl_sum / self.num_compared,
            "mismatch/token_mult_prob_error_ratio": self.error_sum / self.num_compared,
        }


class AuditPass:
    """Takes micro-batches in any order; every token is judged by the distribution that it was to be drawn from."""

    def __init__(self, generator: torch.Generator) -> None:
        """generator: of the transforms' random numbers, which no engine may know."""
        self._generator = generator
        self._parts: list[AuditObservations] = []
        self._num_compared, self._kl_sum, self._error_sum = 0, 0.0, 0.0

    def take(self, log_p_BTV: Distributions, part: TrainingBatch) -> None:
        """log_p_BTV: log-probabilities of the token after each position, at the batch's temperature, not truncated."""
        is_audited_BT = part.response_mask_BT > 0
        if part.is_audited_B is not None:
            is_audited_BT = is_audited_BT & part.is_audited_B[:, None]
        for at in is_audited_BT.nonzero().split(_ROWS_AT_ONCE):
            self._take_tokens(log_p_BTV, part, *at.unbind(1))
        if part.evidence is not None:
            for tested_M in torch.arange(len(part.evidence.completion_M)).split(_ROWS_AT_ONCE):
                self._take_evidence(log_p_BTV, part, tested_M)

    def observations(self) -> AuditObservations:
        """Of everything taken."""
        return AuditObservations.joined(self._parts)

    def mismatch_sums(self) -> MismatchSums:
        """Of everything taken."""
        return MismatchSums(self._num_compared, self._kl_sum, self._error_sum)

    def mismatch_metrics(self) -> dict[str, float]:
        """See MismatchSums.metrics()."""
        return self.mismatch_sums().metrics()

    def _take_tokens(self, log_p_BTV: Distributions, part: TrainingBatch, row_N: Tensor, column_N: Tensor) -> None:
        token_N, engine_N = part.token_ids_BT[row_N, column_N], part.engine_logprobs_BT[row_N, column_N]
        log_p_NV, probs_NV = _processed(log_p_BTV[row_N, column_N - 1], part)
        trainer_N = log_p_NV.gather(1, token_N[:, None])[:, 0]
        is_excluded_N = trainer_N.isneginf()
        self._compare(engine_N[~is_excluded_N], trainer_N[~is_excluded_N])
        pit_N = randomized_pit(probs_NV, token_N, generator=self._generator)
        self._parts.append(AuditObservations(pit_N.cpu(), int(is_excluded_N.sum())))

    def _compare(self, engine_N: Tensor, trainer_N: Tensor) -> None:
        self._num_compared += len(engine_N)
        self._kl_sum += k3(engine_N, trainer_N, torch.ones_like(engine_N)).sum(dtype=torch.float64).item()
        self._error_sum += (engine_N - trainer_N).abs().exp().sum(dtype=torch.float64).item()

    def _take_evidence(self, log_p_BTV: Distributions, part: TrainingBatch, tested_M: Tensor) -> None:
        evidence, device = part.evidence, log_p_BTV.device
        assert evidence is not None
        row_M = evidence.completion_M[tested_M].to(device)
        column_M = part.response_mask_BT.argmax(1)[row_M] + evidence.position_M[tested_M].to(device)
        _, probs_MV = _processed(log_p_BTV[row_M, column_M - 1], part)
        emitted_M, drafted_M = part.token_ids_BT[row_M, column_M], evidence.drafted_M[tested_M].to(device)
        top_ids_MC, top_probs_MC = (t[tested_M].to(device) for t in (evidence.top_ids_MN, evidence.top_probs_MN))
        scores_MV = draft_ratio_scores(probs_MV, top_ids_MC, top_probs_MC)
        is_accepted_M = evidence.is_accepted_M[tested_M]
        p_M = probs_MV.gather(1, drafted_M[:, None])[:, 0].cpu()
        self._parts.append(
            AuditObservations(
                ordered_pit_M=randomized_pit(probs_MV, emitted_M, scores_MV, self._generator).cpu(),
                is_accepted_M=is_accepted_M,
                acceptance_probs_M=acceptance_probs(p_M, evidence.draft_probs_M[tested_M]),
                num_contradictions=int(((emitted_M == drafted_M).cpu() != is_accepted_M).sum()),
            )
        )


def _processed(log_p_NV: Tensor, part: TrainingBatch) -> tuple[Tensor, Tensor]:
    """(log-probabilities, probabilities) of the batch's truncated distribution."""
    if not part.truncation.is_active:
        return log_p_NV, log_p_NV.exp()
    probs_NV = truncate(log_p_NV.exp(), part.truncation)
    return probs_NV.log(), probs_NV
