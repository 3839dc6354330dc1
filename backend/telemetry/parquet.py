"""Stored rollouts as a Parquet file: a row for each verification round, written as it is sent."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

from backend.telemetry.schemas import SampleRead
from contract.telemetry.events import Round

MEDIA_TYPE = "application/vnd.apache.parquet"


class Sink:
    """What was written and not taken yet."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, part: Any) -> int:
        self._parts.append(bytes(part))
        return len(part)

    def flush(self) -> None:
        """There is nothing behind it."""

    def take(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


def write_rounds(run_id: UUID, pages: Iterable[Sequence[SampleRead]]) -> Iterator[bytes]:
    """The file in parts. Each page becomes a row group, so that one page is all that is held."""
    # Only who exports pays for it: 50 MB of memory, 0.2 s.
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    schema = _schema(pa)
    sink = Sink()
    with parquet.ParquetWriter(pa.PythonFile(sink, mode="w"), schema, compression="zstd") as writer:
        for page in pages:
            rows = [row for sample in page for row in _rows(run_id, sample)]
            if rows:
                writer.write_table(pa.Table.from_pylist(rows, schema))
                yield sink.take()
    yield sink.take()


def _rows(run_id: UUID, sample: SampleRead) -> Iterator[dict[str, Any]]:
    """A sample's rounds; one that has none, as where an earlier version stored none, has no row."""
    common = {
        "run_id": str(run_id),
        "attempt": sample.attempt,
        "step": sample.step,
        "sample_id": sample.id,
        "prompt": sample.prompt,
        "answer": sample.answer,
        "response": sample.response,
        "reward": sample.reward,
        "advantage": sample.advantage,
        "is_truncated": sample.is_truncated,
    }
    position = 0
    for index, one in enumerate(sample.rounds):
        yield common | _round(one, index, position, sample.vocabulary)
        position += one.num_accepted + (one.emitted is not None)


def _round(one: Round, index: int, position: int, vocabulary: dict[int, str]) -> dict[str, Any]:
    return {
        "round": index,
        "position": position,
        "drafted": one.drafted,
        "drafted_text": [vocabulary.get(token, "") for token in one.drafted],
        "num_accepted": one.num_accepted,
        "emitted": one.emitted,
        "emitted_text": None if one.emitted is None else vocabulary.get(one.emitted, ""),
        "draft_logprobs": one.draft_logprobs,
        "policy_logprobs": one.policy_logprobs,
    }


def _schema(pa: Any) -> Any:
    """Columns, with what they mean as the fields' metadata; docs/operations/samples.md tells the same."""
    types = {
        "string": pa.string(),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "double": pa.float64(),
        "bool": pa.bool_(),
        "list<int64>": pa.list_(pa.int64()),
        "list<string>": pa.list_(pa.string()),
        "list<float>": pa.list_(pa.float32()),
    }
    return pa.schema(
        [
            pa.field(name, types[kind], nullable=name in _NULLABLE, metadata={"description": meaning})
            for name, (kind, meaning) in COLUMNS.items()
        ]
    )


_NULLABLE = ("answer", "emitted", "emitted_text")

COLUMNS = {
    "run_id": ("string", "The run."),
    "attempt": ("int32", "Its attempt; where several reached a step, the newest."),
    "step": ("int32", "The step that the response was generated for."),
    "sample_id": ("int64", "One for each response."),
    "prompt": ("string", "Its prompt's text."),
    "answer": ("string", "What the reward compared with; null where a version before stored none."),
    "response": ("string", "Its text, the same in all its rows."),
    "reward": ("double", "Its reward."),
    "advantage": ("double", "Its advantage in the update."),
    "is_truncated": ("bool", "Whether it was cut at max_new_tokens."),
    "round": ("int32", "The verification round, from 0, in which the prompt's own pass yields the first token."),
    "position": ("int32", "Response tokens before the round's."),
    "drafted": ("list<int64>", "Tokens proposed; as many as the round's draft length k, or as the drafter found."),
    "drafted_text": ("list<string>", "Their text."),
    "num_accepted": ("int32", "How many of them, from the front, were accepted and are part of the response."),
    "emitted": ("int64", "The policy's own token after them; null where the response ended among the accepted ones."),
    "emitted_text": ("string", "Its text."),
    "draft_logprobs": (
        "list<float>",
        "Log-probability of each drafted token under the draft; 0 where it was looked up.",
    ),
    "policy_logprobs": ("list<float>", "Under the policy, at the run's temperature and truncation."),
}
"""Type and meaning by name."""
