"""What can be taken out, page by page, each a transaction of its own: whoever fetches slowly holds none open."""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from backend.auth.identity import Principal
from backend.db import Database
from backend.errors import ProblemError, invalid
from backend.export import repository
from backend.export.csv_file import write_csv
from backend.export.repository import PointRow, SeriesKey
from backend.runs.repository import matches
from backend.runs.service import parsed_labels, parsed_statuses
from backend.telemetry.schemas import SampleRead
from backend.telemetry.service import check_names, require_runs, sample_pages
from contract.telemetry.metrics import METRICS

MAX_RUNS = 1000
POINTS_PER_PAGE = 20_000
"""In memory at once, about 10 MB; of a Parquet file's row group."""
_BEFORE_ALL = (-1, 0, "")
_ORDER = {name: position for position, name in enumerate(METRICS)}


def metric_names(text: str | None) -> list[str] | None:
    """Names separated by commas; None for all. Raises ApiError (422) for undeclared ones."""
    names = [name.strip() for name in text.split(",")] if text else None
    check_names(names or [])
    return names


def chosen_runs(
    session: Session,
    reader: Principal,
    runs: str | None,
    labels: Sequence[str],
    project: str | None,
    status: str | None,
    search: str | None,
) -> Sequence[UUID]:
    """The runs named, or those that match like in a list of runs, that the reader may see. Raises ApiError: 404 for a
    named one that they may not, 422 for none at all or too many."""
    statuses = parsed_statuses(status)
    if not (runs or labels or project or statuses or search):
        detail = "say which runs: their ids with commas, `all`, label=key:value, project, status or search"
        raise invalid([ProblemError(parameter="runs", detail=detail)])
    run_ids = require_runs(session, runs, reader) if runs else None
    visible = reader.projects("read")
    wanted = list(matches(statuses, search, parsed_labels(labels), project))
    found = repository.list_runs(session, run_ids, wanted, visible, MAX_RUNS + 1)
    if len(found) > MAX_RUNS:
        detail = f"these are more than {MAX_RUNS} runs: name fewer, or narrow them by label, project, status or search"
        raise invalid([ProblemError(parameter="runs" if runs else "label", detail=detail)])
    return found


def point_pages(
    database: Database, run_ids: Sequence[UUID], names: Sequence[str] | None, is_newest: bool
) -> Iterator[list[PointRow]]:
    """Run by run, series by series in the order of the catalogue, step by step."""
    reader = _Reader(run_ids, names, is_newest)
    while not reader.is_done:
        with database.transaction() as session:
            page = reader.read_page(session)
        if page:
            yield page


class _Reader:
    """Where an export stands between two transactions."""

    def __init__(self, run_ids: Sequence[UUID], names: Sequence[str] | None, is_newest: bool) -> None:
        self._runs, self._names, self._is_newest = list(reversed(run_ids)), names, is_newest
        self._series: list[SeriesKey] = []
        self._after = _BEFORE_ALL

    @property
    def is_done(self) -> bool:
        return not (self._runs or self._series)

    def read_page(self, session: Session) -> list[PointRow]:
        page: list[PointRow] = []
        while len(page) < POINTS_PER_PAGE and not self.is_done:
            if self._series:
                page += self._read_points(session, POINTS_PER_PAGE - len(page))
            else:
                found = repository.list_series(session, self._runs.pop(), self._names)
                self._series = sorted(found, key=_place, reverse=True)
        return page

    def _read_points(self, session: Session, limit: int) -> list[PointRow]:
        series = self._series[-1]
        found = repository.list_points(session, series, self._after, limit, self._is_newest)
        if len(found) < limit:
            self._series.pop()
            self._after = _BEFORE_ALL
        else:
            self._after = (found[-1].step, found[-1].attempt, found[-1].emitter)
        return [PointRow(series.run_id, series.run, series.metric, *row) for row in found]


def _place(series: SeriesKey) -> tuple[int, str]:
    """In the catalogue; what an earlier version declared comes last."""
    return _ORDER.get(series.metric, len(_ORDER)), series.metric


SAMPLE_COLUMNS = {
    "run_id": "The run.",
    "attempt": "Its attempt; where several reached a step, the newest.",
    "step": "The step that the response was generated for.",
    "sample_id": "One for each response.",
    "prompt": "Its prompt's text.",
    "answer": "What the reward compared with.",
    "response": "Its text.",
    "reward": "Its reward.",
    "advantage": "Its advantage in the update.",
    "is_truncated": "Whether it was cut at max_new_tokens.",
    "num_rounds": "Its verification rounds.",
    "num_drafted": "Tokens that were proposed in them.",
    "num_accepted": "How many of them were accepted.",
}


def samples_csv(database: Database, run_id: UUID) -> Iterator[bytes]:
    """Stored rollouts, a line for each response."""
    pages = sample_pages(database, run_id)
    return write_csv(list(SAMPLE_COLUMNS), ([_sample_row(run_id, sample) for sample in page] for page in pages))


def _sample_row(run_id: UUID, sample: SampleRead) -> list[Any]:
    num_drafted = sum(len(one.drafted) for one in sample.rounds)
    num_accepted = sum(one.num_accepted for one in sample.rounds)
    told = [sample.prompt, sample.answer, sample.response, sample.reward, sample.advantage, sample.is_truncated]
    return [run_id, sample.attempt, sample.step, sample.id, *told, len(sample.rounds), num_drafted, num_accepted]
