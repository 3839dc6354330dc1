import pytest

from workers.rollout.draft_lengths import (
    FixedDraftLength,
    ScheduledDraftLengths,
    lengthened,
    measure_costs,
    measured_lengths,
    measured_numbers,
)


def run_rounds(number, schedule, seconds):
    """Rounds of the schedule that take seconds(draft length), ten times as long where the length is not the last's."""
    before = None
    for index in range(schedule.num_rounds):
        length = schedule.choose(number)
        factor = 10 if length != before or index < 3 else 1
        schedule.observe(number, length, [], [], 0, factor * seconds(length))
        before = length


def test_what_is_measured():
    assert measured_numbers(6) == [1, 2, 4, 6]
    assert measured_lengths(11) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11]
    assert lengthened([1, 2, 3], 4) == [1, 2, 3, 1, 2, 3, 1]


def test_first_rounds_and_the_first_of_a_length_do_not_count():
    schedule = ScheduledDraftLengths([3, 1, 0])
    run_rounds(4, schedule, lambda k: 1.0 + k)
    assert schedule.seconds == [(3, 4.0), (1, 2.0), (0, 1.0)]
    assert schedule.num_tokens == 4 * (3 + 1) + 2 * (3 + 1) + 2 * (1 + 1) + 2


def test_costs_are_medians_of_several_generations():
    num_runs = {}

    def run(number, schedule):
        num_runs[number] = run_now = num_runs.get(number, 0) + 1
        run_rounds(number, schedule, lambda k: (number + k) * (100 if run_now == 2 else 1))

    costs = measure_costs(run, 3, 2)
    assert {(n, k): s for n, k, s in costs} == {(n, k): n + k for n in (1, 2, 3) for k in range(3)}
    assert all(count >= 3 for count in num_runs.values())


def test_a_fixed_length_is_always_the_same():
    fixed = FixedDraftLength(3)
    fixed.begin()
    assert (fixed.choose(1), fixed.choose_lookup(9), fixed.width([5, 0]), fixed.width([1])) == (3, 3, 3, 1)
    assert fixed.predicted_s(4, 3) == pytest.approx(0)
