import math

import pytest
import torch

from contract.config.drafter import OnlineDraftTraining
from contract.config.grpo import GrpoConfig
from contract.config.trainer import AdamWOptimizer, MuonOptimizer, TorchTrainer
from workers.algo.loss import grpo_loss
from workers.train.draft_trainer import DraftTrainer
from workers.train.finite import MAX_IN_A_ROW
from workers.train.optimizer import build_optimizers
from workers.train.torch_trainer import TorchPolicyTrainer

ADVANTAGES = torch.tensor([1.0, 0.0, -0.5, 0.0, 2.0, -1.0])


@pytest.fixture
def make_trainer(make_policy):
    def make(*, draft=None, reference=None, micro_batch_size=4, online=None, optimizer=None, **grpo):
        return TorchPolicyTrainer(
            make_policy(),
            reference,
            draft,
            trainer=TorchTrainer(
                precision="float32",
                micro_batch_size=micro_batch_size,
                max_grad_norm=0.5,
                optimizer=optimizer or AdamWOptimizer(learning_rate=0.01),
            ),
            grpo=GrpoConfig(**grpo),
            online=online or OnlineDraftTraining(num_updates_per_step=2, batch_size=3, unroll_length=2),
            seed=11,
        )

    return make


def _slow_logprobs(policy, batch):
    """Row by row, token by token, without padding."""
    result = torch.zeros_like(batch.engine_logprobs_BT)
    for b in range(len(result)):
        for t in range(1, result.shape[1]):
            if batch.response_mask_BT[b, t]:
                logits = policy(batch.token_ids_BT[b : b + 1, :t]).logits_BTV[0, -1].double() / batch.temperature
                result[b, t] = (logits[batch.token_ids_BT[b, t]] - logits.logsumexp(0)).float()
    return result


def _parameters(trainer):
    return torch.cat([p.detach().flatten() for p in trainer.policy.parameters()])


def _step(trainer, batch, advantages=ADVANTAGES):
    return trainer.train_step(batch, trainer.compute_logprobs(batch), advantages)


def test_logprobs_agree_with_a_slow_reference(make_trainer, make_draft, batch):
    trainer = make_trainer(draft=make_draft())
    result = trainer.compute_logprobs(batch)
    with torch.no_grad():
        torch.testing.assert_close(result.logprobs_BT, _slow_logprobs(trainer.policy, batch), atol=1e-5, rtol=1e-5)
    assert result.reference_logprobs_BT is None
    assert 0 < result.metrics["policy/entropy_nats"] <= math.log(48)
    assert len(result.audit.pit_N) == batch.response_mask_BT.sum()


