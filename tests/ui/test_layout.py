"""Layout with node names as clouds generate them on `bayplan up`, measured in pixels, on a desktop and on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, cast

import pytest
from playwright.sync_api import expect

from tests.ui.browsing import Visitor
from tests.ui.cloud_names import EKS_DOMAIN, eks_name
from tests.ui.fake_cluster import FakeCluster
from tests.ui.fake_service import FakeService, served
from tests.ui.running import Running, deployment, node, running
from tests.ui.screenshots import PAGES, WIDTHS, Names, cloud_server, names_of

Visit = Callable[..., Visitor]

WAITING = "/ui/pods/ml-train/trainer-resnet50-distributed-worker-0"
OVERFLOWING = """() => [...document.querySelectorAll(".cell, .mcell, .card-head")]
    .filter((cell) => cell.querySelector(".name") && cell.offsetParent && cell.scrollWidth > cell.clientWidth)
    .map((cell) => cell.textContent)"""
"""Cells with a name that the style sheet cuts as well, which makes a second ellipsis."""
SHORTENED = """() => [...document.querySelectorAll(".mrow:not([hidden]) a.name")]
    .filter((link) => link.textContent !== link.title || link.querySelector(".left-out")).length"""
VISIBLE_SCORES = """() => {
    const frame = document.querySelector(".matrix").getBoundingClientRect();
    const names = [...document.querySelectorAll(".mrow.winner .stuck")];
    const stuck = Math.max(...names.map((cell) => cell.getBoundingClientRect().right));
    return [...document.querySelectorAll(".mrow.winner .score")]
        .map((cell) => cell.getBoundingClientRect())
        .filter((box) => box.left >= stuck - 1 && box.right <= frame.right + 1).length;
}"""


class Cloud(NamedTuple):
    """A server with the cluster of the screenshots, and names in it."""

    server: Running
    names: Names


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    with cloud_server("mixed") as server:
        yield Cloud(server, names_of(server))


def open_at(visit: Visit, cloud: Cloud, path: str, width: str = "wide") -> Visitor:
    """Open an address in a window of a width of `WIDTHS`."""
    visitor = visit(cloud.server.url)
    across, down = WIDTHS[width]
    visitor.page.set_viewport_size({"width": across, "height": down})
    return visitor.go(path)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_cell_panel_shows_its_values_without_overflow(width: str, cloud: Cloud, visit: Visit) -> None:
    matrix = cloud.server.get(f"/pods/{cloud.names.placed}/attempts/latest/matrix?form=columns")
    nodes = cast("dict[str, list[str]]", matrix["rows"])["node"]
    node = next(name for name in nodes if name.endswith(EKS_DOMAIN) and name != matrix["winner"])
    visitor = open_at(visit, cloud, f"/ui/pods/{cloud.names.placed}?cell={node}.NodeResourcesFit", width)
    panel = visitor.test("cell-panel")
    expect(panel).to_be_visible()
    box = panel.bounding_box()
    assert box is not None
    assert 0 <= box["x"] <= box["x"] + box["width"] <= WIDTHS[width][0]
    values = panel.locator("dd")
    assert values.count() >= 5
    for value in values.all():
        assert value.evaluate("(cell) => cell.clientWidth") >= 100
        assert value.evaluate("(cell) => cell.scrollWidth <= cell.clientWidth")
    for title in panel.locator("dt").all():
        assert title.evaluate("(cell) => cell.clientWidth") <= 0.45 * box["width"]
    expect(panel).to_contain_text(str(matrix["winner"]))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "page",
    [
        "nodes",
        "pods",
        "pod-placed",
        "pod-cell",
        "pod-waiting",
        "queue",
        "object",
        "compare",
        "what-if-drain",
        "what-if-weight",
    ],
)
def test_names_are_shortened_at_most_once(page: str, width: str, cloud: Cloud, visit: Visit) -> None:
    visitor = open_at(visit, cloud, "/ui" + PAGES[page].format(**cloud.names._asdict()), width)
    assert visitor.page.locator(".name").count() > 1
    assert visitor.page.evaluate(OVERFLOWING) == []


def test_names_are_shown_in_full_if_there_is_room(cloud: Cloud, visit: Visit) -> None:
    visitor = open_at(visit, cloud, WAITING)
    expect(visitor.page.locator(".mrow:not([hidden])").first).to_be_visible()
    assert visitor.page.evaluate(SHORTENED) == 0


def test_a_common_domain_is_shown_once_in_the_matrix_head(visit: Visit) -> None:
    with served(FakeService(FakeCluster(10, 60, name=eks_name))) as url:
        visitor = visit(url)
        visitor.page.set_viewport_size({"width": 1024, "height": 768})
        visitor.go("/ui/pods?status=placed")
        visitor.test("pod-table").locator("a.name").first.click()
        visitor.still()
        expect(visitor.page.locator(".matrix-head .domain")).to_have_text(f".{EKS_DOMAIN}")
        link = visitor.page.locator(".mrow.winner a.name")
        name = str(link.get_attribute("title"))
        expect(link).to_have_text(name)
        hidden = link.locator(".left-out")
        expect(hidden).to_have_text(f".{EKS_DOMAIN}")
        assert hidden.evaluate("(part) => part.getBoundingClientRect().width") == 0


@pytest.mark.parametrize(
    "page",
    [
        "overview",
        "pods",
        "pod-cell",
        "pod-help-node",
        "pod-attempts",
        "pod-preemption",
        "timeline",
        "what-if-drain",
        "unblock",
        "capacity-mix",
        "objects",
    ],
)
def test_a_page_is_accessible_on_a_phone(page: str, cloud: Cloud, visit: Visit) -> None:
    visitor = open_at(visit, cloud, "/ui" + PAGES[page].format(**cloud.names._asdict()), "phone")
    assert visitor.violations() == []


def test_a_shortened_name_is_selected_and_copied_in_full(cloud: Cloud, visit: Visit) -> None:
    visitor = open_at(visit, cloud, "/ui/pods?status=placed")
    links = visitor.test("pod-table").locator(".grid-body a.name[href*='/nodes/']")
    link = links.filter(has=visitor.page.locator(".left-out")).first
    name = str(link.get_attribute("title"))
    assert link.evaluate("(link) => { getSelection().selectAllChildren(link); return String(getSelection()); }") == name
    assert visitor.page.evaluate("() => document.execCommand('copy')")
    assert visitor.page.evaluate("() => navigator.clipboard.readText()") == name
    hidden = link.locator(".left-out")
    assert "…" in str(hidden.evaluate("(part) => getComputedStyle(part, '::before').content"))
    assert hidden.evaluate("(part) => part.getBoundingClientRect().width") < 12


@pytest.mark.parametrize(("width", "least"), [("wide", 5), ("phone", 1)])
def test_matrix_scores_are_visible(width: str, least: int, cloud: Cloud, visit: Visit) -> None:
    path = f"/ui/pods/{cloud.names.placed}" + (f"?cell={cloud.names.loser}.NodeResourcesFit" if width == "wide" else "")
    visitor = open_at(visit, cloud, path, width)
    expect(visitor.page.locator(".mrow.winner")).to_be_visible()
    assert visitor.page.evaluate(VISIBLE_SCORES) >= least


def test_the_first_rows_of_compared_matrices_are_aligned(cloud: Cloud, visit: Visit) -> None:
    visitor = open_at(visit, cloud, f"/ui/compare/{cloud.names.moved}?a=now&b={cloud.names.fork}")
    rows = [visitor.page.get_by_role("grid", name=f"plugins in {side}").locator(".mrow").first for side in "AB"]
    a, b = (row.bounding_box() for row in rows)
    assert a is not None
    assert b is not None
    assert a["y"] == b["y"]


@pytest.mark.parametrize("page", PAGES)
def test_pages_fit_the_width_of_a_phone(page: str, cloud: Cloud, visit: Visit) -> None:
    visitor = open_at(visit, cloud, "/ui" + PAGES[page].format(**cloud.names._asdict()), "phone")
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= WIDTHS["phone"][0]
    outside = """() => [...document.querySelectorAll("main .panel, main .button, main h1")]
        .filter((each) => each.offsetParent && !each.closest(".tools, .tabs, .rejections, .grid, .matrix, [data-test=objects]"))
        .filter((each) => each.getBoundingClientRect().right > innerWidth).map((each) => each.textContent.slice(0, 80))"""
    assert visitor.page.evaluate(outside) == []


def test_the_timeline_table_fits_on_a_phone(cloud: Cloud, visit: Visit) -> None:
    visitor = open_at(visit, cloud, "/ui/timeline", "phone")
    table = visitor.test("around")
    expect(table.locator("tbody tr").first).to_be_visible()
    assert table.evaluate("(table) => table.scrollWidth <= table.parentElement.clientWidth")


def test_six_matrix_rows_are_visible_on_a_phone(cloud: Cloud, visit: Visit) -> None:
    visitor = open_at(visit, cloud, f"/ui/pods/{cloud.names.placed}", "phone")
    expect(visitor.page.locator(".mrow:not([hidden])").nth(7)).to_be_visible()
    bottoms = visitor.page.locator(".mrow:not([hidden])").evaluate_all(
        "(rows) => rows.map((row) => row.getBoundingClientRect().bottom)"
    )
    assert sum(bottom <= WIDTHS["phone"][1] for bottom in bottoms) >= 6


def test_reasons_and_plugins_are_shown_in_full_on_a_phone(cloud: Cloud, visit: Visit) -> None:
    visitor = open_at(visit, cloud, WAITING, "phone")
    expect(visitor.page.locator(".mrow:not([hidden])").nth(7)).to_be_visible()
    cut = """(parts) => parts
        .filter((part) => part.scrollWidth > part.clientWidth || part.scrollHeight > part.clientHeight
            || part.getBoundingClientRect().right > document.querySelector(".matrix").getBoundingClientRect().right)
        .map((part) => part.textContent)"""
    assert visitor.page.locator(".mrow:not([hidden]) .gap").evaluate_all(cut) == []
    assert visitor.page.locator(".mrow:not([hidden]) .mcell.edge").evaluate_all(cut) == []
    visitor.page.locator(".matrix").evaluate("(matrix) => { matrix.scrollTop = matrix.scrollHeight; }")
    expect(visitor.page.locator(".mrow[aria-rowindex='22']")).to_be_visible()


def test_the_pod_heading_is_correct_after_the_first_frame(cloud: Cloud, visit: Visit) -> None:
    counts = cast("dict[str, int]", cloud.server.get("/overview")["counts"])
    visitor = open_at(visit, cloud, "/ui/pods")
    visitor.page.wait_for_function("() => performance.getEntriesByName('frame pods').length > 0")
    visitor.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
    assert visitor.verdict.startswith(f"{counts['pods']} pods: {counts['waiting']} are pending")


def test_pending_pods_are_listed_first(cloud: Cloud, visit: Visit) -> None:
    visitor = open_at(visit, cloud, "/ui/pods")
    statuses = visitor.test("pod-table").locator(".grid-body .grid-row:not([hidden]) .badge").all_inner_texts()
    words = [re.sub(r"\W", "", text) for text in statuses]
    assert words == sorted(words, key=["pending", "gated", "placed"].index)
    assert words[0] == "pending"
    # The table is sorted by this column: a click on its head reverses the order.
    head = visitor.page.get_by_role("columnheader", name="Status")
    expect(head).to_have_attribute("aria-sort", "ascending")
    head.get_by_role("button").click()
    visitor.still()
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(visitor.test("pod-table").locator(".grid-body .badge").first).to_contain_text("placed")


def test_an_imported_pod_shows_a_hypothetical_attempt(cloud: Cloud, visit: Visit) -> None:
    visitor = open_at(visit, cloud, "/ui/pods/legacy/legacy-billing-6f5d4c7b8-2xk9q")
    expect(visitor.test("hypothetical")).to_contain_text("This is how the pod would be scheduled now.")
    expect(visitor.page.locator(".mrow.winner")).to_have_count(1)
    expect(visitor.page.get_by_role("button", name="Retry now")).to_have_count(0)


def test_a_pod_with_an_unconfigured_scheduler_shows_its_name(cloud: Cloud, visit: Visit) -> None:
    why = 'no scheduler named "volcano" is configured'
    visitor = open_at(visit, cloud, f"/ui/pods?reason={why}")
    rows = visitor.test("pod-table").locator(".grid-body .grid-row:not([hidden])")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text(why)
    rows.locator("a.name").first.click()
    visitor.still()
    assert visitor.verdict == f"default/spark-driver-monthly-report-7d9f8b6c5d is pending: {why}"
    expect(visitor.page.locator(".note")).to_contain_text(f"{why[0].upper()}{why[1:]}.")
    expect(visitor.page.get_by_role("button", name="Retry now")).to_have_count(0)


def test_retry_is_enabled_only_for_pending_pods(cloud: Cloud, visit: Visit) -> None:
    visitor = open_at(visit, cloud, "/ui/pods?q=legacy-billing")
    again = visitor.test("action-bar").get_by_role("button", name="Retry now")
    visitor.page.get_by_role("checkbox").first.check()
    expect(again).to_be_disabled()
    visitor.go("/ui/pods?q=worker-0")
    visitor.page.get_by_role("checkbox").first.check()
    again.click()
    expect(visitor.test("notice-ok")).to_contain_text("Schedule 1 pod again: done.")


def test_a_finished_file_import_is_shown_as_done(cloud: Cloud, visit: Visit) -> None:
    visitor = open_at(visit, cloud, "/ui/sources")
    assert visitor.verdict == "Imported dump.yaml"
    expect(visitor.page.locator("section .badge")).to_have_text("✓done")
    visitor.go("/ui/")
    expect(visitor.page.get_by_role("link", name="Imported dump.yaml")).to_be_visible()


def test_escape_closes_the_palette_and_clears_its_results(cloud: Cloud, visit: Visit) -> None:
    visitor = open_at(visit, cloud, "/ui/settings")
    keyboard, entries = visitor.page.keyboard, visitor.page.locator(".palette-entry")
    keyboard.press("Control+k")
    expect(entries.first).to_contain_text("Overview")
    visitor.test("palette-field").fill("vmss")
    expect(entries.first).to_contain_text("aks-userpool")
    keyboard.press("Escape")
    expect(visitor.test("palette")).to_have_count(0)
    keyboard.press("Control+k")
    expect(entries.first).to_contain_text("Overview")
    # An answer that arrives after the text was changed must not be shown.
    visitor.test("palette-field").fill("vmss")
    visitor.test("palette-field").fill("")
    visitor.still()
    expect(entries.first).to_contain_text("Overview")


def test_the_runner_up_in_the_reason_column_fits(cloud: Cloud, visit: Visit) -> None:
    visitor = open_at(visit, cloud, "/ui/pods?status=placed")
    expect(visitor.page.locator(".clip > .name").first).to_be_visible()
    cut = (
        "() => [...document.querySelectorAll('.clip:has(> .name)')].filter((e) => e.scrollWidth > e.clientWidth).length"
    )
    assert visitor.page.evaluate(cut) == 0


@pytest.fixture(scope="module")
def large_pods(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with pods that take a quarter of their node each."""
    documents = [node("a", "a"), node("b", "b"), deployment("front", 6, cpu="2")]
    with running(tmp_path_factory.mktemp("large"), documents) as server:
        yield server


