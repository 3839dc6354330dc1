import csv
import io
import math
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.export.csv_file import write_csv

RUN = UUID(int=1)


def written(*rows):
    return b"".join(write_csv(["name", "value"], [rows])).decode()


def read(text):
    return list(csv.reader(io.StringIO(text, newline="")))


def test_texts_are_quoted_and_numbers_are_not():
    time = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert written(("a", 1), (RUN, -0.5), (time, None), (True, 1e-300)).split("\r\n") == [
        '"name","value"',
        '"a",1',
        '"00000000-0000-0000-0000-000000000001",-0.5',
        '"2026-01-02T03:04:05+00:00",""',
        "True,1e-300",
        "",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "=cmd|' /C calc'!A0",
        "＝1",
        "－1",
        '=HYPERLINK("http://x")',
    ],
)
def test_a_text_that_a_spreadsheet_would_compute_is_none_any_more(text):
    assert read(written((text, 1)))[1] == [f"'{text}", "1"]


@pytest.mark.parametrize("text", ["", "a=1", "1-1", " =1", "'=1", "x\ny"])
def test_other_texts_stay_as_they_are(text):
    assert read(written((text, 1)))[1] == [text, "1"]


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")))
def test_no_text_gets_out_of_its_cell(text):
    rows = read(written((text, 1), ("last", 2)))
    assert [len(row) for row in rows] == [2, 2, 2]
    assert rows[1][0] in {text, f"'{text}"}
    assert not rows[1][0].startswith(("=", "+", "-", "@"))


@given(st.floats())
def test_every_number_can_be_read_again(value):
    again = float(read(written(("a", value)))[1][1])
    assert math.isnan(again) if math.isnan(value) else again == value


def test_pages_follow_each_other_under_one_header():
    pages = [[("a", 1)], [], [("b", 2)]]
    assert read(b"".join(write_csv(["name", "value"], pages)).decode()) == [["name", "value"], ["a", "1"], ["b", "2"]]
