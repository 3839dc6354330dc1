import pytest

from workers.rewards.overlong import soft_overlong_penalty


def test_hand_computed_penalties():
    """L_max = 100, L_cache = 20: nothing up to 80, then a twentieth a token, all of it from 100 on."""
    shares = [soft_overlong_penalty(n, 100, 20) for n in (0, 80, 81, 90, 95, 100, 120)]
    assert shares == pytest.approx([0, 0, 0.05, 0.5, 0.75, 1, 1])


def test_the_penalty_is_the_papers_reward_with_its_sign_turned_round():
    def reward_of_the_paper(length, longest, cache):
        if length <= longest - cache:
            return 0.0
        return ((longest - cache) - length) / cache if length <= longest else -1.0

    for length in range(200):
        for cache in (1, 7, 99):
            assert soft_overlong_penalty(length, 150, cache) == pytest.approx(-reward_of_the_paper(length, 150, cache))
