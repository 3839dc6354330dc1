import pytest

from workers.data.problem import Problem
from workers.data.tokenizer import character_tokenizer
from workers.rollout.engine import Completion, RoundRecord
from workers.samples import sampled_rows, to_sample


def test_rows_are_spread_over_the_step():
    assert sampled_rows(128, 4) == [0, 32, 64, 96]
    assert sampled_rows(3, 3) == [0, 1, 2]


def test_a_completion_becomes_text_and_rounds():
    tokenizer = character_tokenizer()
    ids = [*tokenizer.encode("#46"), tokenizer.eos_id]
    rounds = [
        RoundRecord(tokenizer.encode("#4"), 2, tokenizer.encode("6")[0], [-0.1, -0.2], [-0.3, -0.4]),
        RoundRecord([tokenizer.eos_id, 5], 1, None, [-0.1, -0.2], [-0.3, -0.4]),
    ]
    completion = Completion(0, ids, [-0.1] * 4, is_truncated=False, rounds=rounds)
    sample = to_sample(completion, Problem("12+34=", 46), tokenizer, reward=1.0, advantage=0.5)
    assert (sample.prompt, sample.response, sample.reward, sample.advantage) == ("12+34=", "#46", 1.0, 0.5)
    assert sample.answer == "46"
    assert sample.vocabulary == {1: "<eos>", 5: "3", 6: "4", 8: "6", ids[0]: "#"}
    emitted = [r.drafted[: r.num_accepted] + ([r.emitted] if r.emitted is not None else []) for r in sample.rounds]
    assert [token for part in emitted for token in part] == ids


@pytest.mark.parametrize(
    ("answer", "shown"),
    [("34", "34"), (34, "34"), (["assert é"], '["assert é"]'), ("x" * 2001, "x" * 1999 + "…")],
)
def test_the_known_answer_is_shown_as_text(answer, shown):
    completion = Completion(0, [1], [-0.1], is_truncated=False)
    sample = to_sample(completion, Problem("p", answer), character_tokenizer(), reward=0.0, advantage=0.0)
    assert sample.answer == shown
