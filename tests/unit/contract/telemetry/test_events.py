"""Events: what a worker may say, and that nothing is lost on the wire."""

import math
from datetime import UTC, datetime
from uuid import UUID

import pytest
from pydantic import ValidationError

from contract.config import RunConfig
from contract.telemetry.events import Event, Heartbeat, IngestResponse, Metrics, Sample, Samples

RUN_ID = UUID("00000000-0000-4000-8000-000000000001")


def _event(body: dict[str, object], **changes: object) -> dict[str, object]:
    return {
        "run_id": str(RUN_ID),
        "attempt": 1,
        "emitter": "driver/0",
        "seq": 1,
        "time": datetime(2026, 1, 2, tzinfo=UTC).isoformat(),
        "body": body,
    } | changes


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_non_finite_values_survive_the_wire(value: float) -> None:
    event = Event.model_validate(_event({"kind": "metrics", "step": 1, "values": {"policy/loss": value}}))
    received = Event.model_validate_json(event.model_dump_json())
    assert isinstance(received.body, Metrics)
    assert str(received.body.values["policy/loss"]) == str(value)


def test_an_undeclared_metric_is_refused_by_name() -> None:
    with pytest.raises(ValidationError, match="undeclared metrics policy/lost"):
        Event.model_validate(_event({"kind": "metrics", "step": 1, "values": {"policy/lost": 1.0}}))


@pytest.mark.parametrize(
    "changes", [{"attempt": 0}, {"seq": 0}, {"emitter": "Driver"}, {"time": "2026-01-02T00:00:00"}, {"extra": 1}]
)
def test_a_malformed_envelope_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Event.model_validate(_event({"kind": "log", "level": "info", "message": "hello"}, **changes))


def test_an_answer_of_a_later_version_is_understood() -> None:
    answer = {
        "acknowledged": [{"attempt": 1, "emitter": "driver/0", "seq": 7, "since": "today"}],
        "current_attempt": 1,
        "is_stop_requested": False,
        "advice": "rest",
    }
    assert IngestResponse.model_validate(answer).acknowledged[0].seq == 7


def test_as_many_samples_as_a_configuration_allows_fit_into_one_event() -> None:
    with pytest.raises(ValidationError, match="less than or equal to 64"):
        RunConfig.model_validate({"samples": {"num_samples": 65}})
    count = RunConfig.model_validate({"samples": {"num_samples": 64}}).samples.num_samples
    sample = Sample(prompt="", response="", reward=0, advantage=0, is_truncated=False, rounds=[], vocabulary={})
    assert len(Samples(step=1, samples=[sample] * count).samples) == 64


def test_the_body_is_chosen_by_its_kind() -> None:
    body = Event.model_validate(_event({"kind": "heartbeat", "stage": "generation", "step": 3})).body
    assert isinstance(body, Heartbeat)
    assert body.stage == "generation"
