import pytest
import torch

from workers.train.schedule import Schedule, scheduled_fraction


def test_hand_computed_points():
    fractions = [scheduled_fraction(step, 100) for step in (0, 4, 9, 59, 60, 80, 99)]
    assert fractions == pytest.approx([0.1, 0.5, 1.0, 1.0, 1.0, 0.5, 0.025])
    assert scheduled_fraction(9_999, 10_000) == 0.02


def test_scales_every_group_from_its_own_full_rate():
    parameters = [torch.nn.Parameter(torch.zeros(1)) for _ in range(2)]
    optimizers = [torch.optim.SGD([parameters[0]], lr=2.0), torch.optim.SGD([parameters[1]], lr=4.0)]
    schedule = Schedule(optimizers, 100)
    for step in (99, 80):
        schedule.apply(step)
    assert [optimizer.param_groups[0]["lr"] for optimizer in optimizers] == pytest.approx([1.0, 2.0])
