"""The whole engine on compiled kernels: speculation must not change what it samples.

Expected is what the engine itself says of every string that it draws without speculation, since bfloat16 is another
policy than float32. Levels are fixed beforehand.
"""

import dataclasses
import math
from collections import Counter

import pytest
import torch
from scipy import stats

from contract.config.drafter import DraftModelDrafter as DraftModelConfig
from contract.config.drafter import Eagle3Drafter as Eagle3Config
from contract.config.drafter import MtpDrafter as MtpDrafterConfig
from workers.algo.sampling import Truncation
from workers.model.config import ModelConfig
from workers.model.draft_model import DraftModel
from workers.model.eagle3 import Eagle3Head, EagleConfig
from workers.model.mtp import MtpConfig, MtpModule
from workers.model.qwen3 import Qwen3Policy
from workers.rollout.drafters.drafter import Draft, Drafting
from workers.rollout.drafters.features import FeatureSession
from workers.rollout.drafters.padding import PaddingDrafter
from workers.rollout.drafters.trained import trained_drafting
from workers.rollout.engine import SamplingParams
from workers.rollout.native.operations import NativeOperations
from workers.rollout.prompts import PromptBlock
from workers.rollout.sampler import Sampler
from workers.rollout.torch_engine import TorchRolloutEngine

PROMPT = [3, 1, 2]
NUM_SAMPLES = 20_000
MAX_NEW_TOKENS = 3


def make_engine(kind, vocab_size=16):
    config = ModelConfig(
        vocab_size=vocab_size,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=64,
    )
    policy = Qwen3Policy(config)
    policy.initialize(0)
    with torch.no_grad():
        policy.lm_head.weight.mul_(3)
        policy.model.embed_tokens.weight.mul_(20)
    narrow = dataclasses.replace(config, hidden_size=32, intermediate_size=64, num_attention_heads=1)
    settings, draft = {
        "eagle3": lambda: (Eagle3Config, Eagle3Head(EagleConfig(config))),
        "narrow": lambda: (Eagle3Config, Eagle3Head(EagleConfig(config, layer=narrow, norm_before_residual=True))),
        "reduced": lambda: (Eagle3Config, Eagle3Head(EagleConfig(config, draft_vocab_size=16))),
        "mtp": lambda: (MtpDrafterConfig, MtpModule(MtpConfig(config))),
        "draft_model": lambda: (DraftModelConfig, DraftModel(dataclasses.replace(config, num_hidden_layers=1))),
    }[kind]()
    if kind == "reduced":
        draft.choose_vocabulary(torch.arange(0, 32, 2))
    draft.initialize(policy, 2)
    with torch.no_grad():
        for name, parameter in draft.named_parameters():
            if "norm" in name:
                parameter.copy_(torch.linspace(0.5, 1.5, len(parameter)))
    if kind == "draft_model":
        # Its first distributions are nearly even; the policy's embedding and head make it agree now and then.
        draft.language_model.model.embed_tokens.weight.data.copy_(policy.model.embed_tokens.weight)
        draft.language_model.lm_head.weight.data.copy_(policy.lm_head.weight)
    drafting = trained_drafting(settings(draft_length=2, draft_length_control="fixed"), draft)
    engine = TorchRolloutEngine(config, 0, 512, "bfloat16", drafting, torch.device("cpu"))
    engine.update_policy(policy.state_dict())
    engine.update_draft(draft.export(policy))
    assert isinstance(engine._policy_or_raise().operations, NativeOperations)
    return engine


@pytest.fixture(scope="module", params=["narrow", "mtp", "draft_model"])
def engine(request):
    return make_engine(request.param)


@pytest.mark.parametrize(
    ("engine", "temperature"),
    [("narrow", 1.0), ("narrow", 0.7), ("mtp", 1.0), ("mtp", 0.7), ("draft_model", 0.7)],
    indirect=["engine"],
)
def test_speculative_samples_follow_the_engine_without_speculation(engine, temperature):
    params = SamplingParams(temperature, MAX_NEW_TOKENS, 5)
    plain = engine.generate([PROMPT], NUM_SAMPLES, params, speculate=False).completions
    expected = {tuple(c.token_ids): NUM_SAMPLES * math.exp(sum(c.logprobs)) for c in plain}
    result = engine.generate([PROMPT], NUM_SAMPLES, params)
    assert 0.1 < result.counters.num_accepted_tokens / result.counters.num_draft_tokens < 0.9
    assert chance_of(result.completions, expected) > 1e-4


def chance_of(completions, expected):
    """p-value of what was drawn by a chi-square test over all strings that are common enough."""
    counts = Counter(tuple(c.token_ids) for c in completions)
    common = [string for string, count in expected.items() if count >= 5]
    assert len(common) > 100
    observed = [counts[string] for string in common] + [NUM_SAMPLES - sum(counts[s] for s in common)]
    wanted = [expected[string] for string in common] + [NUM_SAMPLES - sum(expected[s] for s in common)]
    return stats.chisquare(observed, wanted, sum_check=False).pvalue


class UnevenDrafter(PaddingDrafter):
    """Determined drafts of none to three tokens, as lookups give, by what the row ends with."""

    def draft(self, rows, start_R, draft_length):
        last = torch.tensor([row.token_ids[-1] for row in rows])
        drafted = torch.stack([last, (last * 5 + 1) % 16, (last + 3) % 16], 1)
        return Draft(drafted, None, (last + torch.arange(len(rows))) % 4)


