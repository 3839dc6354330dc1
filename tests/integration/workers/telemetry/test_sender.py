import logging
import os
import socket
import time
import uuid

import pytest

from contract.telemetry.events import Finished, Log
from workers.telemetry import sender as sender_module
from workers.telemetry.sender import Sender, earlier_spools
from workers.telemetry.spool import Spool

RUN = uuid.uuid4()
STARTER = "starter"
PATHS = ["/api/v1/ingest/token", "/api/v1/ingest"]
BATCHES = PATHS[1:]
REFUSALS = [
    (401, b'{"detail":"This token has expired."}', "401 This token has expired."),
    (403, b"[]", "403 Forbidden."),
    (409, b"", "409 Conflict."),
]


@pytest.fixture
def spool(tmp_path):
    with Spool(tmp_path / "attempt-1" / "spool", RUN, 1, "driver/0") as opened:
        yield opened


@pytest.fixture
def sender(ingest_server, spool):
    sender = Sender(ingest_server.url, STARTER, spool, attempt=1)
    sender.start()
    yield sender
    sender.close()


def _say(spool, *texts):
    for text in texts:
        spool.append(Log(level="info", message=text))


def _messages(server, attempt=1):
    return [body.message for body in server.bodies("log", attempt)]


def test_an_event_arrives_well_within_a_second(ingest_server, spool, sender):
    texts, latencies_s = [f"event {i}" for i in range(10)], []
    for text in texts:
        started = time.monotonic()
        _say(spool, text)
        assert sender.flush(20)
        latencies_s.append(time.monotonic() - started)
    assert min(latencies_s) < 0.5  # what waits on purpose does so every time; a busy machine does not
    assert _messages(ingest_server) == texts
    assert not spool.read(1, 1000)


def test_nothing_is_lost_or_doubled_while_the_server_is_away(ingest_server, spool, sender, caplog):
    _say(spool, "before")
    assert sender.flush(5)
    ingest_server.down()
    texts = [f"away {i}" for i in range(1200)]
    with caplog.at_level(logging.WARNING):
        _say(spool, *texts)
        assert not sender.flush(0.5)
    ingest_server.up()
    assert sender.flush(20)
    assert _messages(ingest_server) == ["before", *texts]
    assert [event.seq for event in ingest_server.of()] == list(range(1, 1202))
    assert [r.message for r in caplog.records if "Cannot reach" in r.message]


def test_a_lost_answer_leads_to_repetition_not_to_loss(ingest_server, spool, sender):
    ingest_server.drop_answers = 2
    _say(spool, "a", "b")
    assert sender.flush(10)
    assert ingest_server.num_repeated >= 2
    assert _messages(ingest_server) == ["a", "b"]


def test_one_refused_event_does_not_hold_up_the_others(ingest_server, spool, sender, tmp_path):
    ingest_server.refuse = lambda event: event.body.kind == "log" and event.body.message == "bad"
    _say(spool, "a", "b", "bad", "c")
    assert sender.flush(10)
    a, b, substitute, c = _messages(ingest_server)
    assert (a, b, c) == ("a", "b", "c")
    assert "refused an event of kind log" in substitute
    assert '"bad"' in (tmp_path / "attempt-1" / "spool" / "refused").read_text()


def test_a_refused_end_is_still_an_end(ingest_server, spool, sender, tmp_path):
    """Without one the run would count as crashed and be tried again."""
    ingest_server.refuse = lambda event: event.body.kind == "finished" and event.body.error == "bad"
    spool.append(Finished(outcome="failed", error="bad", is_retryable=True))
    assert sender.flush(10)
    (finished,) = ingest_server.bodies("finished")
    assert (finished.outcome, finished.is_retryable) == ("failed", True)
    assert "refused an event of kind finished" in finished.error
    assert '"bad"' in (tmp_path / "attempt-1" / "spool" / "refused").read_text()


