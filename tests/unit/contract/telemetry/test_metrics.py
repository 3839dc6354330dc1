"""The catalogue: names follow one grammar, and every stage of a step has its time."""

import re

from contract.telemetry.metrics import METRICS
from contract.telemetry.stages import STEP_STAGES


def test_names_follow_the_grammar() -> None:
    assert [name for name in METRICS if not re.fullmatch(r"[a-z_]+/[a-z0-9_]+", name)] == []


def test_units_in_names_agree_with_declared_units() -> None:
    suffixes = {"_s": "s", "_nats": "nats", "_tokens": "tokens", "_fraction": "1", "_ratio": "1"}
    for name, metric in METRICS.items():
        for suffix, unit in suffixes.items():
            if name.endswith(suffix):
                assert metric.unit == unit, name


def test_every_stage_of_a_step_has_a_time() -> None:
    times = {f"time/{stage.value}_s" for stage in STEP_STAGES} | {"time/step_s", "time/other_s"}
    assert {name for name in METRICS if name.startswith("time/")} == times
