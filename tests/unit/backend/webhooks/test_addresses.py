from ipaddress import ip_address, ip_network

import pytest

from backend.webhooks.addresses import refusal

PUBLIC = ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "192.0.1.1", "2606:4700::1111", "2a00:1450:4001::1"]
INSIDE = [
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.255",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.19.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "240.0.0.1",
    "::1",
    "::127.0.0.1",
    "100::1",
    "4000::1",
    "fc00::1",
    "fd12:3456::1",
    "2001:2::1",
    "2001:db8::1",
    "3fff::1",
    "5f00::1",
]
NEVER = [
    "0.0.0.0",
    "0.1.2.3",
    "169.254.169.254",
    "169.254.170.2",
    "168.63.129.16",
    "224.0.0.1",
    "239.255.255.250",
    "255.255.255.255",
    "::",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::7f00:1",
    "2001:0:4136:e378:8000:63bf:80ff:fffe",
    "2002:7f00:1::1",
    "2002:a9fe:a9fe::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "fd00:ec2::254",
    "ff02::1",
]
EVERYTHING = (ip_network("0.0.0.0/0"), ip_network("::/0"))


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_may_be_reached(text):
    assert refusal(ip_address(text), ()) is None


@pytest.mark.parametrize("text", INSIDE + NEVER)
def test_all_others_may_not(text):
    assert refusal(ip_address(text), ())


@pytest.mark.parametrize("text", INSIDE)
def test_networks_that_the_operator_names_may_be_reached(text):
    assert refusal(ip_address(text), EVERYTHING) is None


@pytest.mark.parametrize("text", [text for text in NEVER if text != "64:ff9b::7f00:1"])
def test_some_are_never_reached_whatever_is_allowed(text):
    assert refusal(ip_address(text), EVERYTHING)


def test_an_allowed_network_opens_nothing_else():
    allowed = (ip_network("10.1.0.0/16"), ip_network("fd00:1::/32"))
    assert refusal(ip_address("10.1.2.3"), allowed) is None
    assert refusal(ip_address("fd00:1::5"), allowed) is None
    assert refusal(ip_address("10.2.0.1"), allowed) == "private"
    assert refusal(ip_address("::ffff:10.1.2.3"), allowed)


def test_an_address_behind_nat64_counts_as_what_it_stands_for():
    assert refusal(ip_address("64:ff9b::808:808"), ()) is None
    assert refusal(ip_address("64:ff9b::a00:1"), ()) == "private"
    assert refusal(ip_address("64:ff9b::a01:1"), (ip_network("10.1.0.0/16"),)) is None


def test_nothing_that_the_standard_library_knows_to_be_special_passes():
    """Every /16 of IPv4, at both ends."""
    for upper in range(2**16):
        for lower in (1, 0xFFFE):
            address = ip_address((upper << 16) + lower)
            assert address.is_global or refusal(address, ()), address
