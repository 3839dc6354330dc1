"""The engine with a draft head of its own, in this process, and what it says against the training code."""

import math
from dataclasses import replace

import pytest
import torch

from workers.algo.lossless.identities import broken_counts, broken_rounds
from workers.algo.sampling import Truncation, sampling_probs
from workers.model.qwen3 import Qwen3Policy
from workers.rollout.engine import SamplingParams
from workers.rollout_metrics import load_metrics

PROMPTS = [[3, 1, 2, 5], [7, 8, 3]]
PARAMS = SamplingParams(1.0, 12, seed=1)
NUM_SAMPLES = 12
EVERY = range(len(PROMPTS) * NUM_SAMPLES)
WITH_EVIDENCE = [0, 2, 9, 10, 15, 20, 23]


@pytest.fixture(scope="module")
def built(build, make_policy, make_head):
    policy = make_policy()
    with build(policy, make_head(policy), {"kind": "eagle3", "draft_length": 3}, max_batch_size=8) as built:
        yield built


@pytest.fixture(scope="module")
def engine(built):
    return built.engine


@pytest.fixture(scope="module")
def result(engine):
    """Of one call, every round of it recorded."""
    return engine.generate(PROMPTS, NUM_SAMPLES, PARAMS, record_rounds_of=EVERY, evidence_of=WITH_EVIDENCE)


def tokens(result):
    return [completion.token_ids for completion in result.completions]


def test_every_prompt_gets_its_responses(result, engine):
    assert [c.prompt_index for c in result.completions] == [0] * 12 + [1] * 12
    for completion in result.completions:
        ended = completion.token_ids[-1] in engine.shape.eos_token_ids
        assert not any(token in engine.shape.eos_token_ids for token in completion.token_ids[:-1])
        assert completion.is_truncated == (not ended)
        assert 1 <= len(completion.token_ids) <= 12
        assert ended or len(completion.token_ids) == 12
    assert {c.is_truncated for c in result.completions} == {True, False}
    assert len({tuple(response) for response in tokens(result)}) > 12


def test_equal_seeds_give_equal_responses(engine, result):
    assert tokens(engine.generate(PROMPTS, NUM_SAMPLES, PARAMS)) == tokens(result)
    assert tokens(engine.generate(PROMPTS, NUM_SAMPLES, replace(PARAMS, seed=2))) != tokens(result)


@pytest.mark.parametrize(
    ("temperature", "truncation"), [(1.0, Truncation()), (0.7, Truncation(top_p=0.8)), (1.3, Truncation(top_k=4))]
)
def test_log_probabilities_are_of_the_distribution_that_was_drawn_from(built, temperature, truncation):
    params = replace(PARAMS, temperature=temperature, truncation=truncation)
    for speculate in (True, False):
        for completion in built.engine.generate(PROMPTS, 2, params, speculate=speculate).completions:
            logits = built.logits(PROMPTS[completion.prompt_index], completion.token_ids)
            probs = sampling_probs(logits, temperature, truncation)
            chosen = probs.gather(1, torch.tensor(completion.token_ids)[:, None])[:, 0]
            torch.testing.assert_close(torch.tensor(completion.logprobs), chosen.log(), atol=2e-5, rtol=0)


def test_the_records_rounds_are_the_responses(result):
    for completion in result.completions:
        assert list(broken_rounds(completion.rounds, completion.token_ids)) == []
    rounds = [r for c in result.completions for r in c.rounds if r.drafted]
    assert {len(r.drafted) for r in rounds} >= {3}
    assert {r.num_accepted for r in rounds} == {0, 1, 2, 3}
    assert any(r.emitted is None for r in rounds)


def test_the_counters_are_those_of_the_rounds(result):
    rounds = [r for c in result.completions for r in c.rounds if r.drafted]
    counters = result.counters
    assert counters.num_drafts == len(rounds)
    assert counters.num_draft_tokens == sum(len(r.drafted) for r in rounds)
    assert counters.num_accepted_tokens == sum(r.num_accepted for r in rounds)
    assert counters.accepted_at_position[:3] == [sum(r.num_accepted > i for r in rounds) for i in range(3)]
    num_tokens = sum(map(len, tokens(result)))
    assert list(broken_counts(counters, num_tokens, len(result.completions))) == []
    assert 1.2 < counters.acceptance_length < 3.5


def test_the_counters_are_of_one_call_only(engine, result):
    assert engine.generate(PROMPTS, NUM_SAMPLES, PARAMS).counters == result.counters


