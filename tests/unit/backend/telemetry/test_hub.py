import asyncio
import signal
from types import SimpleNamespace
from uuid import UUID, uuid4

import pytest

from backend.telemetry import hub
from backend.telemetry.hub import Closed, Overrun, Subscription
from backend.telemetry.repository import NoticeRow

ONE, TWO, PROJECT = uuid4(), uuid4(), uuid4()


def notice(number: int, run_id: UUID = ONE, kind: str = "series") -> NoticeRow:
    return NoticeRow(number, run_id, kind, {}, PROJECT)


def test_a_subscription_takes_what_it_asked_for_in_order() -> None:
    async def scenario() -> list[int]:
        subscription = Subscription(frozenset({ONE}), frozenset({"series"}), 0)
        subscription.offer([notice(1), notice(2, TWO), notice(3, kind="log"), notice(4)])
        subscription.offer([notice(5)])
        taken = await subscription.take(1)
        assert await subscription.take(0.001) == []
        return [notice.id for notice in taken]

    assert asyncio.run(scenario()) == [1, 4, 5]


def test_a_slow_subscriber_is_told_once_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "MAX_WAITING", 2)

    async def scenario() -> None:
        subscription = Subscription(None, None, 0)
        subscription.offer([notice(1), notice(2)])
        subscription.offer([notice(3)])
        with pytest.raises(Overrun):
            await subscription.take(1)
        subscription.offer([notice(4)])
        assert [notice.id for notice in await subscription.take(1)] == [4]

    asyncio.run(scenario())


def test_a_closed_subscription_stays_closed() -> None:
    async def scenario() -> None:
        subscription = Subscription(None, None, 0)
        subscription.close()
        for _ in range(2):
            with pytest.raises(Closed):
                await subscription.take(1)

    asyncio.run(scenario())


def test_uvicorns_wish_to_stop_is_read_from_its_signal_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    class Server(SimpleNamespace):
        def handle_exit(self) -> None: ...

    server = Server(should_exit=False)
    monkeypatch.setattr(signal, "getsignal", lambda _: server.handle_exit)
    assert not hub._is_server_stopping()
    server.should_exit = True
    assert hub._is_server_stopping()
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_DFL)
    assert not hub._is_server_stopping()
