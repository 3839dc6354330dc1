import pytest

from workers.train.checkpoint import CheckpointStore, RunProgress


def _write(store, step, content="x" * 100):
    return store.write(
        RunProgress(step, step * 16, step * 1000, 1.5 * step), lambda f: (f / "state").write_text(content)
    )


def test_the_newest_comes_back_with_its_progress(tmp_path):
    store = CheckpointStore(tmp_path / "checkpoints", 2)
    assert store.newest() is None
    _write(store, 2)
    folder, size_bytes = _write(store, 10)
    assert size_bytes > 100
    assert store.newest() == (folder, RunProgress(10, 160, 10_000, 15.0))
    assert (folder / "state").read_text() == "x" * 100


def test_only_the_newest_are_kept(tmp_path):
    store = CheckpointStore(tmp_path, 2)
    for step in (1, 2, 9, 10):
        _write(store, step)
    assert sorted(f.name for f in tmp_path.iterdir()) == ["step-000009", "step-000010"]


def test_a_crash_while_writing_leaves_the_former_one(tmp_path):
    store = CheckpointStore(tmp_path, 2)
    _write(store, 1)

    def crash(folder):
        (folder / "state").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.write(RunProgress(2), crash)
    (tmp_path / ".step-000003.attempt-1-abc").mkdir()  # what a killed process leaves
    assert store.newest()[1].step == 1
    _write(store, 4)
    assert sorted(f.name for f in tmp_path.iterdir()) == ["step-000001", "step-000004"]


@pytest.mark.parametrize(
    "damage", [lambda f: f.unlink(), lambda f: f.write_text("{"), lambda f: f.write_text('{"a":1}')]
)
def test_a_damaged_one_is_passed_over(tmp_path, damage):
    store = CheckpointStore(tmp_path, 3)
    _write(store, 1)
    folder, _ = _write(store, 2)
    damage(folder / "progress.json")
    assert store.newest()[1].step == 1


def test_a_step_written_again_replaces_the_former(tmp_path):
    store = CheckpointStore(tmp_path, 3)
    _write(store, 1, "old")
    folder, _ = _write(store, 1, "new")
    assert (folder / "state").read_text() == "new"
    assert [f.name for f in tmp_path.iterdir()] == ["step-000001"]


def test_a_step_stays_until_its_replacement_is_complete(tmp_path):
    store = CheckpointStore(tmp_path, 3)
    folder, _ = _write(store, 1, "old")

    def crash(part):
        assert (folder / "state").read_text() == "old"
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        store.write(RunProgress(1), crash)
    assert store.newest() == (folder, RunProgress(1, 16, 1000, 1.5))


def test_a_replaced_attempt_leaves_what_its_successor_is_writing(tmp_path):
    stale, successor = CheckpointStore(tmp_path, 2, attempt=1), CheckpointStore(tmp_path, 2, attempt=2)

    def overtaken(part):
        _write(stale, 1)
        assert part.is_dir()
        (part / "state").write_text("whole")

    folder, _ = successor.write(RunProgress(2), overtaken)
    assert (folder / "state").read_text() == "whole"
    assert sorted(f.name for f in tmp_path.iterdir()) == ["step-000001", "step-000002"]
