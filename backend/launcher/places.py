"""Whose turn it is: the places of a cluster, given out in the order of the queue.

What holds a place is counted from the runs themselves, each time anew and under the cluster's lock: there is no counter
that could go wrong. Whoever is kept back by a limit of their own lets those behind pass.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal
from uuid import UUID

Limit = Literal["user", "project", "sweep"]


@dataclass(frozen=True, slots=True)
class Owners:
    """Those whose limits a run counts against."""

    user: UUID | None
    project: UUID
    sweep: UUID | None


@dataclass(slots=True)
class Places:
    """A cluster's places, as they are taken one after another."""

    num_places: int
    per_user: int | None = None
    per_project: int | None = None
    per_sweep: dict[UUID, int] = field(default_factory=dict)
    num_taken: int = 0
    _held: Counter[tuple[Limit, UUID | None]] = field(default_factory=Counter)

    def take(self, owners: Owners, num: int = 1) -> None:
        self.num_taken += num
        for limit in ("user", "project", "sweep"):
            self._held[limit, getattr(owners, limit)] += num

    def limit(self, kind: Limit, owners: Owners) -> int | None:
        if kind == "sweep":
            return self.per_sweep.get(owners.sweep) if owners.sweep else None
        return self.per_user if kind == "user" else self.per_project

    def kept_back_by(self, owners: Owners) -> Limit | None:
        """The limit of the run's own that it has to wait for."""
        for kind in ("user", "project", "sweep"):
            limit = self.limit(kind, owners)
            if limit is not None and self._held[kind, getattr(owners, kind)] >= limit:
                return kind
        return None

    def offer(self, waiting: Iterable[Owners]) -> int:
        """To those who wait, the longest first, until no place is left; how many were taken."""
        num_before = self.num_taken
        for owners in waiting:
            if self.num_taken >= self.num_places:
                break
            if self.kept_back_by(owners) is None:
                self.take(owners)
        return self.num_taken - num_before
