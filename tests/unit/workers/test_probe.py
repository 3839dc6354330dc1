import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy import stats

from contract.telemetry.metrics import METRICS
from workers.placement.balance import share_out
from workers.probe import NUM_PAIRS, Slice, Speedup, measure_speedup, num_probed_prompts, speedup_metrics, speedup_of
from workers.rollout.engine import Completion, RolloutResult, SamplingParams, SpeculationCounters


def test_the_ratio_is_pooled_and_the_interval_is_students():
    autoregressive = [Slice(2.0, 100), Slice(2.2, 100), Slice(3.0, 120)]
    speculative = [Slice(1.0, 100), Slice(1.4, 110), Slice(1.5, 100)]
    speedup = speedup_of(autoregressive, speculative)
    assert speedup.ratio == pytest.approx((7.2 / 320) / (3.9 / 310))
    logs = np.log([2.0, (2.2 / 100) / (1.4 / 110), (3.0 / 120) / (1.5 / 100)])
    low, high = stats.t.interval(0.95, 2, loc=0, scale=stats.sem(logs))
    assert speedup.low == pytest.approx(speedup.ratio * math.exp(low), rel=1e-3)
    assert speedup.high == pytest.approx(speedup.ratio * math.exp(high), rel=1e-3)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(1000):
        noise = np.exp(rng.normal(0, 0.1, (2, NUM_PAIRS)))
        speedup = speedup_of([Slice(1.5 * x, 100) for x in noise[0]], [Slice(x, 100) for x in noise[1]])
        covered += speedup.low <= 1.5 <= speedup.high
    assert 920 <= covered <= 980


def test_one_pair_has_no_interval():
    with pytest.raises(ValueError, match="at least two pairs"):
        speedup_of([Slice(1, 1)], [Slice(1, 1)])


@dataclass
class _Engine:
    """Autoregressive generation takes 3 ms a token, speculative 2 ms."""

    calls: list = field(default_factory=list)
    warming: list = field(default_factory=list)

    def generate(self, prompts, num_samples, params, *, speculate=True, remember=True):
        assert not remember
        if params.max_new_tokens <= 8:
            self.warming.append(speculate)
            return RolloutResult([], SpeculationCounters(), 60.0)
        self.calls.append((speculate, params.seed))
        num_tokens = 5 + len(self.calls)
        completions = [Completion(0, [1] * num_tokens, [0.0] * num_tokens, is_truncated=False)]
        return RolloutResult(completions, SpeculationCounters(), num_tokens * (0.002 if speculate else 0.003))


def test_ways_alternate_and_share_seeds_within_a_pair():
    engine = _Engine()
    speedup = measure_speedup(engine, [[5]], 1, SamplingParams(1.0, 80, 40))
    assert engine.warming == [True, False]  # and the minute that they took does not count
    assert [speculate for speculate, _ in engine.calls] == [True, False, False, True] * (NUM_PAIRS // 2)
    assert [seed for _, seed in engine.calls] == [seed for pair in range(NUM_PAIRS) for seed in (40 + pair,) * 2]
    assert (speedup.ratio, speedup.low, speedup.high) == pytest.approx((1.5, 1.5, 1.5))


@pytest.mark.parametrize(
    ("engines", "batch", "samples"), [(1, 32, 8), (2, 32, 8), (3, 10, 4), (2, 16, 4), (1, 4, 8), (3, 7, 3)]
)
def test_as_many_prompts_are_probed_as_fill_every_engine_and_no_more(engines, batch, samples):
    def rows(num_prompts):
        return [len(share) * samples for share in share_out(num_prompts, engines)]

    num_prompts = num_probed_prompts(engines, batch, samples)
    assert min(rows(num_prompts)) >= batch
    assert min(rows(num_prompts - 1)) < batch


def test_hand_computed_step_ratio_and_bound():
    # 10 s with 4 s of speculative generation and 1 s of draft training; without speculation 6 s of 11 s
    metrics = speedup_metrics(Speedup(1.5, 1.4, 1.6), step_s=10, generation_s=4, draft_s=1, acceptance_length=3)
    assert metrics["speedup/step_ratio"] == pytest.approx(1.1)
    assert metrics["speedup/bound_ratio"] == pytest.approx(1 / (6 / 11 / 3 + 5 / 11))
    assert metrics["speedup/generation_ratio"] == 1.5
    assert metrics.keys() <= METRICS.keys()


def test_no_step_beats_its_bound():
    # the draft free of charge and every accepted token worth a whole pass: the bound itself
    free = speedup_metrics(Speedup(3, 3, 3), step_s=10, generation_s=4, draft_s=0, acceptance_length=3)
    assert free["speedup/step_ratio"] == pytest.approx(free["speedup/bound_ratio"])
    costly = speedup_metrics(Speedup(2.4, 2, 3), step_s=10, generation_s=4, draft_s=2, acceptance_length=3)
    assert costly["speedup/step_ratio"] < costly["speedup/bound_ratio"]


@pytest.mark.parametrize(("num_pairs", "quantile"), [(9, 2.306), (10, 2.262), (31, 2.042)])
def test_many_pairs_take_the_quantile_of_their_number(num_pairs, quantile):
    """Student's t by table for 8, 9 and 30 degrees of freedom."""
    logs = [0.1 * (-1) ** i for i in range(num_pairs)]
    deviation = (sum((x - sum(logs) / num_pairs) ** 2 for x in logs) / (num_pairs - 1)) ** 0.5
    speedup = speedup_of([Slice(math.exp(x), 1) for x in logs], [Slice(1.0, 1)] * num_pairs)
    assert math.log(speedup.high / speedup.ratio) == pytest.approx(quantile * deviation / num_pairs**0.5, rel=2e-3)
