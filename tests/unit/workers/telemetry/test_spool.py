import json
import os
import resource
import threading
import uuid
from contextlib import contextmanager

import pytest

from contract.telemetry.events import Event, Log
from workers.telemetry.spool import Spool, SpoolReader

RUN = uuid.uuid4()
MANY = 10**9


def _open(folder):
    return Spool(folder, RUN, 1, "driver/0")


def _append(spool, count, text="x"):
    return [spool.append(Log(level="info", message=text)).seq for _ in range(count)]


def _seqs(reader, max_events=MANY, max_bytes=MANY):
    return [json.loads(line)["seq"] for line in reader.read(max_events, max_bytes)]


def test_events_come_back_as_they_were_appended(tmp_path):
    with _open(tmp_path) as spool:
        text = "line\u2028separator\nand \x85 newline"
        event = spool.append(Log(level="warning", message=text))
        assert Event.model_validate_json(spool.read(1, MANY)[0]) == event
        assert (event.seq, event.run_id, event.body.message) == (1, RUN, text)


def test_seq_goes_on_after_reopening_even_when_all_is_acknowledged(tmp_path):
    with _open(tmp_path) as spool:
        assert _append(spool, 3) == [1, 2, 3]
    with _open(tmp_path) as spool:
        assert _append(spool, 2) == [4, 5]
        spool.acknowledge(5)
    with _open(tmp_path) as spool:
        assert spool.read(1, MANY) == []
        assert _append(spool, 1) == [6]
        assert _seqs(spool) == [6]


def test_a_torn_last_line_is_left_out_and_its_seq_given_again(tmp_path):
    with _open(tmp_path) as spool:
        _append(spool, 3)
    segment = next(tmp_path.glob("*.jsonl"))
    segment.write_bytes(segment.read_bytes()[:-20])
    assert _seqs(SpoolReader(tmp_path)) == [1, 2]
    with _open(tmp_path) as spool:
        assert _append(spool, 1, "again") == [3]
        assert _seqs(spool) == [1, 2, 3]
        assert json.loads(spool.read(3, MANY)[-1])["body"]["message"] == "again"


def test_batches_are_bounded_in_events_and_bytes(tmp_path):
    with _open(tmp_path) as spool:
        _append(spool, 10, "y" * 1000)
        assert _seqs(spool, max_events=4) == [1, 2, 3, 4]
        assert _seqs(spool, max_bytes=3600) == [1, 2, 3]
        assert _seqs(spool, max_bytes=1) == [1]  # a single large event still travels


def test_acknowledged_segments_are_deleted_and_the_mark_never_goes_back(tmp_path):
    with _open(tmp_path) as spool:
        _append(spool, 1300)
        assert len(list(tmp_path.glob("*.jsonl"))) == 3
        spool.acknowledge(999)
        assert [f.stem for f in sorted(tmp_path.glob("*.jsonl"))] == ["000000000501", "000000001001"]
        spool.acknowledge(5)
        assert spool.acknowledged == 999
        assert _seqs(spool)[0] == 1000
        spool.acknowledge(1000)
        assert [f.stem for f in sorted(tmp_path.glob("*.jsonl"))] == ["000000001001"]
    assert _seqs(SpoolReader(tmp_path)) == list(range(1001, 1301))


def test_threads_never_share_a_seq(tmp_path):
    with _open(tmp_path) as spool:
        threads = [threading.Thread(target=_append, args=(spool, 200)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        spool.sync()
        assert _seqs(spool) == list(range(1, 801))


def test_the_listener_hears_of_every_event(tmp_path):
    heard = []
    with _open(tmp_path) as spool:
        spool.on_append(lambda: heard.append(spool.last_seq))
        _append(spool, 2)
    assert heard == [1, 2]


def test_a_missing_spool_is_empty(tmp_path):
    reader = SpoolReader(tmp_path / "never")
    assert reader.read(1, 1) == []
    with pytest.raises(FileNotFoundError):
        reader.refuse("x")


@contextmanager
def _full_disk(folder, num_free):
    """No file grows beyond the spool's size and a few bytes: the kernel then writes short, as on a full disk."""
    size = max(os.path.getsize(segment) for segment in folder.glob("*.jsonl"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + num_free, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("num_free", [0, 20])
def test_an_event_without_room_leaves_no_trace(tmp_path, num_free):
    with _open(tmp_path) as spool:
        _append(spool, 3)
        with _full_disk(tmp_path, num_free), pytest.raises(OSError, match=r"No space left|too large"):
            _append(spool, 1, "lost")
        assert spool.last_seq == 3
        assert _append(spool, 2, "later") == [4, 5]
        assert _seqs(spool) == [1, 2, 3, 4, 5]
        assert [json.loads(line)["body"]["message"] for line in spool.read(5, MANY)][3:] == ["later"] * 2


def test_the_mark_is_written_by_two_processes_at_once(tmp_path):
    """A newer attempt delivers what an older one that still runs has spooled."""
    with _open(tmp_path) as spool:
        _append(spool, 400)
        readers = [spool, SpoolReader(tmp_path)]
        errors = []

        def acknowledge(reader):
            try:
                for seq in range(1, 400):
                    reader.acknowledge(seq)
            except OSError as error:
                errors.append(error)

        threads = [threading.Thread(target=acknowledge, args=(reader,)) for reader in readers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert SpoolReader(tmp_path).acknowledged == 399
        assert [f.name for f in tmp_path.iterdir() if f.suffix != ".jsonl"] == ["acknowledged"]
