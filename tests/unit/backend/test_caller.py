import pytest
from starlette.requests import Request

from backend.caller import caller_of


def request(**headers):
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "GET", "path": "/", "headers": raw})


def test_a_token_is_named_by_the_part_of_it_that_is_no_secret():
    assert caller_of(request(authorization="Bearer fdk_0123abcd_secret")) == "token:0123abcd"
    assert caller_of(request(authorization="bearer  fdk_0123abcd_other")) == "token:0123abcd"


def test_a_session_is_named_by_its_hash():
    first, other = (caller_of(request(cookie=f"foredeck_session={secret}")) for secret in ("one", "two"))
    assert first.startswith("session:")
    assert "one" not in first
    assert first != other


@pytest.mark.parametrize("value", ["Basic YTpi", "Bearer nonsense", "Bearer fdk_x", "Bearer"])
def test_a_bad_token_is_nobody_even_beside_a_session(value):
    assert caller_of(request(authorization=value, cookie="foredeck_session=one")) == ""


def test_strangers_have_no_name():
    assert caller_of(request()) == ""
