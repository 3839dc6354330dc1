import json

import pytest
import torch

from contract.config import RunConfig
from contract.config.drafter import DraftModelDrafter, DraftPretraining, Eagle3Drafter, MtpDrafter
from contract.config.rollout import TorchRollout
from contract.config.task import ArithmeticTask
from contract.config.trainer import TorchTrainer
from contract.telemetry.metrics import METRICS
from workers.data.batch import select_rows
from workers.data.open_task import open_task
from workers.model.draft_checkpoint import load_draft
from workers.train import draft_pretraining
from workers.train.draft_pretraining import (
    HELD_OUT_FILE,
    Rollouts,
    draft_pretraining_folder,
    new_draft,
    pretrain_draft,
)
from workers.train.draft_trainer import DraftTrainer

RECIPE = DraftPretraining(num_steps=30, batch_size=4, unroll_length=2)
DRAFTER = Eagle3Drafter(pretraining=RECIPE)
TRAINER = TorchTrainer(precision="float32")
CONFIG = RunConfig(drafter=DRAFTER, trainer=TRAINER)


@pytest.fixture
def rollouts(batch):
    return Rollouts(select_rows(batch, torch.arange(4)), select_rows(batch, torch.arange(4, 6)))


@pytest.mark.parametrize(
    "drafter",
    [
        DRAFTER,
        Eagle3Drafter(pretraining=RECIPE, draft_vocabulary_size=20),
        MtpDrafter(pretraining=RECIPE),
        DraftModelDrafter(pretraining=RECIPE),
    ],
    ids=lambda drafter: f"{drafter.kind}-{getattr(drafter, 'draft_vocabulary_size', None)}",
)
def test_the_draft_learns_the_policy_and_is_written(drafter, make_policy, rollouts, tmp_path):
    policy = make_policy()
    policy.lm_head.weight.data.mul_(20)  # else all tokens are about equally likely, and there is nothing to learn
    before = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    steps = list(pretrain_draft(tmp_path / "draft", policy, rollouts, drafter, trainer=TRAINER, seed=0))
    assert steps[-1].metrics.keys() <= METRICS.keys()
    losses = [step.metrics["draft_pretraining/loss_nats"] for step in steps]
    expected = [step.metrics["draft_pretraining/expected_acceptance_length_tokens"] for step in steps]
    assert losses[-1] < losses[0]
    assert 1 < expected[0] < expected[-1] <= 3
    load_draft(tmp_path / "draft", policy.config, drafter.kind)
    assert all(tensor.equal(before[name]) for name, tensor in policy.state_dict().items())


def test_what_is_expected_on_held_out_responses_stands_beside_the_weights(make_policy, rollouts, tmp_path):
    list(pretrain_draft(tmp_path / "draft", make_policy(), rollouts, DRAFTER, trainer=TRAINER, seed=0))
    held_out = json.loads((tmp_path / "draft" / HELD_OUT_FILE).read_text())
    assert held_out["measured"] == {}
    assert held_out["expected"].keys() <= METRICS.keys()
    area = "draft_pretraining/held_out_expected_acceptance"
    first, second = (held_out["expected"][f"{area}_position_{i}_fraction"] for i in (1, 2))
    assert 0 < second < first < 1
    assert held_out["expected"][f"{area}_length_tokens"] == pytest.approx(1 + first + second)


def test_held_out_expectations_do_not_depend_on_how_responses_are_batched(make_policy, rollouts, tmp_path):
    found = []
    for size in (1, 2):
        recipe = RECIPE.model_copy(update={"num_steps": 1, "batch_size": size})
        drafter = DRAFTER.model_copy(update={"pretraining": recipe})
        policy = make_policy()
        draft = DraftTrainer(new_draft(drafter, policy, rollouts.training, 0), 0.02, 0.002, max_grad_norm=1.0)
        found.append(draft_pretraining._held_out_metrics(draft, policy, rollouts.held_out, recipe))
    assert found[0] == pytest.approx(found[1], rel=1e-5)


