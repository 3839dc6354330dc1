"""From a receiver's name to the addresses that may be connected to, asked for and checked anew at each delivery."""

import socket
import threading
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from queue import Empty, SimpleQueue

from backend.webhooks.addresses import Address, Network, is_allowed, refusal
from backend.webhooks.receiver import Receiver

Resolve = Callable[[str, float], Sequence[Address]]
"""All addresses of a name, within so many seconds. Raises UnresolvedError."""

OUTSIDE = "must be a public address, or one in FOREDECK_WEBHOOK_ALLOWED_NETWORKS"


class UnresolvedError(Exception):
    """The name has no address now; perhaps later."""


class RefusedAddressError(Exception):
    """Nothing is sent there."""


def addresses_of(
    receiver: Receiver, allowed: Sequence[Network], resolve: Resolve, timeout_s: float
) -> Sequence[Address]:
    """Where to connect. Raises UnresolvedError, and RefusedAddressError as soon as one of several addresses is not
    allowed: which of them is used is not for the name's owner to decide."""
    found = [receiver.number] if receiver.number else resolve(receiver.host, timeout_s)
    if not found:
        raise UnresolvedError(f"{receiver.host} has no address")
    for address in found:
        check(receiver, address, allowed)
    return found


def check(receiver: Receiver, address: Address, allowed: Sequence[Network]) -> None:
    """Raises RefusedAddressError. What a name resolves to is not told: names inside are nobody's business."""
    if what := refusal(address, allowed):
        told = f"is {what}" if receiver.number else "resolves to an address inside"
        raise RefusedAddressError(f"{receiver.host} {told}: {OUTSIDE}")
    if receiver.scheme == "http" and not is_allowed(address, allowed):
        raise RefusedAddressError(
            "must begin with https://; http:// is for receivers in FOREDECK_WEBHOOK_ALLOWED_NETWORKS alone"
        )


def resolve(host: str, timeout_s: float) -> Sequence[Address]:
    """Asks the system. Its own time limits can be half a minute: the thread that still waits is left alone."""
    answers: SimpleQueue[list[Address] | OSError | UnicodeError] = SimpleQueue()
    threading.Thread(target=_ask, args=(host, answers), name="resolve", daemon=True).start()
    try:
        answer = answers.get(timeout=max(timeout_s, 0.001))
    except Empty:
        raise UnresolvedError(f"{host} could not be resolved within {timeout_s:.0f} s") from None
    if isinstance(answer, list):
        return answer
    raise UnresolvedError(f"{host} cannot be resolved: {getattr(answer, 'strerror', None) or answer}")


def _ask(host: str, answers: "SimpleQueue[list[Address] | OSError | UnicodeError]") -> None:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        answers.put(error)
    else:
        # A zone, as in fe80::1%eth0, is part of the address for the standard library.
        answers.put(list(dict.fromkeys(ip_address(str(sockaddr[0])) for *_, sockaddr in found)))
