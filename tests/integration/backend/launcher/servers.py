"""A real Ray, and the service that speaks to it on a port of its own; Redis is down, so the service does everything."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from backend import bootstrap
from backend.embedded.ray import RayService
from backend.main import create_app
from backend.settings import Settings
from tests.ports import free_base_port


@contextmanager
def running(ray: RayService) -> Iterator[RayService]:
    process = ray.start()
    try:
        ray.wait(process)
        yield ray
    finally:
        ray.stop(process)


@contextmanager
def serving(settings: Settings, **changes: object) -> Iterator[FastAPI]:
    """The service with its background thread. Its settings are these, with the changes."""
    port = free_base_port()
    own = {"redis_url": "redis://127.0.0.1:1", "public_url": f"http://127.0.0.1:{port}", "reconcile_interval_s": 0.2}
    app = create_app(settings.model_copy(update=own | changes))
    with app.state.database.transaction() as session:
        bootstrap.ensure(session, app.state.settings)
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield app
    finally:
        server.should_exit = True
        thread.join()
