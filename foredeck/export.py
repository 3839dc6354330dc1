"""Files of what runs measured and sampled, written part by part."""

from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, Literal
from uuid import UUID

from foredeck.runs import filters
from foredeck.transport import Transport

Form = Literal["csv", "parquet"]
Attempts = Literal["newest", "all"]


class Export:
    """`Foredeck.export`. Each method returns the file's size in bytes."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def series(
        self,
        file: BinaryIO,
        *,
        form: Form = "parquet",
        run_ids: Sequence[UUID] | Literal["all"] = (),
        labels: Mapping[str, str] | None = None,
        project: str | None = None,
        status: str | None = None,
        search: str | None = None,
        names: Sequence[str] = (),
        attempts: Attempts = "newest",
    ) -> int:
        """Every point of these runs, or of those that match as in a list of runs; of all series without `names`."""
        params = {
            "runs": run_ids if isinstance(run_ids, str) else ",".join(map(str, run_ids)) or None,
            **filters(status, search, labels, project),
            "names": ",".join(names) or None,
            "attempts": attempts,
        }
        return self._save(file, f"/export/series.{form}", params)

    def samples(self, run_id: UUID, file: BinaryIO, *, form: Form = "parquet") -> int:
        """Stored rollouts of a run: in Parquet every verification round, in CSV a line for each response."""
        return self._save(file, f"/runs/{run_id}/samples.{form}", {})

    def _save(self, file: BinaryIO, path: str, params: dict[str, Any]) -> int:
        with self._transport.stream(path, params=params) as answer:
            return sum(file.write(part) for part in answer.iter_bytes())
