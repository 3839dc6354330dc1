import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from backend.embedded.errors import EmbeddedError
from backend.embedded.home import Home, HomeLock, is_locked


def test_home_is_where_the_variable_says_or_in_the_users_home() -> None:
    assert Home.from_environment({"FOREDECK_HOME": "/data/x"}).root == Path("/data/x")
    assert Home.from_environment({"FOREDECK_HOME": "~/x"}).root == Path.home() / "x"
    assert Home.from_environment({}).root == Path.home() / ".foredeck"


def test_a_new_home_is_private(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    assert home.logs.is_dir()
    assert home.storage.is_dir()


def test_a_home_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o750)
    Home(tmp_path / "home").create()
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o750


def test_a_home_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EmbeddedError, match="Set FOREDECK_HOME"):
        Home(tmp_path / "file" / "home").create()


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    home = Home(tmp_path)
    first, second = HomeLock(home), HomeLock(home)
    assert not is_locked(home)
    first.acquire()
    assert is_locked(home)
    with pytest.raises(EmbeddedError, match=rf"already runs on {tmp_path} \(process {os.getpid()}\)"):
        second.acquire()
    first.release()
    assert not is_locked(home)
    second.acquire()
    second.release()


def test_the_lock_dies_with_its_holder(tmp_path: Path) -> None:
    holder = (
        "import sys, time; from pathlib import Path; from backend.embedded.home import Home, HomeLock\n"
        "lock = HomeLock(Home(Path(sys.argv[1]))); lock.acquire(); print('held', flush=True); time.sleep(1000)"
    )
    process = subprocess.Popen([sys.executable, "-c", holder, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    assert is_locked(Home(tmp_path))
    process.kill()
    process.communicate()
    assert not is_locked(Home(tmp_path))
