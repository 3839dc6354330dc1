"""The audit of one run, as the loop uses it: choose what is looked at, judge each step, raise and clear alarms."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from contract.config import RunConfig
from contract.telemetry.alarms import AlarmName
from contract.telemetry.events import Alarm
from workers.algo.lossless.identities import broken_counts, broken_rounds
from workers.audit.alarm_board import AlarmBoard
from workers.audit.losslessness import Losslessness, title_of
from workers.audit.rules import DecayRule, MismatchRule, is_collapsed, is_slower
from workers.audit.selection import evenly_spread
from workers.rollout.engine import RolloutResult, SpeculationCounters
from workers.train.trainer import LogprobResult

_MIN_STEPS_TO_CLEAR = 10


class AuditedResponses(NamedTuple):
    """Responses of a step, by their indices."""

    tested: list[int]
    with_evidence: list[int]
    """Those whose drafts are tested too."""


class RunAudit:
    """What it keeps is small, and goes into checkpoints, so that a new attempt judges on."""

    def __init__(self, config: RunConfig) -> None:
        self._config, self._is_speculating = config.audit, config.drafter.kind != "none"
        self._num_responses = config.grpo.num_prompts_per_step * config.grpo.num_generations_per_prompt
        self._expected_tokens = float(config.rollout.max_new_tokens)
        self._losslessness = Losslessness(config.grpo.num_steps, config.audit.min_distance)
        self._mismatch = MismatchRule(config.audit.max_mismatch_ratio, config.audit.max_mismatch_growth_ratio)
        self._decay = DecayRule(config.audit.max_acceptance_fall_fraction)
        self._board = AlarmBoard()
        self._num_steps_to_clear = 0

    def choose(self) -> AuditedResponses:
        """Of the next step, by the mean length of the last one's responses, at first by the longest possible."""
        budgets = self._config.max_tokens_per_step, self._config.max_evidence_tokens_per_step * self._is_speculating
        return AuditedResponses(*(evenly_spread(self._num_responses, self._expected_tokens, b) for b in budgets))

    def after_step(
        self, step: int, result: RolloutResult, logprobs: LogprobResult
    ) -> tuple[dict[str, float], list[Alarm]]:
        """Metrics by catalogue name, and the alarms that the step raised or cleared."""
        num_tokens = sum(len(completion.token_ids) for completion in result.completions)
        self._expected_tokens = num_tokens / len(result.completions)
        metrics = self._losslessness.observe(logprobs.audit)
        violations = _violations(result, num_tokens, logprobs.audit.num_contradictions)
        metrics["lossless/num_count_violations"] = float(len(violations))
        alarms = self._judge_drift(step, violations) + self._judge_acceptance(step, result.counters)
        return metrics, alarms + self._judge_mismatch(step, logprobs.metrics)

    def after_draft_training(self, metrics: Mapping[str, float]) -> None:
        """What it expects of the draft is compared with what the next step accepts."""
        self._decay.expected = metrics.get("draft/expected_acceptance_position_1_fraction", self._decay.expected)

    def after_probe(self, step: int, metrics: Mapping[str, float]) -> list[Alarm]:
        """The alarms that a probe's metrics raised or cleared."""
        ratio, low, high = (metrics[f"speedup/generation_{part}ratio"] for part in ("", "low_", "high_"))
        message = f"Generation with speculation ran at {ratio:.2f} times the speed without ({low:.2f} to {high:.2f})."
        return self._board.judge(step, AlarmName.NO_SPEEDUP, is_slower(ratio, high), message)

    def state(self) -> dict[str, Any]:
        """What load_state() takes, as JSON knows it."""
        return {
            "expected_tokens": self._expected_tokens,
            "losslessness": self._losslessness.state(),
            "mismatch": self._mismatch.state(),
            "decay": self._decay.state(),
            "raised": self._board.state(),
            "num_steps_to_clear": self._num_steps_to_clear,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self._expected_tokens = state["expected_tokens"]
        self._losslessness.load_state(state["losslessness"])
        self._mismatch = replace(self._mismatch, **state["mismatch"])
        self._decay = replace(self._decay, **state["decay"])
        self._board.load_state(state["raised"])
        self._num_steps_to_clear = state["num_steps_to_clear"]

    def _judge_drift(self, step: int, violations: list[str]) -> list[Alarm]:
        """Raised by evidence and distance together, or by counts that cannot be; cleared after usual steps."""
        name, drift = AlarmName.DISTRIBUTION_DRIFT, self._losslessness.drift()
        if self._board.is_raised(name):
            self._num_steps_to_clear = _MIN_STEPS_TO_CLEAR if violations else max(self._num_steps_to_clear - 1, 0)
            if self._num_steps_to_clear or not self._losslessness.is_usual_for(_MIN_STEPS_TO_CLEAR):
                return []
            self._losslessness.restart()
            return self._board.judge(step, name, False, "The latest steps are distributed as the policy says.")
        limit = -math.log10(self._config.false_alarm_rate)
        is_drifting = drift.log10_e_value >= limit
        self._num_steps_to_clear = max(_MIN_STEPS_TO_CLEAR, drift.num_steps * is_drifting)
        message = (
            f"Distance {drift.distance:.3f} in {drift.num_steps} steps with evidence of 10^{drift.log10_e_value:.1f} "
            f"(limit 10^{limit:.1f}), by {title_of(drift.test)}."
            if is_drifting
            else f"Counts that contradict each other: {'; '.join(violations[:3])}."
        )
        return self._board.judge(step, name, is_drifting or bool(violations), message)

    def _judge_mismatch(self, step: int, metrics: Mapping[str, float]) -> list[Alarm]:
        ratio = metrics.get("mismatch/token_mult_prob_error_ratio")
        if ratio is None:
            return []
        message = f"token_mult_prob_error is {ratio:.4f}; the limit was {1 + self._mismatch.limit():.4f}."
        return self._board.judge(step, AlarmName.LOGPROB_MISMATCH, self._mismatch.judge(ratio), message)

    def _judge_acceptance(self, step: int, counters: SpeculationCounters) -> list[Alarm]:
        if not counters.num_drafts:
            return []
        collapse = f"Acceptance length {counters.acceptance_length:.3f} over {counters.num_drafts} rounds with a draft."
        alarms = self._board.judge(step, AlarmName.ACCEPTANCE_COLLAPSE, is_collapsed(counters), collapse)
        is_decayed = self._decay.judge(counters)
        decay = (
            f"The first drafted token is accepted in {self._decay.rate:.1%} of rounds; {self._decay.best:.1%} at best."
        )
        return alarms + self._board.judge(step, AlarmName.DRAFT_DECAY, is_decayed, decay)


def _violations(result: RolloutResult, num_tokens: int, num_contradictions: int) -> list[str]:
    """Counting identities that do not hold, one entry each."""
    broken = [*broken_counts(result.counters, num_tokens, len(result.completions))]
    for completion in result.completions:
        if completion.rounds:
            broken += broken_rounds(completion.rounds, completion.token_ids)
    return broken + ["a tested draft's outcome contradicts the response"] * num_contradictions
