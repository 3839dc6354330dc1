"""Prints the pip option that brings torch's CPU build, where that is the better one and can be reached.

On Linux the default build carries gigabytes of CUDA libraries, which a machine without an NVIDIA GPU has no use for.
Prints nothing elsewhere; pip's own configuration decides then.
"""

import shutil
import sys
import urllib.error
import urllib.request
from pathlib import Path

INDEX = "https://download.pytorch.org/whl/cpu"
TIMEOUT_S = 3.0


def has_nvidia_gpu() -> bool:
    return Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi") is not None


def is_reachable(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/torch/", timeout=TIMEOUT_S):  # noqa: S310  a constant https address
            return True
    except (urllib.error.URLError, OSError):
        return False


if __name__ == "__main__":
    if sys.platform == "linux" and not has_nvidia_gpu() and is_reachable(INDEX):
        print(f"--extra-index-url {INDEX}")
