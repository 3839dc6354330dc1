"""What a set-up stage reports while it runs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SetUpProgress:
    """How far a set-up stage has come."""

    step: int
    """From 1."""
    num_steps: int
    metrics: dict[str, float]
    """By catalogue name."""
