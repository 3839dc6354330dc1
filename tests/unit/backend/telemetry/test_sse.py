import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

from backend.telemetry.sse import EventStream, encode


def test_encode_keeps_line_breaks_out_of_the_frame() -> None:
    frame = encode("log", {"message": "one\ntwo\r\n\u2028é"}, 7).decode()
    head, event, data, *rest = frame.split("\n")
    assert (head, event, rest) == ("id: 7", "event: log", ["", ""])
    assert json.loads(data.removeprefix("data: ")) == {"message": "one\ntwo\r\n\u2028é"}


def test_encode_without_an_id_leaves_the_clients_last_id_alone() -> None:
    assert encode("resync", {}) == b"event: resync\ndata: {}\n\n"


def test_a_client_that_leaves_while_it_is_sent_to_closes_the_generator() -> None:
    is_closed = False

    async def events() -> AsyncGenerator[bytes, None]:
        nonlocal is_closed
        try:
            while True:
                yield b": x\n\n"
        finally:
            is_closed = True

    async def scenario() -> None:
        sent = asyncio.Event()

        async def receive() -> dict[str, Any]:
            await sent.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body":
                sent.set()
                await asyncio.sleep(3600)

        await EventStream(events())({"type": "http"}, receive, send)

    asyncio.run(asyncio.wait_for(scenario(), 5))
    assert is_closed
