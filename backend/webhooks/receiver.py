"""The address of a receiver, taken apart once: what is checked is what is connected to, and nothing parses it again."""

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Literal, cast

from backend.webhooks.addresses import Address

MAX_LENGTH = 2000
_URL = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]+)"
    r"(:(?P<port>[0-9]{1,5}))?"
    r"(?P<target>/[\w.~:/?@!$&'()*+,;=%\[\]-]*)?",
    re.ASCII | re.IGNORECASE,
)
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_NUMBER = re.compile(r"(0x[0-9a-f]*|[0-9]+)", re.ASCII)
LOW_PORTS = (80, 443)
"""Others below 1024 belong to services that speak no HTTP: mail, directories, shells."""
DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Receiver:
    """Where a webhook's deliveries go."""

    scheme: Literal["http", "https"]
    host: str
    """A name, or a number without brackets; in lower case."""
    port: int
    target: str
    """Path and query."""
    number: Address | None
    """Where the host is written as one."""

    @property
    def origin(self) -> str:
        """What may be logged: path and query can hold the receiver's own credentials."""
        return f"{self.scheme}://{self.authority}"

    @property
    def authority(self) -> str:
        """As the Host header has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def parse(url: str) -> Receiver:
    """Raises ValueError, in words, for what is not plainly the address of a receiver."""
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise ValueError("must not hold a user name or password: deliveries are signed instead")
    if not url.isascii():
        raise ValueError("must be ASCII: write an international name in its xn-- form")
    match = _URL.fullmatch(url)
    if match is None or len(url) > MAX_LENGTH:
        raise ValueError("must look like https://host/path, without a fragment")
    scheme = cast(Literal["http", "https"], match["scheme"].lower())
    host, number = _host(match["host"].lower())
    return Receiver(scheme, host, _port(match["port"], scheme), match["target"] or "/", number)


def _host(host: str) -> tuple[str, Address | None]:
    if host.startswith("["):
        try:
            number = IPv6Address(host[1:-1])
        except AddressValueError as error:
            raise ValueError(f"has the host {host}, which is no IPv6 address") from error
        return str(number), number
    labels = host.split(".")
    if _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]):
        return _ipv4(host)
    if not all(map(_LABEL.fullmatch, labels)) or len(host) > 253:
        raise ValueError(f"has the host {host}, which is no name: no dot at the end, and no empty part")
    return host, None


def _ipv4(host: str) -> tuple[str, Address]:
    """One form only: what `127.1`, `0x7f.1` or `017700000001` mean depends on who reads them."""
    try:
        number = IPv4Address(host)
    except AddressValueError as error:
        raise ValueError(f"has the host {host}: write an IPv4 address as four decimal numbers") from error
    return str(number), number


def _port(text: str | None, scheme: str) -> int:
    port = int(text) if text else DEFAULT_PORTS[scheme]
    if not (port in LOW_PORTS or 1024 <= port <= 65_535):
        raise ValueError(f"has the port {port}: use 80, 443, or one from 1024 to 65535")
    return port
