"""Open pages of a server in a real browser, wait until they are complete, and record errors and foreign requests."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    Response,
    expect,
    sync_playwright,
)

from tests.missing import missing

SCREENSHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"
VIEWPORT = {"width": 1366, "height": 768}
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
STILL = "html[data-idle=true]:not(:has([data-test=loading]))"
PATIENCE_MS = 30_000

Theme = Literal["light", "dark"]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield Debian's Chromium. If there is none, skip the test; in continuous integration, fail it."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        missing("needs a Chromium on the PATH (on Debian: apt-get install chromium)")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


class Visitor:
    """A user with a separate browser context.

    Args:
        browser: The running browser.
        address: The address of the server.
        theme: The preferred color scheme of the user's system.
        expected: Regular expressions of allowed console messages. All others are failures.
    """

    def __init__(
        self, browser: Browser, address: str, *, theme: Theme = "light", expected: tuple[str, ...] = ()
    ) -> None:
        self.address = address
        self.expected = expected
        self.console: list[str] = []
        self.requests: list[str] = []
        self.context: BrowserContext = browser.new_context(
            viewport={"width": VIEWPORT["width"], "height": VIEWPORT["height"]}, color_scheme=theme
        )
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.page = self.new_tab()

    def new_tab(self) -> Page:
        """Open another tab whose errors and requests are recorded, too."""
        page = self.context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.console.append(f"error: {error}"))
        page.on("request", self._sent)
        page.on("response", self._answered)
        return page

    def _heard(self, message: ConsoleMessage) -> None:
        # The console repeats refused requests, whose responses are checked below. Servers may also end before their
        # clients do.
        is_known = message.text.startswith("Failed to load resource") or "ERR_CONNECTION_REFUSED" in message.text
        if not is_known:
            self.console.append(f"{message.type}: {message.text}")

    def _sent(self, request: Request) -> None:
        self.requests.append(request.url)

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self.console.append(f"{response.status} {response.url}")

    def go(self, path: str) -> Visitor:
        """Open a path of the server and wait until the page is complete."""
        self.page.goto(self.address + path)
        return self.still()

    def still(self) -> Visitor:
        """Wait until the page has a headline and has received the answers to all requests."""
        self.page.wait_for_selector("h1")
        self.page.wait_for_selector(STILL)
        return self

    def test(self, name: str) -> Locator:
        """Return the element with this ``data-test`` attribute."""
        return self.page.locator(f"[data-test={name}]")

    @property
    def verdict(self) -> str:
        """Return the text of the headline."""
        return self.page.inner_text("h1")

    @property
    def place(self) -> str:
        """Return the path and the query of the page's address."""
        parts = urlsplit(self.page.url)
        return parts.path + (f"?{parts.query}" if parts.query else "")

    def shoot(self, name: str) -> None:
        """Save screenshots of the page in light and dark; they are build output for people to look at."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        themes: tuple[Theme, ...] = ("light", "dark")
        for theme in themes:
            self.page.emulate_media(color_scheme=theme)
            self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
            self.page.screenshot(path=SCREENSHOTS / f"{name}-{theme}.png")

    def violations(self) -> list[str]:
        """Return the serious and critical findings of axe-core, one line each."""
        self.page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
        found = self.page.evaluate("() => axe.run({ resultTypes: ['violations'] })")
        return [
            f"{each['id']}: {node['target']} {node['failureSummary']}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"]
        ]

    def close(self) -> None:
        """Close the browser context; fail if there were errors, refused requests or requests to other hosts."""
        outside = [url for url in self.requests if urlsplit(url).netloc != urlsplit(self.address).netloc]
        self.context.close()
        console = [line for line in self.console if not any(re.search(each, line) for each in self.expected)]
        if console or outside:
            lines = [*console, *(f"asked of another host: {url}" for url in outside)]
            pytest.fail("\n".join(line[:300] for line in dict.fromkeys(lines[:20])))


def marks(page: Page, name: str) -> float:
    """Return the time of a performance mark in milliseconds since the start of the navigation, or -1."""
    found = page.evaluate("(name) => performance.getEntriesByName(name).at(-1)?.startTime ?? -1", name)
    return float(json.loads(json.dumps(found)))
