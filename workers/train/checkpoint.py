"""Checkpoints on disk: complete or absent, the newest ones kept."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from workers.train.cache import write_folder

_NAME = re.compile(r"step-(\d{6,})")
_PART = re.compile(r"\.step-\d{6,}\.attempt-(\d+)-.*")
_PROGRESS = "progress.json"


@dataclass(frozen=True, slots=True)
class RunProgress:
    """Where a run stands after a step."""

    step: int = 0
    """GRPO steps done."""
    next_problem: int = 0
    """Position in the training problems."""
    num_tokens_total: int = 0
    """Response tokens generated for training."""
    elapsed_s: float = 0.0
    """Training time, attempts added up."""
    audit: dict[str, Any] = field(default_factory=dict)
    """What the audit keeps; empty before the first checkpoint."""


class CheckpointStore:
    """The checkpoints of one run."""

    def __init__(self, folder: Path, max_kept: int = 1, attempt: int = 1) -> None:
        """attempt: the one that writes. A replaced attempt may still be at work beside it for a while."""
        self._folder = folder
        self._max_kept = max_kept
        self._attempt = attempt

    def write(self, progress: RunProgress, fill: Callable[[Path], None]) -> tuple[Path, int]:
        """Let fill() write into a new folder, add the progress, and publish it; returns the folder and its bytes."""

        def fill_all(part: Path) -> None:
            fill(part)
            (part / _PROGRESS).write_text(json.dumps(asdict(progress)))

        target = self._folder / f"step-{progress.step:06d}"
        write_folder(target, fill_all, writer=f".attempt-{self._attempt}", replace=True)
        self._delete_old()
        return target, sum(file.stat().st_size for file in target.rglob("*") if file.is_file())

    def newest(self) -> tuple[Path, RunProgress] | None:
        """The newest complete checkpoint; one that cannot be read is passed over."""
        for folder in reversed(self._complete()):
            try:
                return folder, RunProgress(**json.loads((folder / _PROGRESS).read_text()))
            except (OSError, ValueError, TypeError):
                continue
        return None

    def _complete(self) -> list[Path]:
        folders = [folder for folder in self._folder.glob("step-*") if _NAME.fullmatch(folder.name)]
        return sorted(folders, key=lambda folder: int(folder.name.removeprefix("step-")))

    def _delete_old(self) -> None:
        for folder in self._complete()[: -self._max_kept]:
            shutil.rmtree(folder, ignore_errors=True)
        for part in self._folder.glob(".step-*"):  # left behind by a crash, unless a newer attempt is writing it
            if (match := _PART.fullmatch(part.name)) and int(match[1]) <= self._attempt:
                shutil.rmtree(part, ignore_errors=True)
