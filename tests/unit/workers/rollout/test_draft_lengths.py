import pytest

from workers.algo.draft_length import Round
from workers.rollout.draft_lengths import (
    FixedDraftLength,
    ScheduledDraftLengths,
    lengthened,
    measure_costs,
    measured_lengths,
    measured_numbers,
)


def run_rounds(number, schedule, seconds):
    """Rounds of the schedule that take seconds(draft length), more where the length is not that of the last two."""
    last: list[int] = []
    for index in range(schedule.num_rounds):
        length = schedule.choose(number)
        factor = 1 if last[-2:] == [length] * 2 and index >= 4 else 10
        schedule.observe(Round(number, length, 0.0, [], [], 0, factor * seconds(length)))
        last.append(length)


def test_what_is_measured():
    assert measured_numbers(6) == [1, 2, 4, 6]
    assert measured_lengths(11) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11]
    assert lengthened([1, 2, 3], 4) == [1, 2, 3, 1, 2, 3, 1]


def test_rounds_count_once_they_have_settled():
    schedule = ScheduledDraftLengths([3, 1, 0])
    run_rounds(4, schedule, lambda k: 1.0 + k)
    assert [(k, s) for _, k, _, s in schedule.measured] == [(3, 4.0)] * 2 + [(1, 2.0)] * 2 + [(0, 1.0)] * 2
    assert schedule.num_rounds == 4 * (1 + 3)
    assert schedule.num_tokens == (4 + 4) * (3 + 1) + 4 * (1 + 1) + 4


def test_every_length_is_measured_at_the_beginning_of_responses_and_further_on():
    orders = {}

    def run(number, schedule, is_far):
        run_rounds(number, schedule, lambda k: number + k)
        orders.setdefault(number, []).append((is_far, [r.draft_length for r in schedule.measured[::2]]))

    measured = measure_costs(run, 3, 4)
    assert {(n, k, s) for n, k, _, s in measured} == {(n, k, n + k) for n in (1, 2, 3) for k in range(5)}
    for generations in orders.values():
        assert generations[:4] == [(False, [0, 2, 4]), (False, [3, 1]), (True, [4, 2, 0]), (True, [1, 3])]


def test_a_fixed_length_is_always_the_same():
    fixed = FixedDraftLength(3)
    fixed.begin()
    assert (fixed.choose(1), fixed.choose_lookup(9), fixed.width([5, 0]), fixed.width([1])) == (3, 3, 3, 1)
    assert fixed.predicted_s(4, 3, 9.0) == pytest.approx(0)
