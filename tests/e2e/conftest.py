"""A real Chromium, logged in by a one-time link."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

REPOSITORY = Path(__file__).parents[2]
TIMEOUT_MS = 30_000
EXPECT_MS = 60_000
"""A context's own time limit does not count for what is expected."""


def _chromium() -> str | None:
    spec = importlib.util.spec_from_file_location("chromium", Path(__file__).with_name("chromium.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.executable()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Ends with its file: Playwright keeps an event loop in its thread, where other tests begin one of their own."""
    executable = _chromium()
    assert executable, "no Chromium: run tools/ensure_chromium .venv/bin/python"
    assert (REPOSITORY / "frontend" / "dist" / "index.html").exists(), "the dashboard is not built: run make frontend"
    expect.set_options(timeout=EXPECT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable,
            args=["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"],
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def logged_in(browser: Browser, warm_installation) -> Iterator[BrowserContext]:
    context = browser.new_context(base_url=warm_installation.url, viewport={"width": 1440, "height": 900})
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    page.goto(warm_installation.json_of("login")["url"])
    page.get_by_role("heading", name="Runs").wait_for()
    page.close()
    yield context
    context.close()


@pytest.fixture
def page(logged_in: BrowserContext) -> Iterator[Page]:
    """A fresh tab; whatever the page complains about on its console fails the test."""
    page = logged_in.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    yield page
    page.close()
    expected = ("422",)  # the browser reports a refused form, too
    assert [text for text in complaints if not any(code in text for code in expected)] == []
