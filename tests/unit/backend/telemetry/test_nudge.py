import logging

import pytest

from backend.telemetry.nudge import Nudger

NOBODY = "redis://127.0.0.1:1/0"


def test_an_outage_is_logged_once_and_never_raised(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.telemetry.nudge._REST_S", 0.0)
    nudger = Nudger(NOBODY)
    with caplog.at_level(logging.INFO, "backend.telemetry.nudge"):
        for _ in range(3):
            nudger.nudge()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    nudger.close()


def test_after_a_failure_it_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    nudger = Nudger(NOBODY)
    nudger.nudge()
    tries: list[str] = []
    monkeypatch.setattr(nudger._redis, "publish", lambda *_: tries.append("tried"))
    nudger.nudge()
    assert tries == []
    monkeypatch.setattr(nudger, "_rest_until", 0.0)
    nudger.nudge()
    assert tries == ["tried"]
    nudger.close()
