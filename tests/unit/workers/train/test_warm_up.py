import math

import pytest
import torch

from contract.config import RunConfig
from workers.data.arithmetic import ArithmeticProblems
from workers.data.tokenizer import character_tokenizer, load_tokenizer
from workers.model.hf_checkpoint import load_policy
from workers.train.warm_up import solution_batch, warm_up, warm_up_folder

CONFIG = RunConfig.model_validate(
    {
        "task": {"num_terms": 2},
        "policy": {
            "kind": "scratch",
            "num_layers": 2,
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "warm_up": {"num_steps": 25, "batch_size": 8},
        },
        "drafter": {"kind": "none"},
        "trainer": {"precision": "float32"},
    }
)
PARTS = (CONFIG.policy, CONFIG.task, CONFIG.trainer)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = warm_up_folder(tmp_path_factory.mktemp("cache"), *PARTS, seed=3)
    return folder, list(warm_up(folder, *PARTS, seed=3))


def test_the_loss_falls_from_that_of_guessing(trained):
    _, steps = trained
    losses = [step.metrics["warm_up/loss_nats"] for step in steps]
    assert losses[0] == pytest.approx(math.log(48), abs=0.1)
    assert losses[-1] < 0.85 * losses[0]
    assert [step.step for step in steps] == list(range(1, 26))


def test_the_result_is_a_self_contained_checkpoint(trained):
    folder, _ = trained
    assert load_tokenizer(folder).vocabulary_size == 48
    policy = load_policy(folder)
    assert policy.config.eos_token_ids == (1,)
    assert [p.name for p in folder.parent.iterdir()] == [folder.name]


def test_the_same_seed_gives_the_same_policy(trained, tmp_path):
    folder, _ = trained
    again = tmp_path / "again"
    list(warm_up(again, *PARTS, seed=3))
    one, other = load_policy(folder).state_dict(), load_policy(again).state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_whatever_decides_the_result_decides_the_folder(tmp_path):
    folder = warm_up_folder(tmp_path, *PARTS, seed=3)
    assert folder == warm_up_folder(tmp_path, *PARTS, seed=3)
    recipe = CONFIG.policy.warm_up.model_copy(update={"num_steps": 26})
    others = [
        *(
            warm_up_folder(tmp_path, *PARTS[:2], CONFIG.trainer.model_copy(update=change), seed=3)
            for change in ({"max_grad_norm": 0.5}, {"num_threads": 2})
        ),
        warm_up_folder(tmp_path, *PARTS, seed=4),
        warm_up_folder(tmp_path, CONFIG.policy.model_copy(update={"warm_up": recipe}), *PARTS[1:], seed=3),
        warm_up_folder(tmp_path, PARTS[0], CONFIG.task.model_copy(update={"max_term": 98}), PARTS[2], seed=3),
        warm_up_folder(tmp_path, *PARTS[:2], CONFIG.trainer.model_copy(update={"precision": "bfloat16"}), seed=3),
    ]
    assert len({folder, *others}) == 7


def test_only_solutions_are_learnt(tmp_path):
    tokenizer = character_tokenizer()
    problems = ArithmeticProblems(CONFIG.task, 0, "warm_up")
    token_ids, mask = solution_batch(problems, tokenizer, 4, 3)
    for row, problem in enumerate(problems.problems(4, 3)):
        learnt = token_ids[row][mask[row] > 0].tolist()
        assert tokenizer.decode(learnt) == problem.solution
        assert learnt[-1] == tokenizer.eos_id
        assert tokenizer.decode(token_ids[row].tolist()) == problem.prompt + problem.solution
