"""The REST API, typed. Knows addresses, tokens and problems; prints nothing."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, TypeVar
from uuid import UUID

import httpx
from pydantic import BaseModel

from cli.errors import CommandError, ExitCode
from cli.schemas import (
    Alarm,
    Alarms,
    CheckStarted,
    Cluster,
    ClusterCheck,
    CreatedToken,
    LoginLink,
    LogLine,
    LogPage,
    Run,
    RunPage,
    RunSummary,
)

Model = TypeVar("Model", bound=BaseModel)

TIMEOUT_S = 30.0
SILENCE_S = 60.0
"""A stream sends a comment every 15 s; one that is silent for longer is dead."""


class Unreachable(CommandError):
    """Nothing answers at the address; trying again later may help."""


class Client:
    """One service and one token."""

    def __init__(self, url: str, token: str, transport: httpx.BaseTransport | None = None) -> None:
        self.url = url.rstrip("/")
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=TIMEOUT_S,
            transport=transport,
        )

    @classmethod
    def from_environment(cls) -> Self:
        """FOREDECK_URL and FOREDECK_TOKEN, or else the credentials that `foredeck up` wrote."""
        url, token = os.environ.get("FOREDECK_URL"), os.environ.get("FOREDECK_TOKEN")
        if url and token:
            return cls(url, token)
        path = credentials_path()
        try:
            kept = json.loads(path.read_text())
        except FileNotFoundError as error:
            raise CommandError(
                f"Which service? Start one on this machine with `foredeck up`, or set FOREDECK_URL and FOREDECK_TOKEN. "
                f"(There is no {path}.)"
            ) from error
        return cls(url or kept["url"], token or kept["token"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._http.close()

    def launch(self, body: dict[str, Any]) -> Run:
        return self._read(Run, "POST", "/runs", json=body)

    def clone(self, run_id: UUID, body: dict[str, Any]) -> Run:
        return self._read(Run, "POST", f"/runs/{run_id}/clone", json=body)

    def stop(self, run_id: UUID) -> Run:
        return self._read(Run, "POST", f"/runs/{run_id}/stop")

    def get(self, run_id: UUID) -> Run:
        return self._read(Run, "GET", f"/runs/{run_id}")

    def wait(self, run_id: UUID, timeout_s: float) -> Run:
        """The run when it has ended, or as it is after `timeout_s`."""
        return self._read(
            Run, "GET", f"/runs/{run_id}/wait", params={"timeout_s": timeout_s}, timeout=timeout_s + TIMEOUT_S
        )

    def page(self, **parameters: Any) -> RunPage:
        given = {name: value for name, value in parameters.items() if value is not None}
        return self._read(RunPage, "GET", "/runs", params=given)

    def every_run(self, search: str | None = None, status: str | None = None) -> Iterator[RunSummary]:
        """All that match, newest first, fetched page by page."""
        cursor: str | None = None
        while True:
            page = self.page(limit=200, cursor=cursor, search=search, status=status)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def find(self, run: str) -> UUID:
        """The id of the run that `run` names: its id, the start of its id, or its name.

        Raises:
            CommandError: none, or more than one.
        """
        try:
            return UUID(run)
        except ValueError:
            pass
        named = [item for item in self.every_run(search=run) if item.name == run]
        prefix = run.lower()
        is_prefix = len(prefix) >= 4 and set(prefix) <= set("0123456789abcdef-")
        found = named or ([item for item in self.every_run() if str(item.id).startswith(prefix)] if is_prefix else [])
        if len(found) == 1:
            return found[0].id
        if not found:
            raise CommandError(f"There is no run {run!r}: `foredeck runs` lists them.")
        candidates = "\n".join(f"  {item.id}  {item.name}  {item.status}" for item in found[:10])
        raise CommandError(f"{run!r} is not the name of one run, but of {len(found)}. Give an id:\n{candidates}")

    def alarms(self, run_id: UUID) -> list[Alarm]:
        """The active ones first, then the newest."""
        return self._read(Alarms, "GET", f"/runs/{run_id}/alarms").items

    def log(self, run_id: UUID, limit: int, level: str | None = None, search: str | None = None) -> LogPage:
        given = {"limit": limit, "level": level, "search": search}
        return self._read(
            LogPage, "GET", f"/runs/{run_id}/logs", params={key: value for key, value in given.items() if value}
        )

    def follow_log(self, run_id: UUID, after: int) -> Iterator[LogLine]:
        """Lines after id `after` as they come, until the run has ended and all of them are here.

        Raises:
            Unreachable: the stream broke; go on after the last line that came.
        """
        headers = {"Last-Event-ID": str(after), "Accept": "text/event-stream"}
        try:
            with self._http.stream(
                "GET", f"/runs/{run_id}/logs/stream", headers=headers, timeout=httpx.Timeout(TIMEOUT_S, read=SILENCE_S)
            ) as answer:
                if answer.is_error:
                    answer.read()
                _require_success(answer)
                for kind, data in server_sent_events(answer.iter_lines()):
                    if kind == "end":
                        return
                    if kind == "log":
                        yield LogLine.model_validate_json(data)
        except httpx.TransportError as error:
            raise self._unreachable(error) from error
        raise Unreachable(f"{self.url} ended the log in the middle.", ExitCode.INFRASTRUCTURE)

    def download(self, path: str, file: BinaryIO) -> int:
        """Write what stands at the path to a file, part by part; its size in bytes."""
        try:
            with self._http.stream("GET", path) as answer:
                if answer.is_error:
                    answer.read()
                _require_success(answer)
                return sum(file.write(part) for part in answer.iter_bytes())
        except httpx.TransportError as error:
            raise self._unreachable(error) from error

    def clusters(self) -> list[Cluster]:
        return [Cluster.model_validate(item) for item in self._ask("GET", "/clusters").json()]

    def add_cluster(self, body: dict[str, Any]) -> Cluster:
        return self._read(Cluster, "POST", "/clusters", json=body)

    def begin_check(self, cluster: str) -> str:
        """The id of a new check."""
        return self._read(CheckStarted, "POST", f"/clusters/{cluster}/checks").id

    def get_check(self, cluster: str, check_id: str) -> ClusterCheck:
        return self._read(ClusterCheck, "GET", f"/clusters/{cluster}/checks/{check_id}")

    def login_link(self) -> LoginLink:
        return self._read(LoginLink, "POST", "/login-links")

    def create_token(self, name: str, scopes: list[str], expires_at: str | None) -> CreatedToken:
        return self._read(
            CreatedToken, "POST", "/tokens", json={"name": name, "scopes": scopes, "expires_at": expires_at}
        )

    def _read(self, model: type[Model], method: str, path: str, **given: Any) -> Model:
        return model.model_validate_json(self._ask(method, path, **given).content)

    def _ask(self, method: str, path: str, **given: Any) -> httpx.Response:
        try:
            answer = self._http.request(method, path, **given)
        except httpx.TransportError as error:
            raise self._unreachable(error) from error
        _require_success(answer)
        return answer

    def _unreachable(self, error: httpx.TransportError) -> Unreachable:
        return Unreachable(
            f"{self.url} does not answer ({error or type(error).__name__}). Is it running? `foredeck status` tells for "
            "this machine; FOREDECK_URL names another.",
            ExitCode.INFRASTRUCTURE,
        )


def credentials_path() -> Path:
    return Path(os.environ.get("FOREDECK_HOME") or Path.home() / ".foredeck").expanduser() / "credentials.json"


def server_sent_events(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    """(event, data) of each message; comments and keep-alives are left out."""
    kind = "message"
    data: list[str] = []
    for line in lines:
        if not line:
            if data:
                yield kind, "\n".join(data)
            kind, data = "message", []
        elif line.startswith("event:"):
            kind = line.removeprefix("event:").strip()
        elif line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))


def _require_success(answer: httpx.Response) -> None:
    if answer.is_success:
        return
    code = ExitCode.INFRASTRUCTURE if answer.is_server_error or answer.status_code == 429 else ExitCode.USAGE
    try:
        problem = answer.json()
        detail = str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        raise CommandError(f"HTTP {answer.status_code} from {answer.url}: not a Foredeck service?", code) from None
    raise CommandError(detail, code, problem)
