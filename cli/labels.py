"""`--label key=value`."""

from cli.errors import CommandError


def parsed(pairs: list[str]) -> dict[str, str]:
    """Raises CommandError for what is no key=value."""
    labels = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise CommandError(f"--label {pair}: write key=value.")
        labels[key] = value
    return labels
