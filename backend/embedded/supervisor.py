"""Starts everything in order, keeps it running, and ends it in order."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from backend.embedded.errors import EmbeddedError
from backend.embedded.home import Home
from backend.embedded.plan import Plan
from backend.embedded.process import ServerProcess
from backend.embedded.records import ProcessRecord, Records, load_records
from backend.embedded.service import Service

WATCH_INTERVAL_S = 0.2
FIRST_DELAY_S = 0.5
MAX_DELAY_S = 30.0
STEADY_S = 60.0
"""A child that lived this long has recovered: its next crash is waited for as briefly as the first."""

Report = Callable[[str], None]


@dataclass
class Child:
    """A service and the process that runs it."""

    service: Service
    process: ServerProcess | None = None
    started_at: float = field(default_factory=time.monotonic)
    delay_s: float = FIRST_DELAY_S
    restart_at: float | None = None
    launch: threading.Thread | None = None
    """Starts it while the others are watched."""

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.is_alive()

    @property
    def is_launching(self) -> bool:
        return self.launch is not None and self.launch.is_alive()

    def end(self) -> None:
        """Stops it, also in the middle of its start."""
        while self.is_launching:
            if self.process is not None:
                self.service.stop(self.process)
            assert self.launch is not None
            self.launch.join(0.1)
        if self.process is not None:
            self.service.stop(self.process)


class Supervisor:
    """One installation on this machine: `start`, `watch` until told to stop, `stop`. Its user holds the home's lock."""

    def __init__(self, home: Home, plan: Plan, report: Report) -> None:
        self._home = home
        self._plan = plan
        self._report = report
        self._children: list[Child] = []
        earlier = load_records(home.processes)
        self._records = Records(base_port=plan.ports.base, processes=earlier.processes if earlier else [])
        self._records_lock = threading.Lock()

    def start(self) -> None:
        """Starts all but Ray, adopting what an earlier supervisor left running.

        Raises:
            EmbeddedError: something does not come up; what was started has been stopped again.
        """
        try:
            self._records.supervisor_pid = os.getpid()
            self._start_together(self._plan.servers)
            for preparation in self._plan.preparations:
                self._report(preparation.title)
                preparation.run()
            self._start_together(self._plan.application)
            self._adopt_ray()
            self._records.is_ready = True
            self._save()
        except BaseException:
            self.stop()
            raise

    def _start_together(self, services: list[Service]) -> None:
        """All at once, so that none waits for another's start-up; the first error counts."""
        if not services:
            return
        self._report(f"Starting {', '.join(service.name for service in services)}")
        children = [Child(service) for service in services]
        self._children += children
        with ThreadPoolExecutor(max_workers=len(children)) as pool:
            for launched in [pool.submit(self._launch, child) for child in children]:
                launched.result()

    def _launch(self, child: Child) -> None:
        child.started_at = time.monotonic()
        child.process = child.service.start(self._records.get(child.service.name))
        self._record(child.service, child.process)
        child.service.wait(child.process)

    def _record(self, service: Service, process: ServerProcess) -> None:
        record = ProcessRecord(
            name=service.name,
            pid=process.pid,
            create_time=process.create_time,
            port=service.port,
            log=service.log,
            fingerprint=service.fingerprint,
            stop_signal=service.stop_signal,
        )
        with self._records_lock:
            self._records.put(record)
            self._records.save(self._home.processes)

    def _save(self) -> None:
        with self._records_lock:
            self._records.save(self._home.processes)

    def watch(self, is_stopping: threading.Event) -> None:
        """Restarts what crashes and starts Ray when it is wanted, until the event is set."""
        while not is_stopping.wait(WATCH_INTERVAL_S):
            self._start_ray_if_wanted()
            for child in self._children:
                self._tend(child)

    def _tend(self, child: Child) -> None:
        if child.is_launching or (child.is_alive and child.restart_at is None):
            return
        now = time.monotonic()
        if child.restart_at is None:
            self._plan_restart(child, now)
        elif now >= child.restart_at:
            child.restart_at = None
            child.launch = threading.Thread(target=self._relaunch, args=(child,), name=f"start {child.service.name}")
            child.launch.start()

    def _plan_restart(self, child: Child, now: float) -> None:
        if now - child.started_at > STEADY_S:
            child.delay_s = FIRST_DELAY_S
        code = child.process.exit_code if child.process else None
        how = "" if code is None else f" with exit code {code}"
        self._report(
            f"{child.service.name} ended{how}: starting it again in {child.delay_s:.1f} s. Its log: {child.service.log}"
        )
        child.restart_at = now + child.delay_s
        child.delay_s = min(2 * child.delay_s, MAX_DELAY_S)

    def _relaunch(self, child: Child) -> None:
        try:
            self._launch(child)
        except EmbeddedError as error:
            self._report(str(error))
            if child.process is not None:
                child.service.stop(child.process)

    def _adopt_ray(self) -> None:
        ray = self._plan.ray
        if ray is None:
            return
        earlier = self._records.get(ray.name)
        if earlier is None or earlier.find() is None:
            ray.forget()
        else:
            self._children.append(Child(ray, restart_at=0))

    def _start_ray_if_wanted(self) -> None:
        ray = self._plan.ray
        if ray is None or not ray.is_wanted or any(child.service is ray for child in self._children):
            return
        self._report("Starting Ray: a run needs it")
        self._children.append(Child(ray, restart_at=0))

    def stop(self) -> None:
        """Ends all children, the last started first."""
        for child in reversed(self._children):
            child.end()
            self._records.drop(child.service.name)
        if self._plan.ray is not None:
            self._plan.ray.forget()
        self._records.is_ready = False
        self._records.supervisor_pid = None
        self._save()
