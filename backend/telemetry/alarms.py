"""What workers' words about alarms come to: from when to when each was raised, and which are active.

A new attempt that resumes from step s undoes what happened after s, alarms too: one raised after s is undone, one
cleared after s is active again. What the new attempt says itself follows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from backend.models import Alarm, Attempt

Ending = Literal["cleared", "undone"]
BEGINNING = -1
"""Before every step: where an attempt goes on that found no checkpoint."""


@dataclass(slots=True)
class Episode:
    """One alarm from when it was raised."""

    name: str
    attempt: int
    step: int
    time: datetime
    message: str
    """The latest that was said of it while it was active."""
    ending: Ending | None = None
    ended_step: int | None = None
    """Where it was cleared, or from where a new attempt went on."""
    ended_at: datetime | None = None

    @property
    def is_active(self) -> bool:
        return self.ending is None

    @property
    def key(self) -> tuple[str, int, int, datetime]:
        """What stays of it whatever follows."""
        return self.name, self.attempt, self.step, self.time

    def end(self, ending: Ending, step: int, time: datetime | None) -> None:
        self.ending, self.ended_step, self.ended_at = ending, step, time

    def rewind(self, step: int, time: datetime | None) -> None:
        """A new attempt goes on from the step."""
        if self.step > step:
            self.end("undone", max(step, 0), time)
        elif self.ending == "cleared" and self.ended_step is not None and self.ended_step > step:
            self.ending = self.ended_step = self.ended_at = None


def episodes(words: Sequence[Alarm], later: Sequence[Attempt]) -> list[Episode]:
    """In the order in which they began.

    Args:
        words: in the order of attempts, and in each as they were said.
        later: the started attempts after the first, in order.
    """
    told: list[Episode] = []
    waiting = list(later)
    for word in words:
        while waiting and waiting[0].number <= word.attempt:
            _resume(told, waiting.pop(0))
        _hear(told, word)
    for attempt in waiting:
        _resume(told, attempt)
    return told


def _resume(told: list[Episode], attempt: Attempt) -> None:
    step = BEGINNING if attempt.resumed_from_step is None else attempt.resumed_from_step
    for episode in told:
        if episode.ending != "undone":
            episode.rewind(step, attempt.started_at)


def _hear(told: list[Episode], word: Alarm) -> None:
    active = next((episode for episode in told if episode.name == word.name and episode.is_active), None)
    if active is None and word.is_raised:
        told.append(Episode(word.name, word.attempt, word.step, word.time, word.message))
    elif active is not None and word.is_raised:
        active.message = word.message
    elif active is not None:
        active.end("cleared", word.step, word.time)


def changes(
    before: Sequence[Episode], after: Sequence[Episode]
) -> list[tuple[Literal["alarm.raised", "alarm.cleared"], Episode]]:
    """What has begun and what is over, of two states of the same story; both where it began and ended in between. An
    alarm that was cleared after the step from which a new attempt goes on is raised again."""
    known = {episode.key: episode.is_active for episode in before}
    told: list[tuple[Literal["alarm.raised", "alarm.cleared"], Episode]] = []
    for episode in after:
        was_active, is_new = known.get(episode.key, False), episode.key not in known
        if is_new or (episode.is_active and not was_active):
            told.append(("alarm.raised", episode))
        if not episode.is_active and (was_active or is_new):
            told.append(("alarm.cleared", episode))
    return told
