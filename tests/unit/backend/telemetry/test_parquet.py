import io
import math
import re
from pathlib import Path
from uuid import UUID

import pyarrow as pa
from pyarrow import parquet

from backend.telemetry.parquet import COLUMNS, write_rounds
from backend.telemetry.schemas import SampleRead
from contract.telemetry.events import Round

RUN = UUID("11111111-2222-4333-8444-555555555555")
DOCUMENT = Path(__file__).parents[4] / "docs" / "operations" / "samples.md"
VOCABULARY = {1: "a", 2: "b", 3: "<end>"}


def sample(number: int, rounds: list[Round], **fields: object) -> SampleRead:
    whole = {
        "id": number,
        "attempt": 2,
        "step": 7,
        "prompt": "é=",
        "response": f"r{number}",
        "reward": 0.5,
        "advantage": -1.25,
        "is_truncated": False,
        "rounds": rounds,
        "vocabulary": VOCABULARY,
    }
    return SampleRead.model_validate(whole | fields)


def plain(token: int) -> Round:
    return Round(drafted=[], num_accepted=0, emitted=token, draft_logprobs=[], policy_logprobs=[])


def drafted(tokens: list[int], num_accepted: int, emitted: int | None) -> Round:
    logprobs = [-0.5 * i for i in range(len(tokens))]
    return Round(
        drafted=tokens,
        num_accepted=num_accepted,
        emitted=emitted,
        draft_logprobs=[0.0] * len(tokens),
        policy_logprobs=logprobs,
    )


def read(parts: list[bytes]) -> pa.Table:
    return parquet.read_table(io.BytesIO(b"".join(parts)))


def test_rounds_of_any_draft_length_are_read_back() -> None:
    """k = 0, drafts of three and of one token, and a response that ends among its accepted tokens."""
    rounds = [plain(1), drafted([2, 2, 1], 1, 1), plain(2), drafted([2], 1, 1), drafted([2, 3], 2, None)]
    rows = read(list(write_rounds(RUN, [[sample(4, rounds)]]))).to_pylist()
    assert [row["round"] for row in rows] == [0, 1, 2, 3, 4]
    assert [row["position"] for row in rows] == [0, 1, 3, 4, 6]
    assert [row["drafted"] for row in rows] == [[], [2, 2, 1], [], [2], [2, 3]]
    assert [row["emitted"] for row in rows] == [1, 1, 2, 1, None]
    assert rows[4]["drafted_text"] == ["b", "<end>"]
    assert rows[4]["emitted_text"] is None
    assert rows[1]["policy_logprobs"] == [0.0, -0.5, -1.0]
    assert rows[1]["draft_logprobs"] == [0.0, 0.0, 0.0]
    tokens = [[*row["drafted"][: row["num_accepted"]], row["emitted"]] for row in rows]
    assert [token for part in tokens for token in part if token] == [1, 2, 1, 2, 2, 1, 2, 3]


def test_what_is_said_of_a_sample_is_in_all_its_rows() -> None:
    rows = read(list(write_rounds(RUN, [[sample(4, [plain(1)] * 2, reward="NaN", is_truncated=True)]]))).to_pylist()
    for row in rows:
        assert (row["run_id"], row["attempt"], row["step"], row["sample_id"]) == (str(RUN), 2, 7, 4)
        assert (row["prompt"], row["response"], row["advantage"], row["is_truncated"]) == ("é=", "r4", -1.25, True)
        assert math.isnan(row["reward"])


def test_no_samples_are_a_file_of_no_rows() -> None:
    table = read(list(write_rounds(RUN, [])))
    assert table.num_rows == 0
    assert table.column_names == list(COLUMNS)


def test_a_page_is_sent_before_the_next_is_fetched() -> None:
    fetched = []

    def pages():
        for number in range(3):
            fetched.append(number)
            yield [sample(number, [plain(1)])]

    parts = write_rounds(RUN, pages())
    sent = [next(parts)]
    assert fetched == [0]
    assert len(sent[0]) > 0
    sent += list(parts)
    assert parquet.ParquetFile(io.BytesIO(b"".join(sent))).num_row_groups == 3


def test_the_columns_say_what_they_mean_in_the_file_and_in_the_document() -> None:
    schema = read(list(write_rounds(RUN, []))).schema
    assert {field.name: field.metadata[b"description"].decode() for field in schema} == {
        name: meaning for name, (_, meaning) in COLUMNS.items()
    }
    documented = re.findall(r"^\| `(\w+)` \| `(.+?)` \| (.+) \|$", DOCUMENT.read_text(), re.MULTILINE)
    assert documented == [(name, kind, meaning) for name, (kind, meaning) in COLUMNS.items()]
