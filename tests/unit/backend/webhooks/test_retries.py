import pytest

from backend.webhooks.delivery import failure, shown
from backend.webhooks.retries import delay_s, pause_s, retry_after_s


def test_delays_grow_with_jitter_and_have_an_end():
    for number, base in ((1, 5), (2, 15), (5, 405), (9, 32_400), (11, 32_400)):
        delays = [delay_s(number) for _ in range(200)]
        assert 0.8 * base <= min(delays) < max(delays) <= 1.2 * base
        assert len(set(delays)) > 100


def test_pauses_grow_to_a_minute():
    assert [pause_s(number) for number in (1, 2, 3, 7, 1000)] == [1, 2, 4, 60, 60]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("", 0),
        ("120", 120),
        ("999999", 3600),
        ("-5", 0),
        ("Fri, 31 Dec 2030 23:59:59 GMT", 0),
        ("١٢", 0),
        ("9" * 99, 0),
    ],
)
def test_retry_after_is_heeded_within_reason(header, seconds):
    assert retry_after_s(header) == seconds


def test_only_2xx_counts_as_taken():
    assert [failure(status) for status in (200, 202, 204, 299)] == [None] * 4
    assert "redirects are not followed" in (failure(302) or "")
    assert [failure(status) for status in (404, 500, 600)] == ["answered 404", "answered 500", "answered 600"]


def test_answers_are_shown_in_short_and_without_secrets():
    assert shown(b"a\x00b\r\n\x1b[31mc\xff") == "a b   [31mc\ufffd"
    assert shown(b"x" * 900) == "x" * 500
    told = shown(b"token fdk_0c1d2e3f_abc Authorization: Bearer eyJ.abc whsec_QUJD end")
    assert told == "token [redacted] Authorization: [redacted] [redacted] end"
