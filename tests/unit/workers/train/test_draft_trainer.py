import copy
import math

import pytest
import torch

from workers.model.config import ModelConfig
from workers.model.draft import PolicyPass
from workers.model.draft_model import DraftModel
from workers.model.eagle3 import Eagle3Head, EagleConfig
from workers.model.mtp import MtpConfig, MtpModule
from workers.model.qwen3 import Qwen3Policy
from workers.train.draft_trainer import DraftTrainer, draft_loss

TOKENS = torch.randint(1, 12, (6, 16), generator=torch.Generator().manual_seed(2))
MASK = torch.zeros(6, 16)
MASK[:, 4:14] = 1
MASK[2, 9:] = 0


@pytest.fixture
def policy():
    policy = Qwen3Policy(ModelConfig(12, 16, 32, 3, 2, 1, 8))
    policy.initialize(0)
    with torch.no_grad():
        policy.lm_head.weight.mul_(20)
    return policy


def make_draft(kind, policy):
    draft = {
        "eagle3": lambda: Eagle3Head(EagleConfig(policy.config)),
        "reduced": lambda: Eagle3Head(EagleConfig(policy.config, draft_vocab_size=7)),
        "mtp": lambda: MtpModule(MtpConfig(policy.config)),
        "draft_model": lambda: DraftModel(ModelConfig(12, 8, 16, 1, 2, 1, 4)),
    }[kind]()
    draft.initialize(policy, 1)
    return draft


@pytest.fixture
def trainer(policy):
    return DraftTrainer(make_draft("eagle3", policy), 0.02, 0.002, max_grad_norm=1.0)


def seen_and_logits(policy, trainer):
    output = policy(TOKENS, trainer.draft.tap_layers)
    features = None if output.features_BTF is None else output.features_BTF.detach()
    return PolicyPass(policy, TOKENS, features), output.logits_BTV


def slow_loss(step_logits, policy_logits, mask, temperature=1.0):
    """Token by token."""
    step_logits, policy_logits = [logits / temperature for logits in step_logits], policy_logits / temperature
    weighted, weights = 0.0, 0.0
    for step, logits in enumerate(step_logits):
        terms = []
        for b in range(mask.shape[0]):
            for i in range(logits.shape[1]):
                if mask[b, i + step + 2]:
                    p = policy_logits[b, i + step + 1].softmax(-1)
                    terms.append(-(p * logits[b, i].log_softmax(-1)).sum().item())
        weighted += 0.8**step * sum(terms) / len(terms)
        weights += 0.8**step
    return weighted / weights


def test_hand_computed_loss():
    """One start, one step, two tokens: p = (3/4, 1/4), q = (1/2, 1/2): cross-entropy ln 2, overlap 3/4."""
    policy_logits = torch.tensor([[[0.0, 0.0], [math.log(3.0), 0.0], [0.0, 0.0]]])
    result = draft_loss([torch.zeros(1, 1, 2)], policy_logits, torch.ones(1, 3), 1.0)
    assert result.loss.item() == pytest.approx(math.log(2))
    assert result.expected_acceptance_length == pytest.approx(1.75)


def test_loss_equals_the_slow_reference(policy, trainer):
    seen, logits = seen_and_logits(policy, trainer)
    steps = trainer.draft(seen, 3)
    for temperature in (1.0, 0.6):
        loss = draft_loss(steps, logits, MASK, temperature).loss.item()
        assert loss == pytest.approx(slow_loss(steps, logits, MASK, temperature), rel=1e-5)


def slow_acceptance_length(step_logits, policy_logits, mask, temperature):
    """Draft by draft, from the first one that generation would make: after the first response token."""
    total = 1.0
    for step in range(len(step_logits)):
        chains = []
        for b in range(mask.shape[0]):
            for i in range(step_logits[step].shape[1]):
                if not (mask[b, i + 1] and mask[b, i + step + 2]):
                    continue
                chain = 1.0
                for s in range(step + 1):
                    p = (policy_logits[b, i + s + 1] / temperature).softmax(-1)
                    chain *= torch.minimum(p, (step_logits[s][b, i] / temperature).softmax(-1)).sum().item()
                chains.append(chain)
        total += sum(chains) / len(chains)
    return total


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_expected_acceptance_equals_the_slow_reference(policy, trainer, temperature):
    seen, logits = seen_and_logits(policy, trainer)
    steps = trainer.draft(seen, 3)
    expected = slow_acceptance_length(steps, logits, MASK, temperature)
    length = draft_loss(steps, logits, MASK, temperature).expected_acceptance_length
    assert length == pytest.approx(expected, rel=1e-5)


def test_hand_computed_acceptance_skips_the_token_that_generation_draws_itself():
    """Prompt, response, response: start 0 would draft the first response token, start 1 drafts the second."""
    policy_logits = torch.tensor([[[0.0, 0.0], [9.0, -9.0], [math.log(3.0), 0.0], [0.0, 0.0]]])
    mask = torch.tensor([[0.0, 0.0, 1.0, 1.0]])
    result = draft_loss([torch.zeros(1, 2, 2)], policy_logits, mask, 1.0)
    assert result.expected_acceptance_length == pytest.approx(1.75)
    assert result.num_starts == (1,)