def test_a_refused_event_is_put_aside_once_however_long_its_substitute_takes(ingest_server, spool, sender, tmp_path):
    ingest_server.refuse = lambda event: True
    _say(spool, "bad")
    ingest_server.wait_for_requests(6)  # the event and its substitute, again and again
    aside = tmp_path / "attempt-1" / "spool" / "refused"
    assert not aside.exists()
    ingest_server.refuse = lambda event: event.body.message == "bad"
    assert sender.flush(10)
    assert len(aside.read_text().splitlines()) == 1


def test_flushing_ends_a_back_off(ingest_server, spool, sender, monkeypatch):
    """After SIGTERM there are two seconds left, whatever has been waited for so far."""
    monkeypatch.setattr(sender_module, "_FIRST_BACK_OFF_S", 60.0)
    monkeypatch.setattr(sender_module, "_LONGEST_BACK_OFF_S", 60.0)
    ingest_server.down()
    _say(spool, "a")
    deadline = time.monotonic() + 10
    while not sender._back_off_s:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    ingest_server.up()
    assert sender.flush(20)
    assert _messages(ingest_server) == ["a"]


def test_a_server_that_does_not_answer_holds_a_flush_no_longer_than_its_time(ingest_server, spool):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        sender = Sender(f"http://127.0.0.1:{silent.getsockname()[1]}", STARTER, spool, attempt=1)
        sender._request_timeout_s = 0.1
        started = time.monotonic()
        sender.start()
        _say(spool, "a")
        assert not sender.flush(0.5)
        sender.close()
        assert time.monotonic() - started < 5


@pytest.mark.parametrize(("status", "content", "words"), REFUSALS)
@pytest.mark.parametrize("path", PATHS)
def test_who_is_refused_is_told_why(ingest_server, spool, sender, caplog, status, content, words, path):
    ingest_server.refused_paths, ingest_server.refusal, ingest_server.refusal_content = (path,), status, content
    with caplog.at_level(logging.WARNING):
        _say(spool, "a")
        ingest_server.wait_for_requests(3)
    (told,) = [record.message for record in caplog.records if record.name == "workers.telemetry.sender"]
    assert words in told  # once a minute, not at every try
    assert "Cannot reach" not in told


@pytest.mark.parametrize("path", PATHS)
def test_who_is_refused_tries_again_until_it_is_taken(ingest_server, spool, sender, path):
    ingest_server.refused_paths = (path,)
    _say(spool, "a")
    assert not sender.flush(0.5)
    ingest_server.refused_paths = ()
    assert sender.flush(10)


def test_a_starter_is_exchanged_once_and_what_it_brought_stays_in_memory(ingest_server, spool, sender, tmp_path):
    _say(spool, "a")
    assert sender.flush(5)
    _say(spool, "b")
    assert sender.flush(5)
    assert ingest_server.tokens == {STARTER: ["starter/1"]}
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"starter/" in path.read_bytes()]
    assert "starter/1" not in "".join(os.environ.values())


def test_a_token_whose_answer_was_lost_is_replaced(ingest_server, spool, sender):
    ingest_server.drop_tokens = 2
    _say(spool, "a")
    assert sender.flush(10)
    assert ingest_server.tokens == {STARTER: ["starter/1", "starter/2", "starter/3"]}
    assert _messages(ingest_server) == ["a"]


def test_a_token_that_another_has_replaced_before_it_was_used_is_exchanged_for_anew(ingest_server, spool, sender):
    """Another has read the starter and came between."""
    ingest_server.refused_paths = BATCHES
    _say(spool, "a")
    ingest_server.wait_for(lambda: ingest_server.tokens[STARTER])
    stolen = ingest_server.exchange(STARTER).token
    ingest_server.refused_paths = ()
    assert sender.flush(10)
    assert _messages(ingest_server) == ["a"]
    assert not ingest_server.is_good(stolen, BATCHES[0])


