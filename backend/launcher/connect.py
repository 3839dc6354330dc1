"""From a cluster's row to its job server; this machine's own Ray is asked for when it is first needed."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.launcher.jobs import JobServer, NotStartedError, SilentError, StartingError, UnreachableError
from backend.launcher.ray_jobs import RayJobServer
from backend.settings import Settings


@dataclass(frozen=True, slots=True)
class Target:
    """What of a cluster is needed to reach it."""

    name: str
    address: str | None


Connect = Callable[[Target, bool], AbstractContextManager[JobServer]]
"""(target, whether to start this machine's own Ray) -> its job server. Raises UnreachableError."""


def connector(settings: Settings, timeout_s: float | None = None) -> Connect:
    """How the service reaches clusters."""

    def connect(target: Target, wake: bool) -> AbstractContextManager[JobServer]:
        wait_s = timeout_s or settings.ray_timeout_s
        if target.address is not None:
            return RayJobServer(target.address, _token_of(target, settings), wait_s)
        address, token = _embedded(settings.embedded_ray_dir, wake)
        return RayJobServer(address, token, wait_s)

    return connect


def _token_of(target: Target, settings: Settings) -> str | None:
    """The token that is meant for the cluster: no registered address may learn that of another."""
    if target.address == settings.ray_address:
        return settings.ray_token
    if settings.ray_tokens_dir is None:
        return None
    try:
        return (settings.ray_tokens_dir / target.name).read_text().strip() or None
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UnreachableError(f"the Ray token of cluster {target.name} cannot be read: {error}") from error


def remembering(connect: Connect) -> Connect:
    """For one round of work: who gave no answer is not asked again, so that one dead cluster costs one wait."""
    silent: dict[Target, str] = {}

    @contextmanager
    def once(target: Target, wake: bool) -> Iterator[JobServer]:
        if target in silent:
            raise SilentError(silent[target])
        try:
            with connect(target, wake) as server:
                yield server
        except SilentError as error:
            silent[target] = str(error)
            raise

    return once


def _embedded(folder: Path | None, wake: bool) -> tuple[str, str | None]:
    """(address, token) of this machine's own Ray: its supervisor watches for `ray.wanted` and writes `ray.json`."""
    if folder is None:
        raise UnreachableError("this process was not started by `foredeck up` and knows no Ray: set RAY_ADDRESS")
    told = _told(folder / "ray.json")
    if wake and told.get("state") != "ready":
        try:
            (folder / "ray.wanted").touch()
        except OSError as error:
            raise UnreachableError(f"this machine's Ray cannot be asked for: {error}") from error
    if not told and not wake:
        raise NotStartedError("Ray has not been started on this machine")
    if told.get("state") != "ready":
        raise StartingError("Starting Ray on this machine.")
    return str(told["address"]), _token(told.get("token_path"))


def _told(path: Path) -> dict[str, Any]:
    try:
        told = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def _token(path: str | None) -> str | None:
    return Path(path).read_text().strip() if path else None
