"""Clusters and checks of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from foredeck.models import CheckStarted, Cluster, ClusterCheck
from foredeck.transport import Transport


class Clusters:
    """`Foredeck.clusters`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Sequence[Cluster]:
        """All of them, with whether each answers."""
        return [Cluster.model_validate(item) for item in self._transport.ask("GET", "/clusters").json()]

    def add(self, body: Mapping[str, Any]) -> Cluster:
        """Registers a cluster; `body` is a ClusterCreate of the API."""
        return self._transport.read(Cluster, "POST", "/clusters", json=dict(body))

    def begin_check(self, name: str) -> str:
        """The id of a new check."""
        return self._transport.read(CheckStarted, "POST", f"/clusters/{name}/checks").id

    def get_check(self, name: str, check_id: str) -> ClusterCheck:
        return self._transport.read(ClusterCheck, "GET", f"/clusters/{name}/checks/{check_id}")
