"""Programs against their tests, each in a real sandbox; test_sandbox.py has what a sandbox holds back."""

from functools import partial

import pytest

from contract.config.reward import CodeReward
from workers.rewards.code import CodeScorer, last_program


@pytest.fixture(scope="module")
def make_score(apart):
    """Scores of programs, by a scorer in a process of its own."""

    def make(**reward):
        scorer = apart(CodeScorer, CodeReward(**reward))
        return partial(apart, scorer.score)

    return make


@pytest.fixture(scope="module")
def score(make_score):
    return make_score(timeout_s=2)


@pytest.fixture(scope="module")
def score_shares(make_score):
    return make_score(timeout_s=2, partial_credit=True)


def program(text):
    return f"First I think.\n```python\n{text}\n```\nThat is it."


def test_the_last_block_of_python_counts():
    assert last_program("```python\na\n```\n```py\nb\n```\n```json\n{}\n```") == "b\n"
    assert last_program("```\na\n```") == "a\n"
    assert last_program("a = 1") is None
    assert last_program("```python\na") is None


def test_assertions_see_the_programs_functions(score):
    tests = ["assert double(2) == 4", "assert double(3) == 6"]
    assert score(program("def double(x):\n    return 2 * x"), tests) == 1
    assert score(program("def double(x):\n    return x * x"), tests) == 0
    assert score("no program", tests) == 0


def test_a_program_that_ends_before_its_tests_has_passed_none(score):
    for end in ("import sys; sys.exit(0)", "import os; os._exit(0)", "exit()", "1/0", "def ("):
        assert score(program(end), "assert True") == 0


def test_examples_are_read_and_printed(score, score_shares):
    tests = {"inputs": ["1 2", "3 4"], "outputs": ["3\n", "7"]}
    assert score(program("print(sum(map(int, input().split())), ' ')"), tests) == 1
    assert score(program("print(3)"), tests) == 0
    assert score_shares(program("print(3)"), tests) == 0.5


def test_partial_credit_is_the_share_of_tests(score_shares):
    tests = ["assert f(1) == 1", "assert f(2) == 4", "assert f(3) == 9", "assert f(-1) == 1"]
    assert score_shares(program("def f(x):\n    return abs(x)"), tests) == 0.5


def test_all_examples_share_the_time_limit(make_score):
    score = make_score(timeout_s=0.3, partial_credit=True)
    tests = {"inputs": ["", "", "", ""], "outputs": ["1", "1", "1", "1"]}
    assert score(program("import time; time.sleep(9)"), tests) == 0


def test_tests_that_are_none_are_the_datasets_fault(score):
    with pytest.raises(ValueError, match="neither texts of Python"):
        score(program("print(1)"), {"inputs": [1]})
