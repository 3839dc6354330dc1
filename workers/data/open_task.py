"""The problems of a run, whatever its task."""

from contract.config import RunConfig
from contract.config.task import ArithmeticTask
from workers.data.arithmetic import ArithmeticData
from workers.data.problem import Task


def open_task(config: RunConfig) -> Task:
    """Read and judge the task's data. Raises ValueError naming field, value and mend where it is of no use."""
    if isinstance(config.task, ArithmeticTask):
        return ArithmeticData(config.task, config.seed)
    from workers.data.dataset import DatasetData  # noqa: PLC0415 (numpy and more, which arithmetic needs not)

    return DatasetData(config)
