"""The audit against an engine that is broken on purpose: engine, trainer's pass and audit are the real ones.

Each fault's total variation is the mean, over the response tokens, of that between the distribution a token was drawn
from and the policy's; the steps to detection count from the step that the fault begins at. Both are in the test's
properties, and in docs/concepts/audit.md.
"""

from collections.abc import Callable
from contextlib import contextmanager
from copy import deepcopy

import pytest
import torch

from contract.config import RunConfig
from contract.config.drafter import OnlineDraftTraining
from contract.telemetry.alarms import AlarmName
from workers.algo import acceptance
from workers.algo.acceptance import Verdict, draw
from workers.algo.sampling import Truncation, sampling_probs
from workers.audit.run_audit import RunAudit
from workers.data.batch import select_rows, to_training_batch
from workers.model.draft import PolicyPass
from workers.rollout import generation
from workers.rollout.engine import SamplingParams
from workers.rollout.sampler import Sampler
from workers.train.draft_trainer import DraftTrainer
from workers.train.torch_trainer import TorchPolicyTrainer

PROMPTS = [[a, b, 2] for a in range(1, 9) for b in range(1, 5)]
NUM_SAMPLES, MAX_NEW_TOKENS, NUM_STEPS = 8, 60, 200
LARGE_VARIATION = 0.02
DRIFT, MISMATCH = AlarmName.DISTRIBUTION_DRIFT, AlarmName.LOGPROB_MISMATCH
COLLAPSE, DECAY = AlarmName.ACCEPTANCE_COLLAPSE, AlarmName.DRAFT_DECAY


@pytest.fixture(scope="module")
def trained(make_models):
    """A policy of some entropy, and a draft head that was trained to follow it."""
    models = make_models(vocab_size=32, sharpness=16.0)
    drafts = DraftTrainer(models.head, 0.03, 0.005, 1.0)
    engine = models.engine(max_batch_size=256)
    rollouts = engine.generate(PROMPTS, NUM_SAMPLES, SamplingParams(1.0, MAX_NEW_TOKENS, 0), speculate=False)
    batch = to_training_batch(PROMPTS, rollouts.completions, 1.0)
    for rows in torch.randperm(256, generator=torch.Generator().manual_seed(0)).repeat(5).split(24):
        part = select_rows(batch, rows)
        with torch.no_grad():
            seen = models.policy(part.token_ids_BT, models.head.tap_layers)
        drafts.update(
            PolicyPass(models.policy, part.token_ids_BT, seen.features_BTF),
            part.response_mask_BT,
            seen.logits_BTV,
            2,
            temperature=1.0,
        )
    return models


class Audited:
    """Steps of generation, log-probabilities and audit, without any training of the policy."""

    def __init__(self, models, *, temperature=1.0, truncation=Truncation(), precision="float32", draft=None):
        """draft: trained along, for what its training expects of it."""
        self.models, self.temperature, self.truncation = models, temperature, truncation
        config = RunConfig.model_validate(
            {
                "grpo": {
                    "num_steps": NUM_STEPS,
                    "num_prompts_per_step": len(PROMPTS),
                    "num_generations_per_prompt": NUM_SAMPLES,
                },
                "trainer": {"precision": precision},
            }
        )
        self.engine = models.engine(max_batch_size=256, precision=precision)
        online = OnlineDraftTraining(num_updates_per_step=1, unroll_length=1)
        self.trainer = TorchPolicyTrainer(
            models.policy, None, draft, trainer=config.trainer, grpo=config.grpo, online=online, seed=5
        )
        self.audit, self.step = RunAudit(config), 0

    def run(self, num_steps, until=None):
        """Names of the alarms raised, by the step that raised them, counted from 1; ends with the one waited for."""
        raised = {}
        for count in range(1, num_steps + 1):
            self.step += 1
            params = SamplingParams(self.temperature, MAX_NEW_TOKENS, self.step, self.truncation)
            chosen = self.audit.choose()
            self.result = self.engine.generate(PROMPTS, NUM_SAMPLES, params, evidence_of=chosen.with_evidence)
            self.batch = to_training_batch(
                PROMPTS,
                self.result.completions,
                self.temperature,
                self.truncation,
                evidence=self.result.evidence,
                audited=chosen.tested,
            )
            logprobs = self.trainer.compute_logprobs(self.batch)
            self.metrics, alarms = self.audit.after_step(self.step, self.result, logprobs)
            self.audit.after_draft_training(self.trainer.train_draft(self.batch))
            raised |= {alarm.name: count for alarm in alarms if alarm.is_raised}
            if until in raised:
                break
        return raised

    def variation_from(self, law: Callable) -> float:
        """Mean total variation between the trainer's distributions of the last step's tokens and law(token ids)."""
        with torch.no_grad():
            logits = self.models.policy(self.batch.token_ids_BT).logits_BTV
            p = sampling_probs(logits, self.temperature, self.truncation)
            other = law(self.batch.token_ids_BT, logits)
        mask = self.batch.response_mask_BT[:, 1:]
        return ((((p - other).abs().sum(-1) / 2)[:, :-1] * mask).sum() / mask.sum()).item()


