import pytest
from starlette.requests import Request

from backend.auth.origin import check_origin
from backend.errors import ApiError

PUBLIC = "https://foredeck.example.org"


def passes(method="POST", **headers):
    raw = [
        (name.replace("_", "-").encode(), value.encode()) for name, value in {"host": "inner:8600", **headers}.items()
    ]
    try:
        check_origin(Request({"type": "http", "method": method, "path": "/", "headers": raw}), PUBLIC)
    except ApiError as error:
        return error.status != 403
    return True


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec_fetch_site": "same-origin"},
        {"sec_fetch_site": "none"},
        {"origin": PUBLIC},
        {"origin": "http://inner:8600"},
        {"sec_fetch_site": "same-origin", "origin": "http://localhost:5173"},
    ],
)
def test_own_pages_and_what_is_no_browser_may_change(headers):
    assert passes(**headers)


@pytest.mark.parametrize(
    "headers",
    [
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site", "origin": "https://other.example.org"},
        {"sec_fetch_site": "cross-site", "origin": PUBLIC},
        {"sec_fetch_site": "nonsense"},
        {"origin": "https://evil.example"},
        {"origin": "https://foredeck.example.org.evil.example"},
        {"origin": "https://foredeck.example.org@evil.example"},
        {"origin": "https://foredeck.example.org:444"},
        {"origin": "null"},
    ],
)
def test_foreign_pages_may_not(headers):
    assert not passes(**headers)
    assert passes("GET", **headers)
    assert passes(authorization="Bearer fdk_x", **headers)
    assert not passes(authorization="Basic YWRtaW46eA==", **headers), "browsers send these along by themselves"
