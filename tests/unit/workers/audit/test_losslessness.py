import json
import math

import pytest

from contract.telemetry.metrics import METRICS
from workers.algo.lossless.ks import ks_uniform
from workers.algo.lossless.observations import AuditObservations
from workers.audit.losslessness import Losslessness, title_of

MIN_DISTANCE = 0.005


def observe(audit, observed, num_steps, **fault):
    """Metrics of the last of so many steps."""
    for _ in range(num_steps):
        metrics = audit.observe(observed.step(**fault))
    return metrics


def steps_to_evidence(audit, observed, limit=2.0, **fault):
    for step in range(1, 61):
        audit.observe(observed.step(**fault))
        if audit.drift().log10_e_value >= limit:
            return step
    raise AssertionError("not found in 60 steps")


def test_every_metric_is_declared_and_those_of_a_step_are_its_own(make_observed):
    audit, observed = Losslessness(50, MIN_DISTANCE), make_observed()
    seen = observed.step()
    metrics = audit.observe(seen)
    assert metrics.keys() <= METRICS.keys()
    assert metrics["lossless/ks_distance"] == ks_uniform(seen.pit_N).distance
    assert metrics["lossless/num_tokens"] == 2000
    assert metrics["lossless/num_tested_drafts"] == 600
    gap = (seen.is_accepted_M.double() - seen.acceptance_probs_M).mean().item()
    assert metrics["lossless/acceptance_gap_fraction"] == pytest.approx(gap)
    assert abs(metrics["lossless/run_ks_distance"] - metrics["lossless/ks_distance"]) <= 1 / 32
    parts = [metrics[f"lossless/{name}_log10_e_value"] for name in ("pit", "ordered_pit", "acceptance")]
    assert metrics["lossless/log10_e_value"] == pytest.approx(math.log10(sum(10**part for part in parts) / 3))


def test_a_test_that_saw_nothing_says_nothing(make_observed):
    seen = make_observed().step()
    metrics = Losslessness(50, MIN_DISTANCE).observe(AuditObservations(seen.pit_N))
    assert not any("ordered" in name or "acceptance" in name for name in metrics)
    assert {"lossless/ks_distance", "lossless/log10_e_value"} <= metrics.keys()
    empty = Losslessness(50, MIN_DISTANCE).observe(AuditObservations())
    assert "lossless/ks_distance" not in empty
    assert empty["lossless/log10_e_value"] == pytest.approx(0)


def test_a_step_of_nan_is_shown_and_spoils_no_later_one(make_observed):
    audit, observed = Losslessness(50, MIN_DISTANCE), make_observed()
    seen = observed.step()
    broken = AuditObservations(
        seen.pit_N * math.nan, 0, seen.ordered_pit_M * math.nan, seen.is_accepted_M, seen.acceptance_probs_M * math.nan
    )
    metrics = audit.observe(broken)
    assert math.isnan(metrics["lossless/ks_distance"])
    assert math.isnan(metrics["lossless/acceptance_gap_fraction"])
    later = observe(audit, observed, 3)
    assert all(math.isfinite(value) for value in later.values())
    assert steps_to_evidence(audit, observed, ordered_moved=0.3) <= 10


@pytest.mark.parametrize(
    ("fault", "test", "max_steps"),
    [
        ({"moved": 0.08}, "pit", 20),
        ({"ordered_moved": 0.2}, "ordered_pit", 10),
        ({"wrongly_accepted": 0.2}, "acceptance", 10),
    ],
)
@pytest.mark.parametrize("num_clean", [0, 40])
def test_each_test_finds_the_fault_it_is_for_whenever_it_begins(make_observed, fault, test, max_steps, num_clean):
    audit, observed = Losslessness(200, MIN_DISTANCE), make_observed(num_clean)
    if num_clean:
        observe(audit, observed, num_clean)
        assert audit.drift().log10_e_value < 1
    assert steps_to_evidence(audit, observed, **fault) <= max_steps
    drift = audit.drift()
    assert drift.test == test
    assert drift.distance > 0.02
    assert drift.num_steps <= 3 * max_steps  # the stretch begins about where the fault did
    assert title_of(test)


def test_a_distance_that_does_not_matter_is_no_drift_however_certain_it_is(make_observed):
    """0.002 from uniform, twice what bfloat16 does, over 4.5 million tokens."""
    audit, observed = Losslessness(30, MIN_DISTANCE), make_observed()
    metrics = observe(audit, observed, 30, num_tokens=150_000, moved=0.004)
    assert metrics["lossless/log10_e_value"] > 4
    assert metrics["lossless/run_ks_distance"] < MIN_DISTANCE
    assert audit.drift().log10_e_value < 0


def test_a_real_fault_shows_behind_a_distance_that_does_not_matter(make_observed):
    audit, observed = Losslessness(40, MIN_DISTANCE), make_observed()
    observe(audit, observed, 30, num_tokens=150_000, moved=0.004)
    assert steps_to_evidence(audit, observed, num_tokens=100_000, moved=0.06) <= 2


def test_exact_sampling_raises_no_more_alarms_than_stated(make_observed):
    """1,000 small steps in 50 runs at a false-alarm rate of 1 in 5, which lets the test see that the rate is kept."""
    alarms = 0
    for seed in range(50):
        audit, observed = Losslessness(20, MIN_DISTANCE), make_observed(seed)
        highest = -math.inf
        for _ in range(20):
            audit.observe(observed.step(300, 100))
            highest = max(highest, audit.drift().log10_e_value)
        alarms += highest >= math.log10(5)
    assert alarms <= 10


def test_usual_steps_are_told_from_unusual_ones(make_observed):
    audit, observed = Losslessness(100, MIN_DISTANCE), make_observed()
    observe(audit, observed, 9)
    assert not audit.is_usual_for(10)
    observe(audit, observed, 10, ordered_moved=0.2)
    assert not audit.is_usual_for(10)
    observe(audit, observed, 25)
    assert audit.is_usual_for(10)


def test_after_a_restart_the_evidence_is_gone(make_observed):
    audit, observed = Losslessness(100, MIN_DISTANCE), make_observed()
    observe(audit, observed, 10, ordered_moved=0.3)
    audit.restart()
    assert audit.drift().log10_e_value == -math.inf
    assert observe(audit, observed, 3)["lossless/log10_e_value"] < 0
    assert steps_to_evidence(audit, observed, ordered_moved=0.3) <= 10


def test_state_survives_json(make_observed):
    whole, first, second = (Losslessness(40, MIN_DISTANCE) for _ in range(3))
    steps = [make_observed().step() for _ in range(25)]
    for seen in steps[:15]:
        whole.observe(seen)
        first.observe(seen)
    second.load_state(json.loads(json.dumps(first.state())))
    for seen in steps[15:]:
        assert second.observe(seen) == whole.observe(seen)
