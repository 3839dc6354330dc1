"""Observations as an exact engine, or one with a given fault, would give them."""

import pytest
import torch

from workers.algo.lossless.observations import AuditObservations


class Observed:
    """Draws one step after the other."""

    def __init__(self, seed=0):
        self._generator = torch.Generator().manual_seed(seed)

    def step(self, num_tokens=2000, num_tested=600, *, moved=0.0, ordered_moved=0.0, wrongly_accepted=0.0):
        """moved, ordered_moved: share of the transforms drawn from the lower half instead of anywhere, which is twice
        their distance. wrongly_accepted: share of drafts accepted whatever their chance."""
        chances = self._uniform(num_tested) ** 0.5
        is_accepted = self._uniform(num_tested) < torch.where(
            self._uniform(num_tested) < wrongly_accepted, 1.0, chances
        )
        return AuditObservations(
            self._moved(num_tokens, moved), 0, self._moved(num_tested, ordered_moved), is_accepted, chances
        )

    def _moved(self, count, share):
        u = self._uniform(count)
        return torch.where(self._uniform(count) < share, u / 2, u)

    def _uniform(self, count):
        return torch.rand(count, generator=self._generator, dtype=torch.float64)


@pytest.fixture
def make_observed():
    return Observed
