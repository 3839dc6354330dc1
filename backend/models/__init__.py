"""The tables. Postgres is the truth; everything else is a nudge or a view."""

from backend.models.auth import ApiToken, AuditEntry, BrowserSession, LoginLink, OidcLogin, Project, ProjectMember, User
from backend.models.base import Base
from backend.models.clusters import Cluster
from backend.models.gates import GateEvaluation
from backend.models.idempotency import IdempotencyKey
from backend.models.runs import Attempt, Run
from backend.models.sweeps import Sweep
from backend.models.telemetry import Alarm, EmitterMark, LogLine, Notice, Point, RolloutSample, Series
from backend.models.webhooks import Webhook, WebhookAttempt, WebhookDelivery
from backend.models.work import Outbox, PeriodicJob

__all__ = [
    "Alarm",
    "ApiToken",
    "Attempt",
    "AuditEntry",
    "Base",
    "BrowserSession",
    "Cluster",
    "EmitterMark",
    "GateEvaluation",
    "IdempotencyKey",
    "LogLine",
    "LoginLink",
    "Notice",
    "OidcLogin",
    "Outbox",
    "PeriodicJob",
    "Point",
    "Project",
    "ProjectMember",
    "RolloutSample",
    "Run",
    "Series",
    "Sweep",
    "User",
    "Webhook",
    "WebhookAttempt",
    "WebhookDelivery",
]
