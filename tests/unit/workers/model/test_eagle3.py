import dataclasses

import pytest
import torch

from workers.model.draft import PolicyPass
from workers.model.eagle3 import Eagle3Head, EagleConfig, default_tap_layers

TOKENS = torch.randint(0, 48, (2, 13), generator=torch.Generator().manual_seed(5))


@pytest.fixture
def policy(make_policy):
    return make_policy()


@pytest.fixture
def head(policy):
    head = Eagle3Head(EagleConfig(policy.config))
    head.initialize(policy, 3)
    return head


def test_taps_are_low_middle_high_and_distinct():
    assert [default_tap_layers(n) for n in (3, 4, 6, 8, 36)] == [
        (0, 1, 2),
        (1, 2, 3),
        (1, 3, 5),
        (1, 3, 4),
        (1, 17, 32),
    ]
    assert all(len(set(default_tap_layers(n))) == 3 for n in range(3, 80))
    with pytest.raises(ValueError, match="num_hidden_layers = 2"):
        default_tap_layers(2)


def test_a_tap_outside_the_policy_is_refused(make_policy):
    with pytest.raises(ValueError, match=r"tap_layers = \[0, 4\]: 4 is not a layer"):
        EagleConfig(make_policy().config, (0, 4))


def test_it_starts_from_the_policys_embedding_norm_and_head(make_policy, head):
    policy = make_policy()
    assert torch.equal(head.embed_tokens.weight, policy.model.embed_tokens.weight)
    assert torch.equal(head.lm_head.weight, policy.head_weight)
    assert torch.equal(head.norm.weight, policy.model.norm.weight)
    assert not head.embed_tokens.weight.requires_grad
    assert head.lm_head.weight.requires_grad


def test_a_reduced_vocabulary_takes_its_rows_of_the_policys_head(policy):
    head = Eagle3Head(EagleConfig(policy.config, draft_vocab_size=4))
    head.choose_vocabulary(torch.tensor([40, 3, 7, 5]))
    head.initialize(policy, 3)
    assert head.vocabulary_V.tolist() == [3, 5, 7, 40]
    assert head.d2t.tolist() == [3, 4, 5, 37]
    assert head.t2d.nonzero().flatten().tolist() == [3, 5, 7, 40]
    assert torch.equal(head.lm_head.weight, policy.head_weight[[3, 5, 7, 40]])
    output = policy(TOKENS, head.tap_layers)
    steps = head(PolicyPass(policy, TOKENS, output.features_BTF), 2)
    assert [tuple(step.shape) for step in steps] == [(2, 11, 4), (2, 10, 4)]


def test_a_reduced_vocabulary_scores_its_tokens_as_the_whole_one_does(policy):
    whole, reduced = (Eagle3Head(EagleConfig(policy.config, draft_vocab_size=size)) for size in (None, 3))
    reduced.choose_vocabulary(torch.tensor([2, 9, 30]))
    whole.initialize(policy, 3)
    own = {name: tensor for name, tensor in whole.state_dict().items() if name != "lm_head.weight"}
    reduced.load_state_dict(own, strict=False)
    with torch.no_grad():
        reduced.lm_head.weight.copy_(whole.lm_head.weight[[2, 9, 30]])
        seen = PolicyPass(policy, TOKENS, policy(TOKENS, whole.tap_layers).features_BTF)
        for of_whole, of_reduced in zip(whole(seen, 3), reduced(seen, 3), strict=True):
            torch.testing.assert_close(of_reduced, of_whole[..., [2, 9, 30]])


def test_a_vocabulary_that_does_not_fit_is_refused(policy):
    with pytest.raises(ValueError, match="draft_vocab_size = 49: must be between 1 and"):
        EagleConfig(policy.config, draft_vocab_size=49)
    assert EagleConfig(policy.config, draft_vocab_size=48).draft_vocab_size is None
    with pytest.raises(ValueError, match="3 different tokens chosen: must be 4"):
        Eagle3Head(EagleConfig(policy.config, draft_vocab_size=4)).choose_vocabulary(torch.tensor([1, 2, 2, 3]))


def test_a_narrow_head_starts_from_the_policys_tokens_as_far_as_they_fit(make_policy):
    """Inner products of embeddings are kept where the width holds their rank, else as many as it can hold."""
    policy = make_policy()
    embedding = policy.model.embed_tokens.weight.detach()
    products = embedding @ embedding.T
    errors = {}
    for width in (16, 32, 40):
        layer = dataclasses.replace(policy.config, hidden_size=width)
        head = Eagle3Head(EagleConfig(policy.config, layer=layer))
        head.initialize(policy, 0)
        own = head.embed_tokens.weight.detach()
        errors[width] = (own @ own.T - products).norm().item()
    assert errors[32] < 1e-3 * products.norm().item()
    assert errors[40] == pytest.approx(errors[32], abs=1e-3)
    values = torch.linalg.svdvals(embedding)
    assert errors[16] == pytest.approx((values[16:] ** 4).sum().sqrt().item(), rel=1e-3)


def test_the_residual_stream_starts_from_the_feature_or_from_that_normed(make_policy):
    policy = make_policy()
    feature, embedded = torch.randn(2, 3, 32), torch.randn(2, 3, 32)
    for is_normed in (False, True):
        head = Eagle3Head(EagleConfig(policy.config, norm_before_residual=is_normed))
        torch.nn.init.constant_(head.midlayer.hidden_norm.weight, 2.0)
        residual, x = head.enter(embedded, feature)
        normed = 2 * feature / feature.square().mean(-1, keepdim=True).add(1e-5).sqrt()
        torch.testing.assert_close(residual, normed if is_normed else feature)
        torch.testing.assert_close(x, torch.cat([embedded, normed], -1))
