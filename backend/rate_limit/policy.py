"""What is limited, by how much, and how an answer says so.

The header fields are those of the current draft-ietf-httpapi-ratelimit-headers:
`RateLimit-Policy: "caller";q=6000;w=60` and `RateLimit: "caller";r=5990;t=1`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from backend.settings import Settings

WINDOW_S = 60


@dataclass(frozen=True, slots=True)
class Policy:
    """So many requests at once, which come back evenly within a minute."""

    name: str
    limit: int

    @property
    def per_s(self) -> float:
        return self.limit / WINDOW_S

    def headers(self, left: float) -> dict[str, str]:
        """With so many requests left; all of them are back after `t`."""
        reset_s = math.ceil((self.limit - left) / self.per_s)
        return {
            "RateLimit-Policy": f'"{self.name}";q={self.limit};w={WINDOW_S}',
            "RateLimit": f'"{self.name}";r={math.floor(left)};t={reset_s}',
        }

    def wait_s(self, left: float) -> int:
        """Until one more request is let in."""
        return max(1, math.ceil((1 - left) / self.per_s))


Policies = Mapping[str, Policy]


def policies(settings: Settings) -> Policies:
    """`caller` and `ingest` for each token or session, the others for each address."""
    limits = {
        "caller": settings.rate_limit,
        "ingest": settings.ingest_rate_limit,
        "stranger": settings.stranger_rate_limit,
        "probe": settings.stranger_rate_limit,
        "login": settings.login_rate_limit,
    }
    return {name: Policy(name, limit) for name, limit in limits.items()}


def neighbourhood(address: str) -> str:
    """What one stranger has: an IPv4 address, or the /64 of an IPv6 address, out of which they can take another for
    each request."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    return f"{IPv6Address(int(parsed) >> 64 << 64)}/64" if isinstance(parsed, IPv6Address) else address
