"""How soon a worker's number is in the chart that somebody looks at: `python -m benchmarks.chart_latency [--json]`.

A whole installation, as `foredeck up` makes it, in a folder of its own; a real Chromium with the run's page open; and
the worker's own reporter, spool and sender. The time runs from before the call that logs a step to the first frame in
which the chart's data in the page hold it, both by this machine's clock. Steps come at random distances, so that they
do not fall in with the dashboard's pace. Nothing else of a run takes part, and all share the machine's cores.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID, uuid4

import httpx
from playwright.sync_api import Page, sync_playwright
from sqlalchemy import select

from backend.auth.workers import service as workers
from backend.db import Database
from backend.embedded.binaries import system_dir_for
from backend.embedded.home import Home
from backend.embedded.ports import Ports, is_free
from backend.embedded.postgres import PostgresServer
from backend.models import Attempt, Cluster, Project, Run
from backend.settings import Settings
from contract.config import RunConfig
from contract.telemetry.metrics import METRICS
from contract.telemetry.stages import Stage
from workers.telemetry.reporter import Reporter
from workers.telemetry.sender import Sender
from workers.telemetry.spool import Spool

REPOSITORY = Path(__file__).parent.parent
SHOWN, CHART = "reward/train_mean", "Reward, mean per response"
WHOLE_STEP = [name for name, metric in METRICS.items() if metric.axis == "step" and "position_1" not in name][:80]
TIMEOUT_MS = 30_000
# Resolves with the page's clock once the chart's data hold the step.
WATCH = """([label, step, timeout]) => new Promise((resolve, reject) => {
  setTimeout(() => reject(new Error(`step ${step} is not in the chart`)), timeout);
  const look = () => {
    const plot = document.querySelector(`.js-plotly-plot[aria-label="${label}"]`);
    const isThere = plot?.data?.some((trace) => trace.x?.includes(step));
    if (isThere) resolve(Date.now());
    else requestAnimationFrame(look);
  };
  look();
})"""


@contextmanager
def installation() -> Iterator[tuple[str, Home, Database]]:
    """(address, folder, database) of everything that `foredeck up` starts."""
    home, port = Home(Path(tempfile.mkdtemp(prefix="fdk-bench-"))), _free_base_port()
    users = ("DATABASE_URL", "REDIS_URL", "RAY_ADDRESS", "FOREDECK_URL", "FOREDECK_TOKEN", "FOREDECK_PORT")
    environment = {key: value for key, value in os.environ.items() if key not in users}
    environment |= {"FOREDECK_HOME": str(home.root)}
    foredeck = [sys.executable, "-m", "cli.main"]
    up = [*foredeck, "up", "--detach", "--quiet", "--port", str(port)]
    database = None
    try:
        subprocess.run(up, cwd=REPOSITORY, env=environment, check=True)
        database = Database(Settings.model_validate({"DATABASE_URL": _database_url(home, port)}))
        yield f"http://127.0.0.1:{port}", home, database
    finally:
        if database is not None:
            database.close()
        subprocess.run([*foredeck, "down"], cwd=REPOSITORY, env=environment, check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(home.root)
        shutil.rmtree(system_dir_for(home.root), ignore_errors=True)


def _free_base_port() -> int:
    while True:
        base = random.randrange(20_000, 30_000)
        if all(is_free(port) for port in range(base, base + 5)):
            return base


def _database_url(home: Home, port: int) -> str:
    return PostgresServer(home.root, Ports(port).postgres).url


def make_run(database: Database, num_steps: int) -> tuple[UUID, str]:
    """(id, its job's starter) of a running run, on a cluster that does not answer and so says nothing about it."""
    config = RunConfig.model_validate({"grpo": {"num_steps": num_steps}})
    fields = {"config": config.model_dump(mode="json"), "config_sha256": config.sha256()}
    run_id = uuid4()
    with database.transaction() as session:
        place = {"address": "http://127.0.0.1:9", "storage_dir": "/s", "api_url": "http://127.0.0.1:9"}
        cluster = Cluster(name="nowhere", python="python", **place)
        run = Run(id=run_id, name="latency", status="running", num_steps=num_steps, cluster=cluster, **fields)
        run.project = session.scalars(select(Project)).one()
        run.current_attempt = 1
        run.attempts = [Attempt(number=1, submission_id=f"{run_id}-1", **fields)]
        session.add(run)
        session.flush()
        return run_id, workers.issue_starter(session, run_id, 1)


@contextmanager
def worker(url: str, run_id: UUID, starter: str) -> Iterator[Reporter]:
    """The part of a worker that reports."""
    with tempfile.TemporaryDirectory() as folder, Spool(Path(folder), run_id, 1, "driver/0") as spool:
        sender, reporter = Sender(url, starter, spool, 1), Reporter(spool)
        sender.start()
        reporter.started(None, "benchmark", {})
        reporter.start()
        try:
            yield reporter
        finally:
            reporter.finished("succeeded")
            reporter.close()
            sender.flush(30)
            sender.close()


@contextmanager
def run_page(url: str, home: Home, run_id: UUID, chromium: str | None) -> Iterator[Page]:
    """The run's page in a browser that is logged in."""
    token = json.loads(home.credentials.read_text())["token"]
    link = httpx.post(f"{url}/api/v1/login-links", headers={"Authorization": f"Bearer {token}"}, trust_env=False)
    graphics = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=graphics)
        page = browser.new_page(viewport={"width": 1600, "height": 1000})
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(link.raise_for_status().json()["url"])
        page.get_by_role("heading", name="Runs").wait_for()
        page.goto(f"{url}/runs/{run_id}")
        page.get_by_role("heading", name="latency").wait_for()
        yield page
        browser.close()


