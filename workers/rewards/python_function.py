"""A user's own reward function."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any


def check_allowed(function: str, allowed_modules: Sequence[str]) -> None:
    """Raises ValueError where the function's module is not among the allowed ones, nor below one of them."""
    module = function.partition(":")[0]
    if any(module == allowed or module.startswith(f"{allowed}.") for allowed in allowed_modules):
        return
    allows = ", ".join(allowed_modules) or "none"
    raise ValueError(
        f"task.reward.function = {function}: the cluster's registration allows reward functions of these modules: "
        f"{allows}. Let an administrator add {module} to it"
    )


def load_function(function: str) -> Callable[..., Any]:
    """The function at module:function. Raises ValueError where there is none."""
    module, _, name = function.partition(":")
    try:
        found = getattr(import_module(module), name, None)
    except Exception as error:
        raise ValueError(
            f"task.reward.function = {function}: importing {module} raised {type(error).__name__}: {error}. Make it "
            "importable on the cluster's machines"
        ) from error
    if not callable(found):
        raise ValueError(f"task.reward.function = {function}: {module} has no function {name}")
    return found  # type: ignore[no-any-return]
