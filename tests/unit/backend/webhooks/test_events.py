import json
from datetime import UTC, datetime
from uuid import UUID

from backend.webhooks.events import payload
from contract.telemetry.alarms import AlarmName


def test_whatever_the_data_a_body_comes_of_it():
    data = {
        "id": UUID(int=1),
        "at": datetime(2030, 1, 31, 12, tzinfo=UTC),
        "values": [1, 0.5, float("nan"), float("inf"), None, True],
        "pair": (1, {2: "x\x00\ud800"}),
        "alarm": AlarmName.NO_SPEEDUP,
    }
    text = payload("run.failed", data)
    assert text.isascii()
    assert json.loads(text)["data"] == {
        "id": "00000000-0000-0000-0000-000000000001",
        "at": "2030-01-31T12:00:00.000Z",
        "values": [1, 0.5, None, None, None, True],
        "pair": [1, {"2": "x\x00\ud800"}],
        "alarm": AlarmName.NO_SPEEDUP.value,
    }
