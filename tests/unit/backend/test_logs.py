import json
import logging

import pytest

from backend import logs
from backend.settings import load


@pytest.fixture
def output(capsys):
    """What was written so far, as lines."""
    root = logging.getLogger()
    before = root.handlers[:], root.level

    def lines():
        return capsys.readouterr().err.splitlines()

    yield lines
    root.handlers, root.level = before


def settings(**variables):
    return load({"DATABASE_URL": "postgresql://h/d", **variables})


def test_a_record_is_one_json_object_with_the_ids_of_its_context(output):
    logs.configure(settings())
    with logs.bound(request_id="r1"):
        logging.getLogger("backend.x").info("line\nbreak", extra={"run_id": "u1"})
    logging.getLogger("backend.x").warning("outside")
    first, second = (json.loads(line) for line in output())
    assert (first["level"], first["logger"], first["message"]) == ("info", "backend.x", "line\nbreak")
    assert (first["request_id"], first["run_id"]) == ("r1", "u1")
    assert "request_id" not in second


def test_an_exception_stays_on_the_line(output):
    logs.configure(settings())
    try:
        raise ValueError("why")
    except ValueError:
        logging.getLogger("x").exception("failed")
    (line,) = output()
    assert "ValueError: why" in json.loads(line)["exception"]


def test_configuring_twice_writes_once_and_the_level_counts(output):
    for _ in range(2):
        logs.configure(settings(FOREDECK_LOG_LEVEL="warning", FOREDECK_LOG_FORMAT="text"))
    logging.getLogger("x").info("no")
    logging.getLogger("x").warning("yes", extra={"n": 1})
    (line,) = output()
    assert line.endswith("WARNING x: yes n=1")


@pytest.mark.parametrize("form", ["text", "json"])
def test_nobody_from_outside_begins_a_line_or_moves_the_cursor(output, form):
    logs.configure(settings(FOREDECK_LOG_FORMAT=form))
    forged = "/x\n2026-01-01 CRITICAL forged\r\x1b[2J\x9b\u2028\x00"
    with logs.bound(request_id=forged):
        logging.getLogger("x").info("asked for %s", forged, extra={"path": forged})
    (line,) = output()
    assert line.isprintable()


def test_a_traceback_keeps_its_lines_in_text(output):
    logs.configure(settings(FOREDECK_LOG_FORMAT="text"))
    try:
        raise ValueError("why")
    except ValueError:
        logging.getLogger("x").exception("failed", extra={"n": 1})
    first, *_, last = output()
    assert first.endswith("ERROR   x: failed n=1")
    assert last == "ValueError: why"
