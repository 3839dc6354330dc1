"""Every sentence comes from what pydantic really says, so that a renamed error type is noticed."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import pytest
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from backend import wording
from backend.wording import in_words


class A(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["a"]


class B(BaseModel):
    kind: Literal["b"]


def text(low=0, high=9, pattern=None):
    return Annotated[str, Field(min_length=low, max_length=high, pattern=pattern)]


def number(kind=int, **bounds):
    return Annotated[kind, Field(**bounds)]


def entries(**bounds):
    return Annotated[list[int], Field(**bounds)]


UNION = Annotated[A | B, Field(discriminator="kind")]
CASES = [
    (int, "x", "must be a whole number"),
    (int, None, "must be a whole number"),
    (int, 1.5, "must be a whole number"),
    (float, "hot", "must be a number"),
    (float, [], "must be a number"),
    (number(float, allow_inf_nan=False), float("nan"), "must be a finite number"),
    (bool, "perhaps", "must be true or false"),
    (bool, [], "must be true or false"),
    (str, 5, "must be text"),
    (text(), "\ud800", "must be text that UTF-8 can carry"),
    (A, 5, "must be an object"),
    (dict[str, int], 5, "must be an object"),
    (list[int], 5, "must be a list"),
    (UUID, "x", "must be a UUID"),
    (UUID, 5, "must be a UUID"),
    (AwareDatetime, "2030-01-31T12:00:00", "must be a time with its zone, as in 2030-01-31T12:00:00Z"),
    (datetime, "x", "must be a time with its zone, as in 2030-01-31T12:00:00Z"),
    (datetime, [], "must be a time with its zone, as in 2030-01-31T12:00:00Z"),
    (number(gt=0), 0, "must be above 0"),
    (number(ge=1), 0, "must be at least 1"),
    (number(lt=2**31), 2**31, "must be below 2,147,483,648"),
    (number(le=10), 11, "must be at most 10"),
    (number(float, ge=12_500.5), 1, "must be at least 12,500.5"),
    (number(float, gt=1e-6), 0, "must be above 1e-06"),
    (text(low=1000, high=2000), "a", "must have at least 1,000 characters"),
    (Literal["a", "b"], "c", "must be 'a' or 'b'"),
    (UNION, {"kind": "c"}, "knows no kind c: choose 'a', 'b'"),
    (UNION, {}, "needs a `kind`"),
    (A, {}, "is required"),
    (A, {"kind": "a", "x": 1}, "unknown key: remove it or mend its spelling"),
    (text(low=1), "", "must not be empty"),
    (text(low=2), "a", "must have at least 2 characters"),
    (text(high=1), "ab", "must have at most 1 character"),
    (entries(min_length=1), [], "must not be empty"),
    (entries(max_length=2), [1, 2, 3], "must have at most 2 entries"),
    (text(pattern="^[a-z]$"), "1", "must match ^[a-z]$"),
    (text(pattern=r"^[^\x00-\x1f]$"), "\x07", "must not hold control characters"),
]


def detail_of(kind, value):
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(kind).validate_python(value)
    return raised.value.errors()[0]


@pytest.mark.parametrize(("kind", "value", "words"), CASES)
def test_each_kind_of_error_is_told_in_plain_words(kind, value, words):
    assert in_words(detail_of(kind, value)) == words


def test_rules_of_our_own_are_told_as_they_are():
    assert in_words({"type": "value_error", "msg": "Value error, must be printable"}) == "must be printable"


def test_no_sentence_waits_for_an_error_that_never_comes():
    elsewhere = {
        "int_parsing_size",
        "json_invalid",
        "datetime_parsing",
        "datetime_from_date_parsing",
        "model_attributes_type",
    }
    met = {detail_of(kind, value)["type"] for kind, value, _ in CASES}
    assert wording._BY_TYPE.keys() - met <= elsewhere
