"""Stored XSS: what runs, workers and models write is text in the browser, and in an HTML export, and nothing else."""

import importlib.util
import json
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from playwright.sync_api import Page, sync_playwright

from backend.runs import attempts, repository

REPOSITORY = Path(__file__).parents[4]
SCRIPTS = [
    "<script>window.owned=1</script>",
    '<img src=x onerror="window.owned=1">',
    '"><svg onload=window.owned=1>',
    "javascript:window.owned=1",
    "</textarea></title><iframe srcdoc='<script>parent.owned=1</script>'>",
    "[x](javascript:window.owned=1)",
]
TERMINAL = "\x1b]8;;javascript:window.owned=1\x07click\x1b]8;;\x07 \x1b[31m<b onmouseover=window.owned=1>red</b>\x1b[0m"
ALL = " ".join(SCRIPTS)
COMPLETION = f"{ALL} {TERMINAL}"
INTRUDERS = "img[src='x'], svg[onload], [onerror], [onmouseover], iframe, a[href^='javascript:'], script:not([src])"


@pytest.fixture(scope="module")
def frontend_dir():
    """The dashboard itself."""
    built = REPOSITORY / "frontend" / "dist"
    assert (built / "index.html").exists(), "the dashboard is not built: run make frontend"
    return built


@pytest.fixture(scope="module")
def page(service):
    """A browser that has logged in by a link; whatever asks or complains is noted."""
    spec = importlib.util.spec_from_file_location("chromium", REPOSITORY / "tests" / "e2e" / "chromium.py")
    chromium = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(chromium)
    executable = chromium.executable()
    assert executable, "no Chromium: run tools/ensure_chromium .venv/bin/python"
    link = json.loads(service.ask("POST", "/api/v1/login-links").body)["url"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1440, "height": 1200})
        page.goto(link)
        page.get_by_role("heading", name="Runs").wait_for()
        yield page
        browser.close()


@pytest.fixture(scope="module")
def hostile_run(service):
    """The id of a run that says nasty things wherever a run, its worker or its model may say anything."""
    with service.client() as client:
        fields = {"name": ALL[:119], "notes": ALL, "labels": {"a": ALL[:199]}}
        config = {"config": {"drafter": {"kind": "none"}, "grpo": {"num_steps": 3}}}
        run_id = client.post("/runs", json=fields | config).raise_for_status().json()["id"]
        client.post("/tokens", json={"name": ALL[:119], "scopes": ["read"]}).raise_for_status()
    with service.database.transaction() as session:
        run = repository.get_locked(session, UUID(run_id))
        if run.current_attempt == 0:
            attempts.begin(session, run, ALL)
    with service.client(service.worker_token(run_id)) as worker:
        worker.post("/ingest", json={"events": events(run_id)}).raise_for_status()
    return run_id


def events(run_id):
    sample = {"prompt": COMPLETION, "answer": COMPLETION, "response": COMPLETION, "reward": 1.0, "advantage": 0.0}
    rounds = [{"drafted": [1], "num_accepted": 1, "emitted": 2, "draft_logprobs": [-1.0], "policy_logprobs": [-1.0]}]
    sample |= {"is_truncated": False, "rounds": rounds, "vocabulary": {"1": COMPLETION, "2": SCRIPTS[0]}}
    bodies = [
        {"kind": "started", "host": ALL, "versions": {ALL: ALL}},
        {"kind": "metrics", "step": 1, "values": {"policy/loss": 0.5}},
        {"kind": "samples", "step": 1, "samples": [sample]},
        *({"kind": "log", "level": "error", "message": text} for text in (*SCRIPTS, TERMINAL, COMPLETION)),
        {"kind": "checkpoint", "step": 1, "path": f"/x/{ALL}", "size_bytes": 1},
        {"kind": "finished", "outcome": "failed", "error": COMPLETION},
    ]
    envelope = {"run_id": run_id, "attempt": 1, "emitter": "driver/0", "time": datetime.now(UTC).isoformat()}
    return [envelope | {"seq": seq, "body": body} for seq, body in enumerate(bodies, 1)]


@pytest.mark.parametrize(
    ("path", "shows"),
    [
        ("/", SCRIPTS[0]),
        (f"/runs?search={SCRIPTS[0]}", SCRIPTS[0]),
        ("/runs/{run}", SCRIPTS[0]),
        ("/runs/{run}?tab=samples", SCRIPTS[1]),
        ("/runs/{run}?tab=log", SCRIPTS[1]),
        ("/runs/{run}?tab=config", SCRIPTS[0]),
        ("/runs/{run}?tab=attempts", SCRIPTS[0]),
        ("/launch?clone={run}", None),
        ("/access", SCRIPTS[0]),
        (f"/{ALL}", None),
        ("/login#code=<script>window.owned=1</script>", None),
    ],
    ids=lambda value: str(value)[:26],
)
def test_nothing_of_it_runs(service, page: Page, hostile_run, path, shows):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
    page.goto(service.url + path.replace("{run}", hostile_run))
    if shows:
        page.get_by_text(shows, exact=False).first.wait_for(timeout=20_000)
    page.wait_for_load_state("load")
    assert page.evaluate("window.owned") is None
    assert page.locator(INTRUDERS).count() == 0
    assert {urlsplit(url).netloc for url in asked if not url.startswith(("data:", "blob:"))} == {
        f"127.0.0.1:{service.ports.api}"
    }


REFUSED = """insert => new Promise(resolve => {
  document.addEventListener("securitypolicyviolation", event => resolve(event.violatedDirective), {once: true});
  insert();
})"""
HANDLER = """() => document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.owned=1'>")"""
SCRIPT = """() => document.body.append(Object.assign(document.createElement("script"), {text: "window.owned=1"}))"""
ELSEWHERE = """() => fetch("https://evil.example/").catch(() => {})"""


@pytest.mark.parametrize(
    ("insert", "directive"), [(HANDLER, "script-src-attr"), (SCRIPT, "script-src-elem"), (ELSEWHERE, "connect-src")]
)
def test_a_script_that_got_in_would_not_run(service, page: Page, insert, directive):
    """The second line: the page's policy refuses inline scripts, handlers, and other hosts."""
    page.goto(f"{service.url}/")
    assert page.evaluate(f"({REFUSED})({insert})") == directive
    assert page.evaluate("window.owned") is None


def test_an_exported_chart_has_no_origin(service, page: Page, hostile_run):
    """Scripts run in it, plotly's, but in a sandbox: without the cookie, the API and the page's storage."""
    page.goto(f"{service.url}/api/v1/runs/{hostile_run}/figures/reward.html")
    assert page.evaluate("window.origin") == "null"
    assert page.evaluate("window.owned") is None
    assert page.evaluate("fetch('/api/v1/runs').catch(error => error.name)") == "TypeError"
