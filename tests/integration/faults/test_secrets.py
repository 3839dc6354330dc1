"""While a real run goes on, the service's passwords are in no arguments and no log. What of tokens can be read on its
machines, in arguments, environments, Ray's interface and its logs, opens nothing once the worker has reported."""

import os
import re
import threading
from pathlib import Path

import httpx
import psutil

from backend.embedded.ports import Ports
from backend.embedded.ray import RayService

REPOSITORY = Path(__file__).parents[3]
TOKEN = re.compile(r"fdk_[0-9a-f]{8}_[\w-]{43}")


class Watcher(threading.Thread):
    """Notes the arguments of all processes, and the tokens in the environments of this installation's, until it is told
    to stop."""

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
        if environment.get("RAY_AUTH_TOKEN_PATH") == self.mark:
            self.tokens.update(TOKEN.findall(" ".join(environment.values())))


def test_passwords_and_tokens_stay_where_they_belong(warm_installation):
    home = warm_installation.home
    ray = RayService(home, Ports(warm_installation.base_port), REPOSITORY)
    of_others = _shown_by(ray)  # runs that may have ended before their workers reported
    watcher = Watcher(home)
    watcher.start()
    run_id = warm_installation.launch("secrets", 1)
    run = warm_installation.run_when(run_id, lambda run: run["is_ended"])
    watcher.is_over.set()
    watcher.join()
    assert run["status"] == "succeeded"

    passwords = {path.read_text().strip() for path in (*home.root.rglob("*.password"), home.ray_handshake / "token")}
    assert len(passwords) >= 3
    assert [line for line in watcher.arguments if any(password in line for password in passwords)] == []
    logs = [*home.logs.rglob("*.log"), *(home.root / "storage" / "runs" / run_id).rglob("*")]
    assert len(logs) > 10
    secrets = {token.split("_", 2)[2] for token in watcher.tokens} | passwords
    assert [path for path in logs if path.is_file() and _holds(path, secrets)] == []

    of_ray = _shown_by(ray)
    assert of_ray & watcher.tokens  # else this looks in the wrong places
    found = (watcher.tokens | of_ray | set(TOKEN.findall("\n".join(watcher.arguments)))) - of_others
    # The token that the worker reported with is good for an hour after the run's end: what is refused is not that one.
    with warm_installation.api() as api:
        for token in found:
            bearer = {"Authorization": f"Bearer {token}"}
            answers = [api.post(path, headers=bearer) for path in ("/ingest/token", "/ingest")]
            answers.append(api.get("/runs", headers=bearer))
            assert [answer.status_code for answer in answers] == [401] * 3
        entries = api.get("/audit", params={"target": run_id, "action": "worker_token"}).json()["items"]
    assert [entry["action"] for entry in entries] == ["worker_token.refuse", "worker_token.issue"]


def _shown_by(ray):
    """The tokens in its answers and in all files that it writes, which are for nobody but their owner."""
    private = ray.temp_dir if ray.home.root not in ray.temp_dir.parents else ray.home.root
    assert private.stat().st_mode & 0o077 == 0
    headers = {"Authorization": f"Bearer {ray.token_path.read_text().strip()}"}
    answer = httpx.get(f"{ray.address}/api/jobs/", headers=headers, timeout=30, trust_env=False).raise_for_status()
    files = [path for path in ray.temp_dir.rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(files) > 10
    return set(TOKEN.findall(answer.text)).union(*(TOKEN.findall(_content(path).decode("latin-1")) for path in files))


def _holds(path, secrets):
    content = _content(path)
    return any(secret.encode() in content for secret in secrets)


def _content(path):
    """What is gone since it was listed shows nothing."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
