"""What runs, as read from the records of the last supervisor, and how to end it."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from backend.embedded.home import Home, is_locked
from backend.embedded.memory import proportional_bytes
from backend.embedded.ports import Ports
from backend.embedded.process import POLL_INTERVAL_S
from backend.embedded.ray import RayService
from backend.embedded.records import ProcessRecord, Records, load_records

STOP_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class ProcessStatus:
    """One child as it is now."""

    name: str
    is_running: bool
    pid: int
    port: int | None
    memory_bytes: int
    """Of the process and all below it; shared pages counted in parts."""
    uptime_s: float
    log: Path


@dataclass(frozen=True)
class Status:
    """The whole installation."""

    home: Path
    is_supervised: bool
    is_ready: bool
    supervisor_pid: int | None
    supervisor_memory_bytes: int
    url: str
    processes: list[ProcessStatus]

    @property
    def memory_bytes(self) -> int:
        return self.supervisor_memory_bytes + sum(process.memory_bytes for process in self.processes)


def read_status(home: Home) -> Status | None:
    """None when nothing has been started in this home yet."""
    records = load_records(home.processes)
    if records is None:
        return None
    is_supervised = is_locked(home)
    pid = records.supervisor_pid if is_supervised else None
    return Status(
        home=home.root,
        is_supervised=is_supervised,
        is_ready=is_supervised and records.is_ready,
        supervisor_pid=pid,
        supervisor_memory_bytes=_memory_of(pid),
        url=f"http://127.0.0.1:{Ports(records.base_port).api}",
        processes=[_status_of(record) for record in records.processes],
    )


def _memory_of(pid: int | None) -> int:
    try:
        return 0 if pid is None else proportional_bytes([psutil.Process(pid)])
    except psutil.NoSuchProcess:
        return 0


def _status_of(record: ProcessRecord) -> ProcessStatus:
    process = record.find()
    return ProcessStatus(
        name=record.name,
        is_running=process is not None,
        pid=record.pid,
        port=record.port,
        memory_bytes=proportional_bytes(process.tree()) if process else 0,
        uptime_s=time.time() - record.create_time if process else 0.0,
        log=record.log,
    )


def stop_installation(home: Home) -> bool:
    """Ends the supervisor, or what a killed supervisor left behind. Tells whether anything ran."""
    records = load_records(home.processes)
    if records is None:
        return False
    if is_locked(home) and records.supervisor_pid is not None:
        return _stop_supervisor(home, records.supervisor_pid)
    return _stop_orphans(home, records)


def _stop_supervisor(home: Home, pid: int) -> bool:
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while is_locked(home):
        if time.monotonic() > deadline:
            raise TimeoutError(f"Process {pid} has not ended within {STOP_TIMEOUT_S:.0f} s.")
        time.sleep(POLL_INTERVAL_S)
    return True


def _stop_orphans(home: Home, records: Records) -> bool:
    found = [(record, process) for record in reversed(records.processes) if (process := record.find()) is not None]
    for record, process in found:
        process.stop(signal.Signals(record.stop_signal), timeout_s=15)
    ray = RayService(home, Ports(records.base_port), Path())
    ray.end_leftovers()
    ray.forget()
    Records(base_port=records.base_port).save(home.processes)
    return bool(found)
