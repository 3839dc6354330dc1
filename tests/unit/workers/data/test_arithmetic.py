import re

import pytest

from contract.config.task import ArithmeticTask
from workers.data.arithmetic import ArithmeticProblems, is_held_out
from workers.rewards.arithmetic import arithmetic_reward

TASK = ArithmeticTask()


def test_working_is_right_in_every_column_and_ends_in_the_answer():
    for problem in ArithmeticProblems(TASK, 3, "train").problems(0, 200):
        terms = [int(term) for term in problem.prompt.removesuffix("=").split("+")]
        assert problem.answer == sum(terms)
        assert problem.solution.endswith(f"#{problem.answer}")
        columns = re.findall(r" (\d)\+(\d)\+(\d)=(\d+)", problem.solution)
        assert all(int(a) + int(b) + int(c) == int(total) for a, b, c, total in columns)
        carried = re.findall(r"(\d+)\+(\d+):[^>]* >(\d+);", problem.solution)
        assert len(carried) == len(terms) - 1
        assert all(int(left) + int(right) == int(total) for left, right, total in carried)
        assert arithmetic_reward(problem.solution, problem.answer) == 1.0


def test_hand_computed_solution():
    problem = next(
        p for p in ArithmeticProblems(ArithmeticTask(num_terms=2), 0, "train").problems(0, 50) if p.answer > 110
    )
    left, right = re.findall(r"(\d+)\+(\d+):", problem.solution)[0]
    units = int(left) % 10 + int(right) % 10
    tens = int(left) // 10 + int(right) // 10 + units // 10
    expected = (
        f" {int(left) % 10}+{int(right) % 10}+0={units} {int(left) // 10}+{int(right) // 10}+{units // 10}={tens} "
    )
    assert expected in problem.solution


def test_access_is_random_and_deterministic():
    problems = ArithmeticProblems(TASK, 7, "train")
    assert problems.problems(40, 5) == ArithmeticProblems(TASK, 7, "train").problems(38, 7)[2:]
    assert problems.problem(0) != ArithmeticProblems(TASK, 8, "train").problem(0)
    assert problems.problem(0) != ArithmeticProblems(TASK, 7, "warm_up").problem(0)


@pytest.mark.parametrize("split", ["warm_up", "draft_pretraining", "train"])
def test_validation_prompts_never_occur_in_training_whatever_the_seeds(split):
    task = ArithmeticTask(num_terms=2, max_term=19)  # a hundred prompts in all
    trained = {p.prompt for seed in range(4) for p in ArithmeticProblems(task, seed, split).problems(0, 60)}
    validated = {p.prompt for p in ArithmeticProblems(task, 5, "validation").problems(0, 60)}
    assert len(trained) > 4
    assert not any(is_held_out(prompt) for prompt in trained)
    assert all(is_held_out(prompt) for prompt in validated)


@pytest.mark.parametrize("num_terms", range(2, 9))
def test_the_smallest_task_has_prompts_of_every_split(num_terms):
    task = ArithmeticTask(num_terms=num_terms, max_term=19)
    for split in ("warm_up", "draft_pretraining", "train", "validation"):
        assert len({p.prompt for p in ArithmeticProblems(task, 0, split).problems(0, 100)}) > 4


def test_a_split_without_prompts_is_an_error_and_no_endless_search():
    task = ArithmeticTask.model_construct(num_terms=2, max_term=10)  # one prompt, and it is not held out
    with pytest.raises(ValueError, match=r"task\.max_term = 10 belongs to validation"):
        ArithmeticProblems(task, 0, "validation").problem(0)


@pytest.mark.parametrize(("num_terms", "max_term"), [(2, 19), (4, 99), (3, 60), (3, 999), (8, 9999)])
def test_no_solution_and_no_prompt_is_longer_than_said(num_terms, max_term):
    task = ArithmeticTask(num_terms=num_terms, max_term=max_term)
    problems = ArithmeticProblems(task, 0, "train").problems(0, 2000)
    longest = max(len(problem.solution) for problem in problems)
    assert 0.9 * task.longest_solution() < longest <= task.longest_solution()
    assert max(len(problem.prompt) for problem in problems) == task.longest_prompt()
