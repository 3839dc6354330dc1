import pytest

from benchmarks.rollout import Way, share_of_best
from workers.probe import Slice


def way_of(*seconds):
    """A way whose turns took so long for 100 tokens each."""
    return Way("", None, [Slice(s, 100) for s in seconds])


def test_the_best_length_is_chosen_by_the_turns_that_do_not_judge_it():
    lucky_in_even, lucky_in_odd = way_of(0.5, 1.0, 0.5, 1.0), way_of(1.0, 0.5, 1.0, 0.5)
    # Each was best in turns that do not count for it: judged it takes 1.
    assert share_of_best([lucky_in_even, lucky_in_odd], way_of(1, 1, 1, 1)).ratio == pytest.approx(1.0)
    assert share_of_best(
        [way_of(1, 1, 1, 1), way_of(2, 2, 2, 2)], way_of(1.25, 1.25, 1.25, 1.25)
    ).ratio == pytest.approx(0.8)


def test_without_fixed_lengths_or_turns_there_is_no_share():
    assert share_of_best([], way_of(1, 1, 1, 1)) is None
    assert share_of_best([way_of(1, 1, 1)], way_of(1, 1, 1)) is None
