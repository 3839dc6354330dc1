"""Which network addresses the service sends to: public ones, and those of networks that its operator names.

The lists are the IANA registries of special-purpose addresses; the standard library's `is_global` lacks some of them in
versions that we run on. Of IPv6 only what is handed out as global unicast counts as public, less what carries another
address within: whoever wants to reach that can name it.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NEVER: dict[Network, str] = {
    ip_network(text): what
    for text, what in {
        "0.0.0.0/8": "the machine itself",
        "169.254.0.0/16": "link-local, where clouds keep the credentials of machines",
        "168.63.129.16/32": "a cloud's service for its own machines",
        "224.0.0.0/4": "multicast",
        "255.255.255.255/32": "broadcast",
        "::/128": "the machine itself",
        "::ffff:0:0/96": "an IPv4 address in IPv6's form: write it as IPv4",
        "::ffff:0:0:0/96": "an IPv4 address in IPv6's form: write it as IPv4",
        "64:ff9b:1::/48": "an IPv4 address behind a translator",
        "2001::/32": "an IPv4 address behind a tunnel (Teredo)",
        "2002::/16": "an IPv4 address behind a tunnel (6to4)",
        "fe80::/10": "link-local",
        "fec0::/10": "site-local",
        "fd00:ec2::254/128": "where a cloud keeps the credentials of machines",
        "fd20:ce::254/128": "where a cloud keeps the credentials of machines",
        "ff00::/8": "multicast",
    }.items()
}
"""Refused even where an allowed network holds them."""

_INSIDE: dict[Network, str] = {
    ip_network(text): what
    for text, what in {
        "10.0.0.0/8": "private",
        "100.64.0.0/10": "shared address space of providers and clouds",
        "127.0.0.0/8": "loopback",
        "172.16.0.0/12": "private",
        "192.0.0.0/24": "reserved",
        "192.0.2.0/24": "reserved for documentation",
        "192.31.196.0/24": "reserved",
        "192.52.193.0/24": "reserved",
        "192.88.99.0/24": "reserved",
        "192.168.0.0/16": "private",
        "192.175.48.0/24": "reserved",
        "198.18.0.0/15": "reserved for benchmarks",
        "198.51.100.0/24": "reserved for documentation",
        "203.0.113.0/24": "reserved for documentation",
        "240.0.0.0/4": "reserved",
        "::1/128": "loopback",
        "fc00::/7": "private (unique local)",
        "2001::/23": "reserved",
        "2001:db8::/32": "reserved for documentation",
        "2620:4f:8000::/48": "reserved",
        "3fff::/20": "reserved for documentation",
    }.items()
}
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_TRANSLATED = IPv6Network("64:ff9b::/96")
"""NAT64: how a machine with IPv6 alone reaches an IPv4 address, the last 32 bits."""


def refusal(address: Address, allowed: Iterable[Network]) -> str | None:
    """Why nothing is sent to the address, in a few words; None where something may be.

    Args:
        allowed: networks that the operator vouches for, though they are not public.
    """
    if isinstance(address, IPv6Address) and address in _TRANSLATED:
        return refusal(IPv4Address(int(address) & 0xFFFF_FFFF), allowed)
    if what := _listed(address, _NEVER):
        return what
    if is_allowed(address, allowed):
        return None
    if what := _listed(address, _INSIDE):
        return what
    return None if isinstance(address, IPv4Address) or address in _GLOBAL_UNICAST else "reserved"


def is_allowed(address: Address, allowed: Iterable[Network]) -> bool:
    """Whether the operator vouches for its network."""
    return any(address.version == network.version and address in network for network in allowed)


def _listed(address: Address, networks: dict[Network, str]) -> str | None:
    found = (what for network, what in networks.items() if address in network)
    return next(found, None)
