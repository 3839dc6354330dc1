"""Passwords that are made once and kept in files only their owner can read."""

import os
import secrets
from pathlib import Path


def write_private(path: Path, content: str) -> None:
    """Writes a file of mode 0600, whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(content)
    temporary.replace(path)


def kept_password(path: Path) -> str:
    """Reads the password, or makes one."""
    if not path.exists():
        write_private(path, secrets.token_urlsafe(24))
    return path.read_text()
