"""The engine on a CUDA device: the same code path as on a processor, by PyTorch's operations, captured as graphs."""

import itertools

import pytest
import torch
from scipy import stats

from contract.config.drafter import DraftModelDrafter, Eagle3Drafter, MtpDrafter
from workers.algo.sampling import Truncation
from workers.model.config import ModelConfig
from workers.model.draft_model import DraftModel
from workers.model.eagle3 import Eagle3Head, EagleConfig
from workers.model.mtp import MtpConfig, MtpModule
from workers.model.qwen3 import Qwen3Policy
from workers.rollout.draft_lengths import FixedDraftLength
from workers.rollout.drafters.trained import trained_drafting
from workers.rollout.engine import SamplingParams
from workers.rollout.generation import Generation
from workers.rollout.operations import Emitted
from workers.rollout.torch_engine import TorchRolloutEngine

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

PROMPTS = [[3, 4, 5], [6], [7, 8, 9, 10]]
SAMPLED = SamplingParams(0.9, 40, 3)
CONFIG = ModelConfig(
    vocab_size=12,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=16,
    max_position_embeddings=128,
)


def policy_of(seed):
    policy = Qwen3Policy(CONFIG)
    policy.initialize(seed)
    with torch.no_grad():
        policy.lm_head.weight.mul_(3)
        policy.model.embed_tokens.weight.mul_(20)
    return policy


def engine_of(kind="eagle3", *, precision="float32", max_batch_size=256, seed=0, is_captured=True):
    policy = policy_of(seed)
    draft, config = {
        "eagle3": lambda: (Eagle3Head(EagleConfig(CONFIG)), Eagle3Drafter),
        "mtp": lambda: (MtpModule(MtpConfig(CONFIG)), MtpDrafter),
        "draft_model": lambda: (DraftModel(CONFIG), DraftModelDrafter),
    }[kind]()
    draft.initialize(policy, 1)
    drafting = trained_drafting(config(draft_length=3, draft_length_control="fixed"), draft)
    engine = TorchRolloutEngine(CONFIG, 0, max_batch_size, precision, drafting)
    engine.update_policy(policy.state_dict())
    engine.update_draft(draft.export(policy))
    for operations in operations_of(engine):
        operations.is_captured = is_captured
    return engine


def operations_of(engine):
    """The policy's, and the draft's where it has its own."""
    model = getattr(engine._drafter, "model", engine._policy)
    return {engine._policy.operations, model.operations}


def graphs_of(engine):
    return [r.graph for ops in operations_of(engine) for r in ops._regions.values() if r.graph is not None]


class Alternating(FixedDraftLength):
    """Draft lengths that change from round to round, 0 among them."""

    def __init__(self, *_):
        super().__init__(4)
        self._lengths = itertools.cycle([2, 0, 4, 0, 0, 1, 3])

    def choose(self, num_sequences):
        return next(self._lengths)


@pytest.fixture(scope="module")
def engine():
    return engine_of()


def test_weights_from_the_host_are_moved(engine):
    assert engine._policy.embedding_VD.device.type == "cuda"
    assert engine._policy.operations.is_static


def test_greedy_output_is_that_without_speculation(engine):
    params = SamplingParams(0.0, 40, 0)
    plain, fast = (engine.generate(PROMPTS, 2, params, speculate=way).completions for way in (False, True))
    assert [c.token_ids for c in plain] == [c.token_ids for c in fast]


@pytest.mark.parametrize("kind", ["eagle3", "mtp", "draft_model"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_graphs_give_the_tokens_of_the_same_regions_uncaptured(kind, precision):
    """Equal seeds: rows that finish at different times, move and are refilled, with truncation or without."""
    captured, plain = (engine_of(kind, precision=precision, max_batch_size=5, is_captured=way) for way in (True, False))
    for params in (SAMPLED, SAMPLED, SamplingParams(1.1, 30, 5, Truncation(top_k=6, top_p=0.9))):
        one, other = (engine.generate(PROMPTS, 6, params) for engine in (captured, plain))
        assert [c.token_ids for c in one.completions] == [c.token_ids for c in other.completions]
        assert one.counters == other.counters
        for mine, theirs in zip(one.completions, other.completions, strict=True):
            assert mine.logprobs == pytest.approx(theirs.logprobs, abs=1e-5)
    assert graphs_of(captured)
    assert not graphs_of(plain)


def test_graphs_are_kept_from_call_to_call(engine):
    for _ in range(3):
        engine.generate(PROMPTS, 3, SAMPLED)
    before = set(map(id, graphs_of(engine)))
    engine.generate(PROMPTS, 3, SAMPLED)
    assert set(map(id, graphs_of(engine))) == before


def test_new_weights_reach_the_graphs():
    engine, other = engine_of(), engine_of(seed=9)
    params = SamplingParams(0.0, 40, 0)
    before = engine.generate(PROMPTS, 2, params).completions
    assert graphs_of(engine)
    engine.update_policy(policy_of(9).state_dict())
    after, expected = engine.generate(PROMPTS, 2, params).completions, other.generate(PROMPTS, 2, params).completions
    assert [c.token_ids for c in after] == [c.token_ids for c in expected]
    assert [c.token_ids for c in after] != [c.token_ids for c in before]


@pytest.mark.parametrize("changing", [False, True])
def test_samples_follow_the_same_distribution_as_without_speculation(engine, monkeypatch, changing):
    if changing:
        monkeypatch.setattr(engine, "_lengths", Alternating)
    params = SamplingParams(1.0, 3, 1)
    counts = []
    for way in (False, True):
        completions = engine.generate(PROMPTS[:1], 20_000, params, speculate=way).completions
        ids = torch.tensor([sum(12**i * token for i, token in enumerate(c.token_ids)) for c in completions])
        counts.append(torch.bincount(ids, minlength=12**3))
    assert graphs_of(engine)
    common = (counts[0] + counts[1]) >= 20
    table = torch.stack([part[common] for part in counts]).numpy()
    assert stats.chi2_contingency(table).pvalue > 1e-4


def test_a_round_waits_for_the_device_only_to_read_its_tokens(engine, monkeypatch):
    """Without refills, which take prompts from the host."""
    run_round, tell, told = Generation._round, Emitted.tell, []

    def watched_round(self):
        torch.cuda.set_sync_debug_mode("error")
        try:
            run_round(self)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    def allowed(self):
        torch.cuda.set_sync_debug_mode("default")
        told.append(tell(self))
        torch.cuda.set_sync_debug_mode("error")
        return told[-1]

    monkeypatch.setattr(Generation, "_round", watched_round)
    monkeypatch.setattr(Emitted, "tell", allowed)
    result = engine.generate(PROMPTS, 4, SAMPLED, evidence_of=range(12))
    assert len(told) > 5
    assert result.evidence.drafted_M.device.type == "cpu"
