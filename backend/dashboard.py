"""The built dashboard as static files."""

from pathlib import Path

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

CONTENT_SECURITY_POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


class Dashboard(StaticFiles):
    """Unknown paths get index.html, where the browser's own router takes over; unknown paths of the API do not."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        try:
            response = await super().get_response(path, scope)
        except HTTPException as error:
            if error.status_code != 404 or path.split("/", maxsplit=1)[0] in {"api", "assets"}:
                raise
            response = await super().get_response("index.html", scope)
        is_hashed = path.startswith("assets/")
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if is_hashed else "no-cache"
        response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
        return response


def mount(app: FastAPI, folder: Path) -> None:
    """Serves the folder at /; it may be built later."""
    app.mount("/", Dashboard(directory=folder, html=True, check_dir=False), name="dashboard")
