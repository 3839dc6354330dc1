"""What the loop asks of a reward, whatever it is made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

FailureKind = Literal["raised", "timeout", "invalid", "died"]
"""The scorer raised; was not back in time; gave no finite number; its process ended."""
FAILURE_KINDS: tuple[FailureKind, ...] = get_args(FailureKind)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no score. The response's reward is 0."""

    kind: FailureKind
    message: str


@dataclass(frozen=True, slots=True)
class Response:
    """What is scored."""

    prompt: str
    text: str
    """Without the end-of-sequence token; any other special token by its name."""
    answer: Any
    num_tokens: int
    is_truncated: bool


class Scorer(Protocol):
    """Scores responses; never raises for what a response, an answer or a reward's own code does."""

    def score(self, responses: Sequence[Response]) -> list[float | Failure]:
        """One score for each response, in order."""
        ...

    def close(self) -> None:
        """End the scorer's processes."""
        ...
