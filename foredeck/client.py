"""One service, and everything that a client does with it."""

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from foredeck.access import Access
from foredeck.clusters import Clusters
from foredeck.errors import ForedeckError
from foredeck.export import Export
from foredeck.gates import Gates
from foredeck.runs import Runs
from foredeck.sweeps import Sweeps
from foredeck.transport import Transport
from foredeck.webhooks import Webhooks

PATIENCE_S = 30.0


class Foredeck:
    """The REST API of a service, typed. Every call raises ForedeckError where it is refused or there is no answer.

        with Foredeck("https://foredeck.example", token) as service:
            run = service.runs.launch({"name": "nightly", "config": {"grpo": {"num_steps": 40}}})
            run = service.runs.wait(run.id, timeout_s=3600)

    What may safely be repeated is, for up to `patience_s`, when the service restarts or has too much to do.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        patience_s: float = PATIENCE_S,
        transport: httpx.BaseTransport | None = None,
        first_pause_s: float = 0.5,
    ) -> None:
        self._transport = Transport(url, token, patience_s, transport, first_pause_s)
        self.runs = Runs(self._transport)
        self.sweeps = Sweeps(self._transport)
        self.gates = Gates(self._transport)
        self.export = Export(self._transport)
        self.webhooks = Webhooks(self._transport)
        self.clusters = Clusters(self._transport)
        self.access = Access(self._transport)

    @classmethod
    def from_environment(cls, patience_s: float = PATIENCE_S) -> Self:
        """FOREDECK_URL and FOREDECK_TOKEN, or else the credentials that `foredeck up` wrote."""
        url, token = os.environ.get("FOREDECK_URL"), os.environ.get("FOREDECK_TOKEN")
        if url and token:
            return cls(url, token, patience_s=patience_s)
        path = credentials_path()
        try:
            kept = json.loads(path.read_text())
        except FileNotFoundError as error:
            raise ForedeckError(
                f"Which service? Start one on this machine with `foredeck up`, or set FOREDECK_URL and FOREDECK_TOKEN. "
                f"(There is no {path}.)"
            ) from error
        return cls(url or kept["url"], token or kept["token"], patience_s=patience_s)

    @property
    def url(self) -> str:
        return self._transport.url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._transport.close()


def credentials_path() -> Path:
    return Path(os.environ.get("FOREDECK_HOME") or Path.home() / ".foredeck").expanduser() / "credentials.json"
