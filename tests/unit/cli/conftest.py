import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import httpx
import pytest

from foredeck import Foredeck

RUN_ID = UUID("11111111-2222-4333-8444-555555555555")
Answer = Callable[[httpx.Request], httpx.Response]


@pytest.fixture
def run_body() -> dict[str, Any]:
    """A run as the service answers it, with a key the command line does not know."""
    return {
        "id": str(RUN_ID),
        "name": "eagle3 k=3",
        "status": "running",
        "status_reason": "",
        "is_ended": False,
        "cluster": "local",
        "stage": "generation",
        "step": 7,
        "num_steps": 40,
        "stage_progress_fraction": None,
        "current_attempt": 1,
        "created_at": "2026-01-01T00:00:00Z",
        "started_at": "2026-01-01T00:00:10Z",
        "ended_at": None,
        "config": {},
        "config_sha256": "ab" * 32,
        "labels": {},
        "latest": {"reward/train_mean": 0.5, "rollout/acceptance_length_tokens": 3.25},
        "attempts": [],
        "new_key": 1,
    }


@pytest.fixture
def client_of() -> Callable[[Answer], Foredeck]:
    def make(answer: Answer) -> Foredeck:
        return Foredeck("http://service/", "fdk_x", patience_s=0, transport=httpx.MockTransport(answer))

    return make


def problem(status: int, detail: str, errors: list[dict[str, Any]]) -> httpx.Response:
    body = {"type": "about:blank", "title": "x", "status": status, "detail": detail, "errors": errors}
    return httpx.Response(status, content=json.dumps(body), headers={"Content-Type": "application/problem+json"})
