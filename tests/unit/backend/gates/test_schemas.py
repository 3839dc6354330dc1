import math
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from backend.gates.baselines import Baseline, parse_baseline
from backend.gates.schemas import Gate, stored

RUN_ID = UUID(int=1)


def problem(**fields):
    with pytest.raises(ValidationError) as caught:
        Gate(**fields)
    (error,) = caught.value.errors()
    return error["loc"], error["msg"]


def test_a_gate_is_stored_with_its_defaults_and_read_again():
    (row,) = stored([Gate(assertion="reward >= 0.5")])
    assert row == {
        "assertion": "reward >= 0.5",
        "name": None,
        "baseline": None,
        "confidence": 0.95,
        "on_undecided": "pass",
        "on_no_baseline": "pass",
    }
    assert Gate.model_validate(row).title == "reward >= 0.5"
    assert Gate(assertion="no alarms", name="sound").title == "sound"


def test_a_wrong_assertion_is_named_with_its_place():
    place, message = problem(assertion="reward > ")
    assert place == ("assertion",)
    assert "at character 10: found the end" in message


def test_a_baseline_belongs_to_an_assertion_that_says_it():
    assert problem(assertion="reward >= baseline")[0] == ("baseline",)
    assert problem(assertion="reward >= 1", baseline="origin")[0] == ("baseline",)
    assert problem(assertion="no alarms", baseline="origin")[0] == ("baseline",)
    assert Gate(assertion="reward >= baseline", baseline="origin")


@pytest.mark.parametrize("confidence", [0.4, 1.0, math.nan, math.inf, "0.9", True])
def test_a_confidence_is_a_number_below_one(confidence):
    assert problem(assertion="no alarms", confidence=confidence)[0] == ("confidence",)


@pytest.mark.parametrize(
    ("text", "baseline"),
    [
        ("origin", Baseline()),
        (f"run:{RUN_ID}", Baseline(run_id=RUN_ID)),
        ("label:branch:main", Baseline(labels={"branch": "main"})),
        ("label:branch:a:b,team/x:", Baseline(labels={"branch": "a:b", "team/x": ""})),
    ],
)
def test_baselines(text, baseline):
    assert parse_baseline(text) == baseline


@pytest.mark.parametrize("text", ["", "newest", "run:", "run:7", "label:", "label:branch", "label::x", "label:a:b,c"])
def test_what_is_no_baseline_says_what_would_be(text):
    with pytest.raises(ValueError, match="expected"):
        parse_baseline(text)


@given(st.text(max_size=60).flatmap(lambda text: st.sampled_from([text, f"run:{text}", f"label:{text}"])))
def test_whatever_is_written_is_a_baseline_or_a_value_error(text):
    try:
        assert isinstance(parse_baseline(text), Baseline)
    except ValueError as error:
        assert type(error) is ValueError  # noqa: PT017
