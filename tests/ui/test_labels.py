"""Words and labels on `bayplan up`: zones with long names in the heat map, and events in the queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.ui.browsing import PATIENCE_MS, Visitor
from tests.ui.running import Running, node, pod, running

ZONES = ("europe-west1-b", "northamerica-northeast1-a", "northamerica-northeast1-b")
EVENTS = {
    "scheduling.k8s.io/PodGroupAdd": "PodGroup added",
    "scheduling.k8s.io/PodGroupUpdate": "PodGroup changed",
    "CSINodeUpdate": "CSINode changed",
    "AssignedPodDelete": "pod deleted",
    "PodUpdateLabel": "pod label changed",
    "UnschedulableTimeout": "timeout for unschedulable pods",
    "ForceActivate": "activation by a plugin",
    "*": "any event",
}
RECORD_TEXTS = """
window.painted = {};
const fill = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    window.painted[text] = x + this.measureText(text).width;
    return fill.call(this, text, x, y);
};
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    nodes = [node(f"n{number}", ZONES[number % 3]) for number in range(60)]
    waits = pod("waits", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}])
    with running(tmp_path, [*nodes, waits]) as found:
        yield found


def test_escape_closes_a_menu_and_stays_on_the_page(server: Running, visit: Callable[..., Visitor]) -> None:
    visitor = visit(server.url)
    visitor.go("/ui/nodes")
    visitor.go("/ui/pods/default/waits")
    button = visitor.test("copy-menu").locator("summary")
    button.focus()
    visitor.page.keyboard.press("Enter")
    entry = visitor.page.get_by_role("button", name="Link to this view")
    expect(entry).to_be_visible()
    visitor.page.keyboard.press("Escape")
    expect(entry).to_be_hidden()
    expect(button).to_be_focused()
    assert visitor.place == "/ui/pods/default/waits"


CLIPPED = """() => [...document.querySelectorAll(".grid-head .cell")]
    .filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent)"""


def test_pods_without_nodes_leave_room_for_reasons_and_sorted_headers_are_whole(
    server: Running, visit: Callable[..., Visitor]
) -> None:
    visitor = visit(server.url)
    visitor.go("/ui/pods")
    why = visitor.page.locator(".grid-body .cell .clip").first
    expect(why).to_have_text('persistentvolumeclaim "missing" not found')
    node = visitor.page.get_by_role("columnheader", name="Node")
    assert node.evaluate("(cell) => cell.clientWidth") == 64
    for title in ("Pod", "Namespace", "Status", "Node", "CPU", "Memory", "Priority", "Attempts", "Age"):
        visitor.page.get_by_role("columnheader", name=title).get_by_role("button").click()
        visitor.still()
        assert visitor.page.evaluate(CLIPPED) == []


def test_zone_names_differ_in_the_heat_map_a_cause_has_one_row_and_events_are_in_words(
    server: Running, visit: Callable[..., Visitor]
) -> None:
    visitor = visit(server.url)
    visitor.page.add_init_script(RECORD_TEXTS)
    visitor.go("/")
    painted: dict[str, float] = {}
    for _ in range(PATIENCE_MS // 100):
        if painted := visitor.page.evaluate("() => window.painted"):
            break
        visitor.page.wait_for_timeout(100)
    assert sorted(text[-4:] for text in painted) == ["t1-a", "t1-b", "t1-b"]
    assert "europe-west1-b" in painted
    assert max(painted.values()) <= 104
    causes = visitor.test("causes").locator("tbody tr")
    expect(causes).to_have_count(1)
    expect(causes).to_contain_text("VolumeBinding, ")
    expect(causes.locator(".figure")).to_have_text("1")
    visitor.go("/ui/queue?tier=unschedulable")
    expect(visitor.page.get_by_title("PersistentVolumeClaim added")).to_be_visible()
    script = "async events => { const { eventWords } = await import(FORMAT); return events.map(eventWords); }"
    address = "document.querySelector('script[type=module]').src.replace('main.js', 'format.js')"
    assert visitor.page.evaluate(script.replace("FORMAT", address), list(EVENTS)) == list(EVENTS.values())
