"""User journeys in a browser, on generated clusters: from a question to its answer, and back."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.ui.browsing import Visitor
from tests.ui.fake_cluster import HOSTILE, FakeCluster
from tests.ui.fake_service import FakeService, served

Fakes = Callable[[str], tuple[FakeService, str]]
Visit = Callable[..., Visitor]


def figure(text: str) -> int:
    return int(text.replace(",", ""))


@pytest.mark.parametrize("size", ["10", "5000"])
def test_the_overview_shows_the_counts_of_the_service(size: str, fakes: Fakes, visit: Visit) -> None:
    service, url = fakes(size)
    visitor = visit(url)
    visitor.go("/")
    assert visitor.place == "/ui/"
    counts = service.cluster.counts()
    for name in ("placed", "waiting", "nodes"):
        assert figure(visitor.test(f"figure-{name}").inner_text()) == getattr(counts, name)
    assert f"{counts.waiting:,}" in visitor.verdict


@pytest.mark.parametrize("size", ["10", "5000"])
def test_a_reason_leads_to_pods_a_cell_and_a_node_and_back(size: str, fakes: Fakes, visit: Visit) -> None:
    _service, url = fakes(size)
    visitor = visit(url)
    visitor.go("/ui/")
    visitor.test("reason").first.click()
    visitor.still()
    assert visitor.place == "/ui/pods?reason=Insufficient+cpu"
    table = visitor.test("pod-table")
    if size == "5000":
        table.evaluate("(view) => { view.scrollTop = 3000; }")
        visitor.page.wait_for_timeout(200)
    row = table.locator(".grid-body .grid-row:not([hidden])").nth(1 if size == "5000" else 0)
    name = row.locator("a.name").first.inner_text()
    row.locator("a.name").first.click()
    visitor.still()
    assert name.split("…")[0] in visitor.verdict
    cell = visitor.page.locator(".mrow .bad-cell").first
    cell.click()
    panel = visitor.test("cell-panel")
    expect(panel).to_contain_text("Unschedulable")
    assert "cell=" in visitor.place
    panel.get_by_text("Open node").click()
    visitor.still()
    assert visitor.place.startswith("/ui/nodes/")
    visitor.page.go_back()
    visitor.still()
    expect(visitor.test("cell-panel")).to_be_visible()
    visitor.page.go_back()
    visitor.still()
    assert visitor.place == "/ui/pods?reason=Insufficient+cpu"
    expect(visitor.page.locator(".chip")).to_contain_text("Insufficient cpu")


def test_a_search_among_fifty_thousand_pods_has_a_shareable_url(fakes: Fakes, visit: Visit) -> None:
    service, url = fakes("5000")
    visitor = visit(url)
    visitor.go("/ui/pods")
    visitor.page.keyboard.press("/")
    visitor.page.keyboard.type("trainer")
    expect(visitor.page.locator("h1")).to_contain_text(
        f"{sum('trainer' in p.name for p in service.cluster.pods):,} of 50,000"
    )
    # The count may be complete before the last letters are searched for.
    visitor.page.wait_for_url("**/ui/pods?q=trainer")
    visitor.still()
    visitor.page.get_by_role("columnheader", name="Attempts").get_by_role("button").click()
    visitor.still()
    assert visitor.place == "/ui/pods?q=trainer&sort=-attempts"
    friend = visit(url)
    friend.go(visitor.place)
    first = friend.test("pod-table").locator(".grid-body a.name").first.inner_text()
    # On a busy machine, the table may still show the rows in their former order.
    expect(visitor.test("pod-table").locator(".grid-body a.name").first).to_have_text(first)
    assert friend.verdict == visitor.verdict
    assert friend.test("search-pods").input_value() == "trainer"


def test_the_pod_table_renders_only_visible_rows(fakes: Fakes, visit: Visit) -> None:
    _, url = fakes("5000")
    visitor = visit(url)
    visitor.go("/ui/pods")
    table = visitor.test("pod-table")
    assert table.get_attribute("aria-rowcount") == "50001"
    assert table.locator(".grid-body .grid-row").count() < 60
    table.focus()
    visitor.page.keyboard.press("End")
    visitor.still()
    last = table.locator(".grid-row.cursor")
    expect(last).to_have_attribute("aria-rowindex", "50001")
    expect(last.locator("a.name").first).to_contain_text("49999")
    visitor.page.keyboard.press("k")
    visitor.page.keyboard.press("Enter")
    visitor.still()
    assert visitor.place.endswith("-49998")


@pytest.mark.parametrize("size", ["10", "5000"])
def test_the_matrix_of_a_placed_pod_matches_the_service(size: str, fakes: Fakes, visit: Visit) -> None:
    service, url = fakes(size)
    pod = next(each for each in service.cluster.pods if each.status == "placed")
    visitor = visit(url)
    visitor.go(f"/ui/pods/{pod.namespace}/{pod.name}")
    rows = visitor.page.locator(".mrow:not([hidden])")
    node = service.cluster.nodes[pod.node].name
    expect(rows.first).to_have_class(re.compile("winner"))
    expect(rows.first).to_contain_text(node)
    total, runner = (figure(rows.nth(at).locator(".total").inner_text().rstrip(" ★")) for at in (0, 1))
    expect(visitor.test("margin")).to_contain_text(f"{total - runner:,} ahead of")
    visitor.page.keyboard.press("v")
    visitor.still()
    assert "values=weighted" in visitor.place
    weighted = [figure(cell) for cell in rows.first.locator(".score").all_inner_texts()]
    assert sum(weighted) == total
    visitor.page.keyboard.press("f")
    expect(rows.first).to_have_class(re.compile("failed"))
    assert "only=failed" in visitor.place
    visitor.test("find-node").fill(service.cluster.nodes[2].name)
    expect(visitor.page.locator(".matrix-group").first).to_contain_text("1 of")


def test_bracket_keys_switch_between_attempts(fakes: Fakes, visit: Visit) -> None:
    service, url = fakes("10")
    pod = max(service.cluster.pods, key=lambda each: each.attempts)
    visitor = visit(url)
    visitor.go(f"/ui/pods/{pod.namespace}/{pod.name}")
    expect(visitor.test("attempt")).to_contain_text(f"attempt {pod.attempts} of {pod.attempts}")
    visitor.page.keyboard.press("[")
    expect(visitor.test("attempt")).to_contain_text(f"attempt {pod.attempts - 1} of {pod.attempts}")
    assert f"attempt={pod.attempts - 1}" in visitor.place
    visitor.page.keyboard.press("]")
    assert "attempt=" not in visitor.place


def test_preemption_shows_victims_and_why_candidates_lost(fakes: Fakes, visit: Visit) -> None:
    service, url = fakes("10")
    pod = next(each for each in service.cluster.pods if each.status == "waiting")
    visitor = visit(url)
    visitor.go(f"/ui/pods/{pod.namespace}/{pod.name}")
    visitor.test("tab-preemption").click()
    expect(visitor.test("chosen-candidate")).to_contain_text(service.cluster.pods[0].name)
    expect(visitor.test("candidate").first).to_contain_text("more violated budgets")


def test_a_one_node_cluster_has_complete_pages(visit: Visit) -> None:
    with served(FakeService(FakeCluster(1, 3))) as url:
        visitor = visit(url)
        visitor.go("/ui/")
        assert visitor.test("node-card").count() == 1
        visitor.go("/ui/pods")
        visitor.test("pod-table").locator("a.name").first.click()
        visitor.still()
        assert visitor.page.locator(".mrow:not([hidden])").count() == 1


def test_an_invalid_configuration_is_marked_and_survives_navigation(fakes: Fakes, visit: Visit) -> None:
    visitor = visit(fakes("10")[1])
    visitor.go("/ui/config")
    editor = visitor.test("editor")
    text = editor.input_value()
    editor.fill(text.replace("NodeResourcesFit", "NodeResourceFit"))
    expect(visitor.page.locator("h1")).to_contain_text("1 problem, not applied")
    expect(visitor.page.locator(".editor-lines .bad")).to_contain_text("6")
    expect(visitor.test("apply")).to_be_disabled()
    expect(visitor.test("problems")).to_contain_text("try: NodeResourcesFit")
    visitor.shoot("config-problem-10")
    visitor.test("nav-pods").click()
    visitor.still()
    visitor.page.go_back()
    visitor.still()
    assert "NodeResourceFit" in visitor.test("editor").input_value()
    visitor.test("editor").fill(text.replace("LeastAllocated", "MostAllocated"))
    expect(visitor.test("difference")).to_contain_text("MostAllocated")
    expect(visitor.test("apply")).to_be_enabled()


def test_fifty_pods_are_created_and_a_refused_text_stays_in_the_editor(fakes: Fakes, visit: Visit) -> None:
    visitor = visit(fakes("10")[1])
    visitor.go("/ui/new?kind=Pod")
    visitor.test("count").fill("50")
    expect(visitor.page.locator("h1")).to_contain_text("Create 50 objects")
    visitor.test("create").click()
    expect(visitor.page.locator("h1")).to_contain_text("50 objects created")
    text = visitor.test("editor").input_value().replace("web:1", "refuse me")
    visitor.test("editor").fill(text)
    expect(visitor.page.locator("h1")).to_contain_text("would be refused")
    expect(visitor.page.locator(".editor-lines .bad")).to_contain_text("11")
    assert visitor.test("editor").input_value() == text


def test_the_timeline_is_controlled_by_keys_and_dragging(fakes: Fakes, visit: Visit) -> None:
    visitor = visit(fakes("5000")[1])
    visitor.go("/ui/timeline?at=1042")
    expect(visitor.test("decision-number")).to_contain_text("Decision 1,042 at")
    visitor.page.keyboard.press("j")
    expect(visitor.test("decision-number")).to_contain_text("Decision 1,043 at")
    visitor.page.keyboard.press("w")
    visitor.still()
    assert "from=" in visitor.place
    box = visitor.test("lanes").bounding_box()
    assert box is not None
    visitor.page.mouse.move(box["x"] + 300, box["y"] + 40)
    visitor.page.mouse.down()
    visitor.page.mouse.move(box["x"] + 500, box["y"] + 40, steps=4)
    visitor.page.mouse.up()
    expect(visitor.test("measured")).to_contain_text("scheduled")
    visitor.page.keyboard.press("Enter")
    visitor.still()
    assert visitor.place.startswith("/ui/pods/")


def test_the_palette_and_shortcuts_open_nodes_and_pages(fakes: Fakes, visit: Visit) -> None:
    service, url = fakes("5000")
    name = service.cluster.nodes[4321].name
    visitor = visit(url)
    visitor.go("/ui/")
    visitor.page.keyboard.press("Control+k")
    visitor.test("palette-field").fill(name)
    expect(visitor.page.locator(".palette-entry").first).to_contain_text(name)
    visitor.page.keyboard.press("Enter")
    visitor.still()
    assert visitor.place == f"/ui/nodes/{name}"
    visitor.page.keyboard.press("g")
    visitor.page.keyboard.press("q")
    visitor.still()
    assert visitor.place.startswith("/ui/queue")
    visitor.page.keyboard.press("?")
    visitor.still()
    assert visitor.place == "/ui/keys"


def test_the_heat_map_is_operated_by_keyboard(fakes: Fakes, visit: Visit) -> None:
    service, url = fakes("5000")
    name = service.cluster.nodes[6].name
    visitor = visit(url)
    visitor.go("/ui/nodes")
    cells = visitor.test("cells")
    assert "5,000 nodes in 6 groups" in str(cells.get_attribute("aria-label"))
    cells.focus()
    visitor.page.keyboard.press("ArrowRight")
    visitor.page.keyboard.press("ArrowRight")
    expect(visitor.test("chosen-node")).to_contain_text(name)
    visitor.shoot("nodes-chosen-5000")
    visitor.page.keyboard.press("Enter")
    visitor.still()
    assert visitor.place == f"/ui/nodes/{name}"
    visitor.go("/ui/nodes?by=pool&q=00")
    assert "in 3 groups" in str(visitor.test("cells").get_attribute("aria-label"))


def test_hostile_names_are_rendered_as_text(visit: Visit) -> None:
    cluster = FakeCluster(10, 60, hostile=True)
    with served(FakeService(cluster)) as url:
        visitor = visit(url)
        for path in ("/ui/", "/ui/nodes", "/ui/pods", "/ui/queue", "/ui/timeline"):
            visitor.go(path)
            assert visitor.page.locator("main img, main script").count() == 0
        visitor.go("/ui/pods")
        visitor.shoot("hostile-names")
        for number, text in enumerate(HOSTILE):
            pod = cluster.pods[number]
            visitor.go(f"/ui/pods/{pod.namespace}/{quote(pod.name, safe='')}") if "/" not in text else None
            assert visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert visitor.page.title() != "1"


def test_the_page_reconnects_to_a_restarted_server(visit: Visit) -> None:
    cluster = FakeCluster(10, 60)
    service = FakeService(cluster, changes=4)
    with served(service) as url:
        visitor = visit(url, expected=("ERR_CONNECTION_REFUSED", "WebSocket connection", "net::ERR"))
        visitor.go("/ui/pods?q=api")
        expect(visitor.test("live")).to_contain_text("live")
        port = int(url.rpartition(":")[2])
    expect(visitor.test("live")).to_contain_text("reconnecting, data from")
    assert visitor.test("pod-table").locator("a.name").count() > 0
    visitor.shoot("stale-10")
    again = FakeService(cluster, changes=4)
    again.instance = "fake-2"
    with served(again, port) as _:
        expect(visitor.test("live")).to_contain_text("live", timeout=15_000)
        assert visitor.place == "/ui/pods?q=api"
        visitor.still()


def test_eight_tabs_receive_live_updates(visit: Visit) -> None:
    service = FakeService(FakeCluster(200, 2000), changes=40)
    with served(service) as url:
        visitor = visit(url)
        tabs = [visitor.page, *(visitor.new_tab() for _ in range(7))]
        for tab in tabs:
            tab.goto(f"{url}/ui/nodes")
        for tab in tabs:
            expect(tab.locator("[data-test=live]")).to_contain_text("live")
            expect(tab.locator("h1")).to_contain_text("200 nodes")


def test_an_error_page_links_to_all_pods(fakes: Fakes, visit: Visit) -> None:
    visitor = visit(fakes("10")[1], expected=("404",))
    visitor.go("/ui/pods/no/such")
    expect(visitor.test("error")).to_be_visible()
    visitor.shoot("error-10")
    visitor.page.get_by_text("All pods").click()
    visitor.still()
    assert visitor.place == "/ui/pods"


def test_a_page_sends_at_most_six_requests(fakes: Fakes, visit: Visit) -> None:
    service, url = fakes("5000")
    visitor = visit(url)
    for path in ("/ui/", "/ui/nodes", "/ui/pods", "/ui/queue"):
        before = len(service.requests)
        visitor.go(path)
        asked = [each for each in service.requests[before:] if "/static/" not in each]
        assert len(asked) <= 6, asked


def test_compared_matrices_scroll_together_with_aligned_rows(fakes: Fakes, visit: Visit) -> None:
    service, url = fakes("5000")
    pod = next(each for each in service.cluster.pods if each.status == "placed")
    visitor = visit(url)
    visitor.go(f"/ui/compare/{pod.namespace}/{pod.name}?b=packed")
    a, b = (visitor.page.get_by_role("grid", name=f"Nodes by plugins in {side}") for side in "AB")
    nodes = ".mrow:not([hidden])"
    read = (
        f"(grid) => [...grid.querySelectorAll('{nodes}')].map((row) => [row.style.transform, row.dataset.node]).sort()"
    )
    assert a.evaluate(read) == b.evaluate(read)
    assert a.locator(".mcell.differs").count() > 0
    a.evaluate("(grid) => { grid.scrollTop = 40000; }")
    expect(b.locator(".mrow:not([hidden])").first).to_be_visible()
    visitor.page.wait_for_function(
        "() => new Set([...document.querySelectorAll('.matrix')].map((each) => each.scrollTop)).size === 1"
    )
    visitor.page.wait_for_timeout(200)
    assert a.evaluate(read) == b.evaluate(read)
    b.evaluate("(grid) => { grid.scrollTop = 0; }")
    visitor.page.wait_for_function(
        "() => [...document.querySelectorAll('.matrix')].every((each) => each.scrollTop === 0)"
    )
    winners = visitor.page.locator(".mrow.winner .name").all_inner_texts()
    reported = visitor.page.inner_text("h1")
    assert all(winner in reported for winner in winners)


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param("/", ["/overview", "/nodes/cells?metric=cpu&by=zone"], id="the overview"),
        pytest.param("/nodes", ["/overview", "/nodes/cells?metric=cpu&by=zone"], id="the nodes"),
        pytest.param("/nodes?metric=memory", ["/overview"], id="the nodes, coloured by something else"),
        pytest.param("/pods", ["/pods?sort=status&offset=0&limit=100&facets=1"], id="all pods"),
        pytest.param(
            "/pods?sort=-cpu&status=placed&q=api",
            ["/pods?q=api&status=placed&sort=-cpu&offset=0&limit=100&facets=1"],
            id="some pods",
        ),
        pytest.param(
            "/pods/{pod}", ["/pods/{pod}", "/pods/{pod}/attempts/latest/matrix?form=columns&limit=10000"], id="a pod"
        ),
        pytest.param("/pods/{pod}?tab=events", ["/pods/{pod}"], id="a tab of a pod"),
    ],
)
def test_early_requests_are_used_by_the_page_without_duplicates(
    path: str, want: list[str], fakes: Fakes, visit: Visit
) -> None:
    service, url = fakes("5000")
    pod = next(f"{each.namespace}/{each.name}" for each in service.cluster.pods if each.status == "placed")
    visitor = visit(url)
    visitor.go("/ui" + path.format(pod=pod))
    asked = [request.removeprefix(f"{url}/bayplan/v1") for request in visitor.requests]
    for address in want:
        address = address.format(pod=pod)
        assert asked.count(address) == 1, asked
    assert visitor.page.evaluate("prefetched.size") == 0


def test_an_unused_early_response_is_discarded_on_navigation(fakes: Fakes, visit: Visit) -> None:
    visitor = visit(fakes("10")[1])
    visitor.go("/ui/")
    # With so few nodes, the other page draws no cells, so it does not use this answer.
    assert visitor.page.evaluate("[...prefetched.keys()]") == ["/bayplan/v1/nodes/cells?metric=cpu&by=zone"]
    visitor.test("nav-pods").click()
    visitor.still()
    assert visitor.page.evaluate("prefetched.size") == 0


@pytest.mark.parametrize(
    ("run", "want"),
    [
        pytest.param("now", "", id="this server"),
        pytest.param("packed", "", id="a fork"),
        pytest.param("http://other.example:8080", "http://other.example:8080", id="another server"),
        pytest.param("http://other.example/packed/", "http://other.example/packed", id="another server behind a path"),
    ],
)
def test_compare_link_opens_the_pod_in_the_other_run(run: str, want: str, fakes: Fakes, visit: Visit) -> None:
    service, url = fakes("10")
    pod = next(each for each in service.cluster.pods if each.status == "placed")
    visitor = visit(url)
    visitor.go(f"/ui/compare/{pod.namespace}/{pod.name}?b={run}")
    query = "?run=packed" if run == "packed" else ""
    link = visitor.page.get_by_role("link", name="Open in B")
    expect(link).to_have_attribute("href", f"{want}/ui/pods/{pod.namespace}/{pod.name}{query}")
