import pytest
import torch
from scipy import stats

from workers.algo import acceptance
from workers.algo.acceptance import Verdict, draw, verify

P = torch.tensor([[0.5, 0.3, 0.2, 0.0], [0.1, 0.1, 0.4, 0.4], [0.25, 0.25, 0.25, 0.25]])
Q = torch.tensor([[0.1, 0.6, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]])
NUM_TRIALS = 40_000
REJECTION_LEVEL = 1e-4  # fixed with the seed before the first run


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def emitted_of(drafted_BK, verdict):
    """What the rounds emitted, -1 after each round's last."""
    emitted = torch.cat([drafted_BK, drafted_BK.new_zeros(len(drafted_BK), 1)], 1)
    emitted.scatter_(1, verdict.num_accepted_B[:, None], verdict.next_token_B[:, None])
    return emitted.masked_fill(torch.arange(emitted.shape[1]) > verdict.num_accepted_B[:, None], -1)


def rounds(q_KV, verify_round, seed=0):
    """Many independent rounds of one draft of two tokens; the emitted tokens, -1 after the round's last."""
    rng = generator(seed)
    p = P.expand(NUM_TRIALS, -1, -1).contiguous()
    if q_KV is None:
        drafted, q = torch.tensor([[1, 2]]).expand(NUM_TRIALS, -1), None
    else:
        q = q_KV.expand(NUM_TRIALS, -1, -1).contiguous()
        drafted = draw(q, rng)
    return emitted_of(drafted, verify_round(drafted, q, p, rng))


def smallest_p_value(emitted):
    """Chi-square of the token at each position, among the rounds that reached it, against the policy's row."""
    p_values = []
    for position in range(3):
        tokens = emitted[:, position]
        counts = torch.bincount(tokens[tokens >= 0], minlength=4).double()
        possible = P[position] > 0
        expected = P[position, possible].double() * counts.sum()
        is_impossible = bool(counts[~possible].any())
        p_values.append(0.0 if is_impossible else stats.chisquare(counts[possible], expected).pvalue)
    return min(p_values)


def accept_always(drafted, q, p, rng):
    full = torch.full((len(drafted),), drafted.shape[1])
    return Verdict(full, draw(p[:, -1], rng))


