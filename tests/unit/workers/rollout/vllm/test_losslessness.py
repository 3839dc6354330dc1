"""Samples of the real vLLM against exact string probabilities, and our audit against a vLLM that is not mended.

Levels are fixed beforehand: a fair engine fails one of these tests in ten thousand seeds; a broken one must be rejected
beyond any doubt.
"""

import itertools
from importlib.util import find_spec

import pytest
import torch
from scipy import stats

from contract.config import RunConfig
from contract.config.drafter import OnlineDraftTraining
from contract.telemetry.alarms import AlarmName
from workers.algo.sampling import Truncation, sampling_probs
from workers.audit.run_audit import RunAudit
from workers.data.batch import to_training_batch
from workers.rollout.engine import SamplingParams
from workers.train.torch_trainer import TorchPolicyTrainer

PROMPT = [3, 1, 2]
MAX_NEW_TOKENS, NUM_SAMPLES, EOS = 3, 2000, 0
VOCABULARY = range(12)
REJECTION_LEVEL, BEYOND_DOUBT = 1e-4, 1e-9
AUDITED_PROMPTS = [[a, b, 2] for a in range(1, 5) for b in range(1, 5)]
NUM_RESPONSES, LONGEST = 6, 24


@pytest.fixture(
    scope="module",
    params=[
        "eagle3",
        pytest.param(
            "suffix", marks=pytest.mark.skipif(find_spec("arctic_inference") is None, reason="needs arctic-inference")
        ),
    ],
)
def built(build, make_policy, make_head, request):
    """With a draft that is drawn, and with one that is determined."""
    policy = make_policy()
    head = make_head(policy) if request.param == "eagle3" else None
    with build(policy, head, {"kind": request.param, "draft_length": 3}) as built:
        yield built


@pytest.fixture
def unmended(built, monkeypatch):
    """The function as vLLM has it."""
    from vllm.v1.sample import rejection_sampler

    from workers.rollout.vllm import mends

    monkeypatch.setattr(rejection_sampler, "expand_batch_to_tokens", mends.vllms_expand_batch_to_tokens)
    return rejection_sampler


def all_responses():
    """Every string that ends at its first end token or at the limit."""
    for length in range(1, MAX_NEW_TOKENS + 1):
        for tokens in itertools.product(VOCABULARY, repeat=length):
            if (tokens[-1] == EOS or length == MAX_NEW_TOKENS) and EOS not in tokens[:-1]:
                yield tokens


def exact_probabilities(policy, temperature, truncation):
    """P(response), by the training model in float32 over the whole tree of strings."""
    strings = torch.tensor(list(itertools.product(VOCABULARY, repeat=MAX_NEW_TOKENS)))
    prompts = torch.tensor([PROMPT]).expand(len(strings), -1)
    with torch.no_grad():
        logits = policy(torch.cat([prompts, strings], 1)).logits_BTV[:, len(PROMPT) - 1 : -1]
    probs = sampling_probs(logits, temperature, truncation).double()
    cumulative = probs.gather(2, strings.unsqueeze(2)).squeeze(2).cumprod(1)
    rows = {tuple(string): row for string, row in zip(strings.tolist(), cumulative.tolist(), strict=True)}
    padding = (1,) * MAX_NEW_TOKENS
    return {r: rows[(r + padding)[:MAX_NEW_TOKENS]][len(r) - 1] for r in all_responses()}


def p_value(built, temperature, truncation):
    """Of what the engine draws; strings expected less than five times share a cell, impossible ones are none."""
    probabilities = exact_probabilities(built.policy, temperature, truncation)
    assert sum(probabilities.values()) == pytest.approx(1, abs=1e-5)
    params = SamplingParams(temperature, MAX_NEW_TOKENS, seed=11, truncation=truncation)
    result = built.engine.generate([PROMPT], NUM_SAMPLES, params)
    assert 0.1 < result.counters.num_accepted_tokens / result.counters.num_draft_tokens < 0.95
    counts = dict.fromkeys(probabilities, 0)
    for completion in result.completions:
        counts[tuple(completion.token_ids)] += 1
    assert all(count == 0 for response, count in counts.items() if probabilities[response] == 0)
    common = [r for r, probability in probabilities.items() if probability * NUM_SAMPLES >= 5]
    observed, expected = [counts[r] for r in common], [probabilities[r] * NUM_SAMPLES for r in common]
    observed.append(NUM_SAMPLES - sum(observed))
    expected.append(NUM_SAMPLES - sum(expected))
    assert len(common) > 20
    return stats.chisquare(observed, expected, sum_check=False).pvalue


