from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.embedded import application
from backend.embedded.home import Home
from backend.embedded.ports import Ports
from backend.forwarded import client_address
from backend.settings import REPOSITORY

PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))
STRANGER = "203.0.113.7"


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        # nothing but the peer is known
        (STRANGER, [], STRANGER),
        ("10.0.0.1", [], "10.0.0.1"),
        # a listed proxy says whom it heard
        ("10.0.0.1", ["198.51.100.2"], "198.51.100.2"),
        ("fd00::1", ["2001:db8::1"], "2001:db8::1"),
        ("10.0.0.1", ["[2001:db8::1]:443"], "2001:db8::1"),
        ("10.0.0.1", ["198.51.100.2:5123"], "198.51.100.2"),
        ("::ffff:10.0.0.1", ["198.51.100.2"], "198.51.100.2"),
        ("10.0.0.1", ["::ffff:198.51.100.2"], "198.51.100.2"),
        # a chain of them is walked from the right, over header lines too
        ("10.0.0.1", ["198.51.100.2, 10.2.2.2"], "198.51.100.2"),
        ("10.0.0.1", ["198.51.100.2", "10.2.2.2, 10.3.3.3"], "198.51.100.2"),
        ("10.0.0.1", ["10.1.1.1, 10.2.2.2"], "10.1.1.1"),
        # what the client itself has sent stands to the left of it, and counts for nothing
        ("10.0.0.1", ["127.0.0.1, 198.51.100.2"], "198.51.100.2"),
        ("10.0.0.1", ["10.9.9.9, 198.51.100.2, 10.2.2.2"], "198.51.100.2"),
        # an unlisted peer is believed nothing
        (STRANGER, ["127.0.0.1"], STRANGER),
        (STRANGER, ["10.0.0.1"], STRANGER),
        (STRANGER, ["198.51.100.2, 10.0.0.1"], STRANGER),
        # nonsense ends the walk where it stands
        ("10.0.0.1", ["unknown"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.2, _hidden, 10.2.2.2"], "10.2.2.2"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.2,"], "10.0.0.1"),
        ("10.0.0.1", ["fe80::1%eth0\r\n"], "10.0.0.1"),
        ("10.0.0.1", ["0x7f.1"], "10.0.0.1"),
        ("10.0.0.1", ["3232235777"], "10.0.0.1"),
        ("testclient", ["198.51.100.2"], "testclient"),
    ],
)
def test_the_first_address_from_the_right_that_is_no_listed_proxy(peer, forwarded, address):
    assert client_address(peer, forwarded, PROXIES) == address


@given(st.lists(st.text(max_size=60), max_size=4))
def test_whatever_an_unlisted_peer_sends_changes_nothing(forwarded):
    assert client_address(STRANGER, forwarded, PROXIES) == STRANGER
    assert client_address("10.0.0.1", forwarded, ()) == "10.0.0.1"


def test_uvicorn_is_nowhere_started_with_a_belief_of_its_own(tmp_path):
    service = application.api({}, Home(tmp_path), Ports(8600))
    assert "--no-proxy-headers" in service.argv
    for name in ("Dockerfile", "docker-compose.yml"):
        (line,) = [line for line in (REPOSITORY / name).read_text().splitlines() if "backend.main:app" in line]
        assert "--no-proxy-headers" in line, name
