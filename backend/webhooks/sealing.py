"""How secrets lie in the database: encrypted with a key from the environment where there is one, else as they are.

A signature needs the secret itself, so that a hash will not do. The key must lie elsewhere than the database to be of
use against whoever reads that, or a copy of it.
"""

from collections.abc import Sequence

_PLAIN, _SEALED = "plain:", "fernet:"


class UnreadableError(Exception):
    """The secret was encrypted with a key that is not there any more."""


def seal(secret: str, keys: Sequence[str]) -> str:
    """What to store; with several keys by the first."""
    if not keys:
        return _PLAIN + secret
    from cryptography.fernet import Fernet  # noqa: PLC0415 (only where keys are set)

    return _SEALED + Fernet(keys[0]).encrypt(secret.encode()).decode()


def unseal(stored: str, keys: Sequence[str]) -> str:
    """Raises UnreadableError."""
    if stored.startswith(_PLAIN):
        return stored.removeprefix(_PLAIN)
    from cryptography.fernet import Fernet, InvalidToken, MultiFernet  # noqa: PLC0415

    try:
        return MultiFernet([Fernet(key) for key in keys]).decrypt(stored.removeprefix(_SEALED)).decode()
    except (InvalidToken, ValueError) as error:
        raise UnreadableError(
            "The secret cannot be read: none of FOREDECK_ENCRYPTION_KEYS is the key that it was encrypted with. "
            "Set that key, or rotate the secret."
        ) from error
