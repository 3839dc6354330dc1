"""Bodies that break rules of their own, for routes that also look into the database: all problems in one answer."""

from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError, WrapValidator
from pydantic.functional_validators import ModelWrapValidatorHandler

from backend.errors import ProblemError, from_validation

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Refused:
    """What was sent, and what is wrong with it as far as can be told without the database."""

    data: Any
    problems: list[ProblemError]

    def valid(self, key: str) -> Any:
        """The value of a top-level key; None where it is missing or refused."""
        is_refused = any(f"{problem.pointer}/".startswith(f"/{key}/") for problem in self.problems)
        return self.data.get(key) if isinstance(self.data, dict) and not is_refused else None


def _kept(data: Any, handler: ModelWrapValidatorHandler[T]) -> T | Refused:
    try:
        return handler(data)
    except ValidationError as error:
        return Refused(data, from_validation(error, data, ""))


KEEP = WrapValidator(_kept)
"""`Annotated[Model, KEEP]` in a route's signature is the model, or a Refused; the OpenAPI document sees the model."""