@pytest.mark.parametrize("rows", [1, NUM_TRIALS], ids=["race", "inversion"])
def test_draws_follow_the_weights_and_never_take_what_has_none(rows):
    weights = torch.tensor([0.0, 0.0, 3.0, 1.0, 0.0, 2.0, 0.0]).expand(rows, -1).contiguous()
    rng = generator(8)
    drawn = torch.cat([draw(weights, rng) for _ in range(max(1, 6000 // rows))])
    counts = torch.bincount(drawn, minlength=7)
    assert counts[[0, 1, 4, 6]].sum() == 0
    expected = torch.tensor([3.0, 1.0, 2.0]).double() / 6 * len(drawn)
    assert stats.chisquare(counts[[2, 3, 5]], expected).pvalue > REJECTION_LEVEL


@pytest.mark.parametrize("token", [0, 499, 999])
def test_a_certain_token_is_drawn_from_a_large_vocabulary(token):
    one_hot = torch.nn.functional.one_hot(torch.full((3, 200), token), 1000).float()
    assert draw(one_hot, generator(9)).eq(token).all()


def test_hand_computed_rounds(monkeypatch):
    """u = 0.5 throughout. Row 0: token 0 has p / q = 5, accepted; token 1 has 0.5, and u < 0.5 fails; the residual
    (p - q)+ = (0, 0, 0.1, 0) leaves token 2 alone. Row 1: both accepted (5 and 1.33), so the bonus comes from p_2.
    Row 2: token 3 has p = 0, rejected at once; the residual (0.4, 0, 0, 0) leaves token 0."""
    monkeypatch.setattr(acceptance.torch, "rand", lambda *args, **kwargs: torch.full((3, 2), 0.5))
    p = P.clone()
    p[2] = torch.tensor([0.0, 0.0, 0.0, 1.0])
    drafted = torch.tensor([[0, 1], [0, 2], [3, 0]])
    verdict = verify(drafted, Q.expand(3, -1, -1), p.expand(3, -1, -1), generator())
    assert verdict.num_accepted_B.tolist() == [1, 2, 0]
    assert verdict.next_token_B.tolist() == [2, 3, 0]


@pytest.mark.parametrize("q", [Q, None], ids=["drawn", "determined"])
def test_emitted_tokens_are_distributed_as_the_policy(q):
    emitted = rounds(q, verify)
    assert smallest_p_value(emitted) > REJECTION_LEVEL
    # Both the corrections and the bonus were exercised.
    assert (emitted[:, 1] == -1).any()
    assert (emitted[:, 2] >= 0).any()


@pytest.mark.parametrize("q", [Q, None], ids=["drawn", "determined"])
def test_the_same_test_rejects_accept_always(q):
    assert smallest_p_value(rounds(q, accept_always)) < 1e-12


@pytest.mark.parametrize("q", [Q, None], ids=["drawn", "determined"])
def test_the_same_test_rejects_corrections_from_the_policy(q, monkeypatch):
    monkeypatch.setattr(acceptance, "_residual", lambda p_BV, *_: p_BV)
    assert smallest_p_value(rounds(q, verify)) < 1e-12


def test_a_draft_equal_to_the_policy_is_always_accepted():
    p = torch.softmax(torch.randn(500, 4, 7, generator=generator(1)), -1)
    drafted = draw(p[:, :3].contiguous(), generator(2))
    assert verify(drafted, p[:, :3], p, generator(3)).num_accepted_B.eq(3).all()


def test_expected_acceptance_is_the_overlap():
    accepted = (rounds(Q, verify)[:, 1] >= 0).double().mean().item()
    overlap = torch.minimum(P[0], Q[0]).sum().item()
    assert accepted == pytest.approx(overlap, abs=4 * (0.25 / NUM_TRIALS) ** 0.5)


def test_greedy_keeps_the_matching_prefix_and_emits_the_argmax():
    argmax = torch.tensor([[2, 0, 1], [3, 3, 0]])
    p = torch.nn.functional.one_hot(argmax, 4).float()
    verdict = verify(torch.tensor([[2, 1], [3, 3]]), None, p, generator())
    assert verdict.num_accepted_B.tolist() == [1, 2]
    assert verdict.next_token_B.tolist() == [0, 0]


@pytest.mark.parametrize("q", [torch.eye(3)[None, [1]], None], ids=["drawn", "determined"])
def test_a_rejected_token_that_was_the_only_one_left_is_emitted_after_all(q, monkeypatch):
    """Rounding can make the residual empty; then nothing but the policy itself is left to draw from."""
    monkeypatch.setattr(acceptance.torch, "rand", lambda *args, **kwargs: torch.full((1, 1), 1.0))
    p = torch.tensor([[[0.0, 1.0, 0.0]] * 2])
    verdict = verify(torch.tensor([[1]]), q, p, generator())
    assert verdict.num_accepted_B.tolist() == [0]
    assert verdict.next_token_B.tolist() == [1]


def test_no_draft_is_a_plain_draw():
    verdict = verify(torch.zeros(3, 0, dtype=torch.long), None, torch.eye(4)[None, [2]].expand(3, 1, 4), generator())
    assert verdict.num_accepted_B.tolist() == [0, 0, 0]
    assert verdict.next_token_B.tolist() == [2, 2, 2]


def test_equal_seeds_give_equal_rounds():
    assert torch.equal(rounds(Q, verify, seed=4), rounds(Q, verify, seed=4))
    assert not torch.equal(rounds(Q, verify, seed=4), rounds(Q, verify, seed=5))


def ragged_round(q, num_drafted, seed=6):
    """Rounds whose rows draft 0, 1 or 2 tokens, as num_drafted says, behind which stands the likeliest token."""
    rng = generator(seed)
    p = P.expand(NUM_TRIALS, -1, -1).contiguous()
    q = None if q is None else q.expand(NUM_TRIALS, -1, -1).contiguous()
    drafted = torch.tensor([[1, 2]]).repeat(NUM_TRIALS, 1) if q is None else draw(q, rng)
    is_padding = torch.arange(2) >= num_drafted[:, None]
    drafted = torch.where(is_padding, torch.tensor([0, 2]), drafted)
    return drafted, verify(drafted, q, p, rng, num_drafted)


@pytest.mark.parametrize("q", [Q, None], ids=["drawn", "determined"])
def test_rows_that_draft_less_follow_the_policy_too(q):
    num_drafted = torch.arange(NUM_TRIALS) % 3
    drafted, verdict = ragged_round(q, num_drafted)
    assert (verdict.num_accepted_B <= num_drafted).all()
    for n in range(3):
        of_n = num_drafted == n
        emitted = emitted_of(drafted, verdict)[of_n]
        for position in range(n + 1):
            tokens = emitted[:, position]
            counts = torch.bincount(tokens[tokens >= 0], minlength=4).double()
            possible = P[position] > 0
            assert not counts[~possible].any()
            expected = P[position, possible].double() * counts.sum()
            assert stats.chisquare(counts[possible], expected).pvalue > REJECTION_LEVEL


@pytest.mark.parametrize("q", [Q, None], ids=["drawn", "determined"])
def test_a_short_draft_that_ends_in_a_residual_is_noticed(q, monkeypatch):
    """The token after a short draft that was accepted comes from p itself, not from what padding leaves of it."""
    honest = acceptance._residual
    monkeypatch.setattr(acceptance, "_residual", lambda p, x, q, is_rejected: honest(p, x, q, is_rejected | True))
    drafted, verdict = ragged_round(q, torch.ones(NUM_TRIALS, dtype=torch.long))
    emitted = emitted_of(drafted, verdict)
    counts = torch.bincount(emitted[emitted[:, 1] >= 0, 1], minlength=4).double()
    assert stats.chisquare(counts, P[1].double() * counts.sum()).pvalue < 1e-12


def test_a_full_ragged_draft_is_the_same_round():
    p, q = P.expand(500, -1, -1).contiguous(), Q.expand(500, -1, -1).contiguous()
    drafted = draw(q, generator(1))
    whole = verify(drafted, q, p, generator(2))
    ragged = verify(drafted, q, p, generator(2), torch.full((500,), 2))
    assert torch.equal(whole.num_accepted_B, ragged.num_accepted_B)
    assert torch.equal(whole.next_token_B, ragged.next_token_B)


def test_the_arguments_are_left_as_they_were():
    """The policy's probabilities are read again for the log-probabilities of what was emitted."""
    p = P.expand(50, -1, -1).contiguous()
    verify(torch.tensor([[1, 2]]).repeat(50, 1), None, p, generator(3), torch.full((50,), 1))
    assert torch.equal(p, P.expand(50, -1, -1))


def test_numbers_drawn_beforehand_decide_by_inversion():
    """F = 0.25, 0.25, 0.75, 1: the first token whose F is above the number."""
    weights = torch.tensor([1.0, 0.0, 2.0, 1.0])
    numbers = torch.tensor([0.0, 0.2, 0.25, 0.7, 0.75, 1 - 2**-53], dtype=torch.float64)
    assert draw(weights.expand(6, -1), numbers).tolist() == [0, 0, 2, 2, 3, 3]


def test_numbers_drawn_beforehand_accept_below_p_over_q_and_the_last_one_draws():
    """Of two drafted tokens with p / q = 0.5 and 2 / 3; the residual of a rejection of the first is at token 0 alone,
    the bonus p[2] is even."""
    drafted, q, p = torch.tensor([[1, 1]]), Q[None].clone(), P[None].clone()
    q[0, 1] = torch.tensor([0.1, 0.15, 0.35, 0.4])
    for numbers, num_accepted, token in [
        ([0.49, 0.66, 0.3], 2, 1),
        ([0.49, 0.67, 0.99], 1, 2),
        ([0.51, 0.0, 0.99], 0, 0),
    ]:
        verdict = verify(drafted, q, p, torch.tensor([numbers], dtype=torch.float64))
        assert (verdict.num_accepted_B.item(), verdict.next_token_B.item()) == (num_accepted, token)


def test_rounds_from_numbers_drawn_beforehand_emit_the_policy():
    def verified(drafted, q, p, rng):
        return verify(drafted, q, p, torch.rand(len(drafted), 3, dtype=torch.float64, generator=rng))

    assert smallest_p_value(rounds(Q, verified)) > REJECTION_LEVEL
    assert smallest_p_value(rounds(None, verified)) > REJECTION_LEVEL
