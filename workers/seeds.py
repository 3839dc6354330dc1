"""Seeds for every purpose, all derived from the run's one seed."""

import hashlib


def derive_seed(seed: int, *purpose: object) -> int:
    """A number in [0, 2**31) that depends on the seed and the purpose, and looks random in both."""
    text = "/".join(map(str, (seed, *purpose)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) % 2**31
