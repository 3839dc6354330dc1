"""Ray's job server over its REST interface.

The interface is spoken directly rather than through Ray's client: importing ray costs a process some hundred MB, and
its client has no time limits and takes its address and token from the process's environment.
"""

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import httpx

from backend.launcher.jobs import Job, JobState, RefusedError, Submission, UnreachableError

MAX_MESSAGE_LENGTH = 300


class RayJobServer:
    """One cluster. Made for each piece of work: it keeps no connection between them."""

    def __init__(self, address: str, token: str | None, timeout_s: float) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._address = address
        # trust_env off: a proxy or a .netrc of this host has no business between the service and its cluster.
        self._http = httpx.Client(base_url=address, headers=headers, timeout=timeout_s, trust_env=False)

    def __enter__(self) -> "RayJobServer":
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def submit(self, submission: Submission) -> None:
        body = {
            "submission_id": submission.submission_id,
            "entrypoint": submission.entrypoint,
            "runtime_env": {"env_vars": submission.environment},
            "metadata": submission.metadata,
        }
        response = self._ask("POST", "/api/jobs/", json=body)
        if response.is_success or self.get(submission.submission_id).state is not JobState.MISSING:
            return
        reason = response.text.strip().splitlines()[-1][:MAX_MESSAGE_LENGTH] if response.text.strip() else "no reason"
        if response.status_code == HTTPStatus.BAD_REQUEST:
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
        response = self._ask("GET", f"/api/jobs/{submission_id}/logs")
        if self._is_unknown_job(response):
            return []
        return str(self._json(response).get("logs", "")).splitlines()[-num_lines:]

    def version(self) -> str:
        return str(self._json(self._ask("GET", "/api/version")).get("ray_version", "unknown"))

    def resources(self) -> dict[str, tuple[float, float]]:
        status = self._json(self._ask("GET", "/api/cluster_status"))
        report = ((status.get("data") or {}).get("clusterStatus") or {}).get("loadMetricsReport") or {}
        usage = report.get("usage") or {}
        return {name: (float(pair[0]), float(pair[1])) for name, pair in usage.items() if not name.startswith("node:")}

    def _ask(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        try:
            response = self._http.request(method, path, **arguments)
        except httpx.HTTPError as error:
            raise UnreachableError(f"no answer from {self._address} ({str(error) or type(error).__name__})") from error
        if response.status_code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            raise UnreachableError(f"{self._address} refuses the service's token: set FOREDECK_RAY_TOKEN to Ray's")
        return response

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


def _parse(body: dict[str, Any]) -> Job:
    try:
        state = JobState(body["status"])
    except (KeyError, ValueError) as error:
        raise UnreachableError(f"the job server tells no known status: {body.get('status')!r}") from error
    ended_ms = body.get("end_time")
    return Job(
        state,
        message=str(body.get("message") or "").partition("\n")[0][:MAX_MESSAGE_LENGTH],
        exit_code=body.get("driver_exit_code"),
        ended_at=datetime.fromtimestamp(ended_ms / 1000, UTC) if ended_ms else None,
    )
