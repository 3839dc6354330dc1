"""The one error that every call raises."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict


class ProblemError(BaseModel):
    """One thing that is wrong with a request."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    pointer: str | None = None
    parameter: str | None = None
    detail: str = ""
    value: Any = None


class Problem(BaseModel):
    """An error as the service describes it (RFC 9457)."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    type: str = "about:blank"
    title: str = ""
    status: int = 0
    detail: str
    instance: str = ""
    request_id: str = ""
    errors: Sequence[ProblemError] = ()


class ForedeckError(Exception):
    """A service that refused, failed or did not answer; the message says what to do about it."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        problem: Problem | None = None,
        is_unreachable: bool = False,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        """HTTP status; None where there was no answer."""
        self.problem = problem
        """The problem document, where the answer was one."""
        self.is_unreachable = is_unreachable
        """There was no answer, or it broke off."""
        self.retry_after_s = retry_after_s
        """How long the service asked to be left alone."""

    @property
    def is_infrastructure(self) -> bool:
        """The request may have been right: trying it again later may help."""
        return self.is_unreachable or (self.status is not None and (self.status >= 500 or self.status == 429))
