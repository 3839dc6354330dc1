"""One POST to a checked address.

httpcore connects through a network backend of ours, which knows no names: it takes the addresses that were checked, so
that a name that resolves to another address a moment later changes nothing. TLS still asks for the name's certificate,
and the Host header has the name. httpcore follows no redirects, knows no proxies, and is given one deadline for all.
"""

import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpcore
import httpx

from backend.webhooks.addresses import Address
from backend.webhooks.receiver import Receiver

CONNECT_TIMEOUT_S = 5.0
TIMEOUT_S = 10.0
"""For everything, from the name's resolution to the answer."""
MAX_ANSWER_BYTES = 1024
_EXTENSIONS = {"timeout": dict.fromkeys(("connect", "read", "write", "pool"), TIMEOUT_S)}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a receiver said."""

    status: int
    retry_after: str
    """The header; empty without one."""
    start: bytes
    """Of the body."""


class UndeliveredError(Exception):
    """No answer came; why, in words."""


def post(
    receiver: Receiver,
    addresses: Sequence[Address],
    headers: dict[str, str],
    body: bytes,
    deadline: float,
    context: Callable[[], ssl.SSLContext] | None = None,
) -> Answer:
    """Raises UndeliveredError. The deadline is of the monotonic clock."""
    fields = [
        ("Host", receiver.authority),
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
        ("Accept-Encoding", "identity"),
        ("Connection", "close"),
        *headers.items(),
    ]
    url = httpcore.URL(
        scheme=receiver.scheme.encode(),
        host=receiver.host.encode(),
        port=receiver.port,
        target=receiver.target.encode(),
    )
    tls = (context or _system_context)() if receiver.scheme == "https" else None
    network = _Pinned(addresses, deadline)
    try:
        with (
            httpcore.ConnectionPool(ssl_context=tls, network_backend=network) as pool,
            pool.stream("POST", url, headers=fields, content=body, extensions=_EXTENSIONS) as response,
        ):
            return Answer(response.status, _retry_after(response), _start(response.iter_stream()))
    except httpcore.TimeoutException as error:
        raise UndeliveredError(f"no whole answer from {receiver.origin} within {TIMEOUT_S:.0f} s") from error
    except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
        raise UndeliveredError(f"no answer from {receiver.origin}: {str(error) or type(error).__name__}") from error


@cache
def _system_context() -> ssl.SSLContext:
    """The usual authorities, or those of SSL_CERT_FILE."""
    return httpx.create_ssl_context()


def _retry_after(response: httpcore.Response) -> str:
    found = [value for name, value in response.headers if name.lower() == b"retry-after"]
    return found[0].decode("ascii", "replace") if found else ""


def _start(chunks: Iterable[bytes]) -> bytes:
    """No more is read than is kept."""
    start = b""
    for chunk in chunks:
        start += chunk
        if len(start) >= MAX_ANSWER_BYTES:
            break
    return start[:MAX_ANSWER_BYTES]


class _Pinned(httpcore.NetworkBackend):
    """Connects to the given addresses, whatever the name."""

    def __init__(self, addresses: Sequence[Address], deadline: float) -> None:
        self._addresses, self._deadline = addresses, deadline
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """To the first that answers."""
        give_up_at = min(self._deadline, time.monotonic() + CONNECT_TIMEOUT_S)
        failure: Exception = httpcore.ConnectError("there is no address")
        for address in self._addresses:
            try:
                left_s = _left_s(give_up_at, httpcore.ConnectTimeout)
                stream = self._sockets.connect_tcp(str(address), port, left_s, None, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return _Hurried(stream, self._deadline)
        raise failure

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        raise httpcore.ConnectError("webhooks go over the network")


class _Hurried(httpcore.NetworkStream):
    """A stream with one deadline for all that is done with it: an answer that trickles is none."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: float) -> None:
        self._stream, self._deadline = stream, deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left_s(self._deadline, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left_s(self._deadline, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left_s = _left_s(self._deadline, httpcore.ConnectTimeout)
        return _Hurried(self._stream.start_tls(ssl_context, server_hostname, left_s), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left_s(deadline: float, timed_out: type[Exception]) -> float:
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise timed_out("the time is up")
    return left_s
