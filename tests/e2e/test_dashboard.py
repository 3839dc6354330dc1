"""What a person does in the browser, against everything that `foredeck up` runs."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect


@pytest.fixture(scope="module")
def launched() -> dict[str, str]:
    """What one step of the story leaves for the next ones."""
    return {}


@pytest.fixture
def nobody(browser: Browser, warm_installation) -> Iterator[Page]:
    """A tab that is not logged in."""
    context = browser.new_context(base_url=warm_installation.url)
    yield context.new_page()
    context.close()


def test_without_a_link_nothing_is_shown(nobody: Page) -> None:
    nobody.goto("/")
    expect(nobody).to_have_url(re.compile("/login"))
    expect(nobody.get_by_role("heading", name="Runs")).to_have_count(0)


def test_the_list_shows_the_runs(page: Page) -> None:
    page.goto("/")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="first", exact=True))
    expect(row).to_contain_text(re.compile("succeeded", re.IGNORECASE))


def _open_form(page: Page) -> None:
    page.goto("/launch?example=smoke")
    page.locator("#field-grpo-num_steps").wait_for()


def test_a_wrong_value_is_told_at_its_field(page: Page) -> None:
    _open_form(page)
    page.locator("#field-grpo-num_steps").fill("0")
    problem = page.locator("#field-grpo-num_steps-problems")
    expect(problem).to_contain_text("at least 1")
    expect(page.locator("#field-grpo-num_steps")).to_have_attribute("aria-invalid", "true")
    page.get_by_role("button", name="Launch", exact=True).click()
    expect(page.locator("#field-grpo-num_steps")).to_be_focused()
    expect(page).to_have_url(re.compile("/launch"))
    page.locator("#field-grpo-num_steps").fill("4")
    expect(problem).to_be_empty()


def test_what_another_kind_lacks_is_told_where_it_is_entered(page: Page) -> None:
    _open_form(page)
    page.locator("#field-task").select_option("dataset")
    page.locator("#field-task-train").select_option("hub")
    expect(page.locator("#field-task-train-name-problems")).to_contain_text("required")
    page.locator("#field-task-train-name").fill("somebody/prompts")
    expect(page.locator("#field-task-train-name-problems")).to_be_empty()
    expect(page.locator("#field-policy-problems")).to_contain_text("checkpoint")
    page.locator("#field-task").select_option("arithmetic")
    expect(page.locator("#field-policy-problems")).to_be_empty()


def test_launching_leads_to_the_run(page: Page, launched: dict[str, str]) -> None:
    """Engine and trainer always differ by more than the limit given, so the audit will raise its alarm."""
    _open_form(page)
    page.locator("#run-name").fill("from the form")
    page.locator("#field-grpo-num_steps").fill("500")
    limit = page.locator("#field-audit-max_mismatch_ratio")
    page.locator("details").filter(has=limit).locator("summary").click()
    limit.fill("1.0000001")
    page.get_by_role("button", name="Launch", exact=True).click()
    expect(page).to_have_url(re.compile(r"/runs/[0-9a-f-]{36}"))
    expect(page.get_by_role("heading", name="from the form")).to_be_visible()
    launched["url"] = page.url
    launched["id"] = page.url.split("/")[-1].split("?")[0]


def test_an_alarm_appears_by_itself_and_says_what_to_do(page: Page, launched: dict[str, str], installation) -> None:
    page.goto(launched["url"])
    alarm = page.get_by_role("alert").filter(has_text="Log-probability mismatch")
    expect(alarm).to_contain_text("What to do", timeout=120_000)
    page.goto("/")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="from the form", exact=True))
    expect(row).to_contain_text(re.compile("[1-9] alarm"))
    told = installation.foredeck("show", launched["id"]).stdout
    assert "Log-probability mismatch since step" in told


def _num_points(page: Page) -> int:
    """Points of the longest trace of the chart that is drawn first."""
    return page.evaluate(
        "() => Math.max(0, ...[...document.querySelectorAll('.js-plotly-plot')].slice(0, 1)"
        ".flatMap((plot) => plot.data.map((trace) => trace.x?.length ?? 0)))"
    )


def test_charts_move_by_themselves(page: Page, launched: dict[str, str]) -> None:
    page.goto(launched["url"])
    page.locator(".js-plotly-plot").first.wait_for(timeout=120_000)
    page.wait_for_function(
        "() => document.querySelector('.js-plotly-plot')?.data?.some((trace) => (trace.x?.length ?? 0) >= 2)",
        timeout=120_000,
    )
    before = _num_points(page)
    page.evaluate("() => { window.notReloaded = true; }")
    page.wait_for_function(
        "(before) => document.querySelector('.js-plotly-plot')?.data?.some((trace) => (trace.x?.length ?? 0) > before)",
        arg=before,
        timeout=120_000,
    )
    assert page.evaluate("() => window.notReloaded") is True


def test_the_log_is_read(page: Page, launched: dict[str, str]) -> None:
    page.goto(launched["url"])
    page.get_by_role("tab", name="Log").click()
    lines = page.get_by_role("log").locator(".log-line")
    expect(lines.first).to_be_visible()
    assert lines.count() > 3


def test_the_configuration_is_read(page: Page, launched: dict[str, str]) -> None:
    page.goto(launched["url"])
    page.get_by_role("tab", name="Configuration").click()
    expect(page.locator("pre.yaml")).to_contain_text("num_steps: 500")
    expect(page.locator("pre.yaml")).to_contain_text("kind: eagle3")


def test_samples_show_their_tokens(page: Page, launched: dict[str, str]) -> None:
    page.goto(launched["url"])
    page.get_by_role("tab", name="Samples").click()
    expect(page.get_by_role("tabpanel")).to_contain_text(re.compile("reward", re.IGNORECASE))


def test_stopping_ends_the_run(page: Page, launched: dict[str, str], warm_installation) -> None:
    page.goto(launched["url"])
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("button", name="Stop the run").click()
    expect(page.locator(".run-title-line")).to_contain_text(re.compile("stopped", re.IGNORECASE))
    assert warm_installation.run(launched["id"])["status"] == "stopped"


def test_a_clone_starts_from_the_same_settings(page: Page, launched: dict[str, str]) -> None:
    page.goto(launched["url"])
    page.get_by_role("link", name="Clone").click()
    expect(page.locator("#field-grpo-num_steps")).to_have_value("500")


def test_draft_training_ends_with_what_the_draft_is_worth(page: Page, trained_draft) -> None:
    page.goto(f"/runs/{trained_draft['run_id']}")
    expect(page.locator(".run-head-progress")).to_contain_text("Draft trained")
    expect(page.locator(".draft-path")).to_contain_text(trained_draft["path"])
    chart = page.get_by_role("img", name="Held-out acceptance by draft position, %")
    expect(chart).to_be_visible()
    expect(page.get_by_role("tab", name="Samples")).to_have_count(0)


def test_on_a_phone_nothing_is_wider_than_the_screen(browser: Browser, logged_in, launched: dict[str, str]) -> None:
    page = logged_in.new_page()
    page.set_viewport_size({"width": 390, "height": 844})
    for path in ("/", "/launch?example=smoke", launched["url"]):
        page.goto(path)
        page.get_by_role("heading", level=1).first.wait_for()
        widths = page.evaluate("() => [document.documentElement.scrollWidth, window.innerWidth]")
        assert widths[0] <= widths[1], path
    page.close()