@pytest.mark.parametrize(
    ("temperature", "truncation"),
    [(1.0, Truncation()), (0.7, Truncation()), (1.0, Truncation(top_p=0.8)), (1.0, Truncation(top_k=4))],
    ids=["T=1", "T=0.7", "top-p", "top-k"],
)
def test_speculative_samples_follow_the_policy(built, temperature, truncation):
    assert p_value(built, temperature, truncation) > REJECTION_LEVEL


def test_another_temperature_than_told_is_rejected(built, monkeypatch):
    from vllm.v1.sample import rejection_sampler

    honest = rejection_sampler.apply_sampling_constraints
    monkeypatch.setattr(
        rejection_sampler, "apply_sampling_constraints", lambda logits, *given: honest(logits * 1.8, *given)
    )
    assert p_value(built, 1.0, Truncation()) < BEYOND_DOUBT


class Audited:
    """Steps of generation, the trainer's log-probabilities and the audit, without any training."""

    def __init__(self, built):
        config = RunConfig.model_validate(
            {
                "grpo": {
                    "num_steps": 200,
                    "num_prompts_per_step": len(AUDITED_PROMPTS),
                    "num_generations_per_prompt": NUM_RESPONSES,
                },
                "trainer": {"precision": "float32"},
            }
        )
        online = OnlineDraftTraining(num_updates_per_step=0)
        self.engine, self.audit, self.step = built.engine, RunAudit(config), 0
        self.trainer = TorchPolicyTrainer(
            built.policy, None, None, trainer=config.trainer, grpo=config.grpo, online=online, seed=5
        )

    def run(self, num_steps, with_evidence=True, until=None):
        """Alarms raised, by the step that raised them, counted from 1."""
        raised = {}
        for count in range(1, num_steps + 1):
            self.step += 1
            chosen = self.audit.choose()
            evident = chosen.with_evidence if with_evidence else []
            params = SamplingParams(1.0, LONGEST, self.step)
            result = self.engine.generate(AUDITED_PROMPTS, NUM_RESPONSES, params, evidence_of=evident)
            batch = to_training_batch(
                AUDITED_PROMPTS, result.completions, 1.0, evidence=result.evidence, audited=chosen.tested
            )
            self.metrics, alarms = self.audit.after_step(self.step, result, self.trainer.compute_logprobs(batch))
            raised |= {alarm.name: count for alarm in alarms if alarm.is_raised}
            if until in raised:
                break
        return raised


def test_the_audit_is_quiet_with_the_mend(built):
    audited = Audited(built)
    assert audited.run(6) == {}
    assert audited.metrics["lossless/num_count_violations"] == 0
    assert audited.metrics["lossless/log10_e_value"] < 1
    assert audited.metrics["lossless/num_tokens"] > 500
    assert audited.metrics["lossless/num_tested_drafts"] > 200


def test_without_the_mend_the_audit_raises_its_alarm_by_the_tokens_alone(built, unmended):
    """No evidence of drafts, which an engine might not give: transforms by the trainer's own log-probabilities."""
    audited = Audited(built)
    raised = audited.run(8, with_evidence=False, until=AlarmName.DISTRIBUTION_DRIFT)
    assert raised[AlarmName.DISTRIBUTION_DRIFT] <= 8
    assert "lossless/num_tested_drafts" not in audited.metrics


def test_vllms_own_expansion_returns_what_was_never_computed(unmended):
    """Why there is a mend. Where this fails, vLLM has mended it, and ours can go."""
    values, cumulative = torch.tensor([0.5, 0.0, 2.0]), torch.tensor([2, 3, 6], dtype=torch.int32)
    expected = [0.5, 0.5, 1.0, 2.0, 2.0, 2.0]
    found = []
    for _ in range(20):
        _ = torch.full((6,), 7.0)  # what the memory held
        found.append(unmended.expand_batch_to_tokens(values, cumulative, 6, replace_from=0, replace_to=1).tolist())
    assert any(one != expected for one in found)