class Rule:
    """An acceptance rule in the engine's place, with the total variation of what it emits."""

    def __init__(self):
        self.variation_sum = self.num_tokens = 0.0

    @property
    def variation(self):
        return self.variation_sum / self.num_tokens

    def __call__(self, drafted, q, p, rng, num_drafted=None):
        verdict = self.decide(drafted, q, p, rng)
        count = verdict.num_accepted_B
        at = torch.arange(p.shape[1])
        is_emitted = at <= count[:, None]
        self.variation_sum += (((self.law(q, p) - p).abs().sum(-1) / 2) * is_emitted).sum().item()
        self.num_tokens += is_emitted.sum().item()
        return verdict


class AcceptAlways(Rule):
    def decide(self, drafted, q, p, rng):
        return Verdict(torch.full((len(drafted),), drafted.shape[1]), draw(p[:, -1], rng))

    def law(self, q, p):
        return torch.cat([q, p[:, -1:]], 1)


class AcceptMoreOften(Rule):
    """A share of the drafts is accepted untested."""

    share = 0.1

    def decide(self, drafted, q, p, rng):
        chance = (p[:, :-1] / q).gather(2, drafted[:, :, None])[:, :, 0]
        chance = torch.where(torch.rand(chance.shape, generator=rng) < self.share, 1.0, chance)
        accepted = (torch.rand(chance.shape, generator=rng) < chance).long().cumprod(1).sum(1)
        rows, at = torch.arange(len(drafted)), accepted.clamp_max(drafted.shape[1] - 1)
        residual = (p[rows, at] - q[rows, at]).clamp_min(1e-12)
        is_full = (accepted == drafted.shape[1])[:, None]
        return Verdict(accepted, draw(torch.where(is_full, p[:, -1], residual), rng))

    def law(self, q, p):
        return torch.cat([p[:, :-1] + self.share * (q - p[:, :-1]), p[:, -1:]], 1)


class AcceptALittleMoreOften(AcceptMoreOften):
    share = 0.04


class CorrectFromThePolicy(Rule):
    def decide(self, drafted, q, p, rng):
        verdict = acceptance.verify(drafted, q, p, rng)
        return Verdict(verdict.num_accepted_B, draw(p[torch.arange(len(p)), verdict.num_accepted_B], rng))

    def law(self, q, p):
        common = torch.minimum(q, p[:, :-1])
        return torch.cat([common + (1 - common.sum(-1, keepdim=True)) * p[:, :-1], p[:, -1:]], 1)


class LastDraftUnverified(Rule):
    """Of k + 1 drafted tokens k are verified; the last goes out behind them as it is."""

    def decide(self, drafted, q, p, rng):
        verdict = acceptance.verify(drafted[:, :-1], q[:, :-1], p[:, :-1], rng)
        is_full = verdict.num_accepted_B == drafted.shape[1] - 1
        accepted = verdict.num_accepted_B + is_full
        return Verdict(accepted, torch.where(is_full, draw(p[:, -1], rng), verdict.next_token_B))

    def law(self, q, p):
        return torch.cat([p[:, :-2], q[:, -1:], p[:, -1:]], 1)


def tell(record_property, variation, **steps):
    """What the documentation's table is made of."""
    record_property("total_variation", round(variation, 4))
    for name, step in steps.items():
        record_property(name, step)
    print(f"total variation {variation:.4f}, {steps}")


def allowed_steps(variation):
    return 5 if variation >= LARGE_VARIATION else 50


@pytest.mark.parametrize(
    "rule", [AcceptAlways, AcceptMoreOften, AcceptALittleMoreOften, CorrectFromThePolicy, LastDraftUnverified]
)
def test_a_broken_acceptance_rule_is_found(trained, monkeypatch, record_property, rule):
    audited = Audited(trained)
    assert audited.run(4) == {}
    assert 3000 < audited.metrics["lossless/num_tokens"] < 15_000
    planted = rule()
    monkeypatch.setattr(generation, "verify", planted)
    raised = audited.run(50, until=DRIFT)
    tell(record_property, planted.variation, steps_to_drift=raised.get(DRIFT))
    assert raised[DRIFT] <= allowed_steps(planted.variation)
    assert MISMATCH not in raised


