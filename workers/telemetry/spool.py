"""Events on disk until they are acknowledged, so that nothing is lost while the control plane is away.

A spool is a folder of one attempt and emitter. Segment files are named by the seq of their first event and hold one
JSON event a line; since seq has no gaps, a line's number gives its seq. The file `acknowledged` holds the high-water
mark; segments wholly below it are deleted.
"""

import errno
import itertools
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Self
from uuid import UUID, uuid4

from contract.telemetry.events import Body, Event

_SEGMENT_EVENTS = 500
_MARK = "acknowledged"


class SpoolReader:
    """The unacknowledged events of a spool, its writer alive or not."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._acknowledged = _read_mark(folder / _MARK)

    @property
    def acknowledged(self) -> int:
        """All events up to and including this seq are delivered."""
        return self._acknowledged

    def read(self, max_events: int, max_bytes: int) -> list[str]:
        """The next unacknowledged events as JSON, oldest first: at most max_events, and max_bytes unless one has more.

        A last line that was torn by a crash is left out.
        """
        wanted: list[str] = []
        size = 0
        for segment in self._segments():
            for seq, line in _lines(segment):
                if seq <= self._acknowledged:
                    continue
                size += len(line)
                if len(wanted) == max_events or (wanted and size > max_bytes):
                    return wanted
                wanted.append(line)
        return wanted

    def acknowledge(self, seq: int) -> None:
        """Forget all events up to and including seq; an older mark than the present one changes nothing."""
        with self._lock:
            if seq <= self._acknowledged:
                return
            self._acknowledged = seq
            self._write_mark(seq)
            segments = self._segments()
            for segment, following in itertools.pairwise(segments):
                if _first_seq(following) <= seq + 1:
                    segment.unlink(missing_ok=True)

    def sync(self) -> None:
        """Nothing to do: only a writer has unsynced lines."""

    def refuse(self, line: str) -> None:
        """Keep an event that the control plane will never take, for a person to look at."""
        with (self._folder / "refused").open("a") as file:
            file.write(line + "\n")

    def _segments(self) -> list[Path]:
        return sorted(self._folder.glob("*.jsonl"))

    def _write_mark(self, seq: int) -> None:
        # A name of its own: a newer attempt may be delivering the events of this one while it still runs.
        part = self._folder / f"{_MARK}.{uuid4().hex}"
        part.write_text(str(seq))
        part.replace(self._folder / _MARK)


class Spool(SpoolReader):
    """A spool that can be appended to; opened again, it goes on where it ended."""

    def __init__(self, folder: Path, run_id: UUID, attempt: int, emitter: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder)
        self._envelope = {"run_id": run_id, "attempt": attempt, "emitter": emitter}
        self._append_lock = threading.Lock()
        self._listener: Callable[[], None] = lambda: None
        self._last_seq = self._recover()
        self._file = self._open_segment(self._last_seq + 1)
        self._num_in_segment = 0

    @property
    def last_seq(self) -> int:
        """seq of the newest event; 0 before the first."""
        return self._last_seq

    def on_append(self, listener: Callable[[], None]) -> None:
        """Call this after every append."""
        self._listener = listener

    def append(self, body: Body) -> Event:
        """Give the event its seq and write it to the operating system; sync() makes it outlive a power failure.

        Raises OSError where there is no room for it; the next event then gets its seq.
        """
        with self._append_lock:
            event = Event(seq=self._last_seq + 1, time=datetime.now(UTC), body=body, **self._envelope)
            if self._num_in_segment == _SEGMENT_EVENTS:
                self._rotate(event.seq)
            self._write_whole(event.model_dump_json().encode() + b"\n")
            self._last_seq = event.seq
            self._num_in_segment += 1
        self._listener()
        return event

    def _write_whole(self, line: bytes) -> None:
        """Write the line or, on a full disk, none of it: a torn one would give every later line a wrong seq."""
        size = self._file.seek(0, os.SEEK_END)
        if self._file.write(line) != len(line):
            self._file.truncate(size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._folder))

    def sync(self) -> None:
        """Force what was appended to disk. The sender calls it before it sends, so that a seq is never given twice."""
        with self._append_lock:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        with self._append_lock:
            os.fsync(self._file.fileno())
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _recover(self) -> int:
        """seq of the newest whole event; a torn last line is cut off."""
        segments = self._segments()
        if not segments:
            return self._acknowledged
        content = segments[-1].read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            os.truncate(segments[-1], len(whole))
        return max(self._acknowledged, _first_seq(segments[-1]) + whole.count(b"\n") - 1)

    def _rotate(self, first_seq: int) -> None:
        former, self._file = self._file, self._open_segment(first_seq)
        self._num_in_segment = 0
        os.fsync(former.fileno())
        former.close()

    def _open_segment(self, first_seq: int) -> FileIO:
        return (self._folder / f"{first_seq:012d}.jsonl").open("ab", buffering=0)


def _lines(segment: Path) -> list[tuple[int, str]]:
    """(seq, line) of each whole line; none when the segment has just been deleted."""
    try:
        content = segment.read_bytes()
    except FileNotFoundError:
        return []
    whole = content[: content.rfind(b"\n") + 1]
    lines = whole.split(b"\n")[:-1]  # splitlines() would also cut at separators inside a text
    return [(seq, line.decode()) for seq, line in enumerate(lines, start=_first_seq(segment))]


def _first_seq(segment: Path) -> int:
    return int(segment.stem)


def _read_mark(file: Path) -> int:
    try:
        return int(file.read_text())
    except (FileNotFoundError, ValueError):
        return 0
