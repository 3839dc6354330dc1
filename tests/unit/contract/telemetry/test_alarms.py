"""Alarms: each has words for the run's owner, and the documentation knows it by its title."""

from pathlib import Path

from contract.telemetry.alarms import ALARMS, AlarmName

_PAGE = Path(__file__).parents[4] / "docs" / "concepts" / "audit.md"


def test_each_alarm_says_what_it_means_and_what_to_do() -> None:
    assert set(ALARMS) == set(AlarmName)
    for name, kind in ALARMS.items():
        assert kind.name is name
        assert all(text.endswith(".") for text in (kind.meaning, kind.what_to_do))


def test_the_documentation_has_a_row_for_each_alarm() -> None:
    rows = [line.split("|")[1].strip() for line in _PAGE.read_text().splitlines() if line.startswith("| ")]
    assert {kind.title for kind in ALARMS.values()} <= set(rows)
