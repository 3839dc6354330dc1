import pytest

from benchmarks import draft_length
from benchmarks.draft_length import MAX_LENGTH, share_of_best


def test_what_was_measured_right_is_used_well():
    assert 0.97 < share_of_best(8, 0.93, 0.0, seed=1, num_rounds=800) < 1.03


def test_a_controller_that_does_not_choose_falls_behind(monkeypatch):
    """One token is drafted always, where eight bring most."""
    monkeypatch.setattr(draft_length.DraftLengthController, "choose", lambda *_: 1)
    share = share_of_best(2, 0.957, 0.0, seed=1, num_rounds=800)
    expected = [sum(0.957**i for i in range(k + 1)) / draft_length.COSTS_US[2][k] for k in range(MAX_LENGTH + 1)]
    assert share == pytest.approx(expected[1] / max(expected), rel=0.02)
