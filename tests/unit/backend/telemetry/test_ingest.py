from datetime import UTC, datetime
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from backend.telemetry.ingest import following, without_stale_heartbeats
from contract.telemetry.events import Body, Event, Heartbeat, Log
from contract.telemetry.stages import Stage

RUN = uuid4()


def event(seq: int, body: Body | None = None) -> Event:
    body = body or Log(level="info", message=str(seq))
    return Event(run_id=RUN, attempt=1, emitter="driver/0", seq=seq, time=datetime.now(UTC), body=body)


def seqs(events: list[Event]) -> list[int]:
    return [event.seq for event in events]


def test_following_drops_the_known_sorts_and_stops_at_a_gap() -> None:
    assert seqs(following(2, map(event, [5, 1, 4, 2, 3, 3, 7, 8]))) == [3, 4, 5]
    assert following(2, map(event, [1, 2, 4])) == []


@given(mark=st.integers(0, 8), given_seqs=st.lists(st.integers(1, 12), max_size=20))
def test_following_is_the_longest_run_after_the_mark(mark: int, given_seqs: list[int]) -> None:
    accepted = seqs(following(mark, map(event, given_seqs)))
    assert accepted == list(range(mark + 1, mark + 1 + len(accepted)))
    assert set(accepted) <= set(given_seqs)
    assert mark + len(accepted) + 1 not in given_seqs


def test_of_heartbeats_only_the_last_counts() -> None:
    beats = [event(seq, Heartbeat(stage=Stage.TRAIN, step=seq)) for seq in (1, 3, 4)]
    line = event(2)
    assert without_stale_heartbeats([beats[0], line, *beats[1:]]) == [line, beats[2]]
    assert without_stale_heartbeats([line]) == [line]
