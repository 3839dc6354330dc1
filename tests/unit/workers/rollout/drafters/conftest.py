"""One policy with a draft of every trained kind, and the drafts that an engine makes with it."""

import dataclasses
from dataclasses import dataclass

import pytest
import torch

from contract.config.drafter import DraftModelDrafter, Eagle3Drafter, MtpDrafter
from workers.model.draft import DraftModule, PolicyPass
from workers.model.draft_model import DraftModel
from workers.model.eagle3 import Eagle3Head, EagleConfig
from workers.model.mtp import MtpConfig, MtpModule
from workers.model.qwen3 import Qwen3Policy
from workers.rollout.drafters.draft_model import DraftModelSession
from workers.rollout.drafters.features import FeatureSession
from workers.rollout.drafters.trained import trained_drafting
from workers.rollout.torch_engine import TorchRolloutEngine

KINDS = ("eagle3", "reduced", "mtp", "draft_model")


@dataclass(frozen=True)
class Trained:
    """A policy and one draft of it."""

    policy: Qwen3Policy
    draft: DraftModule

    def engine(self, *, max_batch_size=8, draft_length=3, precision="float32", eos=0) -> TorchRolloutEngine:
        config = {Eagle3Head: Eagle3Drafter, MtpModule: MtpDrafter, DraftModel: DraftModelDrafter}[type(self.draft)]
        drafter = config(draft_length=draft_length, draft_length_control="fixed")
        drafting = trained_drafting(drafter, self.draft)
        engine = TorchRolloutEngine(self.policy.config, eos, max_batch_size, precision, drafting)
        engine.update_policy(self.policy.state_dict())
        engine.update_draft(self.draft.export(self.policy))
        return engine

    def scores(self, token_ids, draft_length):
        """By the training code: [draft_length, V], -inf for what the draft never proposes, of the last start in
        token_ids, which ends with that many drafted tokens."""
        tokens = torch.tensor([token_ids])
        with torch.no_grad():
            features = self.policy(tokens, self.draft.tap_layers).features_BTF
            steps = self.draft(PolicyPass(self.policy, tokens, features), draft_length)
        own = torch.stack([step[0, len(token_ids) - draft_length - 2] for step in steps])
        if self.draft.vocabulary_V is None:
            return own
        everything = torch.full((draft_length, self.policy.config.vocab_size), float("-inf"))
        everything[:, self.draft.vocabulary_V] = own
        return everything


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def make_trained(make_models):
    def make(kind, **options) -> Trained:
        policy = make_models(**options).policy
        config = policy.config
        draft = {
            "eagle3": lambda: Eagle3Head(EagleConfig(config)),
            "reduced": lambda: Eagle3Head(EagleConfig(config, draft_vocab_size=config.vocab_size - 2)),
            "mtp": lambda: MtpModule(MtpConfig(config)),
            "draft_model": lambda: DraftModel(dataclasses.replace(config, num_hidden_layers=2, hidden_size=16)),
        }[kind]()
        if kind == "reduced":
            draft.choose_vocabulary(torch.arange(2, config.vocab_size))
        draft.initialize(policy, 2)
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for name, parameter in draft.named_parameters():
                if parameter.ndim == 1:
                    parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.2)
                elif name.startswith("language_model") and "layers" not in name:
                    parameter.mul_(20)
        return Trained(policy, draft)

    return make


@pytest.fixture
def trained(kind, make_trained):
    return make_trained(kind)


@pytest.fixture
def drafts(monkeypatch):
    """Every draft of the calls, row by row: (tokens so far, drafted tokens, their distributions)."""
    seen = []

    def watch(session):
        draft = session.draft

        def spy(self, rows, start_R, draft_length):
            result = draft(self, rows, start_R, draft_length)
            for index, row in enumerate(rows):
                seen.append((list(row.token_ids), result.token_ids_RK[index], result.probs_RKV[index]))
            return result

        monkeypatch.setattr(session, "draft", spy)

    watch(FeatureSession)
    watch(DraftModelSession)
    return seen
