import json

import pytest

from contract.config import RunConfig
from contract.telemetry.alarms import AlarmName
from contract.telemetry.metrics import METRICS
from workers.audit.run_audit import RunAudit
from workers.rollout.engine import Completion, RolloutResult, RoundRecord, SpeculationCounters
from workers.train.trainer import LogprobResult


def config(**changes):
    return RunConfig.model_validate({"grpo": {"num_steps": 100}} | changes)


def result(num_drafts=600, first_accepted=400, length=30, counters=None):
    """128 responses of equal length; k = 2, and half of the first acceptances have a second."""
    positions = [first_accepted, first_accepted // 2]
    counters = counters or SpeculationCounters(num_drafts, 2 * num_drafts, sum(positions), positions)
    completions = [Completion(i // 8, [1] * length, [0.0] * length, is_truncated=False) for i in range(128)]
    return RolloutResult(completions, counters, 1.0)


def logprobs(seen, mismatch=1.01):
    metrics = {"mismatch/token_mult_prob_error_ratio": mismatch}
    return LogprobResult(None, None, metrics, seen)


class _Driven:
    """An audit that is given one step after the other."""

    def __init__(self, observed, **changes):
        self.audit, self.observed, self.step = RunAudit(config(**changes)), observed, 0

    def steps(self, count, *, result=result(), mismatch=1.01, **fault):
        """Alarms as (step, name, is raised)."""
        alarms = []
        for _ in range(count):
            self.step += 1
            seen = logprobs(self.observed.step(**fault), mismatch)
            self.metrics, told = self.audit.after_step(self.step, result, seen)
            alarms += told
        return [(alarm.step, alarm.name, alarm.is_raised) for alarm in alarms]


@pytest.fixture
def driven(make_observed):
    return _Driven(make_observed())


def test_a_healthy_run_raises_nothing_and_reports_declared_names(driven):
    assert driven.steps(15) == []
    assert driven.metrics.keys() <= METRICS.keys()
    assert driven.metrics["lossless/num_count_violations"] == 0


def test_responses_are_chosen_within_the_budget_by_the_last_steps_length(driven):
    first = driven.audit.choose()  # 128 responses of up to 128 tokens
    assert (len(first.tested), len(first.with_evidence)) == (128, 32)
    assert first.with_evidence[:3] == [0, 4, 8]
    driven.steps(1, result=result(length=64))
    assert len(driven.audit.choose().with_evidence) == 64
    plain = RunAudit(config(drafter={"kind": "none"}, audit={"max_tokens_per_step": 1280}))
    assert plain.choose() == ([0, 12, 25, 38, 51, 64, 76, 89, 102, 115], [])
    assert RunAudit(config(audit={"max_evidence_tokens_per_step": 0})).choose().with_evidence == []


def test_drift_is_raised_once_and_cleared_when_it_has_gone(driven):
    assert driven.steps(10) == []
    ((raised_at, name, is_raised),) = driven.steps(12, ordered_moved=0.3)
    assert (name, is_raised) == (AlarmName.DISTRIBUTION_DRIFT, True)
    assert raised_at <= 16
    ((cleared_at, name, is_raised),) = driven.steps(40)
    assert (name, is_raised) == (AlarmName.DISTRIBUTION_DRIFT, False)
    assert 22 + 10 <= cleared_at <= 22 + 25
    assert driven.steps(12, ordered_moved=0.3)[0][1:] == (AlarmName.DISTRIBUTION_DRIFT, True)


def test_counts_that_contradict_each_other_are_drift_at_once(driven):
    broken = result(counters=SpeculationCounters(10, 20, 6, [3, 2]))
    assert driven.steps(1, result=broken) == [(1, AlarmName.DISTRIBUTION_DRIFT, True)]
    assert driven.metrics["lossless/num_count_violations"] == 1
    assert driven.steps(9) == []
    assert driven.steps(1) == [(11, AlarmName.DISTRIBUTION_DRIFT, False)]


def test_rounds_that_are_not_the_response_are_drift(driven):
    unverified = result()
    unverified.completions[3] = Completion(0, [1, 2], [0.0, 0.0], False, [RoundRecord([], 0, 1, [], [])])
    assert driven.steps(1, result=unverified) == [(1, AlarmName.DISTRIBUTION_DRIFT, True)]


def test_acceptance_collapse_and_decay(driven):
    driven.steps(5)
    collapsed = driven.steps(3, result=result(first_accepted=4))
    assert collapsed == [(6, AlarmName.ACCEPTANCE_COLLAPSE, True), (6, AlarmName.DRAFT_DECAY, True)]
    assert (
        driven.steps(5, result=result(counters=SpeculationCounters())) == []
    )  # nothing is drafted, so nothing is said
    recovered = driven.steps(20)
    assert [(name, raised) for _, name, raised in recovered] == [
        (AlarmName.ACCEPTANCE_COLLAPSE, False),
        (AlarmName.DRAFT_DECAY, False),
    ]


def test_draft_training_knows_what_to_expect(driven):
    assert driven.steps(2) == []
    driven.audit.after_draft_training({"draft/expected_acceptance_position_1_fraction": 0.99})
    driven.audit.after_draft_training({})
    assert driven.steps(1) == [(3, AlarmName.DRAFT_DECAY, True)]


def test_mismatch(driven):
    driven.steps(5)
    assert driven.steps(2, mismatch=1.04) == [(6, AlarmName.LOGPROB_MISMATCH, True)]
    assert driven.steps(2) == [(8, AlarmName.LOGPROB_MISMATCH, False)]


def probe(ratio, margin=0.1):
    return {
        "speedup/generation_ratio": ratio,
        "speedup/generation_low_ratio": ratio - margin,
        "speedup/generation_high_ratio": ratio + margin,
    }


def test_no_speedup(driven):
    told = [driven.audit.after_probe(10 * i, probe(r)) for i, r in enumerate([1.5, 0.95, 0.8, 0.95, 1.2], start=1)]
    assert [[(a.step, a.is_raised) for a in alarms] for alarms in told] == [[], [], [(30, True)], [], [(50, False)]]
    assert "0.80 times" in told[2][0].message


def test_a_new_attempt_judges_on(make_observed):
    whole, first = _Driven(make_observed(1)), _Driven(make_observed(1))
    fault = {"ordered_moved": 0.3}
    for run in (whole, first):
        run.steps(4)
        run.steps(4, **fault)
    second = _Driven(first.observed)
    second.step = first.step
    second.audit.load_state(json.loads(json.dumps(first.audit.state())))
    assert second.audit.choose() == whole.audit.choose()
    assert second.steps(6, **fault) == whole.steps(6, **fault)
    assert second.steps(30, mismatch=1.04) == whole.steps(30, mismatch=1.04)
    assert second.metrics == whole.metrics
    assert second.audit.state() == whole.audit.state()
