"""Scores, lengths and failures together, with a scorer that does as a test tells it."""

import pytest

from contract.config import RunConfig
from contract.telemetry.metrics import METRICS
from workers.data.problem import Problem
from workers.data.tokenizer import character_tokenizer
from workers.rewards.arithmetic import arithmetic_reward
from workers.rewards.local import LocalScorer
from workers.rewards.run_rewards import RunRewards
from workers.rewards.scorer import Failure
from workers.rollout.engine import Completion

TOKENIZER = character_tokenizer()


def config(**task):
    source = {"kind": "jsonl", "path": "/data/a.jsonl"}
    return RunConfig.model_validate(
        {
            "policy": {"kind": "checkpoint", "path": "/models/a"},
            "task": {"kind": "dataset", "train": source, **task},
            "rollout": {"max_new_tokens": 10},
        }
    )


class _Scorer:
    """Answers with what it is given, and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def score(self, responses):
        self.asked += responses
        return [self.answers.pop(0) for _ in responses]

    def close(self):
        pass


def completion(text, is_truncated=False, problem=0):
    token_ids = TOKENIZER.encode(text)
    if not is_truncated:
        token_ids.append(TOKENIZER.eos_id)
    return Completion(problem, token_ids, [0.0] * len(token_ids), is_truncated)


PROBLEMS = [Problem("1+2=", "3"), Problem("2+2=", {"any": ["4"]})]


def test_a_scorer_is_told_the_response_without_its_end_and_its_problems_answer():
    scorer = _Scorer(1.0, 0.25)
    rewards = RunRewards(config(), scorer, TOKENIZER)
    assert rewards.of(PROBLEMS, [completion("#3"), completion("4", problem=1)]).values == [1.0, 0.25]
    assert [(r.prompt, r.text, r.answer, r.num_tokens) for r in scorer.asked] == [
        ("1+2=", "#3", "3", 3),
        ("2+2=", "4", {"any": ["4"]}, 2),
    ]


def test_a_special_token_within_a_response_stands_in_its_text():
    within = Completion(0, [*TOKENIZER.encode("#1"), TOKENIZER.pad_id, *TOKENIZER.encode("39"), 1], [0.0] * 6, False)
    rewards = RunRewards(RunConfig(), LocalScorer(arithmetic_reward), TOKENIZER)
    problems = [Problem("100+39=", 139)]
    assert rewards.of(problems, [within, completion("#139")]).values == [0, 1]
    assert rewards.of(problems, [completion("#139", is_truncated=True)]).values == [0]


@pytest.mark.parametrize(
    ("overlong", "values"),
    [
        ({"kind": "zero"}, [1, 0, 1]),
        ({"kind": "scored"}, [1, 1, 1]),
        ({"kind": "penalised", "buffer_tokens": 4, "penalty": 2.0}, [1, 1 - 2, 1 - 1]),
    ],
)
def test_what_is_too_long_costs_what_the_configuration_says(overlong, values):
    """Of 6 tokens, of 10 and cut there, and of 8: the buffer of 4 begins at 6."""
    scorer = LocalScorer(lambda text, answer: 1.0)
    completions = [completion("12345"), completion("1234567890", is_truncated=True), completion("1234567")]
    assert RunRewards(config(overlong=overlong), scorer, TOKENIZER).of(PROBLEMS, completions).values == values


def test_a_failure_is_worth_nothing_and_counted(caplog):
    failures = [Failure("timeout", "slow"), Failure("raised", "KeyError: 'x'"), Failure("raised", "KeyError: 'y'")]
    rewards = RunRewards(config(overlong={"kind": "penalised", "buffer_tokens": 9}), _Scorer(1.0, *failures), TOKENIZER)
    scored = rewards.of(PROBLEMS, [completion(text) for text in ("", "123456", "123456", "1")])
    assert scored.values == [1, 0, 0, 0]
    metrics = rewards.failure_metrics("reward", scored)
    assert metrics == {
        "reward/num_failures": 3,
        "reward/num_failures_raised": 2,
        "reward/num_failures_timeout": 1,
        "reward/num_failures_invalid": 0,
        "reward/num_failures_died": 0,
    }
    assert metrics.keys() | rewards.failure_metrics("validation", scored).keys() <= METRICS.keys()
    assert [record.message for record in caplog.records] == [
        "2 of 4 responses got no score and count as 0 (raised). The first: KeyError: 'x'",
        "1 of 4 responses got no score and count as 0 (timeout). The first: slow",
    ]


def test_where_texts_are_compared_no_failures_are_counted():
    exact = RunRewards(config(reward={"kind": "exact"}), _Scorer(1.0), TOKENIZER)
    assert exact.failure_metrics("reward", exact.of(PROBLEMS, [completion("")])) == {}
