"""What pydantic finds wrong, in plain words with the mend."""

from typing import Any

MOMENT = "must be a time with its zone, as in 2030-01-31T12:00:00Z"
_BY_TYPE: dict[str, str] = {
    "missing": "is required",
    "extra_forbidden": "unknown key: remove it or mend its spelling",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "must be a smaller number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "string_unicode": "must be text that UTF-8 can carry",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "dict_type": "must be an object",
    "list_type": "must be a list",
    "uuid_parsing": "must be a UUID",
    "uuid_type": "must be a UUID",
    "datetime_type": MOMENT,
    "datetime_parsing": MOMENT,
    "datetime_from_date_parsing": MOMENT,
    "timezone_aware": MOMENT,
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "union_tag_invalid": "knows no kind {tag}: choose {expected_tags}",
    "union_tag_not_found": "needs a `kind`",
    "json_invalid": "is not JSON: {error}",
}
_BY_COUNT: dict[str, tuple[str, str, str]] = {
    "string_too_short": ("min_length", "at least", "character"),
    "string_too_long": ("max_length", "at most", "character"),
    "too_short": ("min_length", "at least", "entry"),
    "too_long": ("max_length", "at most", "entry"),
}
_NO_CONTROL = r"\x00-\x1f"


def in_words(detail: Any) -> str:
    """One of `ValidationError.errors()` as a sentence without its subject."""
    kind, context = detail["type"], detail.get("ctx", {})
    if kind in _BY_COUNT:
        return _counted(context, *_BY_COUNT[kind])
    if kind == "string_pattern_mismatch":
        return _matched(context["pattern"])
    if kind in _BY_TYPE:
        return _BY_TYPE[kind].format(**{key: _grouped(value) for key, value in context.items()})
    return str(detail["msg"]).removeprefix("Value error, ")


def _counted(context: Any, bound: str, comparison: str, unit: str) -> str:
    number = context[bound]
    if (bound, number) == ("min_length", 1):
        return "must not be empty"
    units = unit if number == 1 else {"character": "characters", "entry": "entries"}[unit]
    return f"must have {comparison} {_grouped(number)} {units}"


def _grouped(value: Any) -> Any:
    """Digits in groups of three, where it is a number."""
    return f"{value:,}" if isinstance(value, int | float) else value


def _matched(pattern: str) -> str:
    return "must not hold control characters" if _NO_CONTROL in pattern else f"must match {pattern}"
