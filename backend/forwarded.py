"""Where a request really comes from, when proxies stand before the service."""

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
HEADER = "X-Forwarded-For"


class ForwardedAddress:
    """Pure ASGI. Puts the client's address into the scope, where all that ask for it look.

    uvicorn's own --proxy-headers is off wherever the service is started: by default it believes whatever any process of
    the same machine says.
    """

    def __init__(self, app: ASGIApp, proxies: Sequence[Network]) -> None:
        self.app, self.proxies = app, proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        peer = scope.get("client")
        if peer and self.proxies:
            hops = Headers(scope=scope).getlist(HEADER)
            scope["client"] = (client_address(peer[0], hops, self.proxies), peer[1])
        await self.app(scope, receive, send)


def client_address(peer: str, forwarded: Iterable[str], proxies: Sequence[Network]) -> str:
    """The first address from the right, the peer's own being the last, that is no listed proxy's: each proxy adds whom
    it heard, at the right, and what stands left of an address that is not listed is that address's own word.

    forwarded: the values of X-Forwarded-For, in order.
    """
    here = _parsed(peer)
    if here is None:
        return peer
    for text in reversed(",".join(forwarded).split(",")):
        if not _is_listed(here, proxies):
            break
        before = _parsed(text.strip())
        if before is None:
            break
        here = before
    return str(here)


def _is_listed(address: Address, proxies: Sequence[Network]) -> bool:
    return any(address in network for network in proxies)


def _parsed(text: str) -> Address | None:
    """The address, without a port, and an IPv4 address as such however it is written; None for anything else."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return address
    return None if address.scope_id else address.ipv4_mapped or address
