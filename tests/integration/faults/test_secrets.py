"""While a real run goes on, the service's passwords are in no arguments and no log, and its worker's token in none but
those of Ray, which hands environments on so."""

import json
import os
import threading
from pathlib import Path

import psutil

from backend.embedded.ports import Ports
from backend.embedded.ray import RayService
from contract.telemetry.events import ASSIGNMENT_VARIABLE

REPOSITORY = Path(__file__).parents[3]
OF_RAY = "ray/_private/workers/setup_worker.py"
"""For a moment, before it becomes the worker, it has the job's environment among its arguments."""


class Watcher(threading.Thread):
    """Notes the arguments of all processes, and the tokens of assignments in the environments of this installation's,
    until it is told to stop."""

    def __init__(self, home):
        super().__init__(daemon=True)
        self.mark = str(home.ray_handshake / "token")
        self.arguments, self.tokens, self.is_over = set(), set(), threading.Event()

    def run(self):
        while not self.is_over.wait(0.05):
            for process in psutil.process_iter():
                try:
                    self._note(process)
                except psutil.Error:
                    continue

    def _note(self, process):
        self.arguments.add(" ".join(process.cmdline()))
        environment = process.environ() if process.uids().real == os.getuid() else {}
        if environment.get("RAY_AUTH_TOKEN_PATH") == self.mark and ASSIGNMENT_VARIABLE in environment:
            self.tokens.add(json.loads(environment[ASSIGNMENT_VARIABLE])["token"])


def test_passwords_and_tokens_stay_where_they_belong(warm_installation):
    watcher = Watcher(warm_installation.home)
    watcher.start()
    run_id = warm_installation.launch("secrets", 1)
    run = warm_installation.run_when(run_id, lambda run: run["is_ended"])
    watcher.is_over.set()
    watcher.join()
    assert run["status"] == "succeeded"
    assert watcher.tokens
    home = warm_installation.home
    passwords = {path.read_text().strip() for path in (*home.root.rglob("*.password"), home.ray_handshake / "token")}
    assert len(passwords) >= 3
    secrets = {token.split("_", 2)[2] for token in watcher.tokens} | passwords
    shown = [line for line in watcher.arguments if any(secret in line for secret in secrets)]
    assert [line for line in shown if OF_RAY not in line or any(password in line for password in passwords)] == []
    logs = [*home.logs.rglob("*.log"), *(home.root / "storage" / "runs" / run_id).rglob("*")]
    assert len(logs) > 10
    assert [path for path in logs if path.is_file() and _holds(path, secrets)] == []
    # Ray writes the environments of jobs into its own logs: they are for nobody but their owner.
    ray = RayService(home, Ports(warm_installation.base_port), REPOSITORY)
    private = ray.temp_dir if home.root not in ray.temp_dir.parents else home.root
    assert private.stat().st_mode & 0o077 == 0


def _holds(path, secrets):
    content = path.read_bytes()
    return any(secret.encode() in content for secret in secrets)
