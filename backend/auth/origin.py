"""Where a browser says that a request comes from."""

from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.requests import Request

from backend.errors import SAFE_METHODS, ApiError


def check_origin(request: Request, public_url: str) -> None:
    """Refuses changes that pages of other sites have a browser send, whatever else they bring along.

    Browsers tell the truth here, and nothing else sends these headers; whoever brings a token of their own is no
    browser that was misled.
    """
    is_by_token = request.headers.get("authorization", "").lower().startswith("bearer ")
    if request.method in SAFE_METHODS or is_by_token:
        return
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    own = {request.headers.get("host"), urlsplit(public_url).netloc}
    is_own = site in {"same-origin", "none"} if site else origin is None or urlsplit(origin).netloc in own
    if not is_own:
        raise ApiError(HTTPStatus.FORBIDDEN, f"Changes are taken from this service's own pages, not from {origin}.")
