import subprocess
import sys

import pytest

from workers.rollout.native import library


@pytest.fixture
def load(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    library.load.cache_clear()
    yield library.load
    library.load.cache_clear()


def test_kernels_are_compiled_once(load, tmp_path):
    assert load() is not None
    (compiled,) = (tmp_path / "foredeck").iterdir()
    made = compiled.stat().st_mtime_ns
    load.cache_clear()
    assert load() is not None
    assert compiled.stat().st_mtime_ns == made


def test_without_a_compiler_there_are_none(load, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert load() is None


def test_a_compiler_that_fails_is_told_and_survived(load, monkeypatch, tmp_path, caplog):
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho no such machine >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert load() is None
    assert "no such machine" in caplog.text


def test_two_processes_may_compile_at_once(tmp_path):
    command = [sys.executable, "-c", "from workers.rollout.native.library import load; assert load()"]
    environment = {"XDG_CACHE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    processes = [subprocess.Popen(command, env=environment) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    assert len(list((tmp_path / "foredeck").iterdir())) == 1
