"""A page that is open in the browser, and what tests ask of it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

WAIT_S = 60
"""For what is bound to come, on the slowest machine."""
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def started() -> Iterator[Browser]:
    """The system's Chromium, with nothing to reach outside. Skips the test where it or Playwright is missing."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium is installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield browser
        browser.close()


class Opened:
    """The page, with all that it asked for and all that it complained of."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        page.goto(url)

    def close(self) -> None:
        """Close it; it may have asked for nothing but itself, and have nothing to complain of."""
        self.page.context.close()
        assert (self.requests, self.complaints) == ([self.url.partition("#")[0]], [])

    def press(self, *keys: str) -> None:
        """Press keys, each drawn before the next."""
        for key in keys:
            self.page.keyboard.press(key)
            self.drawn()

    def drawn(self) -> None:
        """Wait until a change is on the page."""
        self.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def one(self, name: str) -> Locator:
        """The first element with this class of the player's."""
        return self.page.locator(f".fsm-{name}").first

    @property
    def at(self) -> str:
        """Where it is, as it is shown."""
        return self.one("place").inner_text()

    @property
    def way(self) -> str:
        return " ".join((self.one("way").text_content() or "").split())

    def marked(self) -> tuple[list[str], list[str]]:
        """The state that is marked as current and the words of the edge that is marked as just taken."""
        found: list[list[str]] = self.page.evaluate(
            """() => [
                [...document.querySelectorAll(".fsm-state.fsm-now")].map((each) => each.dataset.state),
                [...document.querySelectorAll(".fsm-edge.fsm-now .fsm-words")].map((each) => each.textContent),
            ]"""
        )
        return found[0], found[1]

    def until(self, expression: str, value: object) -> None:
        """Wait until it is so. Asked from here: the page's policy lets nothing be evaluated within it."""
        end = time.monotonic() + WAIT_S
        while (found := self.ask(expression)) != value and time.monotonic() < end:
            self.page.wait_for_timeout(20)
        assert found == value

    def until_at(self, place: str) -> None:
        self.until("document.querySelector('.fsm-place').textContent", place)

    def ask(self, expression: str) -> Any:
        return self.page.evaluate(expression)
