"""What a rule between fields of a configuration is."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """What must hold between a field and others; it says nothing about a configuration that lacks one of them."""

    field: str
    others: tuple[str, ...]
    holds: Callable[..., bool]
    """Given the field's value and those of the others."""
    mend: Callable[..., str]
    """Given the values of the others: what the field must be."""
