"""What the service answers, as far as clients need it."""

from foredeck.models.access import CreatedToken, LoginLink
from foredeck.models.base import Answer, Versioned
from foredeck.models.clusters import CheckStarted, Cluster, ClusterCheck, Finding, Reachability, Resource
from foredeck.models.gates import Gate, GateBaseline, GateEvaluation, GateResult, RunGates
from foredeck.models.runs import Alarm, Alarms, Attempt, Run, RunFields, RunPage, RunSummary
from foredeck.models.sweeps import Sweep, SweepPage, SweepSummary
from foredeck.models.telemetry import LogLine, LogPage, Series, SeriesColumns, SeriesData

__all__ = [
    "Alarm",
    "Alarms",
    "Answer",
    "Attempt",
    "CheckStarted",
    "Cluster",
    "ClusterCheck",
    "CreatedToken",
    "Finding",
    "Gate",
    "GateBaseline",
    "GateEvaluation",
    "GateResult",
    "LogLine",
    "LogPage",
    "LoginLink",
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
    "SweepPage",
    "SweepSummary",
    "Versioned",
]
