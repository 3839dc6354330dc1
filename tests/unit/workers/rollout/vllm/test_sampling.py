from types import SimpleNamespace

import pytest

from workers.algo.sampling import Truncation
from workers.rollout.engine import SamplingParams
from workers.rollout.vllm.sampling import check_request, completion


def check(prompts=((1, 2),), num_samples=1, chosen=(), is_speculating=True, **params):
    truncation = Truncation(**{key: params.pop(key) for key in ("top_k", "top_p", "min_p") if key in params})
    params = SamplingParams(**{"temperature": 1.0, "max_new_tokens": 4, "seed": 0} | params, truncation=truncation)
    check_request(
        prompts,
        num_samples,
        params,
        chosen,
        max_sequence_tokens=10,
        vocabulary_size=8,
        is_speculating=is_speculating,
    )


def test_what_can_be_generated_passes():
    check(prompts=[[1] * 6, [7]], num_samples=3, chosen=[0, 5], temperature=0)
    check(top_k=3, top_p=0.9)
    check(min_p=0.1, is_speculating=False)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"prompts": []}, "prompts is empty"),
        ({"prompts": [[1], []]}, r"prompts\[1\] has 0 tokens: must have between 1 and 6"),
        ({"prompts": [[1] * 7]}, r"prompts\[0\] has 7 tokens.*max_new_tokens = 4 fit into.*10"),
        ({"prompts": [[8]]}, r"prompts\[0\] has a token outside 0 \.\. 7"),
        ({"num_samples": 0}, "num_samples = 0: must be at least 1"),
        ({"max_new_tokens": 0}, "max_new_tokens = 0: must be at least 1"),
        ({"temperature": 0.001}, "temperature = 0.001: must be 0"),
        ({"temperature": float("nan")}, "temperature = nan"),
        ({"min_p": 0.1}, "min_p = 0.1: must be 0 with a drafter"),
        ({"min_p": 0.1, "top_p": 0.9, "is_speculating": False}, "or with top_p below 1"),
        ({"chosen": [1]}, "record_rounds_of or evidence_of has 1: must be below 1"),
    ],
)
def test_what_cannot_is_told_with_the_mend(wrong, message):
    with pytest.raises(ValueError, match=message):
        check(**wrong)


def answered(token_ids, first_ids, finish_reason="stop"):
    """As vLLM answers: the drawn token's log-probability first, then those of more probable ones."""
    logprobs = SimpleNamespace(
        start_indices=[0, 2],
        token_ids=[first_ids[0], 9, first_ids[1]],
        logprobs=[-1.5, -0.1, -0.5],
    )
    return SimpleNamespace(token_ids=token_ids, logprobs=logprobs, finish_reason=finish_reason)


def test_a_response_has_the_log_probabilities_of_its_tokens():
    response = completion(answered((3, 4), (3, 4)), 7, 1.0)
    assert (response.prompt_index, response.token_ids, response.logprobs) == (7, [3, 4], [-1.5, -0.5])
    assert not response.is_truncated
    assert completion(answered((3, 4), (3, 4), "length"), 0, 1.0).is_truncated


def test_a_greedy_response_was_certain():
    assert completion(answered((3, 4), (3, 4)), 0, 0.0).logprobs == [0.0, 0.0]


def test_log_probabilities_of_other_tokens_are_an_error():
    with pytest.raises(RuntimeError, match="not those of the tokens that it drew"):
        completion(answered((3, 4), (3, 5)), 0, 1.0)