def latencies_ms(page: Page, reporter: Reporter, steps: range, names: list[str]) -> list[float]:
    """From before each step is logged until the chart has it, in milliseconds."""
    chance, times = random.Random(0), []
    for step in steps:
        values = {name: chance.random() for name in names}
        begin = time.time()
        reporter.metrics(step, values)
        times.append(page.evaluate(WATCH, [CHART, step, TIMEOUT_MS]) - 1000 * begin)
        reporter.stage(Stage.GENERATION, step + 1)
        page.wait_for_timeout(chance.uniform(200, 1400))
    return times


def summary(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {
        "num_steps": len(times),
        "p50_ms": statistics.median(ordered),
        "p95_ms": ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))],
        "max_ms": ordered[-1],
        "share_within_1_s": sum(each <= 1000 for each in ordered) / len(ordered),
    }


def measure(num_points: int, chromium: str | None) -> dict[str, dict[str, float]]:
    """A step of one series, and a whole step with its many charts."""
    with installation() as (url, home, database):
        run_id, starter = make_run(database, 2 * num_points + 2)
        with worker(url, run_id, starter) as reporter, run_page(url, home, run_id, chromium) as page:
            reporter.stage(Stage.GENERATION, 1)  # during set-up other charts stand first
            latencies_ms(page, reporter, range(1, 3), WHOLE_STEP)  # the chart library and the first drawing
            halves = range(3, 3 + num_points), range(3 + num_points, 3 + 2 * num_points)
            return {
                "one series": summary(latencies_ms(page, reporter, halves[0], [SHOWN])),
                f"a whole step, {len(WHOLE_STEP)} series": summary(latencies_ms(page, reporter, halves[1], WHOLE_STEP)),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--points", type=int, default=40, help="steps logged of either kind")
    parser.add_argument("--chromium", default=shutil.which("chromium"), help="a Chromium; else Playwright's own")
    arguments = parser.parse_args()
    results = measure(arguments.points, arguments.chromium)
    if arguments.json:
        print(json.dumps(results, indent=2))
        return
    print(f"{'from log call to chart':<28}{'steps':>7}{'p50 ms':>9}{'p95 ms':>9}{'max ms':>9}{'within 1 s':>12}")
    for name, row in results.items():
        times = "".join(f"{row[key]:>9.0f}" for key in ("p50_ms", "p95_ms", "max_ms"))
        print(f"{name:<28}{row['num_steps']:>7}{times}{row['share_within_1_s']:>12.0%}")


if __name__ == "__main__":
    main()
