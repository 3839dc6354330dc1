import random

import pytest

from workers.algo.first_costs import RoundTime, first_costs


def rounds(seconds, contexts=(50.0, 60.0, 150.0), lengths=range(7)):
    """Of 4 sequences, as long as seconds(draft length, context) says."""
    return [RoundTime(4, k, x, seconds(k, x)) for k in lengths for x in contexts]


def at(costs, context):
    return [empty + slope * context for empty, slope in zip(costs.empty_s, costs.slopes_s, strict=True)]


def test_what_a_further_token_adds_is_told_from_the_draft_length():
    costs = first_costs(rounds(lambda k, x: 2 + k + (0.02 if k else 0.005) * x), 6)
    assert costs.slopes_s == pytest.approx([0.005] + [0.02] * 6)
    assert at(costs, 0.0) == pytest.approx([2.0 + k for k in range(7)])
    assert costs.context == pytest.approx(260 / 3)


def test_an_interrupted_round_changes_nothing():
    def seconds(k, x):
        return 2 + k + 0.02 * x

    interrupted = [r._replace(seconds=50.0) if r[1:3] == (3, 60.0) else r for r in rounds(seconds)]
    assert at(first_costs(interrupted, 6), 100.0)[3] == pytest.approx(seconds(3, 100.0), rel=0.02)


def test_sequences_of_one_length_and_none_that_get_slower_leave_costs_as_they_are():
    assert first_costs(rounds(lambda k, _: 1.0 + k, contexts=(70.0, 70.0)), 6).slopes_s == [0.0] * 7
    assert first_costs(rounds(lambda k, x: 3 + k - 0.001 * x), 6).slopes_s == [0.0] * 7


def test_empty_sequences_take_time_whatever_was_measured():
    """Half of the time of a round at the least, or a noisy slope would make costs negative."""
    costs = first_costs(rounds(lambda k, x: (1 + k) * x / 100), 6)
    assert all(empty >= 0.49 * s for empty, s in zip(costs.empty_s, at(costs, costs.context), strict=True))


def test_lengths_between_measured_ones_are_in_proportion():
    assert at(first_costs(rounds(lambda k, _: 1.0 + k * k, lengths=(0, 2, 4)), 4), 9.0) == pytest.approx(
        [1, 3, 5, 11, 17]
    )


def test_what_lies_on_a_line_stays_and_a_quarter_of_the_noise_around_it_goes():
    def noisy(k, _):
        return (1 + 0.3 * k) * (1 + drawn[k])

    draw = random.Random(5)
    drawn = [draw.uniform(-0.1, 0.1) for _ in range(7)]
    errors = [abs(noisy(k, 0) - 1 - 0.3 * k) for k in range(1, 7)]
    smooth = [abs(s - 1 - 0.3 * k) for k, s in enumerate(at(first_costs(rounds(noisy), 6), 0.0))][1:]
    assert sum(smooth) < 0.85 * sum(errors)
    # A round without a draft is of another kind.
    assert at(first_costs(rounds(lambda k, _: 1 + 0.3 * k if k else 0.2), 6), 0.0)[0] == pytest.approx(0.2)
