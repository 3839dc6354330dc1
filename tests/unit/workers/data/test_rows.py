import json

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contract.config.dataset import HubSource, JsonlSource, ParquetSource
from workers.data.rows import read_rows

ROWS = [{"problem": "1+2", "answer": "3"}, {"problem": "2+2", "answer": "4"}, {"problem": "2+3", "answer": "5"}]


def read(source):
    return [(row.number, row.values) for row in read_rows(source, "task.train")]


def jsonl(folder, text):
    (folder / "rows.jsonl").write_text(text)
    return JsonlSource(path=str(folder / "rows.jsonl"))


def test_lines_of_json_keep_their_numbers(tmp_path):
    text = "\n".join(["", json.dumps(ROWS[0]), "", json.dumps(ROWS[1])])
    assert read(jsonl(tmp_path, text)) == [(2, ROWS[0]), (4, ROWS[1])]


def test_a_parquet_file_and_a_folder_of_them_are_read_in_order(tmp_path):
    nested = [row | {"reward_model": {"ground_truth": row["answer"]}} for row in ROWS]
    pq.write_table(pa.Table.from_pylist(nested[2:]), tmp_path / "b.parquet")
    pq.write_table(pa.Table.from_pylist(nested[:2]), tmp_path / "a.parquet", row_group_size=1)
    assert read(ParquetSource(path=str(tmp_path))) == list(enumerate(nested, start=1))
    assert read(ParquetSource(path=str(tmp_path / "b.parquet"))) == [(1, nested[2])]


@pytest.fixture
def hub_folder(tmp_path, monkeypatch):
    """A dataset in the hub's layout, and a cache that is gone afterwards."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "sums"
    (folder / "data").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(ROWS), folder / "data" / "train-00000-of-00001.parquet")
    pq.write_table(pa.Table.from_pylist(ROWS[:1]), folder / "data" / "test-00000-of-00001.parquet")
    return folder


def test_a_dataset_in_the_hubs_layout_is_read_by_its_split(hub_folder):
    assert read(HubSource(name=str(hub_folder))) == list(enumerate(ROWS, start=1))
    assert read(HubSource(name=str(hub_folder), split="test")) == [(1, ROWS[0])]


def test_what_the_hub_has_not_is_named_with_the_mend(hub_folder, monkeypatch):
    with pytest.raises(ValueError, match=r"task\.train\.name = .*sums with subset None, split dev .* cannot be loaded"):
        read(HubSource(name=str(hub_folder), split="dev"))
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    with pytest.raises(ConnectionError, match=r"task\.train\.name = me/none .* give its folder as name"):
        read(HubSource(name="me/none"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '{"a": 1}\n{"a":',
            r"task\.train\.path = .*rows\.jsonl, line 2 is not JSON \(.*\): mend the line or remove it",
        ),
        ("[1]", r"line 1 is not an object but \[1\]"),
    ],
)
def test_a_line_that_is_no_row_is_named(tmp_path, text, said):
    with pytest.raises(ValueError, match=said):
        read(jsonl(tmp_path, text))


def test_a_file_that_is_not_there_or_of_another_kind_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"task\.train\.path = /nowhere/a\.jsonl is no file on this machine"):
        read(JsonlSource(path="/nowhere/a.jsonl"))
    with pytest.raises(ValueError, match=r"task\.train\.path = .* is neither a Parquet file nor a folder"):
        read(ParquetSource(path=str(tmp_path)))
    source = jsonl(tmp_path, "{}")
    with pytest.raises(ValueError, match=r"rows\.jsonl cannot be read as Parquet"):
        read(ParquetSource(path=source.path))
