"""A client of Foredeck's REST API. Stands on httpx and pydantic alone."""

from foredeck.client import Foredeck
from foredeck.errors import ForedeckError, Problem, ProblemError
from foredeck.events import Event
from foredeck.models import Gate, Run

__all__ = ["Event", "Foredeck", "ForedeckError", "Gate", "Problem", "ProblemError", "Run"]
