"""The verifier of the arithmetic task."""


def arithmetic_reward(response: str, answer: int) -> float:
    """1.0 where the text after the last '#' is exactly the answer in plain digits, else 0.0.

    Nothing may follow it: a response that rambles on after its answer has not given one.
    """
    _, mark, claimed = response.rpartition("#")
    return float(bool(mark) and claimed == str(answer))