def test_names_of_pods_on_cards_are_cut_in_the_middle(large_pods: Running, visit: Visit) -> None:
    page = visit(large_pods.url).go("/ui/nodes").page
    expect(page.locator(".block-name:has(.left-out)")).to_have_count(6)
    cut = "() => [...document.querySelectorAll('.block-name')].filter((e) => e.scrollWidth > e.clientWidth).length"
    assert page.evaluate(cut) == 0


def test_a_table_of_pods_fits_on_a_phone(large_pods: Running, visit: Visit) -> None:
    visitor = visit(large_pods.url)
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    table = visitor.go("/ui/objects/core/v1/pods").page.locator(".object-table")
    expect(table.locator("tbody tr")).to_have_count(6)
    assert table.evaluate("(element) => element.scrollWidth <= element.clientWidth")


def test_reasons_of_a_what_if_are_visible_beside_long_names_of_nodes(tmp_path: Path, visit: Visit) -> None:
    names = [f"gke-prod-eu-pool-highmem-4f8a1b2c-{letters}" for letters in ("x9z8", "k2m4")]
    with running(tmp_path, [*(node(name, "a") for name in names), deployment("front", 4, cpu="1")]) as server:
        page = visit(server.url).go(f"/ui/what-if?changes=drain%3D{names[0]}").page
        table = page.locator("[data-test=what-if-table]")
        expect(table).to_contain_text("moved")
        assert table.evaluate("(element) => element.scrollWidth <= element.clientWidth")
