"""Which alarms of a run are raised."""

import logging
from collections.abc import Iterable

from contract.telemetry.alarms import ALARMS, AlarmName
from contract.telemetry.events import Alarm

log = logging.getLogger(__name__)


class AlarmBoard:
    """An alarm is told of when it is raised and when it is cleared, not in between."""

    def __init__(self) -> None:
        self._raised: set[AlarmName] = set()

    def is_raised(self, name: AlarmName) -> bool:
        return name in self._raised

    def judge(self, step: int, name: AlarmName, is_wrong: bool | None, message: str) -> list[Alarm]:
        """At most one event. is_wrong: None leaves the alarm as it is."""
        if is_wrong is None or is_wrong == self.is_raised(name):
            return []
        if is_wrong:
            self._raised.add(name)
            log.warning("%s at step %d: %s %s", ALARMS[name].title, step, message, ALARMS[name].what_to_do)
        else:
            self._raised.discard(name)
            log.info("%s has gone at step %d: %s", ALARMS[name].title, step, message)
        return [Alarm(step=step, name=name, is_raised=is_wrong, message=message)]

    def state(self) -> list[str]:
        """Names of what is raised."""
        return sorted(self._raised)

    def load_state(self, raised: Iterable[str]) -> None:
        """Go on from there."""
        self._raised = {AlarmName(name) for name in raised}
