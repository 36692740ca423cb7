"""Every page with ten and with 5,000 nodes: it loads, is accessible, and causes no errors; screenshots are saved."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.ui.browsing import Visitor
from tests.ui.fake_cluster import FakeCluster
from tests.ui.fake_service import FakeService

Fakes = Callable[[str], tuple[FakeService, str]]
Visit = Callable[..., Visitor]

PAGES = {
    "overview": "/",
    "nodes": "/nodes",
    "node": "/nodes/{node}",
    "pods": "/pods",
    "pods-waiting": "/pods?status=waiting",
    "pods-none": "/pods?q=nothing-like-this",
    "pod-placed": "/pods/{placed}",
    "pod-cell": "/pods/{placed}?cell={node}.NodeResourcesFit",
    "pod-waiting": "/pods/{waiting}",
    "pod-attempts": "/pods/{waiting}?tab=attempts",
    "pod-preemption": "/pods/{waiting}?tab=preemption",
    "pod-events": "/pods/{waiting}?tab=events",
    "pod-yaml": "/pods/{waiting}?tab=yaml",
    "queue": "/queue?tier=unschedulable",
    "timeline": "/timeline",
    "pod-unblock": "/pods/{waiting}?tab=unblock",
    "pod-capacity": "/pods/{waiting}?tab=capacity",
    "what-if": "/what-if",
    "what-if-drain": "/what-if?changes=drain%3D{node}",
    "unblock": "/unblock?of=pod/{waiting}",
    "unblock-start": "/unblock",
    "capacity": "/capacity?of=pod/{placed}",
    "config": "/config",
    "create": "/new",
    "compare": "/compare",
    "compare-pod": "/compare/{placed}?b=packed",
    "sources": "/sources",
    "plugins": "/plugins",
    "settings": "/settings",
    "keys": "/keys",
    "nowhere": "/no/such/page",
}
OF_ANY_SIZE = {
    "pods-none",
    "pod-events",
    "pod-yaml",
    "pod-capacity",
    "what-if",
    "unblock",
    "unblock-start",
    "capacity",
    "config",
    "create",
    "compare",
    "sources",
    "plugins",
    "settings",
    "keys",
    "nowhere",
}
"""Pages that look the same at any size; they are looked at once."""

CASES = [(name, size) for name in PAGES for size in ("10", "5000") if size == "10" or name not in OF_ANY_SIZE]
MAX_ELEMENTS = 1500


def address(path: str, cluster: FakeCluster) -> str:
    """Return the address of a page, with names of this cluster."""
    keys = {
        status: next(f"{p.namespace}/{p.name}" for p in cluster.pods if p.status == status)
        for status in ("placed", "waiting")
    }
    return "/ui" + path.format(node=cluster.nodes[0].name, **keys)


@pytest.mark.parametrize(("name", "size"), CASES)
def test_a_page_renders_within_the_element_limit(name: str, size: str, fakes: Fakes, visit: Visit) -> None:
    service, url = fakes(size)
    visitor = visit(url)
    visitor.go(address(PAGES[name], service.cluster))
    page = visitor.page
    assert page.locator("h1").count() == 1
    assert page.locator("main").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("document.querySelectorAll('*').length") <= MAX_ELEMENTS
    assert page.title().endswith("Bayplan")
    visitor.shoot(f"{name}-{size}")


ACCESSIBLE = (
    "overview",
    "nodes",
    "node",
    "pods",
    "pod-placed",
    "pod-cell",
    "queue",
    "timeline",
    "config",
    "create",
    "compare",
    "compare-pod",
)


@pytest.mark.parametrize(
    ("name", "theme"),
    [*((name, "light") for name in ACCESSIBLE), *((name, "dark") for name in ("overview", "pod-cell"))],
)
def test_a_page_is_accessible(name: str, theme: str, fakes: Fakes, visit: Visit) -> None:
    service, url = fakes("10")
    visitor = visit(url, theme=theme)
    visitor.go(address(PAGES[name], service.cluster))
    assert visitor.violations() == []


@pytest.mark.parametrize("name", ["overview", "nodes", "pods", "pod-placed", "queue", "timeline", "config"])
def test_a_page_fits_on_a_narrow_screen(name: str, fakes: Fakes, visit: Visit) -> None:
    service, url = fakes("10")
    visitor = visit(url)
    visitor.page.set_viewport_size({"width": 1024, "height": 768})
    visitor.go(address(PAGES[name], service.cluster))
    assert visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for each in ("search", "new", "nav-pods", "live"):
        assert visitor.test(each).is_visible()
    # The size of a laptop's screen at a zoom of 200 %.
    visitor.page.set_viewport_size({"width": 683, "height": 384})
    assert visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert visitor.page.locator("h1").is_visible()


def test_the_selected_theme_is_applied_before_the_first_paint(fakes: Fakes, visit: Visit) -> None:
    visitor = visit(fakes("10")[1])
    visitor.go("/ui/settings")
    visitor.page.click("[aria-label=Theme] [data-value=dark]")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    assert visitor.page.evaluate(ground) == "rgb(15, 19, 24)"
    visitor.page.reload(wait_until="commit")
    assert visitor.page.evaluate("document.documentElement.dataset.theme") == "dark"
    visitor.still()
    assert visitor.page.evaluate(ground) == "rgb(15, 19, 24)"


def test_the_theme_follows_the_system_until_one_is_selected(fakes: Fakes, visit: Visit) -> None:
    visitor = visit(fakes("10")[1])
    visitor.go("/ui/timeline")
    page, ground = visitor.page, "getComputedStyle(document.documentElement).backgroundColor"
    assert page.evaluate(ground) == "rgb(251, 251, 250)"
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"() => {ground} === 'rgb(15, 19, 24)'")
    page.keyboard.press("t")
    page.wait_for_function(f"() => {ground} === 'rgb(251, 251, 250)'")
    page.emulate_media(color_scheme="light")
    page.keyboard.press("t")
    page.wait_for_function(f"() => {ground} === 'rgb(15, 19, 24)'")
    page.keyboard.press("t")
    page.wait_for_function(f"() => {ground} === 'rgb(251, 251, 250)'")


def test_the_page_works_without_browser_storage(fakes: Fakes, visit: Visit) -> None:
    visitor = visit(fakes("10")[1])
    page = visitor.page
    page.add_init_script("""for (const name of ["localStorage", "sessionStorage"])
        Object.defineProperty(window, name, {
            configurable: true,
            get() { throw new DOMException("Access is denied for this document", "SecurityError"); },
        });""")
    visitor.go("/ui/settings")
    page.click("[aria-label=Theme] [data-value=dark]")
    page.click("[aria-label=Rows] [data-value=dense]")
    chosen = page.locator("[aria-label=Theme] [aria-pressed=true], [aria-label=Rows] [aria-pressed=true]")
    expect(chosen).to_have_text(["dark", "dense"])
    assert (
        page.evaluate("({ ...document.documentElement.dataset })").items() >= {"theme": "dark", "rows": "dense"}.items()
    )
    # While the page is open, the setting also holds on other pages.
    visitor.test("nav-pods").click()
    visitor.still()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    visitor.go("/ui/new")
    expect(visitor.test("error")).to_have_count(0)
