import os
import signal
from pathlib import Path

import psutil

from backend.embedded.records import ProcessRecord, Records, load_records


def _record(name: str, pid: int = 1, create_time: float = 0.0) -> ProcessRecord:
    return ProcessRecord(name=name, pid=pid, create_time=create_time, port=None, log=Path("/x.log"))


def test_records_survive_being_written(tmp_path: Path) -> None:
    records = Records(base_port=9000, supervisor_pid=7)
    records.put(_record("API").model_copy(update={"port": 9000, "stop_signal": signal.SIGINT}))
    records.save(tmp_path / "processes.json")
    assert load_records(tmp_path / "processes.json") == records


def test_no_records_before_the_first_start(tmp_path: Path) -> None:
    assert load_records(tmp_path / "processes.json") is None


def test_a_restarted_process_replaces_its_record_and_moves_to_the_end() -> None:
    records = Records(base_port=9000)
    records.put(_record("API", pid=10))
    records.put(_record("Worker", pid=11))
    records.put(_record("API", pid=12))
    assert [(record.name, record.pid) for record in records.processes] == [("Worker", 11), ("API", 12)]
    records.drop("Worker")
    assert records.get("Worker") is None


def test_a_reused_pid_is_not_mistaken() -> None:
    mine = psutil.Process(os.getpid())
    assert _record("me", mine.pid, mine.create_time()).find() is not None
    assert _record("me", mine.pid, mine.create_time() - 100).find() is None
