"""The built dashboard as static files."""

from pathlib import Path

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

CONTENT_SECURITY_POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


class Dashboard(StaticFiles):
    """Unknown paths and folders get index.html, where the browser's own router takes over; unknown assets do not."""

    async def check_config(self) -> None:
        if not Path(str(self.directory), "index.html").is_file():
            raise HTTPException(404, "The dashboard is not built. Run `make`, or set FOREDECK_FRONTEND_DIR.")

    async def get_response(self, path: str, scope: Scope) -> Response:
        try:
            response = await super().get_response(path, scope)
        except HTTPException as error:
            if error.status_code != 404 or path.startswith("assets/"):
                raise
            response = await super().get_response("index.html", scope)
        is_hashed = path.startswith("assets/")
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if is_hashed else "no-cache"
        response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
        return response


class DashboardMount(Mount):
    """Everything but the API, whose unknown paths and methods are errors of the API's own."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        is_api = f"{scope.get('path', '')}/".startswith("/api/")
        return (Match.NONE, {}) if is_api else super().matches(scope)


def mount(app: FastAPI, folder: Path) -> None:
    """Serves the folder at /; it may be built later."""
    app.router.routes.append(DashboardMount("/", app=Dashboard(directory=folder, check_dir=False)))
