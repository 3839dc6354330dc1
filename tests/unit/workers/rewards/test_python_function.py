import math

import pytest

from workers.rewards.python_function import check_allowed, load_function


def test_a_module_allows_what_lies_below_it_and_nothing_beside_it():
    check_allowed("rewards.brevity:reward", ["other", "rewards"])
    check_allowed("rewards:reward", ["rewards"])
    for function in ("rewards2:reward", "reward:reward", "os:system"):
        with pytest.raises(ValueError, match=f"{function}: .* these modules: other, rewards\\. Let an administrator"):
            check_allowed(function, ["other", "rewards"])


def test_a_function_is_found_by_its_place():
    assert load_function("math:sqrt") is math.sqrt


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("math:nothing", "math has no function nothing"),
        ("math:pi", "math has no function pi"),
        ("no_such_module:reward", "importing no_such_module raised ModuleNotFoundError: .* Make it importable"),
    ],
)
def test_what_cannot_be_had_is_named(function, said):
    with pytest.raises(ValueError, match=f"task.reward.function = {function}: {said}"):
        load_function(function)
