"""What reports of gates are written from."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from backend.gates.schemas import RunGates


@dataclass(frozen=True, slots=True)
class Report:
    """A run, and what came of its gates."""

    run_id: UUID
    run_name: str
    status: str
    status_reason: str
    started_at: datetime | None
    ended_at: datetime | None
    gates: RunGates
    public_url: str

    @property
    def run_url(self) -> str:
        return self.url_of(self.run_id)

    def url_of(self, run_id: UUID) -> str:
        return f"{self.public_url}/runs/{run_id}"

    @property
    def duration_s(self) -> float:
        return (self.ended_at - self.started_at).total_seconds() if self.started_at and self.ended_at else 0.0

    @property
    def verdict(self) -> str | None:
        """Of the evaluation that is shown, or what the run waits for."""
        return self.gates.evaluation.verdict if self.gates.evaluation else self.gates.verdict
