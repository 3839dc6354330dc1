import pytest

from workers.audit.selection import evenly_spread


@pytest.mark.parametrize(
    ("responses", "expected", "budget", "chosen"),
    [
        (8, 10.0, 40, [0, 2, 4, 6]),
        (8, 10.0, 1000, list(range(8))),
        (8, 10.0, 9, [0]),
        (8, 10.0, 0, []),
        (7, 9.5, 30, [0, 2, 4]),
    ],
)
def test_as_many_responses_as_the_budget_holds(responses, expected, budget, chosen):
    assert evenly_spread(responses, expected, budget) == chosen
