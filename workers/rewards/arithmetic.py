"""The verifier of the arithmetic task."""

from workers.data.tokenizer import Tokenizer
from workers.rollout.engine import Completion


def completion_reward(completion: Completion, tokenizer: Tokenizer, answer: int) -> float:
    """arithmetic_reward() of the text before the end of sequence; 0.0 for a response that was cut before it ended.

    Any other special token stands in the text by its name, so that the answer is not taken for exact.
    """
    if completion.is_truncated:
        return 0.0
    return arithmetic_reward(tokenizer.verbatim(completion.token_ids[:-1]), answer)


def arithmetic_reward(response: str, answer: int) -> float:
    """1.0 where the text after the last '#' is exactly the answer in plain digits, else 0.0.

    Nothing may follow it: a response that rambles on after its answer has not given one.
    """
    _, mark, claimed = response.rpartition("#")
    return float(bool(mark) and claimed == str(answer))
