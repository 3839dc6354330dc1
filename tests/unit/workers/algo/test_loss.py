import math

import pytest
import torch

from workers.algo.loss import grpo_loss, k3

CLIP = {"clip_low": 0.2, "clip_high": 0.28}


def _case(seed: int = 0, rows: int = 6, width: int = 9):
    generator = torch.Generator().manual_seed(seed)
    old = -torch.rand(rows, width, generator=generator, dtype=torch.float64) * 3
    new = old + 0.4 * torch.randn(rows, width, generator=generator, dtype=torch.float64)
    reference = old + 0.3 * torch.randn(rows, width, generator=generator, dtype=torch.float64)
    advantages = torch.randn(rows, generator=generator, dtype=torch.float64)
    mask = (torch.rand(rows, width, generator=generator) > 0.3).double()
    return new, old, reference, advantages, mask


def test_hand_computed_tokens():
    ratios = [1.0, 1.5, 0.5, 1.5, 0.5]
    new = torch.tensor([[math.log(r)] for r in ratios])
    advantages = torch.tensor([1.0, 1.0, 1.0, -1.0, -1.0])
    result = grpo_loss(new, torch.zeros(5, 1), advantages, torch.ones(5, 1), normalizer=5, **CLIP)
    # gains min(rho A, clip(rho) A): 1, 1.28 (clipped), 0.5, -1.5, -0.8 (clipped)
    assert result.loss.item() == pytest.approx(-(1 + 1.28 + 0.5 - 1.5 - 0.8) / 5)
    assert result.num_clipped.item() == 4


def test_gradient_vanishes_where_the_clip_is_active_and_is_minus_advantage_at_ratio_one():
    new = torch.tensor([[0.0, math.log(1.5)], [0.0, math.log(0.5)]], requires_grad=True)
    grpo_loss(new, torch.zeros(2, 2), torch.tensor([2.0, -3.0]), torch.ones(2, 2), normalizer=1, **CLIP).loss.backward()
    torch.testing.assert_close(new.grad, torch.tensor([[-2.0, 0.0], [3.0, 0.0]]))


def test_agrees_with_a_slow_reference():
    new, old, reference, advantages, mask = _case()
    normalizer = mask.sum().item()
    result = grpo_loss(
        new, old, advantages, mask, normalizer=normalizer, reference_logprobs_BT=reference, kl_penalty=0.05, **CLIP
    )
    total, num_clipped, kl_sum = 0.0, 0, 0.0
    for b in range(new.shape[0]):
        for t in range(new.shape[1]):
            if not mask[b, t]:
                continue
            ratio, advantage = math.exp(new[b, t] - old[b, t]), advantages[b].item()
            bounded = min(max(ratio, 0.8), 1.28)
            num_clipped += ratio != bounded
            gap = (reference[b, t] - new[b, t]).item()
            kl = math.exp(gap) - gap - 1
            kl_sum += kl
            total += -min(ratio * advantage, bounded * advantage) + 0.05 * kl
    assert result.loss.item() == pytest.approx(total / normalizer)
    assert result.num_clipped.item() == num_clipped
    assert result.kl_reference_sum.item() == pytest.approx(kl_sum)


def test_micro_batches_give_the_gradient_of_the_whole():
    new, old, _, advantages, mask = _case()
    normalizer = mask.sum().item()

    def gradient(cuts):
        leaf = new.clone().requires_grad_()
        for rows in cuts:
            part = grpo_loss(leaf[rows], old[rows], advantages[rows], mask[rows], normalizer=normalizer, **CLIP)
            part.loss.backward()
        return leaf.grad

    whole = gradient([torch.arange(6)])
    torch.testing.assert_close(gradient([torch.tensor([0]), torch.tensor([4, 1, 2]), torch.tensor([3, 5])]), whole)


def test_masked_tokens_change_nothing():
    new, old, reference, advantages, mask = _case()
    noise = torch.where(mask.bool(), 0.0, 50.0).double()

    def loss(extra):
        return grpo_loss(
            new + extra, old, advantages, mask, normalizer=1, reference_logprobs_BT=reference, kl_penalty=1.0, **CLIP
        ).loss

    torch.testing.assert_close(loss(noise), loss(0 * noise))


def test_k3_is_unbiased_and_never_negative():
    generator = torch.Generator().manual_seed(1)
    p = torch.softmax(torch.randn(7, generator=generator, dtype=torch.float64), 0)
    o = torch.softmax(torch.randn(7, generator=generator, dtype=torch.float64), 0)
    estimates = k3(p.log(), o.log(), torch.ones(7))
    assert (estimates >= 0).all()
    assert (p * estimates).sum().item() == pytest.approx((p * (p.log() - o.log())).sum().item())
    assert k3(p.log(), o.log(), torch.zeros(7)).tolist() == [0.0] * 7
