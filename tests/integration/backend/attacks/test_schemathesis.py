"""Schemathesis finds no fault: no 5xx, no answer that the OpenAPI document does not describe, nothing invalid taken."""

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from starlette.routing import compile_path

HERE = Path(__file__).parent
NOT_REACHED = {
    "health": "is not in the log",
    "ready": "is not in the log",
    "session_create": "needs the code of a login link",
    "session_get": "is about a browser's session",
    "telemetry_ingest": "is the worker's",
    "worker_tokens_create": "is the worker's",
    "clusters_check": "needs a cluster that answers",
    "clusters_check_get": "needs a cluster that answers",
    "telemetry_stream": "never ends",
    "telemetry_stream_logs": "never ends",
}


def test_schemathesis_finds_no_fault(service, tmp_path):
    with service.client() as client:
        for name in ("tested", "changed", "deleted"):
            client.post("/projects", json={"name": name}).raise_for_status()
            client.post("/users", json={"name": name}).raise_for_status()
        client.put("/projects/tested/members/tested", json={"role": "viewer"}).raise_for_status()
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "schemathesis.toml")]
    command += ["run", f"{service.url}/api/v1/openapi.json"]
    own = {"FOREDECK_TOKEN": service.token, "SCHEMATHESIS_HOOKS": str(HERE / "schemathesis_checks.py")}
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | own, capture_output=True, text=True, check=False, timeout=280
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    assert "No issues found" in done.stdout
    with service.client() as client:
        document = client.get("/openapi.json").json()
    missed = operations_without_success(document, service.log.read_text())
    assert " ".join(sorted(missed)) == " ".join(sorted(NOT_REACHED))


def operations_without_success(document, log):
    """Ids of the operations that were never answered with success: whatever was sent, it tested little of them."""
    patterns, statuses = {}, defaultdict(set)
    for path, operations in document["paths"].items():
        pattern = compile_path(path)[0]
        patterns |= {(method.upper(), pattern): each["operationId"] for method, each in operations.items()}
    for line in log.splitlines():
        if (record := json_of(line)).get("message") == "request":
            for (method, pattern), name in patterns.items():
                if record["method"] == method and re.match(pattern, record["path"]):
                    statuses[name].add(record["status"] // 100)
    return {name for name in patterns.values() if 2 not in statuses[name]}


def json_of(line):
    try:
        return json.loads(line)
    except ValueError:
        return {}
