from starlette.requests import Request

from backend.caller import caller_of


def caller(**headers):
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return caller_of(Request({"type": "http", "method": "GET", "path": "/", "headers": raw}))


def test_each_token_and_session_is_another_caller():
    tokens = [caller(authorization=f"Bearer fdk_0123abcd_{secret}") for secret in ("one", "two")]
    sessions = [caller(cookie=f"foredeck_session={secret}") for secret in ("one", "fdk_0123abcd_one")]
    assert len({*tokens, *sessions}) == 4


def test_the_secret_is_not_in_it():
    assert "secret" not in caller(authorization="Bearer secret") + caller(cookie="foredeck_session=secret")


def test_how_a_token_is_sent_does_not_matter():
    assert caller(authorization="Bearer x") == caller(authorization="bearer  x ")
    assert caller(authorization="Bearer x") == caller(authorization="Bearer x", cookie="foredeck_session=other")


def test_credentials_of_another_kind_as_a_proxy_may_add_them_do_not_hide_the_session():
    for other in ("Basic YTpi", "Bearer", "Bearer  "):
        assert caller(authorization=other, cookie="foredeck_session=one") == caller(cookie="foredeck_session=one")


def test_strangers_are_no_callers():
    assert caller() == caller(authorization="Basic YTpi") == caller(authorization="Bearer") == ""