def test_a_reduced_vocabulary_holds_the_most_frequent_response_tokens(make_policy, batch):
    draft = new_draft(Eagle3Drafter(draft_vocabulary_size=5), make_policy(), batch, seed=0)
    emitted = batch.token_ids_BT[batch.response_mask_BT > 0].tolist()
    chosen = draft.vocabulary_V.tolist()
    assert len(chosen) == 5
    assert min(map(emitted.count, chosen)) >= max(emitted.count(t) for t in range(48) if t not in chosen)


def test_heads_are_half_as_large_as_the_policy_unless_told_otherwise(make_policy, batch):
    policy = make_policy()
    config = policy.config

    def sizes(drafter):
        shape = new_draft(drafter, policy, batch, seed=0).config.shape
        return shape.hidden_size, shape.intermediate_size, shape.num_attention_heads, shape.num_key_value_heads

    d, m, h, k = config.hidden_size, config.intermediate_size, config.num_attention_heads, config.num_key_value_heads
    assert sizes(Eagle3Drafter()) == (d // 2, m // 2, h // 2, max(1, k // 2))
    assert sizes(MtpDrafter()) == (d, m // 2, h // 2, max(1, k // 2))
    shape = {"intermediate_size": 48, "num_attention_heads": 6, "num_key_value_heads": 3}
    assert sizes(MtpDrafter.model_validate({"shape": shape})) == (d, 48, 6, 3)
    assert sizes(Eagle3Drafter.model_validate({"shape": shape | {"hidden_size": 24}})) == (24, 48, 6, 3)
    with pytest.raises(ValueError, match="num_key_value_heads = 4: must divide num_attention_heads = 6"):
        new_draft(MtpDrafter.model_validate({"shape": shape | {"num_key_value_heads": 4}}), policy, batch, seed=0)


def test_a_draft_model_has_the_configured_shape_and_the_policys_vocabulary(make_policy, batch):
    shape = {"num_layers": 2, "hidden_size": 24, "num_attention_heads": 3, "num_key_value_heads": 1}
    draft = new_draft(DraftModelDrafter.model_validate({"shape": shape}), make_policy(), batch, seed=0)
    config = draft.language_model.config
    assert (config.num_hidden_layers, config.hidden_size, config.head_dim, config.vocab_size) == (2, 24, 8, 48)
    assert config.eos_token_ids == (1,)


def folder(tmp_path, policy="p", **changes):
    config = CONFIG.model_copy(update=changes)
    return draft_pretraining_folder(tmp_path, policy, config, config.drafter, task=open_task(config).identity)


@pytest.mark.parametrize(
    "change",
    [
        {"policy": "other"},
        {"task": ArithmeticTask(max_term=98)},
        {"trainer": TorchTrainer(precision="bfloat16")},
        {"trainer": TorchTrainer(precision="float32", max_grad_norm=0.5)},
        {"trainer": TorchTrainer(precision="float32", num_threads=2)},
        {"seed": 1},
        {"rollout": TorchRollout(temperature=0.5)},
        {"drafter": DRAFTER.model_copy(update={"pretraining": DraftPretraining(num_steps=31)})},
        {"drafter": DRAFTER.model_copy(update={"pretraining": RECIPE.model_copy(update={"prompts": "generic"})})},
        {"drafter": DRAFTER.model_copy(update={"draft_vocabulary_size": 20})},
        {"drafter": MtpDrafter(pretraining=RECIPE)},
        {"drafter": DraftModelDrafter(pretraining=RECIPE)},
    ],
)
def test_whatever_decides_the_result_decides_the_folder(tmp_path, change):
    assert folder(tmp_path) == folder(tmp_path)
    assert folder(tmp_path, **change) != folder(tmp_path)


@pytest.mark.parametrize("update", [{"draft_length": 5}, {"draft_length_control": "fixed"}])
def test_the_draft_length_does_not_invalidate_the_cache(tmp_path, update):
    assert folder(tmp_path) == folder(tmp_path, drafter=DRAFTER.model_copy(update=update))