def test_rounds_tell_what_draft_and_policy_said(built, result):
    """Of every drafted token, also those behind a rejection, by draft and policy as they are trained."""
    num_compared = 0
    for completion in result.completions[::3]:
        context = list(PROMPTS[completion.prompt_index])
        for played in completion.rounds:
            if played.drafted:
                drafted = torch.tensor(played.drafted)[:, None]
                draft = built.draft_logits(context, played.drafted).log_softmax(-1).gather(1, drafted)[:, 0]
                policy = built.logits(context, played.drafted).log_softmax(-1).gather(1, drafted)[:, 0]
                torch.testing.assert_close(torch.tensor(played.draft_logprobs), draft, atol=1e-4, rtol=0)
                torch.testing.assert_close(torch.tensor(played.policy_logprobs), policy, atol=1e-4, rtol=0)
                num_compared += 1
            context += played.drafted[: played.num_accepted] + ([] if played.emitted is None else [played.emitted])
    assert num_compared > 10


def test_evidence_agrees_with_the_responses_and_the_rounds(result):
    evidence = result.evidence
    assert 3 < len(set(evidence.completion_M.tolist())) <= len(set(WITH_EVIDENCE))
    assert set(evidence.completion_M.tolist()) <= set(WITH_EVIDENCE)
    num_accepted = 0
    for completion, position, drafted, is_accepted, q, ids, probs in zip(
        evidence.completion_M.tolist(),
        evidence.position_M.tolist(),
        evidence.drafted_M.tolist(),
        evidence.is_accepted_M.tolist(),
        evidence.draft_probs_M.tolist(),
        evidence.top_ids_MN,
        evidence.top_probs_MN,
        strict=True,
    ):
        assert (result.completions[completion].token_ids[position] == drafted) == is_accepted
        assert probs[ids == drafted].item() == pytest.approx(q)
        assert probs.sum().item() == pytest.approx(1, abs=1e-5)
        num_accepted += is_accepted
    assert num_accepted == sum(r.num_accepted for i in WITH_EVIDENCE for r in result.completions[i].rounds)
    drawn = torch.tensor([q for i in WITH_EVIDENCE for r in result.completions[i].rounds for q in r.draft_logprobs])
    assert all((drawn - q).abs().min() < 1e-5 for q in evidence.draft_probs_M.log())


def test_greedy_is_the_same_with_and_without_speculation(built):
    greedy = replace(PARAMS, temperature=0.0)
    fast, plain = (built.engine.generate(PROMPTS, 1, greedy, speculate=way) for way in (True, False))
    assert tokens(fast) == tokens(plain)
    assert fast.counters.num_drafts > 0
    for prompt, completion in zip(PROMPTS, fast.completions, strict=True):
        assert completion.token_ids == built.logits(prompt, completion.token_ids).argmax(-1).tolist()
        assert completion.logprobs == [0.0] * len(completion.token_ids)


def test_without_speculation_nothing_is_drafted_and_nothing_spent_on_it(engine, monkeypatch):
    """What the speedup probe compares with must not pay for a draft."""
    (drafter,) = engine._llm.collective_rpc(lambda worker: worker.model_runner.drafter)
    calls = []
    honest = drafter.propose
    monkeypatch.setattr(drafter, "propose", lambda *given, **named: calls.append(1) or honest(*given, **named))
    plain = engine.generate(PROMPTS, 2, PARAMS, speculate=False, record_rounds_of=[1])
    assert calls == []
    assert plain.counters.acceptance_length is None
    assert (plain.round_costs, plain.evidence) == ([], None)
    assert [r.emitted for r in plain.completions[1].rounds] == plain.completions[1].token_ids
    assert engine.generate(PROMPTS, 2, PARAMS).counters.num_drafts > 0
    assert calls


def test_rounds_cost_time(result, engine):
    assert {cost.draft_length for cost in result.round_costs} >= {3}
    assert all(cost.measured_s > 0 and cost.num_sequences <= 8 for cost in result.round_costs)
    assert sum(cost.measured_s for cost in result.round_costs) <= result.generation_s


def test_the_engine_tells_how_busy_it_was(engine):
    # Twenty-four requests on eight places.
    metrics = load_metrics(engine.generate(PROMPTS, NUM_SAMPLES, PARAMS).load)
    assert 0 < metrics["engine/kv_cache_use_fraction"] <= metrics["engine/kv_cache_use_max_fraction"] < 1
    assert 1 < metrics["engine/num_running_requests"] <= 8
    assert 0 < metrics["engine/num_waiting_requests"] <= 16