@pytest.mark.parametrize("temperature", [0.9, 0.98])
def test_an_ignored_temperature_is_found(trained, monkeypatch, record_property, temperature):
    audited = Audited(trained, temperature=temperature)
    assert audited.run(4) == {}
    monkeypatch.setattr(Sampler, "probs", lambda self, logits: sampling_probs(logits, 1.0))
    raised = audited.run(50, until=DRIFT)
    variation = audited.variation_from(lambda _, logits: sampling_probs(logits, 1.0))
    tell(record_property, variation, steps_to_drift=raised.get(DRIFT), steps_to_mismatch=raised.get(MISMATCH))
    assert raised[DRIFT] <= allowed_steps(variation)
    assert raised[MISMATCH] == 1


def test_an_ignored_top_p_is_found(trained, monkeypatch, record_property):
    audited = Audited(trained, truncation=Truncation(top_p=0.95))
    assert audited.run(4) == {}
    assert audited.metrics["lossless/num_excluded_tokens"] == 0
    monkeypatch.setattr(Sampler, "probs", lambda self, logits: sampling_probs(logits, 1.0))
    raised = audited.run(50, until=DRIFT)
    variation = audited.variation_from(lambda _, logits: sampling_probs(logits, 1.0))
    tell(record_property, variation, steps_to_drift=raised.get(DRIFT))
    assert raised[DRIFT] <= allowed_steps(variation)
    assert audited.metrics["lossless/num_excluded_tokens"] > 0


@pytest.mark.parametrize(("precision", "size"), [("float32", 0.003), ("float32", 0.02), ("bfloat16", 0.02)])
def test_stale_weights_are_found_by_their_mismatch(trained, record_property, precision, size):
    """The trainer's weights move, as by an update, and the engine is not told."""
    audited = Audited(trained, precision=precision)
    assert audited.run(3) == {}
    generator, stale = torch.Generator().manual_seed(1), trained.policy.state_dict()
    moved = {n: t + size * t.std() * torch.randn(t.shape, generator=generator) for n, t in stale.items() if t.ndim > 1}
    with moved_weights(trained.policy, moved) as old:
        raised = audited.run(2, until=MISMATCH)
        variation = audited.variation_from(lambda tokens, _: sampling_probs(old(tokens), 1.0))
    tell(record_property, variation, steps_to_mismatch=raised.get(MISMATCH))
    assert raised == {MISMATCH: 1}


@contextmanager
def moved_weights(policy, moved):
    """The policy with other weights; yields a function to the logits of the old ones."""
    before = {name: tensor.clone() for name, tensor in policy.state_dict().items()}

    def old_logits(token_ids):
        policy.load_state_dict(before)
        logits = policy(token_ids).logits_BTV
        policy.load_state_dict(before | moved)
        return logits

    policy.load_state_dict(before | moved)
    try:
        yield old_logits
    finally:
        policy.load_state_dict(before)


def zeroed(state):
    return {name: torch.zeros_like(tensor) for name, tensor in state.items()}


def scrambled(state):
    """Query heads in the order of another layout: each key-value head's group is taken apart."""
    name = "midlayer.self_attn.q_proj.weight"
    heads = state[name].unflatten(0, (2, 2, 8))  # [key-value heads, queries of each, head width]
    return state | {name: heads.transpose(0, 1).reshape(state[name].shape)}


def of_another_policy(state):
    generator = torch.Generator().manual_seed(7)
    return {n: t + (t.std() * torch.randn(t.shape, generator=generator) if t.ndim > 1 else 0) for n, t in state.items()}


@pytest.mark.parametrize("spoil", [zeroed, scrambled, of_another_policy])
def test_a_spoilt_draft_is_lossless_and_found_by_its_acceptance(trained, record_property, spoil):
    audited = Audited(trained)
    assert audited.run(5) == {}
    length = audited.result.counters.acceptance_length
    audited.engine.update_draft(spoil(trained.head.state_dict()))
    raised = audited.run(4)
    tell(record_property, 0.0, steps_to_decay=raised.get(DECAY), steps_to_collapse=raised.get(COLLAPSE))
    assert audited.result.counters.acceptance_length < length - 0.2
    assert {DECAY, COLLAPSE} & raised.keys()
    assert not {DRIFT, MISMATCH} & raised.keys()


def test_a_draft_that_is_scrambled_from_the_start_is_not_what_its_training_expects(trained, record_property):
    audited = Audited(trained, draft=deepcopy(trained.head))
    audited.engine.update_draft(scrambled(trained.head.state_dict()))
    raised = audited.run(3)
    tell(record_property, 0.0, steps_to_decay=raised.get(DECAY))
    assert raised == {DECAY: 2}
    sound = Audited(trained, draft=deepcopy(trained.head))
    assert sound.run(3) == {}


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_sound_engine_raises_nothing(trained, precision):
    audited = Audited(trained, precision=precision)
    assert audited.run(8) == {}
    assert audited.metrics["lossless/num_count_violations"] == 0
    assert audited.metrics["lossless/log10_e_value"] < 1
