"""What Ray's message about a job comes down to. Its first line rarely says why, and the rest is a traceback."""

import re

MAX_LENGTH = 300
MAX_NUM_LINES = 60
_SETUP = "runtime_env setup failed: "
_INSTALLER_ERROR = "ERROR: "
_NO_INDEX = re.compile(r"Retrying .* after connection broken by '\w+\(['\"](<[^>]*>: )?(?P<why>.+)['\"]\)': /")
_PODMAN = re.compile(r"RuntimeError: Podman command failed: .*stderr=")
_TIMEOUT = re.compile(r"Failed to install runtime_env within the timeout of (?P<timeout_s>\d+) seconds")


def short(message: str) -> str:
    """One line of it, the one that names the cause."""
    if not message.startswith(_SETUP):
        return message.partition("\n")[0][:MAX_LENGTH]
    return f"what the cluster's code names could not be set up: {_why_not_set_up(message)}"[:MAX_LENGTH]


def details(message: str) -> tuple[str, ...]:
    """The end of a message that has more than one line, for whoever wants to read on."""
    lines = message.rstrip().splitlines()
    return tuple(lines[-MAX_NUM_LINES:]) if len(lines) > 1 else ()


def _why_not_set_up(message: str) -> str:
    """pip's first error, for later ones follow from it; else the end of a traceback, without the command of podman."""
    if timeout := _TIMEOUT.search(message):
        return f"it took longer than {timeout['timeout_s']} s"
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    errors = [line.removeprefix(_INSTALLER_ERROR) for line in lines if line.startswith(_INSTALLER_ERROR)]
    cut_off = next(filter(None, map(_NO_INDEX.search, lines)), None)
    no_index = f"no connection to the package index ({cut_off['why']}): " if cut_off else ""
    return no_index + (errors[0] if errors else _PODMAN.sub("podman: ", lines[-1]))
