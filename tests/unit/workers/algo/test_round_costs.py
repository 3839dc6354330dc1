import pytest

from workers.algo.first_costs import RoundTime
from workers.algo.round_costs import CostTable, verified, whole

MAX_LENGTH = 6


def costs(numbers=(1, 2, 4, 8)):
    """A round of n sequences and length k takes 1 + k (0.1 + 0.05 n) seconds."""
    return [RoundTime(n, k, 0.0, 1 + k * (0.1 + 0.05 * n)) for n in numbers for k in range(MAX_LENGTH + 1)]


def test_costs_are_in_proportion_between_what_was_measured():
    table = CostTable([RoundTime(*r) for r in ((2, 0, 0, 1.0), (2, 4, 0, 3.0), (4, 0, 0, 2.0), (4, 4, 0, 8.0))], 4)
    assert table.seconds(2, 2, 0.0) == pytest.approx(2.0)
    assert table.seconds(3, 4, 0.0) == pytest.approx(5.5)
    assert table.seconds(1, 0, 0.0) == pytest.approx(1.0)
    assert table.seconds(9, 4, 0.0) == pytest.approx(8.0)
    assert table.row(3) == pytest.approx([table.seconds(3, k, 0.0) for k in range(5)])
    with pytest.raises(ValueError, match="at least one measured round"):
        CostTable([], 4)


def test_draft_lengths_may_lie_between_whole_numbers_as_those_of_sequences_in_the_mean():
    table = CostTable([RoundTime(4, k, 0.0, s) for k, s in enumerate((1.0, 5.0, 6.0, 8.0))], 3)
    assert table.seconds(4, 2.5, 0.0) == pytest.approx(7.0)
    assert table.seconds(4, 0.5, 0.0) == pytest.approx(4.5)  # no round without a draft
    assert [table.seconds(4, k, 0.0) for k in (0, 1, 3)] == pytest.approx([1.0, 5.0, 8.0])
    assert [verified(n, 8, 16) for n in (8, 20, 32, 33, 40, 49)] == [0, 1.5, 3, 5, 4, 7]
    assert [whole(k) for k in (0, 0.1, 1.4, 1.6, 8)] == [0, 1, 1, 2, 8]
    table.observe([RoundTime(4, 2.4, 0.0, 1.2 * table.seconds(4, 2.4, 0.0))] * 50)
    assert table.seconds(4, 2, 0.0) / 6 > table.seconds(4, 3, 0.0) / 8 > 1.1


def test_longer_sequences_take_longer_and_lengths_are_compared_at_what_is_usual():
    table = CostTable([RoundTime(4, k, x, 1 + k + 0.01 * x) for k in range(7) for x in (50.0, 150.0)], MAX_LENGTH)
    assert table.seconds(4, 2, 100.0) == pytest.approx(4.0)
    assert table.seconds(4, 2, 150.0) == pytest.approx(4.5)
    assert table.row(4)[2] == pytest.approx(4.0)
    for _ in range(100):
        table.observe([RoundTime(4, 2, 50.0, 3.5)] * 20)
    assert table.row(4)[2] == pytest.approx(3.5, rel=1e-3)
    assert table.seconds(4, 2, 150.0) == pytest.approx(4.5)  # nothing has surprised it


def test_costs_follow_what_rounds_take_and_a_slower_machine_slows_all():
    table = CostTable(costs(), MAX_LENGTH)
    before = table.seconds(4, 3, 0.0), table.seconds(4, 0, 0.0), table.seconds(1, 2, 0.0)
    for _ in range(60):
        table.observe([RoundTime(4, 3, 0.0, 2 * before[0])] * 5)
    assert table.seconds(4, 3, 0.0) == pytest.approx(2 * before[0], rel=0.03)
    assert 1.6 * before[1] < table.seconds(4, 0, 0.0) < 2.0 * before[1]
    assert 1.3 * before[2] < table.seconds(1, 2, 0.0) < table.seconds(4, 0, 0.0) / before[1] * before[2]


def test_one_kind_that_is_slower_than_it_was_measured_is_told_from_the_machine():
    table = CostTable(costs(), MAX_LENGTH)
    true = dict.fromkeys(range(MAX_LENGTH + 1), 1.0) | {3: 1.2}
    for _ in range(100):
        for k, factor in true.items():
            table.observe([RoundTime(4, k, 0.0, factor * (1 + 0.3 * k))] * 4)
    ratios = [seconds / (1 + 0.3 * k) for k, seconds in enumerate(table.row(4))]
    assert ratios[3] / ratios[2] == pytest.approx(1.2, rel=0.02)
    assert ratios[5] / ratios[2] == pytest.approx(1.0, rel=0.02)


def test_interrupted_rounds_change_little():
    table = CostTable(costs(), MAX_LENGTH)
    before = table.seconds(4, 3, 0.0)
    table.observe([RoundTime(4, 3, 0.0, before)] * 7 + [RoundTime(4, 3, 0.0, 1000 * before)])
    assert table.seconds(4, 3, 0.0) < 1.05 * before


def test_what_runs_gets_known_and_what_does_not_less_so():
    table = CostTable(costs(), MAX_LENGTH)
    before = table.deviations(4)
    for _ in range(50):
        table.observe([RoundTime(4, 3, 0.0, table.seconds(4, 3, 0.0))] * 8)
    after = table.deviations(4)
    assert after[3] < 0.5 * before[3]
    assert after[2] > before[2]
    assert table.deviations(5) == after  # the nearest number's
