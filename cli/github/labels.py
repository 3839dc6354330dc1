"""Where a run comes from, as labels."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MAX_LENGTH = 200


def labels_of(environment: Mapping[str, str]) -> dict[str, str]:
    """Repository, branch, commit, pull request and workflow run.

    The branch of a fork's pull request is written `owner:branch`, so that a stranger's `main` is never taken for the
    repository's own, which runs are compared with.
    """
    event = _event(environment)
    pull_request = event.get("pull_request") or {}
    head = pull_request.get("head") or {}
    repository = environment.get("GITHUB_REPOSITORY", "")
    branch = environment.get("GITHUB_HEAD_REF") or environment.get("GITHUB_REF_NAME", "")
    is_foreign = bool(head) and (head.get("repo") or {}).get("full_name") != repository
    labels = {
        "repository": repository,
        "branch": head.get("label") or f"fork:{branch}" if is_foreign else branch,
        "commit": head.get("sha") or environment.get("GITHUB_SHA", ""),
        "pull_request": str(pull_request.get("number") or ""),
        "workflow_run": environment.get("GITHUB_RUN_ID", ""),
    }
    return {key: value[:MAX_LENGTH] for key, value in labels.items() if value}


def _event(environment: Mapping[str, str]) -> dict[str, Any]:
    path = environment.get("GITHUB_EVENT_PATH")
    if not path or not Path(path).is_file():
        return {}
    event = json.loads(Path(path).read_text())
    return event if isinstance(event, dict) else {}
