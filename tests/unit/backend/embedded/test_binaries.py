import os
import stat
from pathlib import Path

import pytest

from backend.embedded import binaries
from backend.embedded.errors import EmbeddedError

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root drops privileges")


def test_binaries_of_the_wheels_are_found() -> None:
    assert os.access(binaries.postgres_installation() / "bin" / "postgres", os.X_OK)
    assert os.access(binaries.valkey_server(), os.X_OK)


def test_what_is_missing_is_named_with_both_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "find_spec", lambda _: None)
    with pytest.raises(EmbeddedError, match=r"PostgreSQL is not installed.*foredeck\[embedded\].*DATABASE_URL"):
        binaries.postgres_installation()


def test_the_machines_own_redis_stands_in_for_the_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "redis-server"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(binaries, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert binaries.valkey_server() == program
    program.unlink()
    with pytest.raises(EmbeddedError, match="REDIS_URL"):
        binaries.valkey_server()


def test_homes_do_not_share_a_system_folder(tmp_path: Path) -> None:
    assert binaries.system_dir_for(tmp_path / "a") != binaries.system_dir_for(tmp_path / "b")
    assert binaries.system_dir_for(tmp_path / "a") == binaries.system_dir_for(tmp_path / "b" / ".." / "a")


@as_root
def test_a_private_folder_is_out_of_reach_of_the_account(tmp_path: Path) -> None:
    account = binaries.unprivileged_account()
    assert account is not None
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    (private / "inside").mkdir(mode=0o755)
    assert not binaries.can_reach(private / "inside", account)
    assert binaries.can_reach(Path("/usr"), account)


@as_root
def test_an_installation_out_of_reach_is_copied_and_its_own_mode_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    account = binaries.unprivileged_account()
    assert account is not None
    original = tmp_path / "private" / "package" / "pginstall18"
    for part in ("bin/postgres", "bin/initdb", "lib/postgresql/x.so", "share/postgresql/y"):
        (original / part).parent.mkdir(parents=True, exist_ok=True)
        (original / part).write_text("#!/bin/sh\n")
        (original / part).chmod(0o755)
    (tmp_path / "private").chmod(0o700)
    monkeypatch.setattr(binaries, "postgres_installation", lambda: original)
    system_dir = Path("/var/lib") / f"foredeck-test-{os.getpid()}"
    monkeypatch.setattr(binaries, "SYSTEM_DIR", system_dir)
    try:
        copy = binaries.reachable_postgres(account)
        assert copy.is_relative_to(system_dir)
        assert binaries.can_reach(copy / "bin" / "postgres", account)
        assert (copy / "lib" / "postgresql" / "x.so").exists()
        assert (copy / "share" / "postgresql" / "y").exists()
        assert copy.stat().st_uid == 0
        assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o700
        assert binaries.reachable_postgres(account) == copy
    finally:
        binaries.shutil.rmtree(system_dir, ignore_errors=True)  # type: ignore[attr-defined]


def test_an_ordinary_user_runs_the_original() -> None:
    assert binaries.reachable_postgres(None) == binaries.postgres_installation()
