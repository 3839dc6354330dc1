"""What runs' gates were judged to be."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from backend.models.base import Base


class GateEvaluation(Base):
    """One judgement of a run: its verdict, and the evidence of each gate. Never changed."""

    __tablename__ = "gate_evaluation"
    __table_args__ = (
        CheckConstraint("verdict IN ('passed','failed')", name="verdict"),
        CheckConstraint("trigger IN ('end','request')", name="trigger"),
        Index("ix_gate_evaluation_run_id_created_at", "run_id", "created_at"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    run_id: Mapped[UUID] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"))
    created_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
    trigger: Mapped[str]
    """end: the run has ended; request: somebody asked."""
    evaluated_by: Mapped[str | None]
    """Who asked, as in the audit log; null for the service itself."""
    run_status: Mapped[str]
    """The run's status at that time."""
    verdict: Mapped[str]
    results: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    """GateResult of backend.gates.schemas, in the order of the gates."""
