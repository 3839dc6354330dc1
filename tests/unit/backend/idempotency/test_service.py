from backend.idempotency.service import fingerprint

SAME = ("POST", "/api/v1/runs", "", b'{"name": "x"}')


def test_requests_are_the_same_only_if_everything_is():
    others = [
        ("PUT", "/api/v1/runs", "", b'{"name": "x"}'),
        ("POST", "/api/v1/runs/", "", b'{"name": "x"}'),
        ("POST", "/api/v1/runs", "a=1", b'{"name": "x"}'),
        ("POST", "/api/v1/runs", "", b'{"name":"x"}'),
    ]
    assert fingerprint(*SAME) == fingerprint(*SAME)
    assert len({fingerprint(*request) for request in [SAME, *others]}) == 5


def test_what_stands_at_a_border_belongs_to_one_side():
    assert fingerprint("POST", "/a", "b", b"c") != fingerprint("POST", "/a?b", "", b"c")
    assert fingerprint("POST", "/a", "", b"\nc") != fingerprint("POST", "/a", "\n", b"c")
