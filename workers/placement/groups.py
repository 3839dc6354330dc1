"""A run's placement group on Ray, and the options of the actors in it."""

from typing import Any

import ray
from ray.util.placement_group import PlacementGroup, placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from contract.config import RunConfig
from workers.placement.layout import Layout, Seat, plan


class Places:
    """The machines that a run has asked for. Ray gives them all at once, and takes them back when the driver ends."""

    def __init__(self, config: RunConfig, run_name: str) -> None:
        self._run_name = run_name
        self.layout: Layout = plan(config, float(ray.cluster_resources().get("CPU", 1.0)))
        self._group: PlacementGroup = placement_group(list(self.layout.bundles), strategy=self.layout.strategy)

    def options(self, role: str, seat: Seat) -> dict[str, Any]:
        """For an actor's options(): its name and its place."""
        return {
            "name": f"{self._run_name}/{role}",
            "num_cpus": self.layout.process_cpus,
            "num_gpus": seat.num_gpus,
            "scheduling_strategy": PlacementGroupSchedulingStrategy(self._group, seat.node),
        }
