import logging
import math
import threading
import uuid

import pytest

from contract.telemetry.alarms import AlarmName
from contract.telemetry.events import Alarm, Event, Sample
from contract.telemetry.stages import Stage
from workers.telemetry.reporter import Reporter, ReportingHandler
from workers.telemetry.spool import Spool


@pytest.fixture
def spool(tmp_path):
    with Spool(tmp_path, uuid.uuid4(), 2, "driver/0") as opened:
        yield opened


def _bodies(spool):
    return [Event.model_validate_json(line).body for line in spool.read(1000, 10**9)]


def test_each_call_is_one_event(spool):
    reporter = Reporter(spool)
    reporter.started(4, "host", {"torch": "2"})
    reporter.stage(Stage.WARM_UP, 0, 0.5)
    reporter.metrics(3, {"policy/loss": math.nan})
    reporter.metrics(3, {})
    reporter.samples(
        1, [Sample(prompt="1+1=", response="#2", reward=1, advantage=0.5, is_truncated=False, rounds=[], vocabulary={})]
    )
    reporter.checkpoint(4, "/x", 12)
    reporter.alarm(Alarm(step=4, name=AlarmName.DRAFT_DECAY, is_raised=True, message="fell"))
    reporter.finished("failed", error="e" * 30_000, is_retryable=True)
    kinds = [body.kind for body in _bodies(spool)]
    assert kinds == ["started", "heartbeat", "metrics", "samples", "checkpoint", "alarm", "finished"]
    assert math.isnan(_bodies(spool)[2].values["policy/loss"])
    assert len(_bodies(spool)[-1].error) == 20_000


def test_an_undeclared_metric_is_refused(spool):
    with pytest.raises(ValueError, match="undeclared metrics policy/los"):
        Reporter(spool).metrics(1, {"policy/los": 1.0})
    assert _bodies(spool) == []


def test_heartbeats_repeat_the_present_stage(spool):
    reporter = Reporter(spool, heartbeat_interval_s=0.02)
    reporter.start()
    reporter.stage(Stage.TRAIN, 7)
    entered, enough = spool.last_seq, threading.Event()
    spool.on_append(lambda: enough.set() if spool.last_seq >= entered + 2 else None)
    assert enough.wait(30)
    reporter.close()
    beats = [(beat.stage, beat.step) for beat in _bodies(spool)]
    num_before = beats.index((Stage.TRAIN, 7))
    assert num_before >= 1
    assert beats == [(Stage.START, 0)] * num_before + [(Stage.TRAIN, 7)] * (len(beats) - num_before)
    assert spool.last_seq == len(beats)


def test_no_stage_is_repeated_behind_the_next(spool):
    reporter = Reporter(spool, heartbeat_interval_s=0)
    reporter.start()
    for step in range(1, 301):
        reporter.stage(Stage.TRAIN, step)
    reporter.close()
    steps = [beat.step for beat in _bodies(spool)]
    assert steps == sorted(steps)


def test_heartbeats_outlive_a_full_disk(spool, monkeypatch, caplog):
    reporter = Reporter(spool, heartbeat_interval_s=0.02)
    has_failed, is_back = threading.Event(), threading.Event()
    append = spool.append

    def fail(body):
        has_failed.set()
        raise OSError(28, "No space left on device")

    reporter.start()
    monkeypatch.setattr(spool, "append", fail)
    assert has_failed.wait(5)
    monkeypatch.setattr(spool, "append", append)
    spool.on_append(is_back.set)
    assert is_back.wait(5)
    reporter.close()
    assert "Cannot write a heartbeat" in caplog.text


def test_log_records_become_events_but_the_senders_own_do_not(spool):
    logger = logging.getLogger("workers.test_reporter")
    handler = ReportingHandler(Reporter(spool))
    handler.handle(logger.makeRecord("workers.loop", logging.WARNING, "f", 1, "step %d", (3,), None))
    handler.handle(logger.makeRecord("httpx", logging.INFO, "f", 1, "POST", (), None))
    handler.handle(logger.makeRecord("workers.telemetry.sender", logging.ERROR, "f", 1, "down", (), None))
    handler.handle(logger.makeRecord("x", logging.CRITICAL, "f", 1, "m" * 30_000, (), None))
    lines = _bodies(spool)
    assert [(line.level, line.message[:6]) for line in lines] == [("warning", "step 3"), ("error", "…mmmmm")]
