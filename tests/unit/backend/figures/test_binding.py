import copy
import json
from pathlib import Path
from typing import Any

import pytest

import contract
from backend.figures.binding import bind, series_names

CASES = json.loads((Path(contract.__file__).parent / "figure_binding_cases.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["about"])
def test_the_cases_that_both_implementations_share(case: dict[str, Any]) -> None:
    before = copy.deepcopy(case)
    runs = {run["label"]: run["series"] for run in case["runs"]}
    assert bind(case["template"], runs, case["run_colors"]) == case["expected"]
    assert case == before, "binding changed its arguments"


def test_an_overflow_becomes_null() -> None:
    template = {
        "data": [{"meta": {"series": "a", "power": 2}}, {"meta": {"series": "a", "factor": 1e10}}],
        "layout": {},
    }
    bound = bind(template, {"run": {"a": {"step": [1], "value": [1e300]}}}, [])
    assert [trace["y"] for trace in bound["data"]] == [[None], [None]]


def test_series_names_lists_each_once_in_order() -> None:
    data = [{"meta": {"series": "b", "times_series": "c"}}, {}, {"meta": {"series": "a"}}, {"meta": {"series": "b"}}]
    data.append({"meta": {"last_of": ["d", "a"]}})
    assert series_names({"data": data}) == ["b", "c", "a", "d"]
