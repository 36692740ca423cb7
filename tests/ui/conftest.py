"""Fixtures: a browser for each module of tests, and fake clusters of two sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from tests.ui.browsing import Theme, Visitor, chromium
from tests.ui.fake_cluster import FakeCluster
from tests.ui.fake_service import FakeService, served

SIZES = {"10": (10, 60), "5000": (5_000, 50_000)}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Yield a browser for one module.

    While the browser is open, its event loop runs in this thread, so modules that need their own loop can't share it.
    """
    with chromium() as found:
        yield found


@pytest.fixture(scope="session")
def fakes() -> Iterator[Callable[[str], tuple[FakeService, str]]]:
    """Yield a function that starts the fake service of a size, once, and returns it with its address."""
    running: dict[str, tuple[FakeService, str]] = {}
    ending: list[Iterator[str]] = []

    def start(size: str) -> tuple[FakeService, str]:
        if size not in running:
            service = FakeService(FakeCluster(*SIZES[size]))
            serving = _serving(service)
            running[size] = service, next(serving)
            ending.append(serving)
        return running[size]

    yield start
    for serving in ending:
        next(serving, None)


def _serving(service: FakeService) -> Iterator[str]:
    with served(service) as address:
        yield address


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visitor]]:
    """Yield a function that opens a visitor's browser; at the end, forbidden behaviour of pages fails the test."""
    visitors: list[Visitor] = []

    def open_browser(address: str, *, theme: Theme = "light", expected: tuple[str, ...] = ()) -> Visitor:
        visitors.append(Visitor(browser, address, theme=theme, expected=expected))
        return visitors[-1]

    yield open_browser
    for visitor in visitors:
        visitor.close()
