"""Which Chromium the end-to-end tests drive. Run as a script, prints it and fails when there is none."""

import shutil
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def executable() -> str | None:
    """A Chromium in PATH, or the one that Playwright has installed."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


if __name__ == "__main__":
    found = executable()
    print(found or "no Chromium")
    sys.exit(found is None)
