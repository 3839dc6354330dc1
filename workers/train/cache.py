"""Results of set-up stages on disk, found again by a digest of everything that decided them."""

import contextlib
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


def write_folder(folder: Path, fill: Callable[[Path], None], *, writer: str = "", replace: bool = False) -> None:
    """Fill a folder such that it is seen complete or not at all, also after a crash.

    It is written beside its place, forced to disk and renamed. Where the folder is there already, or appears meanwhile,
    that one stays, unless replace: then it goes once the new one is complete. What a crash leaves behind is named by a
    dot, the folder's name and the writer.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{folder.name}{writer}-", dir=folder.parent))
    try:
        fill(part)
        _sync_tree(part)
        part.chmod(0o755)
        _publish(part, folder, replace=replace)
        _sync(folder.parent)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _publish(part: Path, folder: Path, *, replace: bool) -> None:
    former = part.with_name(f"{part.name}-former")
    if replace:
        with contextlib.suppress(FileNotFoundError):
            folder.rename(former)
    try:
        part.rename(folder)
    except OSError:
        if not folder.is_dir():  # else another writer was first
            raise
    shutil.rmtree(former, ignore_errors=True)


def _sync_tree(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        _sync(path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
