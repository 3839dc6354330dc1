"""A sandbox adopts orphans and kills all that its process started, so that it is not tested in that of all tests."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

Apart = Callable[..., Any]


@pytest.fixture(scope="module")
def apart() -> Iterator[Apart]:
    """Calls functions in one other process. Its environment holds a secret."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOREDECK_ASSIGNMENT", "secret")
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:

            def call(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
                return process.submit(function, *arguments, **named).result()

            assert call(os.getenv, "FOREDECK_ASSIGNMENT") == "secret"
            yield call
