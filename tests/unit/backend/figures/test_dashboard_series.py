"""The dashboard's own figures ask for series that are declared: one that is not would have the request refused."""

import re
from pathlib import Path

from contract.telemetry.metrics import METRICS

SOURCES = Path(__file__).parents[4] / "frontend" / "src"
AREAS = {name.split("/")[0] for name in METRICS}
NAME = re.compile(r'"([a-z_]+/[a-z0-9_]+)"')


def test_every_series_that_a_component_asks_for_is_declared() -> None:
    asking = [text for path in SOURCES.rglob("*.tsx") if "useSeries(" in (text := path.read_text())]
    names = {name for text in asking for name in NAME.findall(text) if name.split("/")[0] in AREAS}
    assert len(names) > 15
    assert names - METRICS.keys() == set()
