import pytest

from contract.config.task import ArithmeticTask
from workers.data.arithmetic import is_held_out
from workers.data.draft_prompts import generic_problems, other_sizes

TASK = ArithmeticTask(num_terms=4, max_term=99)


def test_generic_prompts_have_other_counts_and_sizes_of_numbers():
    generic = generic_problems(TASK, 7, 40, max_new_tokens=128, max_positions=2048)
    assert len({problem.prompt for problem in generic}) == 40
    for problem in generic:
        assert problem.prompt.count("+") != 3
        assert not is_held_out(problem.prompt)
        assert len(problem.solution) < 128
    kinds = {(task.num_terms, task.max_term) for task in other_sizes(TASK, max_new_tokens=128, max_positions=2048)}
    assert (2, 999) in kinds
    assert all(num_terms != 4 and max_term != 99 for num_terms, max_term in kinds)


def test_what_would_be_cut_is_left_out():
    for limit in (48, 96, 200):
        for task in other_sizes(TASK, max_new_tokens=limit, max_positions=2048):
            assert task.longest_solution() < limit
    longest = max(t.longest_prompt() for t in other_sizes(TASK, max_new_tokens=200, max_positions=208))
    assert longest <= 8


def test_where_no_size_differs_in_both_one_is_enough():
    small = ArithmeticTask(num_terms=2, max_term=19)
    kinds = other_sizes(small, max_new_tokens=48, max_positions=2048)
    assert kinds
    assert small not in kinds


def test_where_no_other_size_fits_the_field_and_the_mend_are_named():
    with pytest.raises(
        ValueError, match=r"prompts = generic: .*\.max_new_tokens = 20: raise it, or choose prompts = task"
    ):
        generic_problems(TASK, 7, 40, max_new_tokens=20, max_positions=2048)
