import json
import math

import pytest
import torch

from workers.algo.lossless.sequential import SequentialTest

RATE = 0.7
"""Of heads under the alternative; 0.5 otherwise. A statistic is (tosses, heads)."""


def log_ratio(statistics):
    tosses, heads = statistics[:, 0], statistics[:, 1]
    return heads * math.log(RATE / 0.5) + (tosses - heads) * math.log((1 - RATE) / 0.5)


def steps(num_steps, rate=0.5, num_tosses=6, seed=0):
    heads = (torch.rand(num_steps, num_tosses, generator=torch.Generator().manual_seed(seed)) < rate).sum(1)
    return torch.stack([torch.full((num_steps,), num_tosses), heads], 1).double()


def played(num_steps, statistics):
    test = SequentialTest(num_steps, 2, log_ratio)
    for statistic in statistics:
        test.observe(statistic)
    return test


def slow_e_value(num_steps, statistics):
    """The mean over all starts, those to come among them."""
    ratios = [log_ratio(statistics[start:].sum(0, keepdim=True)).exp().item() for start in range(len(statistics))]
    return (sum(ratios) + num_steps - len(statistics)) / num_steps


def test_hand_computed():
    """Of two steps, the first with one head in one toss: (1.4 + 1) / 2; then a tail: (1.4 * 0.6 + 0.6) / 2."""
    test = played(2, [torch.tensor([1.0, 1.0])])
    assert math.exp(test.log_e_value()) == pytest.approx(1.2)
    test.observe(torch.tensor([1.0, 0.0]))
    assert math.exp(test.log_e_value()) == pytest.approx((1.4 * 0.6 + 0.6) / 2)
    assert test.log_capitals().exp().tolist() == pytest.approx([0.42, 0.3])
    assert test.statistics().tolist() == [[2, 1], [1, 0]]


def test_it_is_the_mean_over_all_starts_while_none_is_merged():
    statistics = steps(6, rate=0.6)
    assert math.exp(played(10, statistics).log_e_value()) == pytest.approx(slow_e_value(10, statistics))


def test_merging_keeps_few_starts_the_sums_and_the_capital_of_that_moment():
    statistics = steps(400, rate=0.52)
    test = SequentialTest(400, 2, log_ratio)
    for count, statistic in enumerate(statistics, start=1):
        test.observe(statistic)
        assert test.statistics()[0].tolist() == statistics[:count].sum(0).tolist()
    assert len(test.log_capitals()) < 60
    at_once = SequentialTest(400, 2, log_ratio)
    at_once._merge = lambda: None
    for statistic in statistics:
        at_once.observe(statistic)
    before = at_once.log_e_value()
    SequentialTest._merge(at_once)
    assert at_once.log_e_value() == pytest.approx(before)


def test_its_expectation_stays_one_under_exact_sampling():
    finals = torch.tensor(
        [math.exp(played(25, steps(25, num_tosses=1, seed=seed)).log_e_value()) for seed in range(400)]
    )
    assert finals.mean().item() == pytest.approx(1, abs=4 * finals.std().item() / 20)
    assert finals.std() > 0.05


def test_it_crosses_a_limit_no_more_often_than_it_may():
    """Ville: the chance that it ever reaches 5 is at most 1 in 5, however often one looks."""
    crossed = 0
    for seed in range(200):
        test = SequentialTest(40, 2, log_ratio)
        highest = -math.inf
        for statistic in steps(40, seed=seed):
            test.observe(statistic)
            highest = max(highest, test.log_e_value())
        crossed += highest >= math.log(5)
    assert crossed <= 40


def test_a_fault_that_begins_late_is_found_about_as_soon_as_one_from_the_start():
    def steps_to_detection(num_clean):
        test = played(300, steps(num_clean)) if num_clean else SequentialTest(300, 2, log_ratio)
        for count, statistic in enumerate(steps(300 - num_clean, rate=RATE, seed=1), start=1):
            test.observe(statistic)
            if test.log_e_value() >= math.log(100):
                return count
        raise AssertionError

    assert steps_to_detection(0) <= 40
    assert steps_to_detection(200) <= steps_to_detection(0) + 10


def test_the_newest_steps_are_at_least_those_asked_for():
    statistics = steps(50)
    test = played(50, statistics)
    assert test.newest(3).tolist() == statistics[-3:].sum(0).tolist()
    assert test.newest(40)[0] >= statistics[-40:].sum(0)[0]
    assert test.newest(51) is None


def test_after_a_restart_only_later_steps_count():
    statistics = steps(30, rate=0.9)
    test = played(60, statistics)
    assert test.log_e_value() > math.log(1000)
    test.restart()
    assert math.exp(test.log_e_value()) == pytest.approx(0.5)  # the bettors that are still to come
    test.observe(statistics[0])
    assert test.statistics().tolist() == [statistics[0].tolist()]
    nothing_left = played(30, statistics)
    nothing_left.restart()
    assert nothing_left.log_e_value() == -math.inf
    assert nothing_left.log_capitals().tolist() == []


def test_state_survives_json_and_the_test_goes_on_as_if_never_interrupted():
    statistics = steps(90, rate=0.55)
    whole, first, second = played(90, statistics), played(90, statistics[:60]), SequentialTest(90, 2, log_ratio)
    second.load_state(**json.loads(json.dumps(first.state())))
    for statistic in statistics[60:]:
        second.observe(statistic)
    assert second.log_e_value() == whole.log_e_value()
    assert second.state() == whole.state()
