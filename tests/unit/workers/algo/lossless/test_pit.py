import math

import pytest
import torch

from workers.algo.lossless.ks import ks_uniform
from workers.algo.lossless.pit import bin_counts, draft_ratio_scores, randomized_pit


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def policy_rows(num_tokens, temperature=1.0):
    """Rows as peaked as those of a trained policy: mean top probability near 0.75."""
    logits = torch.randn(num_tokens, 48, generator=generator(1)) * 3.2
    return (logits / temperature).softmax(-1)


def draws(probs, seed=6):
    return torch.multinomial(probs, 1, generator=generator(seed)).squeeze(1)


def slow_pit(probs, scores, token, v):
    """Sort, walk down to the token, add its share."""
    below = 0.0
    for candidate in sorted(range(len(probs)), key=lambda x: (-scores[x], x)):
        if candidate == token:
            return below + v * probs[candidate]
        below += probs[candidate]
    raise AssertionError


def test_hand_computed_pit(monkeypatch):
    """p = (0.2, 0.5, 0.3): in order of probability 1, 2, 0; token 2 covers [0.5, 0.8], token 0 [0.8, 1]."""
    monkeypatch.setattr(torch, "rand", lambda n, **kwargs: torch.full((n,), 0.5, dtype=torch.float64))
    probs = torch.tensor([[0.2, 0.5, 0.3]]).expand(3, -1)
    assert randomized_pit(probs, torch.tensor([2, 0, 1])).tolist() == pytest.approx([0.65, 0.9, 0.25])


@pytest.mark.parametrize("has_scores", [False, True])
def test_pit_equals_the_slow_walk_with_ties(has_scores):
    probs = torch.randint(1, 5, (200, 9), generator=generator(2)).float().softmax(-1)
    scores = torch.randint(0, 3, (200, 9), generator=generator(5)).float() if has_scores else probs
    tokens = torch.randint(0, 9, (200,), generator=generator(3))
    v = torch.rand(200, generator=generator(4), dtype=torch.float64).tolist()
    expected = [slow_pit(*row) for row in zip(probs.tolist(), scores.tolist(), tokens.tolist(), v, strict=True)]
    given = (scores,) if has_scores else ()
    assert randomized_pit(probs, tokens, *given, generator=generator(4)).tolist() == pytest.approx(expected, abs=1e-6)


def test_exact_samples_pass_and_faults_are_seen():
    rows = policy_rows(15_000)
    assert ks_uniform(randomized_pit(rows, draws(rows), generator=generator(7))).p_value > 1e-3
    wrong_temperature = draws(policy_rows(15_000, 0.8))
    assert ks_uniform(randomized_pit(rows, wrong_temperature, generator=generator(7))).p_value < 1e-3
    foreign = draws(rows.roll(1, 0))
    assert ks_uniform(randomized_pit(rows, foreign, generator=generator(7))).distance > 0.1


def test_a_token_of_no_probability_is_at_the_end_and_nothing_is_infinite():
    probs = torch.tensor([[0.6, 0.4, 0.0]])
    assert randomized_pit(probs, torch.tensor([2])).item() == pytest.approx(1, abs=1e-6)
    assert randomized_pit(torch.full((1, 3), math.nan), torch.tensor([2])).isnan().all()


def test_hand_computed_scores():
    """Kept are tokens 2 (q 0.6, p 0.3) and 0 (q 0.1, p 0); an id of -1 is no token, and says nothing of token 0."""
    scores = draft_ratio_scores(
        torch.tensor([[0.0, 0.7, 0.3], [0.5, 0.25, 0.25]]),
        torch.tensor([[2, 0], [1, -1]]),
        torch.tensor([[0.6, 0.1], [0.5, 0.0]]),
    )
    assert scores.tolist() == [[math.inf, 0, pytest.approx(2)], [0, 2, 0]]


@pytest.mark.parametrize("num_kept", [1, 8, 48])
def test_any_order_of_the_context_keeps_exact_samples_uniform(num_kept):
    rows, draft = policy_rows(15_000), policy_rows(15_000).roll(1, 1)
    top = draft.topk(num_kept)
    u = randomized_pit(rows, draws(rows), draft_ratio_scores(rows, top.indices, top.values), generator(8))
    assert ks_uniform(u).p_value > 1e-3


def test_the_order_by_draft_over_policy_sees_what_the_other_misses():
    """Each 50th token is drawn from the draft: its total variation is all of the distance in this order."""
    rows = policy_rows(15_000)
    draft = (rows * (torch.randn(rows.shape, generator=generator(9)) * 0.7).exp()).softmax(-1)
    is_foreign = torch.rand(15_000, generator=generator(10)) < 0.05
    tokens = torch.where(is_foreign, draws(draft), draws(rows, 11))
    top = draft.topk(48)
    ordered = ks_uniform(
        randomized_pit(rows, tokens, draft_ratio_scores(rows, top.indices, top.values), generator=generator(12))
    )
    variation = 0.05 * (draft - rows).clamp_min(0).sum(1).mean().item()
    assert ordered.distance > 0.6 * variation
    assert ordered.p_value < 1e-6


def test_bins_take_their_lower_edge_and_the_end():
    u = torch.tensor([0.0, 0.2499, 0.25, 0.999, 1.0, math.nan], dtype=torch.float64)
    assert bin_counts(u, 4).tolist() == [2, 1, 0, 2]
