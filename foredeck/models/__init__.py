"""What the service answers, as far as clients need it."""

from foredeck.models.access import (
    AuditEntry,
    AuditPage,
    CreatedToken,
    LoginLink,
    Member,
    Project,
    ProjectPage,
    Token,
    TokenPage,
    User,
    UserPage,
)
from foredeck.models.base import Answer, Page, Versioned
from foredeck.models.clusters import CheckStarted, Cluster, ClusterCheck, Finding, Reachability, Resource
from foredeck.models.gates import Gate, GateBaseline, GateEvaluation, GateResult, RunGates
from foredeck.models.runs import Alarm, Alarms, Attempt, Run, RunFields, RunPage, RunSummary
from foredeck.models.sweeps import Sweep, SweepBest, SweepPage, SweepSummary
from foredeck.models.telemetry import LogLine, LogPage, Series, SeriesColumns, SeriesData
from foredeck.models.webhooks import CreatedWebhook, Delivery, DeliveryPage, Webhook, WebhookPage

__all__ = [
    "Alarm",
    "Alarms",
    "Answer",
    "Attempt",
    "AuditEntry",
    "AuditPage",
    "CheckStarted",
    "Cluster",
    "ClusterCheck",
    "CreatedToken",
    "CreatedWebhook",
    "Delivery",
    "DeliveryPage",
    "Finding",
    "Gate",
    "GateBaseline",
    "GateEvaluation",
    "GateResult",
    "LogLine",
    "LogPage",
    "LoginLink",
    "Member",
    "Page",
    "Project",
    "ProjectPage",
    "Reachability",
    "Resource",
    "Run",
    "RunFields",
    "RunGates",
    "RunPage",
    "RunSummary",
    "Series",
    "SeriesColumns",
    "SeriesData",
    "Sweep",
    "SweepBest",
    "SweepPage",
    "SweepSummary",
    "Token",
    "TokenPage",
    "User",
    "UserPage",
    "Versioned",
    "Webhook",
    "WebhookPage",
]
