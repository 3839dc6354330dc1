"""Ray's job server over its REST interface.

The interface is spoken directly rather than through Ray's client: importing ray costs a process some hundred MB, and
its client has no time limits and takes its address and token from the process's environment.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import httpx

from backend.launcher import job_message
from backend.launcher.jobs import Job, JobState, Node, RefusedError, SilentError, Submission, UnreachableError

MAX_MESSAGE_LENGTH = 300
MAX_ANSWER_BYTES = 4_000_000
MAX_LOG_BYTES = 64_000_000
LOG_TAIL_BYTES = 256_000
_NOT_TOLD = (AttributeError, KeyError, TypeError, ValueError)
"""Another version of Ray, or not yet known."""


class RayJobServer:
    """One cluster. Made for each piece of work: it keeps no connection between them."""

    def __init__(self, address: str, token: str | None, timeout_s: float) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._address, self._timeout_s = address, timeout_s
        # httpx limits each part of a request: together they stay within the time.
        limits = httpx.Timeout(timeout_s / 5, read=3 * timeout_s / 5)
        with self._naming_problems():
            # trust_env off: a proxy or a .netrc of this host has no business between the service and its cluster.
            self._http = httpx.Client(base_url=address, headers=headers, timeout=limits, trust_env=False)

    def __enter__(self) -> "RayJobServer":
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def submit(self, submission: Submission) -> None:
        body = {
            "submission_id": submission.submission_id,
            "entrypoint": submission.entrypoint,
            "runtime_env": submission.runtime_env | {"env_vars": _quotable(submission.environment)},
            "metadata": submission.metadata,
        }
        response = self._ask("POST", "/api/jobs/", json=body)
        if response.is_success or self.get(submission.submission_id).state is not JobState.MISSING:
            return
        text = response.text.strip()
        reason = text.splitlines()[-1][:MAX_MESSAGE_LENGTH] if text else f"status {response.status_code}"
        # Ray answers with a traceback: a 400 of something in between says nothing about the job.
        if response.status_code == HTTPStatus.BAD_REQUEST and text.startswith("Traceback (most recent call last)"):
            raise RefusedError(f"Ray refuses the job: {reason}")
        raise UnreachableError(f"the job server at {self._address} failed: {reason}")

    def get(self, submission_id: str) -> Job:
        response = self._ask("GET", f"/api/jobs/{submission_id}")
        return Job(JobState.MISSING) if self._is_unknown_job(response) else _parse(self._json(response))

    def stop(self, submission_id: str) -> None:
        response = self._ask("POST", f"/api/jobs/{submission_id}/stop")
        if not self._is_unknown_job(response):
            self._json(response)

    def log_tail(self, submission_id: str, num_lines: int) -> list[str]:
        with self._open("GET", f"/api/jobs/{submission_id}/logs") as (response, chunks):
            tail, is_cut = b"", False
            for chunk in chunks(MAX_LOG_BYTES):
                is_cut = is_cut or len(tail) + len(chunk) > LOG_TAIL_BYTES
                tail = (tail + chunk)[-LOG_TAIL_BYTES:]
            if not response.is_success:
                return []
        return _lines(tail.decode(errors="replace"), is_cut)[-num_lines:]

    def version(self) -> str:
        return str(self._json(self._ask("GET", "/api/version")).get("ray_version", "unknown"))

    def resources(self) -> dict[str, tuple[float, float]]:
        try:
            usage = self._status()["loadMetricsReport"]["usage"]
            return {
                name: (float(used), float(total))
                for name, (used, total) in usage.items()
                if not name.startswith("node:")
            }
        except _NOT_TOLD:
            return {}

    def nodes(self) -> list[Node] | None:
        status = self._status()
        try:
            if _scales_itself(status):
                return None
            usages = status["loadMetricsReport"]["usageByNode"].values()
            found = [(float(used), float(total)) for used, total in (usage.get("GPU", (0, 0)) for usage in usages)]
            return [Node(total, total - used) for used, total in found] or None
        except _NOT_TOLD:
            return None

    def _status(self) -> Any:
        status = self._json(self._ask("GET", "/api/cluster_status")).get("data")
        return status.get("clusterStatus") if isinstance(status, dict) else None

    def _ask(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        with self._open(method, path, **arguments) as (response, chunks):
            content = b"".join(chunks(MAX_ANSWER_BYTES))
        if response.status_code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            raise UnreachableError(
                f"{self._address} refuses the service's token: set FOREDECK_RAY_TOKEN for the cluster of RAY_ADDRESS, "
                "or put it into FOREDECK_RAY_TOKENS_DIR for a registered one"
            )
        return httpx.Response(response.status_code, content=content)

    @contextmanager
    def _open(self, method: str, path: str, **arguments: Any) -> Iterator[tuple[httpx.Response, Any]]:
        """An answer and its body in pieces, which end with an error where they take too long or become too many."""
        deadline = time.monotonic() + self._timeout_s

        def chunks(max_bytes: int) -> Iterator[bytes]:
            num_bytes = 0
            for chunk in response.iter_bytes():
                num_bytes += len(chunk)
                if num_bytes > max_bytes:
                    raise UnreachableError(f"{self._address} answers with more than {max_bytes} bytes")
                if time.monotonic() > deadline:
                    raise SilentError(f"no whole answer from {self._address} within {self._timeout_s:.0f} s")
                yield chunk

        with self._naming_problems(), self._http.stream(method, path, **arguments) as response:
            yield response, chunks

    @contextmanager
    def _naming_problems(self) -> Iterator[None]:
        try:
            yield
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise SilentError(f"no answer from {self._address} ({str(error) or type(error).__name__})") from error

    def _is_unknown_job(self, response: httpx.Response) -> bool:
        """Ray's own words, for a 404 of something in between must not pass for a dead job."""
        return response.status_code == HTTPStatus.NOT_FOUND and "does not exist" in response.text

    def _json(self, response: httpx.Response) -> dict[str, Any]:
        if not response.is_success:
            raise UnreachableError(f"{self._address} answers {response.status_code}")
        try:
            body = response.json()
        except ValueError as error:
            raise UnreachableError(f"{self._address} does not speak Ray's job interface") from error
        if not isinstance(body, dict):
            raise UnreachableError(f"{self._address} does not speak Ray's job interface")
        return body


