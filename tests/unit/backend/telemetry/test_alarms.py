from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from backend.models import Alarm, Attempt
from backend.telemetry.alarms import Episode, changes, episodes

START = datetime(2030, 1, 1, tzinfo=UTC)
DRIFT, COLLAPSE = "distribution_drift", "acceptance_collapse"


def word(step: int, name: str = DRIFT, *, is_raised: bool = True, attempt: int = 1) -> Alarm:
    time = START + timedelta(minutes=100 * attempt + step)
    return Alarm(attempt=attempt, step=step, name=name, is_raised=is_raised, message=f"at {step}", time=time)


def clear(step: int, name: str = DRIFT, *, attempt: int = 1) -> Alarm:
    return word(step, name, is_raised=False, attempt=attempt)


def later(number: int, resumed_from_step: int | None) -> Attempt:
    return Attempt(number=number, resumed_from_step=resumed_from_step, started_at=START + timedelta(hours=number))


def told(words: Sequence[Alarm], attempts: Sequence[Attempt] = ()) -> list[tuple[Any, ...]]:
    return [(each.name, each.step, each.ending, each.ended_step) for each in episodes(words, attempts)]


def test_an_alarm_is_active_until_it_is_cleared() -> None:
    assert told([word(3)]) == [(DRIFT, 3, None, None)]
    assert told([word(3), clear(7)]) == [(DRIFT, 3, "cleared", 7)]
    assert told([word(3), clear(7), word(9)]) == [(DRIFT, 3, "cleared", 7), (DRIFT, 9, None, None)]


def test_alarms_of_different_names_do_not_touch_each_other() -> None:
    words = [word(3), word(4, COLLAPSE), clear(5)]
    assert told(words) == [(DRIFT, 3, "cleared", 5), (COLLAPSE, 4, None, None)]


def test_raising_an_active_one_again_keeps_its_step_and_tells_the_news() -> None:
    (episode,) = episodes([word(3), word(5)], [])
    assert (episode.step, episode.time, episode.message) == (3, word(3).time, "at 5")


def test_clearing_what_is_not_raised_says_nothing() -> None:
    assert told([clear(3)]) == []


@pytest.mark.parametrize(
    ("resumed_from_step", "expected"),
    [
        (10, [(DRIFT, 3, None, None)]),  # raised before, cleared after where it goes on: it is back
        (12, [(DRIFT, 3, "cleared", 12)]),
        (2, [(DRIFT, 3, "undone", 2)]),
        (None, [(DRIFT, 3, "undone", 0)]),
    ],
)
def test_a_new_attempt_undoes_what_came_after_its_step(resumed_from_step: int | None, expected: Any) -> None:
    assert told([word(3), clear(12)], [later(2, resumed_from_step)]) == expected


def test_a_step_reached_again_raises_again() -> None:
    words = [word(15), word(15, attempt=2)]
    assert told(words, [later(2, 10)]) == [(DRIFT, 15, "undone", 10), (DRIFT, 15, None, None)]
    assert [each.attempt for each in episodes(words, [later(2, 10)])] == [1, 2]


def test_a_repetition_by_the_new_attempt_goes_on_with_the_old_alarm() -> None:
    assert told([word(3), word(11, attempt=2)], [later(2, 10)]) == [(DRIFT, 3, None, None)]


def test_what_was_undone_stays_undone_in_further_attempts() -> None:
    words = [word(15), word(12, attempt=3)]
    assert told(words, [later(2, 10), later(3, 20)]) == [(DRIFT, 15, "undone", 10), (DRIFT, 12, None, None)]


def test_an_attempt_without_words_counts_too() -> None:
    words = [word(15), word(25, attempt=3)]
    undone = [(DRIFT, 15, "undone", 10), (DRIFT, 25, "undone", 22)]
    assert told(words, [later(2, 10), later(3, 20), later(4, 22)]) == undone


def test_an_undone_alarm_ends_when_the_new_attempt_started() -> None:
    (episode,) = episodes([word(15)], [later(2, 10)])
    assert isinstance(episode, Episode)
    assert episode.ended_at == START + timedelta(hours=2)


def news(words: Sequence[Alarm], more: Sequence[Alarm], attempts: Sequence[Attempt] = ()) -> list[tuple[Any, ...]]:
    """What has changed after more words and attempts."""
    found = changes(episodes(words, []), episodes([*words, *more], attempts))
    return [(event_type, episode.name, episode.step) for event_type, episode in found]


def test_what_has_changed_is_told_once() -> None:
    assert news([], [word(3)]) == [("alarm.raised", DRIFT, 3)]
    assert news([word(3)], []) == []
    assert news([word(3)], [word(5), word(6, COLLAPSE)]) == [("alarm.raised", COLLAPSE, 6)]
    assert news([word(3)], [clear(7)]) == [("alarm.cleared", DRIFT, 3)]
    assert news([], [word(3), clear(7)]) == [("alarm.raised", DRIFT, 3), ("alarm.cleared", DRIFT, 3)]


def test_a_new_attempt_raises_and_clears_without_a_word() -> None:
    words = [word(3), clear(12), word(14, COLLAPSE)]
    assert news(words, [], [later(2, 10)]) == [("alarm.raised", DRIFT, 3), ("alarm.cleared", COLLAPSE, 14)]
