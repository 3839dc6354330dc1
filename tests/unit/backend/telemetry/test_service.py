import pytest

from backend.telemetry.service import bucket_width


@pytest.mark.parametrize(
    ("last_step", "max_points", "width"),
    [(0, 1, 1), (9, 10, 1), (10, 10, 2), (19, 10, 2), (20, 10, 4), (2**31 - 1, 1, 2**31)],
)
def test_bucket_width_is_the_smallest_that_fits(last_step: int, max_points: int, width: int) -> None:
    assert bucket_width(last_step, max_points) == width
