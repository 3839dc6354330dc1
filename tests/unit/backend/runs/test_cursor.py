import base64
import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.errors import ApiError
from backend.runs.cursor import Position, decode, encode


def as_cursor(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@given(st.datetimes(timezones=st.just(UTC)), st.uuids())
def test_a_position_survives_the_way_there_and_back(time, id_):
    assert decode(encode(Position(time, id_))) == (time, id_)


def test_other_time_zones_mean_the_same_moment():
    time = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=5)))
    assert decode(encode(Position(time, UUID(int=1)))).created_at == time


def test_it_is_safe_in_a_url():
    cursor = encode(Position(datetime(2026, 1, 1, tzinfo=UTC), UUID(int=2**128 - 1)))
    assert set(cursor) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "é",
        "a b",
        as_cursor(1),
        as_cursor([]),
        as_cursor(["2026-01-01", "nonsense"]),
        as_cursor(["2026-01-01T00:00:00", "0b9c1d9e00004000800000000000000a"]),  # no time zone
        as_cursor([None, None]),
        as_cursor({"a": 1, "b": 2}),
        base64.urlsafe_b64encode(b"[" * 400).decode(),
    ],
)
def test_anything_else_is_refused_with_its_parameter(cursor):
    with pytest.raises(ApiError) as raised:
        decode(cursor)
    assert raised.value.status == 422
    assert raised.value.errors[0].parameter == "cursor"


@given(st.text(max_size=100))
def test_no_text_breaks_it(text):
    with suppress(ApiError):
        decode(text)
