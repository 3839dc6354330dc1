"""The hub over a real Valkey."""

import asyncio

from backend.telemetry.hub import Hub


def test_it_ends_whenever_its_loop_does(database, redis_url) -> None:
    """The Redis client loses a cancellation that comes while it connects; a server that stops must not wait for it."""

    async def subscribe_for(seconds: float) -> None:
        async with Hub(database, redis_url).subscribe(None):
            await asyncio.sleep(seconds)

    for tenth_ms in range(300):
        asyncio.run(subscribe_for(tenth_ms % 50 / 10_000))