def test_what_cannot_be_generated_is_refused_and_leaves_the_engine_as_it_was(engine, result):
    with pytest.raises(ValueError, match=r"prompts\[0\] has 120 tokens"):
        engine.generate([[1] * 120], 1, PARAMS)
    assert tokens(engine.generate(PROMPTS, NUM_SAMPLES, PARAMS)) == tokens(result)


def test_an_interrupted_call_leaves_nothing_behind(engine, result, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(engine._tap, "end_step", stop)
        with pytest.raises(KeyboardInterrupt):
            engine.generate(PROMPTS, NUM_SAMPLES, PARAMS)
    assert tokens(engine.generate(PROMPTS, NUM_SAMPLES, PARAMS)) == tokens(result)


def first_drafted(engine):
    """A response, and its first round, where that one drafted."""
    result = engine.generate(PROMPTS, NUM_SAMPLES, PARAMS, record_rounds_of=EVERY)
    return next((c, c.rounds[1]) for c in result.completions if len(c.rounds) > 1 and len(c.rounds[1].drafted) == 3)


class TestNewWeights:
    """Each test leaves the weights that it found."""

    @pytest.fixture
    def moved(self, built):
        policy = Qwen3Policy(built.policy.config)
        policy.load_state_dict(built.policy.state_dict())
        generator = torch.Generator().manual_seed(3)
        with torch.no_grad():
            for parameter in policy.parameters():
                parameter.add_(0.2 * parameter.std() * torch.randn(parameter.shape, generator=generator))
        yield policy
        built.engine.update_weights("policy", built.policy.state_dict().items())
        built.engine.update_weights("draft", built.draft.state_dict().items())

    def errors(self, built, policy):
        result = built.engine.generate(PROMPTS, 2, PARAMS)
        found = []
        for c in result.completions:
            logits = replace(built, policy=policy).logits(PROMPTS[c.prompt_index], c.token_ids)
            chosen = logits.log_softmax(-1).gather(1, torch.tensor(c.token_ids)[:, None])[:, 0]
            found.append((chosen - torch.tensor(c.logprobs)).abs().max().item())
        return max(found)

    def test_the_policys_are_taken_up_in_buckets_and_the_draft_keeps_its_own(self, built, moved, monkeypatch):
        monkeypatch.setattr(built.engine, "shape", built.engine.shape._replace(bucket_bytes=5000))
        assert self.errors(built, moved) > 0.1
        built.engine.update_weights("policy", moved.state_dict().items())
        assert self.errors(built, moved) < 1e-4
        # The head's embedding was the policy's at the start; what is synced for the head must not overwrite that.
        built.engine.update_weights("draft", built.draft.state_dict().items())
        assert self.errors(built, moved) < 1e-4
        completion, played = first_drafted(built.engine)
        context = [*PROMPTS[completion.prompt_index], completion.token_ids[0]]
        scores = replace(built, policy=moved).draft_logits(context, played.drafted).log_softmax(-1)
        assert played.draft_logprobs == pytest.approx(
            scores.gather(1, torch.tensor(played.drafted)[:, None])[:, 0].tolist(), abs=1e-4
        )

    def test_the_drafts_are_taken_up(self, built, moved):
        zeroed = {name: torch.zeros_like(tensor) for name, tensor in built.draft.state_dict().items()}
        built.engine.update_weights("draft", zeroed.items())
        _, played = first_drafted(built.engine)
        assert played.draft_logprobs == pytest.approx([-math.log(12)] * 3, abs=1e-5)

    def test_missing_weights_are_told_and_what_was_there_is_kept(self, built, moved):
        state = dict(built.policy.state_dict())
        del state["model.layers.1.self_attn.k_proj.weight"], state["model.norm.weight"]
        with pytest.raises(
            ValueError, match=r"policy's weights lack those of 2 layers.*model\.layers\.1\.self_attn\.qkv"
        ):
            built.engine.update_weights("policy", state.items())

    def test_unknown_weights_are_told(self, built, moved):
        state = built.policy.state_dict() | {"model.layers.7.mlp.up_proj.weight": torch.zeros(64, 32)}
        with pytest.raises((ValueError, KeyError), match=r"layers\.7"):
            built.engine.update_weights("policy", state.items())
