"""What the policy is trained on: prompts and the reward that verifies its answers."""

from typing import Literal

from pydantic import Field

from contract.config.base import ConfigModel


class ArithmeticTask(ConfigModel):
    """Sums with written-out working; the number after '#' is checked exactly: reward 1 or 0."""

    kind: Literal["arithmetic"] = "arithmetic"
    num_terms: int = Field(4, ge=2, le=8)
    """Numbers to add in one prompt."""
    max_term: int = Field(99, ge=10, le=9999)
    """Largest number in a prompt; the smallest is 10."""


# A union of one for now: `kind` is written in every stored configuration, so that further tasks need no migration.
TaskConfig = ArithmeticTask
