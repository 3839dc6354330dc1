"""All processes of a run: started at once as far as they can be, and known by where they are."""

from typing import Any

from contract.config import RunConfig
from workers.placement.engines import WHO as ENGINE
from workers.placement.engines import start_engines
from workers.placement.groups import Places
from workers.placement.layout import Layout
from workers.placement.trainers import WHO as TRAINER
from workers.placement.trainers import start_trainers
from workers.process_log import Process
from workers.ray_calls import RayCalls


class Processes:
    """The actors of a run, in their places. Engines that use the GPUs of trainers are started after those."""

    def __init__(self, config: RunConfig, run_name: str) -> None:
        self._config = config
        self._places = Places(config, run_name)
        self.trainers: list[Any] = start_trainers(config, self._places)
        self.engines: list[Any] = []
        self.trainer_address = ""
        """IP address of rank 0, once it is ready."""
        if not any(seat.shares_gpus_of for seat in self.layout.engines):
            self._start_engines([])

    @property
    def layout(self) -> Layout:
        return self._places.layout

    def wait(self, waiting: RayCalls, calls: RayCalls) -> None:
        """Until all of them run. `waiting` waits; `calls` are told where each process is."""
        trainers = self._ready(TRAINER, self.trainers, waiting, calls)
        self.trainer_address = trainers[0].address
        if not self.engines:
            self._start_engines(trainers)
        self._ready(ENGINE, self.engines, waiting, calls)

    def _start_engines(self, trainers: list[Process]) -> None:
        self.engines.extend(start_engines(self._config, self._places, trainers))

    def _ready(self, who: str, actors: list[Any], waiting: RayCalls, calls: RayCalls) -> list[Process]:
        processes: list[Process] = waiting.get_all(who, [actor.ready.remote() for actor in actors])
        for index, process in enumerate(processes):
            calls.know(f"{who} {index}", process)
        return processes
