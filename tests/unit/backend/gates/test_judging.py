from datetime import UTC, datetime
from uuid import UUID

import pytest

from backend.gates.estimates import Estimate, Sample
from backend.gates.judging import Against, judge_alarms, judge_comparison, verdict_of
from backend.gates.schemas import Gate
from backend.gates.windows import Measured
from backend.telemetry.alarms import Episode
from contract.gates.expression import parse
from contract.gates.metrics import resolve

RUN = UUID("00000000-0000-4000-8000-000000000001")
EVEN = [3.0, 3.2, 2.8, 3.1, 2.9, 3.0, 3.2, 2.8, 3.1, 2.9]


def sample(values=EVEN):
    return Sample(tuple(range(1, len(values) + 1)), tuple(values))


def judge(assertion, values=EVEN, baseline=None, num_non_finite=0, **fields):
    if "baseline" in assertion:
        fields.setdefault("baseline", "origin")
    gate, parsed = Gate(assertion=assertion, **fields), parse(assertion)
    measured = Measured(sample(values) if values else None, num_non_finite)
    return judge_comparison(gate, parsed, resolve(parsed.metric), measured, baseline)


@pytest.mark.parametrize(
    ("operator", "low", "high", "verdict"),
    [
        (">=", 1.0, 2.0, "passed"),
        (">=", 0.9, 2.0, "undecided"),
        (">=", 0.8, 0.9, "failed"),
        (">=", 0.8, 1.0, "undecided"),
        (">", 1.0, 2.0, "undecided"),
        (">", 0.8, 1.0, "failed"),
        ("<=", 0.5, 1.0, "passed"),
        ("<=", 0.5, 1.1, "undecided"),
        ("<=", 1.1, 1.2, "failed"),
        ("<", 0.5, 1.0, "undecided"),
        ("<", 0.5, 0.9, "passed"),
        (">=", None, None, "undecided"),
        (">=", 1.5, None, "passed"),
        ("<=", 1.5, None, "failed"),
        ("<=", 0.5, None, "undecided"),
        (">=", None, 0.5, "failed"),
    ],
)
def test_verdicts_on_a_limit_of_one(operator, low, high, verdict):
    assert verdict_of(operator, Estimate(1.0, low, high), 1.0) == verdict


def test_a_clear_pass_and_a_clear_failure_carry_their_evidence():
    passed = judge("acceptance_length >= 2.5")
    assert (passed.verdict, passed.is_passed, passed.limit) == ("passed", True, 2.5)
    assert (passed.metric, passed.unit, passed.aggregate) == ("rollout/acceptance_length_tokens", "tokens", "mean")
    assert (passed.first_step, passed.last_step, passed.num_values) == (1, 10, 10)
    assert passed.low < passed.estimate == 3.0 < passed.high
    assert passed.reason.startswith("3 tokens (95 % interval ")
    failed = judge("acceptance_length >= 3.5")
    assert (failed.verdict, failed.is_passed) == ("failed", False)
    assert "is not >= 3.5." in failed.reason


@pytest.mark.parametrize(
    ("policy", "limit", "is_passed"),
    [("pass", 3.05, True), ("fail", 2.95, False), ("estimate", 2.95, True), ("estimate", 3.05, False)],
)
def test_undecided_counts_as_the_policy_says(policy, limit, is_passed):
    found = judge(f"acceptance_length >= {limit}", on_undecided=policy)
    assert (found.verdict, found.is_passed) == ("undecided", is_passed)
    assert f"here that {'passes' if is_passed else 'fails'}" in found.reason


def test_without_data_a_gate_fails():
    found = judge("reward >= 0 over steps 50..60", values=[])
    assert (found.verdict, found.is_passed, found.num_values) == ("no_data", False, 0)
    assert found.reason == "The run has no value of reward/train_mean in steps 50 to 60."
    assert "last 5 steps" in judge("reward >= 0 over last 5 steps", values=[]).reason


def test_what_is_not_finite_fails_whatever_the_rest_says():
    found = judge("grad_norm <= 100", num_non_finite=2)
    assert (found.verdict, found.is_passed, found.num_values, found.num_non_finite) == ("failed", False, 12, 2)
    assert found.reason == "2 of 12 values are not finite numbers."
    assert judge("grad_norm <= 100", values=[], num_non_finite=2).verdict == "failed"


def test_a_baseline_sets_the_limit():
    baseline = Against(RUN, "nightly", sample([value + 1 for value in EVEN]))
    found = judge("reward >= baseline * 0.5 + 0.25", baseline=baseline)
    assert found.limit == pytest.approx(2.25)
    assert (found.verdict, found.baseline.run_id, found.baseline.is_paired) == ("passed", RUN, True)
    assert found.baseline.estimate == pytest.approx(4)
    assert judge("reward >= baseline - 0.5", baseline=baseline).verdict == "failed"


def test_a_run_is_not_worse_than_itself():
    baseline = Against(RUN, "same", sample())
    for assertion in ("reward >= baseline", "reward <= baseline", "p95(reward) <= baseline * 1.5"):
        assert judge(assertion, baseline=baseline).is_passed
    assert judge("reward >= baseline", baseline=baseline).verdict == "passed"


@pytest.mark.parametrize(("policy", "is_passed"), [("pass", True), ("fail", False)])
def test_without_a_baseline_the_policy_counts(policy, is_passed):
    found = judge("reward >= baseline", baseline="None yet.", on_no_baseline=policy)
    assert (found.verdict, found.is_passed) == ("no_baseline", is_passed)
    assert found.reason.startswith("None yet. Nothing to compare with")
    assert found.estimate == pytest.approx(3)


def episode(name, step, ended_step=None, ending=None):
    time = datetime(2030, 1, 1, tzinfo=UTC)
    return Episode(name, 1, step, time, "message", ending, ended_step, time if ending else None)


@pytest.mark.parametrize(
    ("assertion", "told", "is_passed"),
    [
        ("no alarms", [], True),
        ("no alarms", [episode("draft_decay", 5)], False),
        ("no alarms", [episode("draft_decay", 5, 8, "cleared")], False),
        ("no alarms", [episode("draft_decay", 5, 3, "undone")], True),
        ("no distribution_drift", [episode("draft_decay", 5)], True),
        ("no draft_decay", [episode("draft_decay", 5)], False),
        ("no alarms over steps 1..4", [episode("draft_decay", 5)], True),
        ("no alarms over steps 9..20", [episode("draft_decay", 5, 8, "cleared")], True),
        ("no alarms over steps 9..20", [episode("draft_decay", 5)], False),
        ("no alarms over steps 8..20", [episode("draft_decay", 5, 8, "cleared")], False),
    ],
)
def test_alarms(assertion, told, is_passed):
    found = judge_alarms(Gate(assertion=assertion), parse(assertion), told)
    assert (found.is_passed, found.verdict) == (is_passed, "passed" if is_passed else "failed")


def test_alarms_are_named_with_their_steps():
    found = judge_alarms(Gate(assertion="no alarms"), parse("no alarms"), [episode("draft_decay", 5)] * 7)
    assert found.reason == "Raised: " + ", ".join(["draft_decay at step 5"] * 5) + ", and 2 more."
