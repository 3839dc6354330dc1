"""The catalogue of metrics: what each name means, in which unit, how it is reduced and where it comes from.

A worker may only send names declared here, so that a chart never waits for a metric that was renamed.
"""

from itertools import chain

from contract.telemetry.metrics.audit import audit
from contract.telemetry.metrics.drafts import drafts, held_out
from contract.telemetry.metrics.hardware import engine, hardware, throughput
from contract.telemetry.metrics.metric import (
    MAX_DRAFT_LENGTH,
    MAX_GPUS,
    MAX_NODES,
    MAX_SEQUENCES_EXPONENT,
    Axis,
    Metric,
)
from contract.telemetry.metrics.policy import policy
from contract.telemetry.metrics.rewards import rewards
from contract.telemetry.metrics.rollout import controller, rollout, speedup
from contract.telemetry.metrics.steps import steps

__all__ = [
    "MAX_DRAFT_LENGTH",
    "MAX_GPUS",
    "MAX_NODES",
    "MAX_SEQUENCES_EXPONENT",
    "METRICS",
    "Axis",
    "Metric",
]

_DECLARED = (
    rewards,
    rollout,
    controller,
    speedup,
    steps,
    policy,
    audit,
    drafts,
    held_out,
    throughput,
    engine,
    hardware,
)
"""In the order of the catalogue."""

METRICS: dict[str, Metric] = {metric.name: metric for metric in chain.from_iterable(declare() for declare in _DECLARED)}
