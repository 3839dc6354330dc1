import pytest

from workers.algo.acceptance_estimate import AcceptanceEstimate


def test_acceptance_is_the_share_of_tries():
    estimate = AcceptanceEstimate(3)
    for _ in range(1000):
        estimate.observe([([10, 10, 0], [8, 4, 0])])
    first, second, third = estimate.chances()
    assert (first, second) == (pytest.approx(0.8, abs=0.01), pytest.approx(0.4, abs=0.01))
    # Never tried: what was accepted at the position before, given the one before that, goes on.
    assert third == pytest.approx(0.4 * 0.5, abs=0.01)


def test_before_anything_was_tried_it_is_hopeful():
    assert AcceptanceEstimate(3).chances() == pytest.approx([0.7, 0.49, 0.343])
    assert AcceptanceEstimate(2).yields() == pytest.approx([1, 1.7, 2.19])


def test_only_the_surest_drafts_being_long_raises_the_chance():
    estimate = AcceptanceEstimate(2)
    estimate.observe([([500, 100], [250, 90])] * 4)
    first, second = estimate.chances()
    assert first == pytest.approx(0.5, abs=0.01)
    assert second == pytest.approx(0.9, abs=0.06)


def test_rounds_of_several_lengths_count_together():
    together, apart = AcceptanceEstimate(3), AcceptanceEstimate(3)
    rounds = [([4, 4], [3, 2]), ([], []), ([2, 2, 2], [2, 1, 0])]
    together.observe(rounds)
    for round_ in rounds:
        apart.observe([round_])
    assert together.chances() == pytest.approx(apart.chances(), rel=1e-3)


def test_what_comes_after_a_doubt_counts_for_more():
    estimate, certain = AcceptanceEstimate(2), AcceptanceEstimate(2)
    for each in (estimate, certain):
        each.observe([([4000, 4000], [1000, 500])])
    before = estimate.chances()
    estimate.doubt()
    assert estimate.chances() == pytest.approx(before, abs=0.1)
    for each in (estimate, certain):
        each.observe([([200, 200], [200, 200])])
    assert estimate.chances()[0] > 0.6 > 0.3 > certain.chances()[0]


def test_old_rounds_are_forgotten():
    estimate = AcceptanceEstimate(1)
    for accepted in (100, 0):
        for _ in range(400):
            estimate.observe([([100], [accepted])])
    assert estimate.chances()[0] < 0.02


def test_a_length_that_ran_yields_what_it_brought_and_others_what_the_chances_say():
    estimate = AcceptanceEstimate(2)
    estimate.observe([([100, 100], [80, 40])] * 40)
    for _ in range(40):
        estimate.observe_length(100, 1, 90, 0)
    none, one, two = estimate.yields()
    assert none == 1
    assert one == pytest.approx(
        (3145 * 1.9 + 400 * 1.8) / 3545, abs=0.01
    )  # 100 (1 - (1 - 1/80)^40) 80 = 3,145 remembered
    assert two == pytest.approx(2.2, abs=0.01)
    for _ in range(400):
        estimate.observe_length(100, 2, 120, 0)
    assert estimate.yields()[1] == pytest.approx(1.8, abs=0.01)  # long ago


def test_tokens_behind_a_response_do_not_count():
    estimate = AcceptanceEstimate(3)
    estimate.observe([([100] * 3, [100] * 3)] * 200)
    # Rounds of four tokens: 400 of them, of which one in 40 ends a response and loses 1.5 behind it on average.
    estimate.observe_length(100, 3, 300, 15)
    assert estimate.yields()[3] == pytest.approx(4 / (1 + 1.5 / 40), rel=0.01)
    assert estimate.yields()[1] == pytest.approx(2 / (1 + 0.5 / 40), rel=0.01)
    assert estimate.yields()[0] == 1


def test_the_loss_behind_a_response_is_that_of_responses_cut_into_rounds():
    """40 tokens a response in rounds of 6: the last round keeps 4 of them, and 42 / 7 rounds bring 40 tokens. A length
    that does not divide them ends anywhere; averaged over lengths of responses the formula holds."""
    block, lengths = 6, range(37, 43)
    rounds = [-(-length // block) for length in lengths]
    lost = sum(block * n - length for n, length in zip(rounds, lengths, strict=True))
    estimate = AcceptanceEstimate(block - 1)
    estimate.observe([([100] * 5, [100] * 5)] * 200)
    estimate.observe_length(sum(rounds), block - 1, (block - 1) * sum(rounds), lost)
    assert estimate.yields()[block - 1] == pytest.approx(sum(lengths) / sum(rounds), rel=0.01)
