"""Clusters and the checks of them."""

from typing import Any

from pydantic import Field

from foredeck.models.base import Answer


class Reachability(Answer):
    """Whether a cluster's job server answers."""

    state: str
    detail: str


class Resource(Answer):
    used: float
    total: float


class Cluster(Answer):
    """A Ray cluster."""

    name: str
    address: str | None = None
    code: dict[str, Any] = Field(default_factory=dict)
    reward_modules: list[str] = Field(default_factory=list)
    data_dirs: list[str] | None = None
    num_live_runs: int = 0
    num_queued_runs: int = 0
    max_concurrent_runs: int = 1
    max_concurrent_runs_per_user: int | None = None
    max_concurrent_runs_per_project: int | None = None
    reachability: Reachability | None = None
    resources: dict[str, Resource] | None = None


class CheckStarted(Answer):
    id: str


class Finding(Answer):
    """One thing that a check looked at."""

    name: str
    is_ok: bool
    detail: str


class ClusterCheck(Answer):
    """What a check of a cluster has found so far."""

    id: str
    state: str
    findings: list[Finding] = Field(default_factory=list)
    log: list[str] = Field(default_factory=list)

    @property
    def is_ended(self) -> bool:
        return self.state in {"passed", "failed"}