def _quotable(environment: dict[str, str]) -> dict[str, str]:
    """Where jobs are in containers, Ray writes every value between single quotes into a shell command as it is. So that
    what a user has named a run does not become a command, JSON's other way of writing a single quote is used."""
    return {name: value.replace("'", "\\u0027") for name, value in environment.items()}


def _scales_itself(status: dict[str, Any]) -> bool:
    """Machines that an autoscaler may add have types with names; those that were started by hand have one of their own,
    named after the node."""
    types = status["autoscalerReport"]["nodeTypeMapping"] or {}
    return any(kind != f"node_{node}" for node, kind in types.items())


def _parse(body: dict[str, Any]) -> Job:
    try:
        state = JobState(body["status"])
    except (KeyError, ValueError) as error:
        raise UnreachableError(f"the job server tells no known status: {body.get('status')!r}") from error
    exit_code = body.get("driver_exit_code")
    message = str(body.get("message") or "")
    return Job(
        state,
        message=job_message.short(message),
        exit_code=exit_code if isinstance(exit_code, int) else None,
        details=job_message.details(message),
    )


def _lines(answer: str, is_cut: bool) -> list[str]:
    """The log's lines from Ray's answer `{"logs": "..."}`, or from its end, where the first line is not whole."""
    if is_cut:  # whatever is cut, JSON can be read again behind an n that follows a backslash
        answer = '{"logs": "' + answer.partition("\\n")[2]
    try:
        return str(json.loads(answer)["logs"]).splitlines()[is_cut:]
    except (KeyError, TypeError, ValueError):
        return []
