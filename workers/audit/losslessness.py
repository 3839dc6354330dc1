"""Whether samples are the policy's: each step's tests, and what they add up to over the run.

Shape suffixes: J stretches of latest steps, S numbers of a statistic.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from workers.algo.lossless.acceptance_gap import acceptance_gap
from workers.algo.lossless.evidence import NUM_BINS, TILTS_G, log_bin_evidence, log_tilt_evidence, log_tilts
from workers.algo.lossless.ks import binned_distance, ks_p_value, ks_uniform
from workers.algo.lossless.observations import AuditObservations
from workers.algo.lossless.pit import bin_counts
from workers.algo.lossless.sequential import SequentialTest

_USUAL_P_VALUE = 0.01
_Z_AT_USUAL_P_VALUE = 2.576


@dataclass(frozen=True, slots=True)
class Drift:
    """What speaks most against exact sampling."""

    log10_e_value: float
    test: str
    distance: float
    """Over the stretch of latest steps that has most of the evidence; 0 where no stretch is at a distance."""
    num_steps: int
    """Length of that stretch."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """What makes a sequential test one of transforms or of acceptances."""

    title: str
    size: int
    """S."""
    statistic: Callable[[AuditObservations], Tensor]
    log_evidence: Callable[[Tensor], Tensor]
    distance: Callable[[Tensor], Tensor]
    """[J, S] -> [J]: how far from exact the statistics are, as a share of tokens."""
    is_usual: Callable[[Tensor], bool]
    """[S]: whether exact sampling often gives such a statistic."""


def _is_usual_counts(counts_K: Tensor) -> bool:
    n = counts_K.sum().item()
    return not n or ks_p_value(binned_distance(counts_K).item(), n) > _USUAL_P_VALUE


def _acceptance_statistic(seen: AuditObservations) -> Tensor:
    """Without what a policy of NaN says, which would make all later sums NaN; the step's own metrics show it."""
    is_known_M = ~seen.acceptance_probs_M.isnan()
    is_accepted_M, probs_M = seen.is_accepted_M[is_known_M], seen.acceptance_probs_M[is_known_M]
    gap = acceptance_gap(is_accepted_M, probs_M)
    head = torch.tensor([gap.num_tested, gap.gap_sum, gap.variance], dtype=torch.float64)
    return torch.cat([head, log_tilts(is_accepted_M, probs_M)])


_KINDS = {
    "pit": _Kind(
        "tokens against the policy's distribution",
        NUM_BINS,
        lambda seen: bin_counts(seen.pit_N, NUM_BINS),
        log_bin_evidence,
        binned_distance,
        _is_usual_counts,
    ),
    "ordered_pit": _Kind(
        "tokens against the policy's distribution where a draft was tested, ordered by draft over policy",
        NUM_BINS,
        lambda seen: bin_counts(seen.ordered_pit_M, NUM_BINS),
        log_bin_evidence,
        binned_distance,
        _is_usual_counts,
    ),
    "acceptance": _Kind(
        "accepted drafts against their chances",
        3 + len(TILTS_G),
        _acceptance_statistic,
        lambda statistics_JS: log_tilt_evidence(statistics_JS[:, 3:]),
        lambda statistics_JS: (statistics_JS[:, 1] / statistics_JS[:, 0].clamp_min(1)).abs(),
        lambda statistic_S: statistic_S[1].abs().item() <= _Z_AT_USUAL_P_VALUE * statistic_S[2].sqrt().item(),
    ),
}


class Losslessness:
    """Three sequential tests with one false-alarm rate: the mean of e-processes is an e-process."""

    def __init__(self, num_steps: int, min_distance: float) -> None:
        """min_distance: see contract.config.audit.AuditConfig."""
        self._min_distance = min_distance
        self._tests = {name: SequentialTest(num_steps, kind.size, kind.log_evidence) for name, kind in _KINDS.items()}

    def observe(self, seen: AuditObservations) -> dict[str, float]:
        """One step's observations; returns its metrics by catalogue name, without those of tests that saw nothing."""
        for name, kind in _KINDS.items():
            self._tests[name].observe(kind.statistic(seen))
        log_e = {name: test.log_e_value() for name, test in self._tests.items()}
        metrics = {
            "lossless/num_excluded_tokens": float(seen.num_excluded),
            "lossless/log10_e_value": _log10_mean(list(log_e.values())),
            "lossless/run_ks_distance": binned_distance(self._tests["pit"].statistics()[0]).item(),
        }
        if len(seen.pit_N):
            metrics |= _ks_metrics("ks", "num_tokens", seen.pit_N)
            metrics["lossless/pit_log10_e_value"] = log_e["pit"] / math.log(10)
        if len(seen.ordered_pit_M):
            metrics |= _ks_metrics("ordered_ks", "num_tested_drafts", seen.ordered_pit_M) | _gap_metrics(seen)
            for name in ("ordered_pit", "acceptance"):
                metrics[f"lossless/{name}_log10_e_value"] = log_e[name] / math.log(10)
        return metrics

    def drift(self) -> Drift:
        """Evidence of the stretches of latest steps that are at min_distance or farther.

        Its e-value is at most that of the run, so a limit on it raises no more false alarms.
        """
        capitals, found = [], Drift(-math.inf, "pit", 0.0, 0)
        for name, test in self._tests.items():
            distance_J = _KINDS[name].distance(test.statistics())
            capital_J = test.log_capitals().masked_fill(distance_J < self._min_distance, -math.inf)
            capitals.append(capital_J.logsumexp(0).item())
            if capitals[-1] > found.log10_e_value:
                at = int(capital_J.argmax())
                found = Drift(capitals[-1], name, distance_J[at].item(), test.num_steps_since(at))
        return replace(found, log10_e_value=_log10_mean(capitals))

    def is_usual_for(self, num_steps: int) -> bool:
        """Whether the latest steps, together, are as exact sampling often is, or no farther from it than matters."""
        for name, test in self._tests.items():
            statistic = test.newest(num_steps)
            if statistic is None:
                return False
            is_near = _KINDS[name].distance(statistic[None]).item() < self._min_distance
            if not is_near and not _KINDS[name].is_usual(statistic):
                return False
        return True

    def restart(self) -> None:
        """Forget the evidence so far; the false-alarm rate of the whole run stays what it was."""
        for test in self._tests.values():
            test.restart()

    def state(self) -> dict[str, Any]:
        """What load_state() takes, as JSON knows it."""
        return {name: test.state() for name, test in self._tests.items()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        for name, test in self._tests.items():
            test.load_state(**state[name])


def title_of(test: str) -> str:
    """What a test compares, in words."""
    return _KINDS[test].title


def _log10_mean(logs: list[float]) -> float:
    """log10 of the mean of numbers given by their natural logarithms."""
    return (torch.tensor(logs, dtype=torch.float64).logsumexp(0).item() - math.log(len(logs))) / math.log(10)


def _ks_metrics(kind: str, tokens: str, u_N: Tensor) -> dict[str, float]:
    result = ks_uniform(u_N)
    return {
        f"lossless/{kind}_distance": result.distance,
        f"lossless/{kind}_p_value": result.p_value,
        f"lossless/{tokens}": float(result.num_tokens),
    }


def _gap_metrics(seen: AuditObservations) -> dict[str, float]:
    gap = acceptance_gap(seen.is_accepted_M, seen.acceptance_probs_M)
    metrics = {"lossless/acceptance_gap_fraction": gap.gap}
    return metrics if gap.z is None else metrics | {"lossless/acceptance_z_score": gap.z}