def test_an_update_is_that_of_the_whole_batch_in_one_pass(make_trainer, make_policy, batch):
    trainer = make_trainer(micro_batch_size=2)
    logprobs = trainer.compute_logprobs(batch)
    metrics = trainer.train_step(batch, logprobs, ADVANTAGES)

    policy = make_policy()
    (optimizer,) = build_optimizers(policy.named_parameters(), AdamWOptimizer(learning_rate=0.01))
    log_p = (policy(batch.token_ids_BT).logits_BTV / batch.temperature).log_softmax(-1)
    own = torch.zeros_like(batch.engine_logprobs_BT)
    own[:, 1:] = log_p[:, :-1].gather(2, batch.token_ids_BT[:, 1:, None])[:, :, 0]
    loss = grpo_loss(
        own * batch.response_mask_BT,
        logprobs.logprobs_BT,
        ADVANTAGES,
        batch.response_mask_BT,
        normalizer=batch.response_mask_BT.sum().item(),
        clip_low=0.2,
        clip_high=0.28,
    ).loss
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
    optimizer.step()

    assert metrics["policy/loss"] == pytest.approx(loss.item(), rel=1e-4)
    assert metrics["policy/grad_norm"] == pytest.approx(norm.item(), rel=1e-4)
    expected = torch.cat([p.detach().flatten() for p in policy.parameters()])
    torch.testing.assert_close(_parameters(trainer), expected, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("micro_batch_size", [1, 3, 100])
def test_micro_batch_size_changes_nothing(make_trainer, batch, micro_batch_size):
    one, other = make_trainer(micro_batch_size=2), make_trainer(micro_batch_size=micro_batch_size)
    assert _step(one, batch) == pytest.approx(_step(other, batch), rel=1e-3, abs=1e-6)
    torch.testing.assert_close(_parameters(one), _parameters(other), atol=1e-4, rtol=1e-3)


def test_rewarded_responses_become_likelier_and_the_others_less(make_trainer, batch):
    trainer = make_trainer()
    before = trainer.compute_logprobs(batch)
    metrics = trainer.train_step(batch, before, ADVANTAGES)
    change = (trainer.compute_logprobs(batch).logprobs_BT - before.logprobs_BT).sum(1)
    assert (change * ADVANTAGES)[ADVANTAGES != 0].gt(0).all()
    assert metrics["policy/clip_fraction"] == 0  # the one update of a step starts at ratio 1
    assert metrics["policy/kl_update_nats"] > 0


def test_later_updates_of_a_step_meet_the_clip_range(make_trainer, batch):
    trainer = make_trainer(num_updates_per_step=3, clip_ratio_low=0.01, clip_ratio_high=0.01)
    assert _step(trainer, batch, torch.ones(6))["policy/clip_fraction"] > 0


def test_nothing_happens_where_nothing_is_to_be_learnt(make_trainer, batch):
    trainer = make_trainer()
    before = _parameters(trainer)
    assert _step(trainer, batch, torch.zeros(6)) == {}
    torch.testing.assert_close(_parameters(trainer), before, atol=0, rtol=0)


def test_a_kl_penalty_holds_the_policy_at_its_reference(make_trainer, make_policy, batch):
    free, held = make_trainer(), make_trainer(reference=make_policy(), kl_penalty=5.0)
    first = _step(held, batch)
    assert first["policy/kl_reference_nats"] == pytest.approx(0, abs=1e-6)
    _step(free, batch)
    for _ in range(6):
        _step(free, batch)
        last = _step(held, batch)
    assert last["policy/kl_reference_nats"] > 0
    start = torch.cat([p.detach().flatten() for p in make_policy().parameters()])
    assert (_parameters(held) - start).norm() < (_parameters(free) - start).norm()


def test_mismatch_is_measured_at_response_tokens(make_trainer, batch):
    trainer = make_trainer()
    own = trainer.compute_logprobs(batch).logprobs_BT
    shifted = type(batch)(batch.token_ids_BT, batch.response_mask_BT, own + 0.1 * batch.response_mask_BT, 0.9)
    metrics = trainer.compute_logprobs(shifted).metrics
    assert metrics["mismatch/token_mult_prob_error_ratio"] == pytest.approx(math.exp(0.1), rel=1e-4)
    assert metrics["mismatch/kl_nats"] == pytest.approx(math.exp(-0.1) + 0.1 - 1, rel=1e-2)


def test_draft_training_touches_only_the_draft(make_trainer, make_draft, batch):
    trainer, alone = make_trainer(draft=make_draft()), make_trainer()
    _step(trainer, batch)
    _step(alone, batch)
    torch.testing.assert_close(_parameters(trainer), _parameters(alone), atol=1e-5, rtol=1e-4)
    before, draft_before = _parameters(trainer), {n: t.clone() for n, t in trainer.export_weights("draft")}
    metrics = trainer.train_draft(batch)
    assert set(metrics) == {
        "draft/loss_nats",
        "draft/grad_norm",
        "draft/expected_acceptance_length_tokens",
        "draft/expected_acceptance_position_1_fraction",
    }
    first = metrics["draft/expected_acceptance_position_1_fraction"]
    assert 1 + first < metrics["draft/expected_acceptance_length_tokens"] < 1 + 2 * first
    torch.testing.assert_close(_parameters(trainer), before, atol=0, rtol=0)
    after = dict(trainer.export_weights("draft"))
    assert not torch.equal(after["fc.weight"], draft_before["fc.weight"])
    assert torch.equal(after["embed_tokens.weight"], draft_before["embed_tokens.weight"])
    assert alone.train_draft(batch) == {}
    assert list(alone.export_weights("draft")) == []


@pytest.mark.parametrize("kind", ["eagle3", "reduced", "mtp", "draft_model"])
def test_draft_loss_falls_on_a_fixed_batch(make_trainer, make_draft, batch, kind):
    trainer = make_trainer(draft=make_draft(kind), online=OnlineDraftTraining(num_updates_per_step=1, batch_size=6))
    losses = []
    for _ in range(12):
        trainer.compute_logprobs(batch)
        losses.append(trainer.train_draft(batch)["draft/loss_nats"])
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("kind", ["reduced", "mtp", "draft_model"])
def test_a_draft_of_any_kind_goes_on_from_a_checkpoint(make_trainer, make_draft, batch, tmp_path, kind):
    first, second = (make_trainer(draft=make_draft(kind, seed=seed)) for seed in (1, 2))
    _step(first, batch)
    first.train_draft(batch)
    first.save(tmp_path)
    second.load(tmp_path)
    assert _step(first, batch) == _step(second, batch)
    assert first.train_draft(batch) == second.train_draft(batch)
    exported = dict(first.export_weights("draft")), dict(second.export_weights("draft"))
    assert all(torch.equal(exported[0][name], exported[1][name]) for name in exported[0])


@pytest.mark.parametrize("num_updates", [1, 4, 9])
def test_every_draft_update_asked_for_is_made(make_trainer, make_draft, batch, num_updates, monkeypatch):
    trainer = make_trainer(
        draft=make_draft(), online=OnlineDraftTraining(num_updates_per_step=num_updates, batch_size=4)
    )
    given = []
    update = DraftTrainer.update

    def watched(self, seen, *args, **kwargs):
        given.extend(seen.token_ids_BT[:, :5].tolist())
        assert kwargs["temperature"] == batch.temperature
        return update(self, seen, *args, **kwargs)

    monkeypatch.setattr(DraftTrainer, "update", watched)
    trainer.compute_logprobs(batch)
    trainer.train_draft(batch)
    assert len(given) == 4 * num_updates
    rows = [batch.token_ids_BT[:, :5].tolist().index(tokens) for tokens in given]
    counts = [rows.count(row) for row in range(6)]
    assert max(counts) - min(counts) <= 1  # each once before any comes again


def test_draft_examples_keep_no_more_than_themselves_alive(make_trainer, make_draft, batch):
    trainer = make_trainer(
        draft=make_draft(), online=OnlineDraftTraining(num_updates_per_step=1, batch_size=1), micro_batch_size=6
    )
    trainer.compute_logprobs(batch)
    for kept in (trainer._examples.features, trainer._examples.logits):
        (tensor,) = kept.values()
        assert tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()


def _spoil(parameters):
    """A backward hook by which every gradient becomes infinite."""
    return [p.register_hook(lambda gradient: gradient * math.inf) for p in parameters if p.requires_grad]


def test_a_gradient_that_is_not_finite_changes_nothing_and_is_reported(make_trainer, make_draft, batch):
    trainer = make_trainer(draft=make_draft(), optimizer=MuonOptimizer())
    hooks = _spoil([*trainer.policy.parameters(), *trainer._draft.draft.parameters()])
    before = _parameters(trainer)
    draft_before = {name: tensor.clone() for name, tensor in trainer.export_weights("draft")}
    assert not math.isfinite(_step(trainer, batch)["policy/grad_norm"])
    assert not math.isfinite(trainer.train_draft(batch)["draft/grad_norm"])
    assert torch.equal(_parameters(trainer), before)
    assert all(torch.equal(draft_before[name], tensor) for name, tensor in trainer.export_weights("draft"))

    for hook in hooks:
        hook.remove()
    assert math.isfinite(_step(trainer, batch)["policy/grad_norm"])
    assert not torch.equal(_parameters(trainer), before)


def test_gradients_that_stay_infinite_end_the_run_with_a_reason(make_trainer, batch):
    trainer = make_trainer()
    _spoil(trainer.policy.parameters())
    for _ in range(MAX_IN_A_ROW - 1):
        _step(trainer, batch)
    with pytest.raises(FloatingPointError, match=r"gradient of the policy .* lower the learning rates"):
        _step(trainer, batch)


@pytest.mark.parametrize("optimizer", [AdamWOptimizer(learning_rate=0.01), MuonOptimizer()], ids=["adamw", "muon"])
def test_a_loaded_trainer_takes_the_steps_that_would_have_followed(
    make_trainer, make_draft, make_policy, batch, tmp_path, optimizer
):
    def make():
        return make_trainer(
            draft=make_draft(),
            reference=make_policy(),
            kl_penalty=0.1,
            num_updates_per_step=2,
            optimizer=optimizer,
        )

    first, second = make(), make()
    for _ in range(2):
        _step(first, batch)
        first.train_draft(batch)
    first.save(tmp_path)
    second.load(tmp_path)
    for _ in range(2):
        assert _step(first, batch) == _step(second, batch)
        assert first.train_draft(batch) == second.train_draft(batch)
        assert torch.equal(_parameters(first), _parameters(second))
        drafts = dict(first.export_weights("draft")), dict(second.export_weights("draft"))
        assert all(torch.equal(drafts[0][name], drafts[1][name]) for name in drafts[0])


def test_a_checkpoint_without_a_draft_is_refused_where_one_is_needed(make_trainer, make_draft, tmp_path):
    make_trainer().save(tmp_path)
    with pytest.raises(ValueError, match="holds no draft, but"):
        make_trainer(draft=make_draft()).load(tmp_path)
