"""What a draft may read when, for every kind of draft alike."""

import pytest
import torch

from workers.model.draft import PolicyPass
from workers.model.draft_model import DraftModel
from workers.model.eagle3 import Eagle3Head, EagleConfig
from workers.model.layers import rotary_tables
from workers.model.mtp import MtpConfig, MtpModule

TOKENS = torch.randint(0, 48, (2, 13), generator=torch.Generator().manual_seed(5))


@pytest.fixture
def policy(make_policy):
    return make_policy()


def make(kind, policy):
    draft = {
        "eagle3": lambda: Eagle3Head(EagleConfig(policy.config)),
        "mtp": lambda: MtpModule(MtpConfig(policy.config)),
        "draft_model": lambda: DraftModel(policy.config),
    }[kind]()
    draft.initialize(policy, 3)
    return draft


def seen(draft, policy, tokens=TOKENS, change=None):
    features = torch.randn(2, 13, 32 * len(draft.tap_layers), generator=torch.Generator().manual_seed(6))
    if change is not None:
        features[:, change] += torch.randn(features[:, change].shape, generator=torch.Generator().manual_seed(7))
    return PolicyPass(policy, tokens, features if draft.tap_layers else None)


@pytest.mark.parametrize("kind", ["eagle3", "mtp", "draft_model"])
def test_each_step_scores_one_start_less(kind, policy):
    draft = make(kind, policy)
    with torch.no_grad():
        steps = draft(seen(draft, policy), 4)
    assert [tuple(step.shape) for step in steps] == [(2, 11, 48), (2, 10, 48), (2, 9, 48), (2, 8, 48)]


@pytest.mark.parametrize("kind", ["eagle3", "mtp", "draft_model"])
@pytest.mark.parametrize(("start", "step"), [(4, 0), (4, 2), (0, 1)])
def test_a_start_reads_features_up_to_itself_and_tokens_up_to_the_last_drafted(kind, start, step, policy):
    """Row i of step s may depend on features up to i and tokens up to i + s + 1, and on nothing later."""
    draft = make(kind, policy)
    with torch.no_grad():
        plain = draft(seen(draft, policy), 3)[step][:, start]
        tokens = TOKENS.clone()
        tokens[:, start + step + 2 :] = 7
        later = seen(draft, policy, tokens, slice(start + 1, None))
        torch.testing.assert_close(draft(later, 3)[step][:, start], plain)
        tokens[:, start + step + 1] = (TOKENS[:, start + step + 1] + 1) % 48
        assert (draft(seen(draft, policy, tokens), 3)[step][:, start] - plain).abs().max() > 1e-3
        if draft.tap_layers:
            moved = draft(seen(draft, policy, change=slice(start, start + 1)), 3)[step][:, start]
            assert (moved - plain).abs().max() > 1e-3


def slow_scores(draft, policy, features_TF, tokens_T, start, step):
    """One start, token by token, as generation would: a list of everything that was read so far."""
    config = draft.shape
    cos, sin = rotary_tables(32, config.head_dim, config.rope_theta, torch.device("cpu"))
    whole = PolicyPass(policy, tokens_T[None], features_TF[None])
    embedded, hiddens = draft.embed(whole)[0], list(draft.features(whole)[0][: start + 1])
    read, scores, carried = [], None, None
    for position in range(start + step + 1):
        hidden = hiddens[position] if position <= start else carried
        residual, x = draft.enter(embedded[position + 1].view(1, 1, -1), hidden.view(1, 1, -1))
        q, k, v = draft.attention.project(x, cos[position : position + 1], sin[position : position + 1])
        groups = q.shape[1] // k.shape[1]
        read.append((k.repeat_interleave(groups, 1)[0, :, 0], v.repeat_interleave(groups, 1)[0, :, 0]))
        keys, values = (torch.stack(part, 1) for part in zip(*read, strict=True))
        weights = ((q[0] * keys).sum(-1) * config.head_dim**-0.5).softmax(-1)
        mixed = (weights.unsqueeze(-1) * values).sum(1).view(1, 1, -1)
        left, scores = draft.leave(residual + draft.attention.o_proj(mixed), whole)
        carried = left[0, 0]
    return scores[0, 0]


@pytest.mark.parametrize("kind", ["eagle3", "mtp"])
@pytest.mark.parametrize(("start", "step"), [(0, 0), (5, 0), (5, 1), (3, 3)])
def test_the_unroll_equals_drafting_token_by_token(kind, start, step, policy):
    draft = make(kind, policy)
    given = seen(draft, policy)
    with torch.no_grad():
        expected = slow_scores(draft, policy, given.features_BTF[1], TOKENS[1], start, step)
        torch.testing.assert_close(draft(given, 4)[step][1, start], expected, atol=1e-4, rtol=1e-4)