def test_whose_starter_another_has_used_says_so_and_is_dismissed(ingest_server, spool, caplog):
    stolen = ingest_server.exchange(STARTER).token
    assert ingest_server.is_good(stolen, BATCHES[0])
    sender = Sender(ingest_server.url, STARTER, spool, attempt=1, lasting_s=0.3)
    with caplog.at_level(logging.WARNING):
        sender.start()
        _say(spool, "a")
        assert not sender.flush(30)
    assert sender.is_dismissed
    sender.close()
    assert "does not take this worker's starter: 401" in caplog.text
    assert "somebody else has read the starter" in caplog.text


def test_who_has_reported_keeps_its_token_however_it_is_answered(ingest_server, spool, sender):
    """The starter is worthless by then: to present it again would be an alarm."""
    _say(spool, "a")
    assert sender.flush(5)
    ingest_server.refused_paths = BATCHES
    _say(spool, "b")
    ingest_server.wait_for_requests(3)
    ingest_server.refused_paths = ()
    assert sender.flush(10)
    assert ingest_server.tokens == {STARTER: ["starter/1"]}


@pytest.mark.parametrize(
    "answer", [b'{"token": ["fdk_hunter2"]}', b'{"tokens": "fdk_hunter2"}', b'{"token": "fdk_hunter2']
)
def test_an_answer_that_is_none_is_not_shown(ingest_server, spool, sender, caplog, answer):
    ingest_server.refused_paths, ingest_server.refusal, ingest_server.refusal_content = PATHS[:1], 200, answer
    with caplog.at_level(logging.DEBUG):
        _say(spool, "a")
        ingest_server.wait_for_requests(2)
    assert "answer cannot be understood" in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("status", [401, 403])
def test_who_is_refused_for_long_is_dismissed_and_does_not_wait(ingest_server, spool, status, path):
    ingest_server.refused_paths, ingest_server.refusal = (path,), status
    sender = Sender(ingest_server.url, STARTER, spool, attempt=1, lasting_s=0.3)
    assert not sender.is_dismissed
    sender.start()
    _say(spool, "a")
    started = time.monotonic()
    assert not sender.flush(30)
    assert time.monotonic() - started < 10
    assert sender.is_dismissed
    ingest_server.refused_paths = ()
    ingest_server.wait_for(lambda: _messages(ingest_server) == ["a"])
    sender.close()
    assert not sender.is_dismissed


def test_a_server_that_is_away_dismisses_nobody(ingest_server, spool):
    sender = Sender(ingest_server.url, STARTER, spool, attempt=1, lasting_s=0.0)
    ingest_server.down()
    sender.start()
    _say(spool, "a")
    assert not sender.flush(0.5)
    assert not sender.is_dismissed
    sender.close()


def test_the_answer_tells_of_a_stop_and_of_a_newer_attempt(ingest_server, spool, sender):
    _say(spool, "a")
    assert sender.flush(5)
    assert (sender.is_stop_requested, sender.is_replaced) == (False, False)
    ingest_server.is_stop_requested, ingest_server.current_attempt = True, 2
    _say(spool, "b")
    assert sender.flush(5)
    assert (sender.is_stop_requested, sender.is_replaced) == (True, True)


def test_earlier_attempts_spools_are_delivered_by_the_next(ingest_server, tmp_path):
    for attempt in (1, 2):
        with Spool(tmp_path / f"attempt-{attempt}" / "spool", RUN, attempt, "driver/0") as old:
            _say(old, *(f"{attempt}.{i}" for i in range(700)))
    with Spool(tmp_path / "attempt-3" / "spool", RUN, 3, "driver/0") as mine:
        earlier = earlier_spools(tmp_path, 3)
        sender = Sender(ingest_server.url, STARTER, mine, 3, earlier)
        sender.start()
        _say(mine, "new")
        assert sender.flush(30)  # what earlier attempts left counts, too
        sender.close()
    assert _messages(ingest_server, 1) == [f"1.{i}" for i in range(700)]
    assert _messages(ingest_server, 2) == [f"2.{i}" for i in range(700)]
    assert _messages(ingest_server, 3) == ["new"]
