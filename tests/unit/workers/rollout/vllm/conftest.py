"""vLLM engines of tiny models, in this process, which vLLM changes and which gets back what it was."""

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from contract.config import RunConfig
from workers.data.tokenizer import character_tokenizer
from workers.model.config import ModelConfig
from workers.model.draft import DraftModule, PolicyPass
from workers.model.draft_checkpoint import save_draft
from workers.model.eagle3 import Eagle3Head, EagleConfig
from workers.model.hf_checkpoint import save_policy
from workers.model.qwen3 import Qwen3Policy
from workers.rollout.vllm.build import build_vllm_engine
from workers.rollout.vllm.engine import VllmRolloutEngine

FROM_LIBRARIES = (
    "ignore:`torch.distributed.reduce_op` is deprecated:FutureWarning",
    "ignore:`torch.jit.script_method` is deprecated:DeprecationWarning",
    "ignore:[\\s\\S]*type 'reflected list' found for argument 'valid",
)
"""Warnings that come up where vLLM is loaded and built."""


def pytest_collection_modifyitems(items):
    """Whatever test comes first, it is the one that pays for the engine."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            for warning in FROM_LIBRARIES:
                item.add_marker(pytest.mark.filterwarnings(warning))


@dataclass(frozen=True)
class Built:
    """An engine and what it was built of."""

    engine: VllmRolloutEngine
    policy: Qwen3Policy
    draft: DraftModule | None

    def logits(self, prompt, token_ids):
        """By the training model: [len(token_ids), V], of each response token."""
        with torch.no_grad():
            logits = self.policy(torch.tensor([[*prompt, *token_ids]])).logits_BTV[0]
        return logits[len(prompt) - 1 : -1]

    def draft_logits(self, context, drafted):
        """By the training code: [len(drafted), V], -inf for what the draft never proposes."""
        tokens = torch.tensor([[*context, *drafted]])
        with torch.no_grad():
            features = self.policy(tokens, self.draft.tap_layers).features_BTF
            steps = self.draft(PolicyPass(self.policy, tokens, features), len(drafted))
        own = torch.stack([step[0, len(context) - 2] for step in steps])
        if self.draft.vocabulary_V is None:
            return own
        everything = torch.full((len(drafted), self.policy.config.vocab_size), float("-inf"))
        everything[:, self.draft.vocabulary_V] = own
        return everything


@pytest.fixture(scope="session")
def make_policy() -> Callable[..., Qwen3Policy]:
    """vLLM on processors has no heads narrower than 32."""

    def make(vocab_size: int = 12, sharpness: float = 3.0) -> Qwen3Policy:
        config = ModelConfig(
            vocab_size=vocab_size,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=3,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=32,
            max_position_embeddings=128,
            eos_token_ids=(0,),
        )
        policy = Qwen3Policy(config)
        policy.initialize(0)
        with torch.no_grad():
            policy.lm_head.weight.mul_(sharpness)
            policy.model.embed_tokens.weight.mul_(20)
            vary_norms(policy, seed=1)
        return policy

    return make


@torch.no_grad()
def vary_norms(module: torch.nn.Module, seed: int) -> None:
    """Norms of 1 would hide that one is left out."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        if parameter.ndim == 1:
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.2)


@pytest.fixture(scope="session")
def make_head() -> Callable[..., Eagle3Head]:
    def make(policy: Qwen3Policy, draft_vocab_size: int | None = None, layer: ModelConfig | None = None) -> Eagle3Head:
        head = Eagle3Head(EagleConfig(policy.config, draft_vocab_size=draft_vocab_size, layer=layer))
        head.initialize(policy, 2)
        vary_norms(head, seed=2)
        return head

    return make


@pytest.fixture(scope="session")
def build(tmp_path_factory) -> Callable:
    """Makes engines, one after the other, each closed at the end of its block."""

    @contextmanager
    def built(policy, draft=None, drafter=None, **rollout) -> Iterator[Built]:
        folder = tmp_path_factory.mktemp("vllm")
        save_policy(policy, folder / "policy")
        character_tokenizer().save(folder / "policy")
        if draft is not None:
            save_draft(draft, folder / "draft")
        config = RunConfig.model_validate(
            {
                "policy": {"kind": "checkpoint", "path": str(folder / "policy")},
                "drafter": {"kind": "none"} if drafter is None else {"draft_length_control": "fixed", **drafter},
                "rollout": {
                    "kind": "vllm",
                    "precision": "float32",
                    "enforce_eager": True,
                    "kv_cache_gib": 0.05,
                    "max_batch_size": 256,
                    "max_new_tokens": 40,
                    **rollout,
                },
            }
        )
        with unchanged():
            engine = build_vllm_engine(config, Path(folder / "policy"), folder / "draft" if draft is not None else None)
            try:
                yield Built(engine, policy, draft)
            finally:
                engine.close()

    return built


@contextmanager
def unchanged() -> Iterator[None]:
    """vLLM takes over functions of torch for good, and collects garbage a dozen times, of all tests before too."""
    names = [(torch, "set_num_threads"), (torch.accelerator, "synchronize"), (torch.accelerator, "empty_cache")]
    before = [getattr(owner, name) for owner, name in names]
    environment = dict(os.environ)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        for (owner, name), function in zip(names, before, strict=True):
            setattr(owner, name, function)
        os.environ.clear()
        os.environ.update(environment)
