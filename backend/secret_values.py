"""What looks like a secret, wherever it stands: it is neither stored in a configuration, nor shown, nor logged."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

LOOKS_SECRET = re.compile(
    r"fdk_\w{8}_[\w-]+"  # our own tokens
    r"|whsec_[\w+/=]+"
    r"|\bhf_[A-Za-z0-9]{30,}"
    r"|\bgh[opsru]_[A-Za-z0-9]{30,}|\bgithub_pat_\w{30,}|\bglpat-[\w-]{20,}|\bsk-[\w-]{32,}"
    r"|\bA(?:KIA|SIA)[A-Z0-9]{16}\b"
    r"|(?i:bearer\s+)[A-Za-z0-9._~+/-]{16,}=*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|(?<=://)[^/@\s:\"']*:[^/@\s\"']+(?=@)"  # the password of an address, with its user
)
REDACTED = "[redacted]"


def redacted(text: str) -> str:
    """The text without what looks like a secret."""
    return LOOKS_SECRET.sub(REDACTED, text)


def places_of_secrets(value: Any, pointer: str) -> Iterator[str]:
    """JSON pointers of the texts in which something looks like a secret."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from places_of_secrets(each, f"{pointer}/{key}")
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from places_of_secrets(each, f"{pointer}/{index}")
    elif isinstance(value, str) and LOOKS_SECRET.search(value):
        yield pointer
