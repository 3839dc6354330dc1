"""What a rollout starts from and what its reward is told."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Split = Literal["warm_up", "draft_pretraining", "train", "validation"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One prompt and what is known about it."""

    prompt: str
    """As the policy reads it, the chat template's text included."""
    answer: Any
    """What the reward compares with; JSON has it."""


class Problems(Protocol):
    """An endless sequence of problems with random access: a position depends on the seed and the split alone.

    A position in it is a plain number, so a resumed run goes on with the very prompts that would have followed.
    """

    def problems(self, start: int, count: int) -> list[Problem]:
        """The problems at positions start to start + count - 1."""
        ...

    def distinct(self, count: int) -> list[Problem]:
        """The first problems; fewer where the sequence would begin to repeat itself."""
        ...


class Task(Protocol):
    """Where a run's problems come from."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decides the prompts, for what is kept of their responses."""
        ...

    @property
    def metrics(self) -> Mapping[str, float]:
        """Numbers about the data, by catalogue name."""
        ...

    def split(self, split: Split) -> Problems:
        """The problems for a purpose; none of those for validation is in another split."""
        ...
