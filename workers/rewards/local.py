"""Scorers that only compare texts, which needs no process of its own."""

from collections.abc import Callable, Sequence
from typing import Any

from workers.rewards.scorer import Failure, Response


class LocalScorer:
    """Calls a function of text and answer that cannot fail."""

    def __init__(self, function: Callable[[str, Any], float]) -> None:
        self._function = function

    def score(self, responses: Sequence[Response]) -> list[float | Failure]:
        return [self._function(response.text, response.answer) for response in responses]

    def close(self) -> None:
        """Nothing was started."""
