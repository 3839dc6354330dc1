import pytest

from workers.train.cache import cache_folder, write_folder


def test_equal_inputs_share_a_folder_and_others_do_not(tmp_path):
    assert cache_folder(tmp_path, "a", {"x": 1, "y": 2}) == cache_folder(tmp_path, "a", {"y": 2, "x": 1})
    assert cache_folder(tmp_path, "a", {"x": 1}) != cache_folder(tmp_path, "a", {"x": 2})
    assert cache_folder(tmp_path, "a", {"x": 1}) != cache_folder(tmp_path, "b", {"x": 1})


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    target = tmp_path / "cache" / "result"

    def fail(folder):
        (folder / "half").write_text("x")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        write_folder(target, fail)
    assert list((tmp_path / "cache").iterdir()) == []
    write_folder(target, lambda folder: (folder / "file").write_text("whole"))
    assert [f.name for f in (tmp_path / "cache").iterdir()] == ["result"]
    assert (target / "file").read_text() == "whole"


def test_the_first_of_two_writers_wins(tmp_path):
    target = tmp_path / "result"

    def overtaken(folder):
        write_folder(target, lambda other: (other / "by").write_text("first"))
        (folder / "by").write_text("second")

    write_folder(target, overtaken)
    assert (target / "by").read_text() == "first"
    assert [f.name for f in tmp_path.iterdir()] == ["result"]
