"""Results of set-up stages on disk, found again by a digest of everything that decided them."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch


def cache_folder(cache_dir: Path, kind: str, inputs: Mapping[str, Any]) -> Path:
    """Where the result of these inputs lies or would lie; the PyTorch version belongs to the inputs."""
    content = json.dumps({**inputs, "torch": torch.__version__}, sort_keys=True)
    return cache_dir / f"{kind}-{hashlib.sha256(content.encode()).hexdigest()[:16]}"


def write_folder(folder: Path, fill: Callable[[Path], None]) -> None:
    """Fill a folder such that it is seen complete or not at all, also after a crash.

    It is written beside its place, forced to disk and renamed. Where the folder has appeared meanwhile, that one stays.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        fill(part)
        _sync_tree(part)
        part.chmod(0o755)
        part.rename(folder)
        _sync(folder.parent)
    except OSError:
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _sync_tree(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        _sync(path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
