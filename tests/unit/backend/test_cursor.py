import base64
import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.cursor import cut, decode, encode
from backend.errors import ApiError

KEY = "0b9c1d9e00004000800000000000000a"


def as_cursor(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@given(
    st.datetimes(timezones=st.just(UTC)),
    st.uuids(),
    st.integers(-(2**63), 2**63 - 1),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
)
def test_a_position_survives_the_way_there_and_back(time, id_, number, text):
    assert decode(encode(time, id_), datetime, UUID) == (time, id_)
    assert decode(encode(text, number), str, int) == (text, number)


def test_other_time_zones_mean_the_same_moment():
    time = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=5)))
    assert decode(encode(time), datetime) == (time,)


def test_it_is_safe_in_a_url():
    cursor = encode(datetime(2026, 1, 1, tzinfo=UTC), UUID(int=2**128 - 1), "~?>")
    assert set(cursor) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "é",
        "a b",
        as_cursor(1),
        as_cursor([]),
        as_cursor("ab"),
        as_cursor(["2026-01-01T00:00:00+00:00", KEY, 1]),
        as_cursor(["2026-01-01", "nonsense"]),
        as_cursor(["2026-01-01T00:00:00", KEY]),  # no time zone
        as_cursor([None, None]),
        as_cursor({"a": 1, "b": 2}),
        base64.urlsafe_b64encode(b"[" * 400).decode(),
    ],
)
def test_anything_else_is_refused_with_its_parameter(cursor):
    with pytest.raises(ApiError) as raised:
        decode(cursor, datetime, UUID)
    assert raised.value.status == 422
    assert raised.value.errors[0].parameter == "cursor"


@pytest.mark.parametrize(("kind", "value"), [(int, 2**63), (int, True), (int, 1.5), (str, "a\x00"), (str, "\ud800")])
def test_what_postgresql_cannot_hold_is_no_position(kind, value):
    with pytest.raises(ApiError):
        decode(as_cursor([value]), kind)


@given(st.text(max_size=100))
def test_no_text_breaks_it(text):
    with suppress(ApiError):
        decode(text, datetime, UUID)


def test_a_page_has_a_next_one_only_if_there_are_more_rows():
    rows, cursor = cut([5, 4, 3], 2, lambda row: (row,))
    assert rows == [5, 4]
    assert decode(cursor, int) == (4,)
    assert cut([5, 4], 2, lambda row: (row,)) == ([5, 4], None)
    assert cut([], 2, lambda row: (row,)) == ([], None)
