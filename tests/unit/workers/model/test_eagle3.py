import pytest
import torch

from workers.model.eagle3 import Eagle3Head, EagleConfig, default_tap_layers

TOKENS = torch.randint(0, 48, (2, 13), generator=torch.Generator().manual_seed(5))


@pytest.fixture
def head(make_policy):
    policy = make_policy()
    head = Eagle3Head(EagleConfig(policy.config))
    head.initialize(policy, 3)
    return head


def features(head, seed=6):
    return torch.randn(2, 13, head.fc.in_features, generator=torch.Generator().manual_seed(seed))


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


def test_each_step_scores_one_start_less(head):
    with torch.no_grad():
        steps = head(features(head), TOKENS, 4)
    assert [tuple(step.shape) for step in steps] == [(2, 11, 48), (2, 10, 48), (2, 9, 48), (2, 8, 48)]


def test_a_start_reads_features_up_to_itself_and_tokens_up_to_the_last_drafted(head):
    """Row i of step s may depend on features up to i and tokens up to i + s + 1, and on nothing later."""
    with torch.no_grad():
        plain = head(features(head), TOKENS, 3)
        for start, step in [(4, 0), (4, 2), (0, 1)]:
            changed_features, changed_tokens = features(head), TOKENS.clone()
            changed_features[:, start + 1 :] += 1
            changed_tokens[:, start + step + 2 :] = 7
            torch.testing.assert_close(head(changed_features, changed_tokens, 3)[step][:, start], plain[step][:, start])
            changed_tokens[:, start + step + 1] = (TOKENS[:, start + step + 1] + 1) % 48
            moved = head(features(head), changed_tokens, 3)[step][:, start]
            assert (moved - plain[step][:, start]).abs().max() > 1e-3
            changed_features = features(head)
            changed_features[:, start] += 1
            moved = head(changed_features, TOKENS, 3)[step][:, start]
            assert (moved - plain[step][:, start]).abs().max() > 1e-3
