import pytest

from contract.config.drafter import DraftPretraining, Eagle3Drafter
from contract.config.rollout import TorchRollout
from contract.config.task import ArithmeticTask
from contract.config.trainer import TorchTrainer
from contract.telemetry.metrics import METRICS
from workers.model.draft_checkpoint import load_draft
from workers.train.draft_pretraining import draft_pretraining_folder, pretrain_draft

DRAFTER = Eagle3Drafter(pretraining=DraftPretraining(num_steps=30, batch_size=4, unroll_length=2))
TRAINER = TorchTrainer(precision="float32")
TASK = ArithmeticTask()


def test_the_draft_learns_the_policy_and_is_written(make_policy, batch, tmp_path):
    policy = make_policy()
    before = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    steps = list(pretrain_draft(tmp_path / "draft", policy, batch, DRAFTER, trainer=TRAINER, seed=0))
    assert steps[-1].metrics.keys() <= METRICS.keys()
    losses = [step.metrics["draft_pretraining/loss_nats"] for step in steps]
    expected = [step.metrics["draft_pretraining/expected_acceptance_length_tokens"] for step in steps]
    assert losses[-1] < losses[0]
    assert 1 < expected[0] < expected[-1] <= 3
    load_draft(tmp_path / "draft", policy.config)
    assert all(tensor.equal(before[name]) for name, tensor in policy.state_dict().items())


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
    ],
)
def test_whatever_decides_the_result_decides_the_folder(tmp_path, change):
    def folder(policy="p", task=TASK, drafter=DRAFTER, seed=0, rollout=None, trainer=TRAINER):
        return draft_pretraining_folder(
            tmp_path, policy, task, drafter, rollout=rollout or TorchRollout(), trainer=trainer, seed=seed
        )

    assert folder() == folder()
    assert folder(**change) != folder()


def test_the_draft_length_and_online_training_do_not_invalidate_the_cache(tmp_path):
    def folder(drafter):
        return draft_pretraining_folder(tmp_path, "p", TASK, drafter, rollout=TorchRollout(), trainer=TRAINER, seed=0)

    assert folder(DRAFTER) == folder(DRAFTER.model_copy(update={"draft_length": 5}))
