"""Waiting for a run's end, and for the judgement of its gates, without holding a thread or a database connection."""

import time
from uuid import UUID

from fastapi import Request

from backend.errors import not_found
from backend.runs import repository
from backend.runs.state import ENDED
from backend.telemetry.hub import Closed, Hub, Overrun, hub_of

LOOK_AGAIN_S = 2.0
"""Even without a notice the run is looked at so often, in case one was missed."""


async def wait_until_ended(request: Request, run_id: UUID, timeout_s: float) -> None:
    """Returns when the run has ended and was judged, the time is over or the caller has gone. Raises ApiError (404)."""
    deadline = time.monotonic() + timeout_s
    hub = hub_of(request.app)
    async with hub.subscribe(frozenset({run_id}), frozenset({"run"})) as subscription:
        while not await _is_over(hub, run_id):
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0 or await request.is_disconnected():
                return
            try:
                await subscription.take(min(LOOK_AGAIN_S, remaining_s))
            except Overrun:
                continue
            except Closed:
                return


async def _is_over(hub: Hub, run_id: UUID) -> bool:
    found = await hub.query(lambda session: repository.get_outcome(session, run_id))
    if found is None:
        raise not_found("run", run_id)
    status, gates_verdict = found
    return status in ENDED and gates_verdict != "pending"
