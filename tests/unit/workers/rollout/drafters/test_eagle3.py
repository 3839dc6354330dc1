import pytest
import torch

from workers.rollout.drafters.eagle3 import Eagle3Session
from workers.rollout.engine import SamplingParams

PROMPTS = [[3, 4, 5, 6, 7], [8], [9, 10, 11]]


@pytest.fixture
def drafts(monkeypatch):
    """Every draft of a call, as (tokens so far, drafted tokens, their distributions), row by row."""
    seen = []
    draft = Eagle3Session.draft

    def spy(self, rows, draft_length):
        result = draft(self, rows, draft_length)
        for row, length in enumerate(rows.lengths_R.tolist()):
            seen.append((rows.token_ids_RT[row, :length].tolist(), result.token_ids_RK[row], result.probs_RKV[row]))
        return result

    monkeypatch.setattr(Eagle3Session, "draft", spy)
    return seen


@pytest.mark.parametrize("draft_length", [1, 4])
def test_drafting_is_what_the_unrolled_training_scores(models, drafts, draft_length):
    """Position by position, across rounds, refills and moved rows: the distributions that the engine drew its drafts
    from are those that the training unroll gives for the same tokens."""
    temperature = 0.8
    engine = models.engine(max_batch_size=4, draft_length=draft_length)
    engine.generate(PROMPTS, 5, SamplingParams(temperature, 18, 4))
    assert len(drafts) > 40
    for so_far, drafted, probs in drafts:
        tokens = torch.tensor([so_far + drafted.tolist()])
        with torch.no_grad():
            features = models.policy(tokens, models.head.config.tap_layers).features_BTF
            steps = models.head(features, tokens, draft_length)
        start = len(so_far) - 2
        expected = torch.stack([(logits[0, start] / temperature).softmax(-1) for logits in steps])
        torch.testing.assert_close(probs, expected, atol=2e-5, rtol=1e-3)
