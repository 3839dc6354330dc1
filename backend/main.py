"""The HTTP service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRoute

from backend import dashboard, errors, health, logs, openapi, query, reference
from backend.auth.gate import Gate
from backend.auth.guard import Reader, refuse_open_routes
from backend.auth.log.routes import router as audit_router
from backend.auth.oidc.routes import router as oidc_router
from backend.auth.projects.routes import router as projects_router
from backend.auth.routes import router as auth_router
from backend.auth.tokens.routes import router as tokens_router
from backend.auth.users.routes import router as users_router
from backend.auth.workers.routes import router as worker_tokens_router
from backend.clusters.routes import router as clusters_router
from backend.db import Database
from backend.export.routes import router as export_router
from backend.figures.routes import router as figures_router
from backend.forwarded import ForwardedAddress
from backend.gates.routes import router as gates_router
from backend.launcher.fallback import Fallback
from backend.middleware import RequestContext
from backend.rate_limit.limiter import Limiter
from backend.rate_limit.middleware import RateLimits
from backend.rate_limit.policy import policies
from backend.runs.config_routes import router as config_router
from backend.runs.routes import router as runs_router
from backend.settings import Settings, load
from backend.sweeps.routes import router as sweeps_router
from backend.telemetry.routes import router as telemetry_router
from backend.webhooks.deliverer import Deliverer
from backend.webhooks.routes import router as webhooks_router

PREFIX = "/api/v1"


def create_app(settings: Settings | None = None) -> FastAPI:
    """The service with all its routes; reads the environment when no settings are given."""
    settings = settings or load()
    app = FastAPI(
        title="Foredeck",
        version=_version(),
        description="Launches reinforcement-learning runs with speculative rollouts and shows them live.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # its redirects would go to whatever host a request names
        lifespan=_lifespan,
        generate_unique_id_function=_operation_id,
    )
    app.state.settings = settings
    app.state.database = Database(settings)
    errors.install(app)
    _include(app)
    refuse_open_routes(app)
    openapi.install(app)
    dashboard.mount(app, settings.frontend_dir)
    app.state.limiter = Limiter(policies(settings), settings.redis_url)
    app.add_middleware(Gate)
    app.add_middleware(RateLimits, limiter=app.state.limiter)
    app.add_middleware(ForwardedAddress, proxies=settings.trusted_proxies)
    app.add_middleware(RequestContext)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    logs.configure(app.state.settings)
    deliverer = Deliverer(app.state.database, app.state.settings)
    fallbacks = [
        Fallback(app.state.database, app.state.settings),
        Fallback(app.state.database, app.state.settings, deliverer.stand_in),
    ]
    for fallback in fallbacks:
        fallback.start()
    yield
    for fallback in fallbacks:
        fallback.stop()
    deliverer.stop()
    app.state.database.close()
    app.state.limiter.close()


def _operation_id(route: APIRoute) -> str:
    return f"{route.tags[0] if route.tags else 'root'}_{route.name}"


def _include(app: FastAPI) -> None:
    app.router.routes.extend(_routes().routes)
    app.include_router(_documents(app), prefix=PREFIX, dependencies=[Depends(query.check)])
    query.install(app)


@cache
def _routes() -> APIRouter:
    """What every app of a process has; made once, for it takes a tenth of a second."""
    routers = (
        health.router,
        auth_router,
        oidc_router,
        tokens_router,
        users_router,
        projects_router,
        audit_router,
        config_router,
        runs_router,
        sweeps_router,
        clusters_router,
        telemetry_router,
        worker_tokens_router,
        export_router,
        gates_router,
        webhooks_router,
        figures_router,
    )
    api = APIRouter(generate_unique_id_function=_operation_id)
    for router in routers:
        api.include_router(router, prefix=PREFIX, dependencies=[Depends(query.check)])
    return api


def _documents(app: FastAPI) -> APIRouter:
    """The OpenAPI document and its page, for those who are logged in."""
    router = APIRouter(include_in_schema=False)

    @router.get("/openapi.json")
    def document(_: Reader) -> dict[str, Any]:
        return app.openapi()

    @router.get("/docs")
    def docs(_: Reader) -> HTMLResponse:
        return HTMLResponse(reference.page(app.openapi(), f"{PREFIX}/openapi.json"))

    return router


def _version() -> str:
    try:
        return version("foredeck")
    except PackageNotFoundError:
        return "0"


def __getattr__(name: str) -> FastAPI:
    """`uvicorn backend.main:app`: the app is made when it is asked for, so that importing reads no environment."""
    if name == "app":
        return create_app()
    raise AttributeError(name)
