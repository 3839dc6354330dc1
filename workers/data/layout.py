"""Which fields of a row are its prompt and its answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contract.config.dataset import SourceConfig

Message = Mapping[str, str]
_ROLES = ("system", "user", "assistant")


@dataclass(frozen=True, slots=True)
class Layout:
    """Fields by their paths, a dot leading into an object."""

    prompt_field: str
    answer_field: str
    known_as: str | None = None


KNOWN = (
    Layout("prompt", "reward_model.ground_truth", "DAPO-Math-17K"),
    Layout("problem", "answer", "AIME-2024"),
    Layout("Problem", "Answer", "AIME-2024"),
    Layout("question", "answer", "question and answer"),
    Layout("prompt", "answer", "prompt and answer"),
    Layout("messages", "answer", "messages and answer"),
    Layout("prompt", "tests", "prompt and tests"),
    Layout("text", "test_list", "MBPP"),
)
"""The first whose fields are there counts."""


def recognise(values: Mapping[str, Any], source: SourceConfig, field: str) -> Layout:
    """The layout of a source by the fields of its first rows; fields that the configuration names count.

    Raises ValueError where a field is neither named nor known.
    """
    prompt, answer = source.prompt_field, source.answer_field
    if prompt and answer:
        return Layout(prompt, answer)
    for known in KNOWN:
        layout = Layout(prompt or known.prompt_field, answer or known.answer_field, known.known_as)
        if (prompt or has_field(values, layout.prompt_field)) and (answer or has_field(values, layout.answer_field)):
            return layout
    missing = " and ".join(
        f"{field}.{name}" for name, given in (("prompt_field", prompt), ("answer_field", answer)) if not given
    )
    raise ValueError(f"{missing} must be given: the first rows have the fields {', '.join(values)}, of no known layout")


def has_field(values: Mapping[str, Any], path: str) -> bool:
    """Whether the field is there, be it empty."""
    parent, _, name = path.rpartition(".")
    here = value_at(values, parent) if parent else values
    return isinstance(here, Mapping) and name in here


def value_at(values: Mapping[str, Any], path: str) -> Any:
    """The field's value; None where there is none. A name with a dot in it may also be a field of its own."""
    if path in values:
        return values[path]
    here: Any = values
    for name in path.split("."):
        here = here.get(name) if isinstance(here, Mapping) else None
    return here


def messages_of(prompt: Any) -> list[Message] | None:
    """A row's prompt as chat messages; None where it is neither a text nor messages that end with the user's."""
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}] if prompt.strip() else None
    if not isinstance(prompt, Sequence) or not prompt or not all(_is_message(message) for message in prompt):
        return None
    messages = [{"role": message["role"], "content": message["content"]} for message in prompt]
    return messages if messages[-1]["role"] == "user" and messages[-1]["content"].strip() else None


def _is_message(message: Any) -> bool:
    return isinstance(message, Mapping) and message.get("role") in _ROLES and isinstance(message.get("content"), str)


def answer_of(value: Any, mark: str) -> Any:
    """The answer in a field's value, behind the last mark where there is one to look for; None without an answer."""
    if mark and isinstance(value, str):
        _, found, value = value.rpartition(mark)
        value = value if found else None
    if isinstance(value, str):
        value = value.strip()
    return None if value in (None, "", [], {}) else value
