"""Which service the commands talk to, and which run is meant by a name."""

import os
from uuid import UUID

from cli.errors import CommandError
from foredeck import Foredeck

PATIENCE_S = 5.0


def connect() -> Foredeck:
    """The service that the environment names; FOREDECK_PATIENCE_S says how long to try where it does not answer."""
    text = os.environ.get("FOREDECK_PATIENCE_S") or str(PATIENCE_S)
    try:
        patience_s = float(text)
    except ValueError as error:
        raise CommandError(f"FOREDECK_PATIENCE_S is {text!r}, but must be a number of seconds.") from error
    return Foredeck.from_environment(patience_s=patience_s)


def find(service: Foredeck, run: str) -> UUID:
    """The id of the run that `run` names: its id, the start of its id, or its name.

    Raises:
        CommandError: none, or more than one.
    """
    try:
        return UUID(run)
    except ValueError:
        pass
    named = [item for item in service.runs.list(search=run) if item.name == run]
    prefix = run.lower()
    is_prefix = len(prefix) >= 4 and set(prefix) <= set("0123456789abcdef-")
    found = named or ([item for item in service.runs.list() if str(item.id).startswith(prefix)] if is_prefix else [])
    if len(found) == 1:
        return found[0].id
    if not found:
        raise CommandError(f"There is no run {run!r}: `foredeck runs` lists them.")
    candidates = "\n".join(f"  {item.id}  {item.name}  {item.status}" for item in found[:10])
    raise CommandError(f"{run!r} is not the name of one run, but of {len(found)}. Give an id:\n{candidates}")
