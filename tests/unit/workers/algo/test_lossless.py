import math

import pytest
import torch
from scipy import stats

from workers.algo.lossless import kolmogorov_survival, ks_uniform, randomized_pit


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def policy_rows(num_tokens, temperature=1.0):
    """Rows as peaked as those of a trained policy: mean top probability near 0.75."""
    logits = torch.randn(num_tokens, 48, generator=generator(1)) * 3.2
    return (logits / temperature).log_softmax(-1)


def slow_pit(logprobs, token, v):
    """Sort, walk down to the token, add its share."""
    p = logprobs.exp().tolist()
    below = 0.0
    for candidate in sorted(range(len(p)), key=lambda x: (-p[x], x)):
        if candidate == token:
            return below + v * p[candidate]
        below += p[candidate]
    raise AssertionError


def test_hand_computed_pit(monkeypatch):
    """p = (0.2, 0.5, 0.3): in order of probability 1, 2, 0; token 2 covers [0.5, 0.8], token 0 [0.8, 1]."""
    monkeypatch.setattr(torch, "rand", lambda n, **kwargs: torch.full((n,), 0.5, dtype=torch.float64))
    logprobs = torch.tensor([[0.2, 0.5, 0.3]]).log().expand(3, -1)
    assert randomized_pit(logprobs, torch.tensor([2, 0, 1])).tolist() == pytest.approx([0.65, 0.9, 0.25])


def test_pit_equals_the_slow_walk_with_ties():
    logprobs = torch.randint(1, 5, (200, 9), generator=generator(2)).float().log_softmax(-1)
    tokens = torch.randint(0, 9, (200,), generator=generator(3))
    v = torch.rand(200, generator=generator(4), dtype=torch.float64)
    expected = [
        slow_pit(row, token, share) for row, token, share in zip(logprobs, tokens.tolist(), v.tolist(), strict=True)
    ]
    assert randomized_pit(logprobs, tokens, generator(4)).tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("num_tokens", [20, 500, 15_000])
@pytest.mark.parametrize("shift", [0.0, 0.02])
def test_ks_agrees_with_scipy(num_tokens, shift):
    u = (torch.rand(num_tokens, generator=generator(5), dtype=torch.float64) + shift).clamp(0, 1)
    ours, theirs = ks_uniform(u), stats.kstest(u.numpy(), "uniform", mode="exact")
    assert ours.distance == pytest.approx(theirs.statistic, abs=1e-12)
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=0.05, abs=1e-3)
    assert ours.num_tokens == num_tokens


@pytest.mark.parametrize("x", [0.01, 0.2, 0.5, 0.9, 1.17, 1.19, 1.5, 3.0, 12.0])
def test_kolmogorov_survival_agrees_with_scipy(x):
    assert kolmogorov_survival(x) == pytest.approx(stats.kstwobign.sf(x), rel=1e-9, abs=1e-15)


def test_exact_samples_pass_and_faults_are_seen():
    rows = policy_rows(15_000)
    exact = torch.multinomial(rows.exp(), 1, generator=generator(6)).squeeze(1)
    assert ks_uniform(randomized_pit(rows, exact, generator(7))).p_value > 1e-3
    wrong_temperature = torch.multinomial(policy_rows(15_000, 0.8).exp(), 1, generator=generator(6)).squeeze(1)
    assert ks_uniform(randomized_pit(rows, wrong_temperature, generator(7))).p_value < 1e-3
    foreign = torch.multinomial(rows.roll(1, 0).exp(), 1, generator=generator(6)).squeeze(1)
    assert ks_uniform(randomized_pit(rows, foreign, generator(7))).distance > 0.1


def test_what_cannot_be_judged_does_not_count_as_judged():
    rows = torch.full((20, 5), float("nan"))
    result = ks_uniform(randomized_pit(rows, torch.zeros(20, dtype=torch.int64), generator()))
    assert math.isnan(result.distance)
    assert math.isnan(result.p_value)


def test_no_token_is_an_error():
    with pytest.raises(ValueError, match="at least one token"):
        ks_uniform(torch.empty(0))
