"""Two people edit the same thing in two tabs."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect


@pytest.fixture
def other(logged_in: BrowserContext) -> Iterator[Page]:
    page = logged_in.new_page()
    yield page
    page.close()


def _open_edit(page: Page) -> None:
    page.goto("/")
    page.get_by_role("link", name="first", exact=True).click()
    page.get_by_role("button", name="Edit").click()


def test_who_was_slower_is_told_what_changed_and_loses_nothing(page: Page, other: Page) -> None:
    _open_edit(page)
    page.get_by_label("Notes").fill("Mine.")
    _open_edit(other)
    other.get_by_label("Labels").fill("team: theirs")
    other.get_by_role("button", name="Save").click()
    expect(other.get_by_label("Labels")).to_have_count(0)
    page.get_by_role("button", name="Save").click()
    note = page.get_by_role("alert").filter(has_text="Somebody else has changed this")
    expect(note).to_contain_text("Labels: nothing became team: theirs.")
    expect(page.get_by_label("Notes")).to_have_value("Mine.")
    expect(page.get_by_label("Labels")).to_have_value("team: theirs")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Notes")).to_have_count(0)
    expect(page.get_by_text("Mine.")).to_be_visible()
    expect(page.get_by_text("team: theirs")).to_be_visible()
    expect(other.get_by_text("Mine.")).to_be_visible()


def test_a_sweep_is_found_in_the_list(page: Page) -> None:
    page.goto("/sweeps?best=acceptance_length")
    expect(page.get_by_role("heading", name="Sweeps", exact=True)).to_be_visible()
    expect(page.get_by_text("No sweeps yet.")).to_be_visible()
