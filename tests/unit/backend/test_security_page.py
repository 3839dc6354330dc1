"""docs/operations/security.md names tests that there are."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
PAGE = REPOSITORY / "docs" / "operations" / "security.md"
ATTACKS = REPOSITORY / "tests" / "integration" / "backend" / "attacks"


def test_every_test_that_is_named_is_there():
    named = re.findall(r"`([\w/]*test_\w+\.py)`", PAGE.read_text())
    assert len(named) > 30
    places = [REPOSITORY / name if "/" in name else ATTACKS / name for name in named]
    assert [str(place) for place in places if not place.exists()] == []


def test_every_attack_is_named():
    text = PAGE.read_text()
    assert [path.name for path in ATTACKS.glob("test_*.py") if f"`{path.name}`" not in text] == []