def with_drafter(engine, drafter, max_batch_size):
    """An engine of the same policy."""
    drafting = Drafting(lambda *_: drafter, has_weights=False, draft_length=3)
    other = TorchRolloutEngine(engine.model_config, 0, max_batch_size, "bfloat16", drafting, torch.device("cpu"))
    other._policy, other._drafter = engine._policy, drafter
    return other


class AlmostEvenDrafter(PaddingDrafter):
    """Three tokens, but two of the first row."""

    def draft(self, rows, start_R, draft_length):
        num_drafted_R = torch.full((len(rows),), 3)
        num_drafted_R[0] = 2
        return super().draft(rows, start_R, 3)._replace(num_drafted_R=num_drafted_R)


def test_rounds_are_told_with_what_was_drafted_and_not_with_the_tiles_that_it_takes():
    """Ten rows of 39 tokens take three tiles, as many as 3.8 drafted tokens a row."""
    engine = with_drafter(make_engine("narrow"), AlmostEvenDrafter(), 10)
    result = engine.generate([PROMPT], 10, SamplingParams(1.0, 20, 5))
    assert {cost.draft_length for cost in result.round_costs if cost.num_sequences == 16} == {3}


def test_samples_of_uneven_drafts_follow_the_engine_without_speculation():
    """Which are packed: with rows that draft nothing between those that do."""
    engine, params = make_engine("narrow"), SamplingParams(1.0, MAX_NEW_TOKENS, 5)
    plain = engine.generate([PROMPT], NUM_SAMPLES, params, speculate=False).completions
    expected = {tuple(c.token_ids): NUM_SAMPLES * math.exp(sum(c.logprobs)) for c in plain}
    uneven = with_drafter(engine, UnevenDrafter(), 512)
    result = uneven.generate([PROMPT], NUM_SAMPLES, params, record_rounds_of=range(100))
    assert 0.02 < result.counters.num_accepted_tokens / result.counters.num_draft_tokens < 0.9
    assert chance_of(result.completions, expected) > 1e-4
    for completion in result.completions[:100]:
        at = 0
        for record in completion.rounds:
            accepted = completion.logprobs[at : at + record.num_accepted]
            assert accepted == pytest.approx(record.policy_logprobs[: record.num_accepted], abs=1e-5)
            at += record.num_accepted + (record.emitted is not None)


def test_prompts_of_unlike_lengths_are_read_as_each_alone(engine):
    policy, sampler = engine._policy_or_raise(), None
    prompts = [[1, 2, 3, 4, 5, 6, 7, 8, 9], [3], [5, 4, 3, 2, 1]]
    sampler = Sampler(1.0, Truncation(), torch.Generator(), policy.operations)
    together = PromptBlock.run(policy, prompts, 0, sampler, (0, 2))
    for index, prompt in enumerate(prompts):
        alone = PromptBlock.run(policy, [prompt], 0, sampler, (0, 2))
        torch.testing.assert_close(together.next_probs_PV[index], alone.next_probs_PV[0])
        torch.testing.assert_close(together.features_PTF[index, : len(prompt)], alone.features_PTF[0])
        assert together.features_PTF[index, len(prompt) :].count_nonzero() == 0


def test_logprobs_are_those_without_speculation(engine):
    params = SamplingParams(1.0, 20, 5)
    for way in (False, True):
        completion = engine.generate([PROMPT], 1, params, speculate=way).completions[0]
        assert len(completion.logprobs) == len(completion.token_ids)
        assert all(-30 < logprob <= 0 for logprob in completion.logprobs)


def test_greedy_output_is_that_without_speculation(engine):
    prompts = [[a, b] for a in range(1, 9) for b in range(1, 9)]
    params = SamplingParams(0.0, 30, 0)
    plain, fast = (engine.generate(prompts, 1, params, speculate=way).completions for way in (False, True))
    same = sum(one.token_ids == other.token_ids for one, other in zip(plain, fast, strict=True))
    # Drafted tokens are verified in a pass of another shape, which may round a near tie the other way.
    assert same >= 0.9 * len(prompts)


@pytest.mark.parametrize(("kind", "vocab_size"), [("eagle3", 16), ("narrow", 16), ("reduced", 32), ("mtp", 16)])
def test_a_draft_in_one_call_is_that_step_by_step(kind, vocab_size, monkeypatch):
    """Greedily, so that only rounding can tell them apart: the one call keeps what a step hands on in float32."""
    engine, at_once, by_steps = make_engine(kind, vocab_size), [], []
    chain, draft = NativeOperations.draft_chain, FeatureSession.draft

    def run_chain(self, *arguments):
        at_once.append(chain(self, *arguments))

    def run_draft(self, *arguments):
        by_steps.append(draft(self, *arguments))
        return by_steps[-1]

    monkeypatch.setattr(NativeOperations, "draft_chain", run_chain)
    monkeypatch.setattr(FeatureSession, "draft", run_draft)
    engine.generate([[a, b] for a in range(1, 9) for b in range(1, 9)], 1, SamplingParams(0.0, 20, 0))
    if at_once[0] is None:
        pytest.skip("this processor has no matrix tiles")
    for (tokens_RK, probs_RKV), steps in zip(at_once, by_steps, strict=True):
        assert probs_RKV.shape == steps.probs_RKV.shape
        assert torch.equal(probs_RKV.argmax(2), tokens_RK)
    one = torch.cat([tokens.flatten() for tokens, _ in at_once])
    other = torch.cat([step.token_ids_RK.flatten() for step in by_steps])
    assert len(one) > 1000
    assert (one == other).float().mean() > 0.97
