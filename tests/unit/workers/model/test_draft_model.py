import torch

from workers.model.draft import PolicyPass
from workers.model.draft_model import DraftModel

TOKENS = torch.randint(0, 48, (2, 9), generator=torch.Generator().manual_seed(5))


def test_a_draft_equal_to_the_policy_scores_as_the_policy_does(make_policy):
    """Row i of step s scores token i + s + 2, which is row i + s + 1 of the policy's logits."""
    policy = make_policy()
    draft = DraftModel(policy.config)
    draft.language_model.load_state_dict(policy.state_dict())
    with torch.no_grad():
        logits = policy(TOKENS).logits_BTV
        steps = draft(PolicyPass(policy, TOKENS, None), 3)
    for step, scores in enumerate(steps):
        for start in range(scores.shape[1]):
            assert torch.equal(scores[:, start], logits[:, start + step + 1])


def test_an_engine_gets_the_names_of_a_qwen3_checkpoint(make_policy):
    policy = make_policy()
    assert DraftModel(policy.config).export(policy).keys() == policy.state_dict().keys()
