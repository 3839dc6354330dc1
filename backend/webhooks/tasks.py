"""Deliveries as a Celery task. It only wakes the process's own threads: no worker waits for a receiver."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from celery import Celery

from backend.settings import Settings
from backend.webhooks.events import TASK

if TYPE_CHECKING:
    from backend.webhooks.deliverer import Deliverer


def register(app: Celery, settings: Settings) -> None:
    @cache
    def deliverer() -> Deliverer:
        from backend.db import shared  # noqa: PLC0415 (beat only knows the task's name)
        from backend.webhooks.deliverer import Deliverer  # noqa: PLC0415

        return Deliverer(shared(settings), settings)

    def deliver_webhooks() -> None:
        deliverer().tick()

    app.task(deliver_webhooks, name=TASK)
