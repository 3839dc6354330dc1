import ast
from types import SimpleNamespace
from unittest.mock import patch
from uuid import uuid4

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from backend.models import Run
from backend.runs import state
from backend.runs.state import ENDED, LIVE, TRANSITIONS, Status, TransitionError, transition
from backend.settings import REPOSITORY

S = Status
ALLOWED = """
queued: dispatching stopped
dispatching: dispatching running succeeded failed stopped
running: lost dispatching succeeded failed stopped
lost: running dispatching succeeded failed stopped
succeeded:
failed:
stopped:
"""


def test_the_table_is_what_was_agreed():
    rows = (line.split(":") for line in ALLOWED.strip().splitlines())
    assert {source: set(targets.split()) for source, targets in rows} == {s: set(t) for s, t in TRANSITIONS.items()}


def test_statuses_are_either_waiting_live_or_ended():
    assert {S.QUEUED} | LIVE | ENDED == set(Status)
    assert not LIVE & ENDED


def test_what_has_ended_stays_so_and_from_everywhere_else_there_is_an_end():
    assert {status for status, targets in TRANSITIONS.items() if not targets} == ENDED
    for status in set(Status) - ENDED:
        assert S.STOPPED in TRANSITIONS[status]


class World:
    """A session whose announcements are collected instead of stored."""

    def __init__(self):
        self.session = SimpleNamespace(info={}, flush=lambda: None)
        self.notices, self.lines, self.forgotten, self.woken, self.events = [], [], [], [], []

    def __enter__(self):
        self._patches = [
            patch.object(state, "publish", lambda _, run_id, kind, body: self.notices.append((kind, body))),
            patch.object(state, "tell", lambda _, run, event_type: self.events.append((event_type, run.status))),
            patch.object(state, "append_log", lambda *arguments: self.lines.append(arguments[3:])),
            patch.object(state.queue, "forget", lambda _, run_id: self.forgotten.append(run_id)),
            patch.object(state.queue, "wake_waiting", lambda _, cluster_id: self.woken.append(cluster_id)),
        ]
        for each in self._patches:
            each.start()
        return self

    def __exit__(self, *_):
        for each in self._patches:
            each.stop()


def make_run(status=S.QUEUED):
    return Run(id=uuid4(), cluster_id=uuid4(), name="r", status=status, current_attempt=1, step=0, num_steps=5)


@pytest.mark.parametrize("source", Status)
@pytest.mark.parametrize("target", Status)
def test_each_way_is_open_or_closed(source, target):
    run = make_run(source)
    with World() as world:
        if target in TRANSITIONS[source]:
            transition(world.session, run, target, "because")
            assert (run.status, run.status_reason) == (target, "because")
            assert [(kind, body["status"], body["is_ended"]) for kind, body in world.notices] == [
                ("run", target, target in ENDED)
            ]
            assert [message for _, message in world.lines] == ["because"]
            assert world.woken == ([run.cluster_id] if target in ENDED else [])
        else:
            with pytest.raises(TransitionError):
                transition(world.session, run, target, "because")
            assert (run.status, world.notices, world.lines) == (source, [], [])


class Life(RuleBasedStateMachine):
    """Whatever is asked of a run in whatever order: its story stays one that can be told."""

    def __init__(self):
        super().__init__()
        self.world = World().__enter__()
        self.run = make_run()
        self.story = [S.QUEUED]

    def teardown(self):
        self.world.__exit__()

    @rule(target_status=st.sampled_from(Status))
    def ask(self, target_status):
        try:
            transition(self.world.session, self.run, target_status, f"to {target_status}")
        except TransitionError:
            return
        self.story.append(target_status)

    @invariant()
    def the_run_is_where_its_story_ends(self):
        assert self.run.status == self.story[-1]
        assert (self.run.ended_at is not None) == (self.story[-1] in ENDED)
        assert (self.run.started_at is not None) == (S.RUNNING in self.story)

    @invariant()
    def it_ends_once_and_starts_after_its_dispatch(self):
        assert sum(status in ENDED for status in self.story) <= 1
        if S.RUNNING in self.story:
            assert S.DISPATCHING in self.story[: self.story.index(S.RUNNING)]
        if S.LOST in self.story:
            assert S.RUNNING in self.story[: self.story.index(S.LOST)]

    @invariant()
    def webhooks_hear_of_the_first_start_and_of_every_end(self):
        types = [event_type for event_type, _ in self.world.events]
        assert types.count("run.started") == (S.RUNNING in self.story)
        assert len(types) == sum(status not in {S.QUEUED, S.DISPATCHING} for status in self.story)
        ends = [f"run.{status}" for status in self.story if status in ENDED]
        assert [event_type for event_type, status in self.world.events if status in ENDED] == ends

    @invariant()
    def everything_was_told(self):
        assert [body["status"] for _, body in self.world.notices] == self.story[1:]
        assert len(self.world.forgotten) == (self.story[-1] in ENDED)


TestLife = Life.TestCase


def test_nobody_else_writes_the_status():
    """By the source: an assignment to `.status` or `.status_reason`, or a `status=` in an update, outside state.py."""
    written = []
    for path in (REPOSITORY / "backend").rglob("*.py"):
        if path.name == "state.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            targets = node.targets if isinstance(node, ast.Assign) else []
            written += [(path.name, t.lineno) for t in targets if isinstance(t, ast.Attribute) and _is_runs(t)]
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "values":
                written += [(path.name, node.lineno) for keyword in node.keywords if keyword.arg == "status"]
    assert written == []


def _is_runs(target):
    is_run = isinstance(target.value, ast.Name) and target.value.id == "run"
    return is_run and target.attr in {"status", "status_reason", "started_at", "ended_at"}
