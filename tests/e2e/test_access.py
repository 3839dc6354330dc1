"""An administrator lets somebody in, and what that person sees then."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect


@pytest.fixture
def elsewhere(browser: Browser, warm_installation) -> Iterator[Page]:
    """A tab of another browser."""
    context = browser.new_context(base_url=warm_installation.url)
    yield context.new_page()
    context.close()


def test_a_person_is_let_in_and_sees_their_project_alone(page: Page, elsewhere: Page) -> None:
    page.goto("/access?tab=projects")
    page.get_by_label("Name of the new project").fill("research")
    page.get_by_role("button", name="Make it").click()
    project = page.get_by_role("region", name="research")
    expect(project).to_contain_text("Nobody but those who administer everything")

    page.get_by_role("tab", name="Users").click()
    page.get_by_label("Name of the new user").fill("grace")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("button", name="Make a login link for grace").click()
    link = page.locator(".secret").inner_text()

    page.get_by_role("tab", name="Projects").click()
    project.get_by_label("User to add to research").fill("grace")
    project.get_by_label("Role in research").select_option("viewer")
    project.get_by_role("button", name="Add", exact=True).click()
    expect(project.get_by_label("Role of grace")).to_have_value("viewer")

    elsewhere.goto(link)
    expect(elsewhere.get_by_text("No runs yet.")).to_be_visible()
    elsewhere.goto("/access?tab=users")
    expect(elsewhere.get_by_role("tab")).to_have_text(["API tokens", "Projects"])
    elsewhere.get_by_role("tab", name="Projects").click()
    expect(elsewhere.get_by_role("region")).to_have_count(1)
    expect(elsewhere.get_by_role("region", name="research")).to_contain_text("you: viewer")


def test_a_token_is_shown_once_and_revoked(page: Page) -> None:
    page.goto("/access")
    page.get_by_label("Name").fill("nightly")
    page.get_by_role("button", name="Make a token").click()
    expect(page.locator(".secret")).to_have_text(re.compile(r"fdk_[0-9a-f]{8}_\S{40,}"))
    page.reload()
    token = page.get_by_role("listitem").filter(has_text="nightly")
    expect(token).to_contain_text("never used")
    expect(page.locator(".secret")).to_have_count(0)
    token.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(token).to_have_count(0)


def test_the_audit_log_names_who_did_what(page: Page) -> None:
    page.goto("/access?tab=audit")
    page.get_by_label("What", exact=True).fill("token")
    page.get_by_role("button", name="Filter").click()
    rows = page.locator(".audit-table tbody tr")
    expect(rows.first).to_contain_text(re.compile(r"user:admin.*token\.revoke.*nightly"))


def test_who_is_shut_out_is_logged_out(page: Page, elsewhere: Page) -> None:
    page.goto("/access?tab=users")
    page.get_by_role("button", name="Make a login link for grace").click()
    elsewhere.goto(page.locator(".secret").inner_text())
    expect(elsewhere.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    grace = page.get_by_role("listitem").filter(has_text="grace")
    grace.get_by_role("button", name="Shut out").click()
    page.get_by_role("dialog").get_by_role("button", name="Shut out").click()
    expect(grace).to_contain_text("Let in again")
    elsewhere.reload()
    expect(elsewhere).to_have_url(re.compile("/login"))
