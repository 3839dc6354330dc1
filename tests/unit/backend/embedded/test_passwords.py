import stat
from pathlib import Path

from backend.embedded.passwords import kept_password, write_private


def test_a_password_is_made_once_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "password"
    first = kept_password(path)
    assert len(first) >= 24
    assert kept_password(path) == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert kept_password(tmp_path / "other") != first


def test_a_private_file_replaces_an_open_one(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, "new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]