def test_a_draft_equal_to_the_policy_is_expected_to_be_accepted_whole(policy):
    logits = policy(TOKENS).logits_BTV.detach()
    steps = [logits[:, step + 1 : 15] for step in range(3)]
    result = draft_loss(steps, logits, MASK, 1.0)
    assert result.expected_acceptance_length == pytest.approx(4, abs=1e-4)


def test_padding_does_not_matter(policy, trainer):
    seen, logits = seen_and_logits(policy, trainer)
    steps = [step.detach() for step in trainer.draft(seen, 2)]
    expected = draft_loss(steps, logits, MASK, 1.0)
    logits = logits.detach().clone()
    logits[:, 14:] = 9.0
    assert draft_loss(steps, logits, MASK, 1.0).loss == expected.loss


def test_hand_computed_loss_of_a_reduced_vocabulary():
    """p = (1/2, 1/4, 1/4) and the draft knows tokens 0 and 2: its teacher is (2/3, 1/3), but of p it meets only
    min(1/2, 1/2) + min(1/4, 1/2) = 3/4."""
    policy_logits = torch.tensor([[[0.0, 0.0, 0.0], [math.log(2.0), 0.0, 0.0], [0.0, 0.0, 0.0]]])
    drafted = torch.tensor([[[0.0, 0.0]]])
    result = draft_loss([drafted], policy_logits, torch.ones(1, 3), 1.0, torch.tensor([0, 2]))
    assert result.loss.item() == pytest.approx(math.log(2))
    assert result.expected_acceptance == pytest.approx((0.75,))
    best = torch.tensor([[[math.log(2.0), 0.0]]])
    result = draft_loss([best], policy_logits, torch.ones(1, 3), 1.0, torch.tensor([0, 2]))
    assert result.loss.item() == pytest.approx(-(2 / 3) * math.log(2 / 3) - (1 / 3) * math.log(1 / 3))


def test_a_vocabulary_of_all_tokens_is_no_reduction(policy, trainer):
    seen, logits = seen_and_logits(policy, trainer)
    steps = [step.detach() for step in trainer.draft(seen, 2)]
    whole, listed = (draft_loss(steps, logits, MASK, 0.8, vocabulary) for vocabulary in (None, torch.arange(12)))
    assert whole.loss.item() == pytest.approx(listed.loss.item())
    assert whole.expected_acceptance == pytest.approx(listed.expected_acceptance)


@pytest.mark.parametrize("kind", ["eagle3", "reduced", "mtp", "draft_model"])
def test_nothing_reaches_the_policy(policy, kind):
    trainer = DraftTrainer(make_draft(kind, policy), 0.02, 0.002, max_grad_norm=1.0)
    seen, logits = seen_and_logits(policy, trainer)
    before = {name: tensor.clone() for name, tensor in trainer.draft.named_parameters()}
    update = trainer.update(seen, MASK, logits, 3, temperature=1.0)
    assert all(parameter.grad is None for parameter in policy.parameters())
    assert update.grad_norm > 0
    stayed = {name for name, tensor in trainer.draft.named_parameters() if torch.equal(before[name], tensor)}
    assert stayed == ({"embed_tokens.weight"} if kind in ("eagle3", "reduced") else set())


@pytest.mark.parametrize(
    ("kind", "least_gain"), [("eagle3", 0.3), ("reduced", 0.1), ("mtp", 0.3), ("draft_model", 0.1)]
)
def test_training_raises_the_expected_acceptance(policy, kind, least_gain):
    trainer = DraftTrainer(make_draft(kind, policy), 0.02, 0.002, max_grad_norm=1.0)
    seen, logits = seen_and_logits(policy, trainer)
    updates = [trainer.update(seen, MASK, logits, 3, temperature=1.0) for _ in range(30)]
    assert updates[-1].loss_nats < updates[0].loss_nats - 0.1
    assert updates[-1].expected_acceptance_length > updates[0].expected_acceptance_length + least_gain


def test_learning_rate_scale_zero_changes_nothing(policy, trainer):
    seen, logits = seen_and_logits(policy, trainer)
    before = [parameter.detach().clone() for parameter in trainer.draft.parameters()]
    trainer.update(seen, MASK, logits, 2, temperature=1.0, learning_rate_scale=0.0)
    assert all(torch.equal(a, b) for a, b in zip(before, trainer.draft.parameters(), strict=True))


def test_a_reloaded_trainer_goes_on_as_the_first_would(policy, trainer):
    seen, logits = seen_and_logits(policy, trainer)
    trainer.update(seen, MASK, logits, 2, temperature=1.0, learning_rate_scale=0.1)
    state = copy.deepcopy(trainer.state_dict())
    other = DraftTrainer(Eagle3Head(trainer.draft.config), 0.02, 0.002, max_grad_norm=1.0)
    other.load_state_dict(state)
    first, second = (t.update(seen, MASK, logits, 2, temperature=1.0) for t in (trainer, other))
    assert first == second
    assert torch.equal(trainer.draft.fc.weight, other.draft.fc.weight)
