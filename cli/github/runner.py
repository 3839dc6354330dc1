"""How a step speaks to the runner: outputs, annotations, and silence for what is not meant for it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


def set_output(name: str, value: str) -> None:
    """Gives a value to the steps that follow. Its delimiter cannot stand in the value."""
    delimiter = uuid4().hex
    with Path(os.environ["GITHUB_OUTPUT"]).open("a") as file:
        file.write(f"{name}<<{delimiter}\n{value}\n{delimiter}\n")


def annotate(title: str, text: str) -> None:
    """A red line on the page of the workflow run."""
    print(f"::error title={_property(title)}::{_data(text)}", flush=True)


@contextmanager
def deaf() -> Iterator[None]:
    """The runner obeys no line that is printed inside: names and reasons come from afar."""
    token = uuid4().hex
    print(f"::stop-commands::{token}", flush=True)
    try:
        yield
    finally:
        print(f"::{token}::", flush=True)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
