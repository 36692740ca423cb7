"""The classic scheduler in a browser: `bayplan up --mode classic`, with predicates and priorities under their old names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import cast

import pytest
from playwright.sync_api import expect

from tests.ui.browsing import Visitor
from tests.ui.cloud_cluster import cloud_nodes, cloud_pods
from tests.ui.cloud_names import eks_name
from tests.ui.running import Running, running

Visit = Callable[..., Visitor]

PRIORITIES = {
    "BalancedResourceAllocation": 1,
    "ImageLocalityPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "NodeAffinityPriority": 1,
    "NodePreferAvoidPodsPriority": 10_000,
    "SelectorSpreadPriority": 1,
    "TaintTolerationPriority": 1,
}
WAITING = "/ui/pods/ml-train/trainer-resnet50-distributed-worker-0"
PACKING = """kind: Policy
apiVersion: v1
priorities:
- {name: MostRequestedPriority, weight: 2}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    documents = [*cloud_nodes(eks_name), *cloud_pods()]
    with running(tmp_path_factory.mktemp("classic"), documents, "--mode", "classic") as found:
        yield found


def a_placed_pod(server: Running) -> str:
    """Return ``namespace/name`` of a pod whose node was chosen by scores."""
    items = cast("list[dict[str, object]]", server.get("/pods?q=checkout")["items"])
    return f"shop/{items[0]['name']}"


def test_the_matrix_shows_predicates_and_priorities(server: Running, visit: Visit) -> None:
    key = a_placed_pod(server)
    matrix = server.get(f"/pods/{key}/attempts/latest/matrix")
    scores = {each["name"]: each["weight"] for each in cast("list[dict[str, object]]", matrix["scorers"])}
    assert scores == PRIORITIES
    visitor = visit(server.url)
    visitor.go(f"/ui/pods/{key}")
    expect(visitor.page.locator(".mrow.winner")).to_contain_text(str(matrix["winner"]))
    grid = visitor.page.get_by_role("grid")
    for name in ("CheckNodeUnschedulable", "PodToleratesNodeTaints", "LeastRequestedPriority"):
        expect(grid).to_contain_text(name)
    expect(visitor.page.locator("body")).not_to_contain_text("NodeResourcesFit")
    expect(visitor.page.locator(".matrix-groups")).to_contain_text(re.compile("normalised to 0.10(?!0)"))
    visitor.shoot("classic-pod-placed")
    assert visitor.violations() == []
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    visitor.still()
    visitor.shoot("classic-pod-placed-390")
    totals = visitor.page.locator(".mrow:not([hidden]) .total")
    overflowing = totals.evaluate_all(
        "all => all.filter(each => each.scrollWidth > each.clientWidth + 1).map(each => each.innerText)"
    )
    assert [text for text in overflowing if text[:1].isdigit()] == []
    visitor.shoot("classic-pod-placed-390")


def test_a_pending_pod_shows_the_1_16_message(server: Running, visit: Visit) -> None:
    visitor = visit(server.url)
    visitor.go(WAITING)
    reported = server.get(WAITING.removeprefix("/ui"))
    assert visitor.verdict == reported["summary"]
    message = "0/18 nodes are available: 1 node(s) were unschedulable, 17 Insufficient cpu, 17 Insufficient memory."
    expect(visitor.page.locator("body")).to_contain_text(message)
    expect(visitor.page.locator(".mrow.failed").first).to_contain_text("GeneralPredicates")
    visitor.shoot("classic-pod-waiting")
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    visitor.shoot("classic-pod-waiting-390")


def test_a_new_policy_is_validated_and_applied(server: Running, visit: Visit) -> None:
    visitor = visit(server.url)
    visitor.go("/ui/config")
    visitor.page.get_by_role("button", name="Load default", exact=True).click()
    expect(visitor.test("editor")).to_have_value(re.compile("LeastRequestedPriority"))
    expect(visitor.page.locator("h1")).to_contain_text("Valid, the same as the active configuration")
    visitor.still()
    visitor.shoot("classic-config")
    visitor.test("editor").fill(PACKING.replace("MostRequestedPriority", "MostRequested"))
    expect(visitor.page.locator("h1")).to_contain_text("problem")
    expect(visitor.test("problems")).to_contain_text("Priority type not found for MostRequested")
    visitor.shoot("classic-config-problem")
    visitor.test("editor").fill(PACKING)
    expect(visitor.test("apply")).to_be_enabled()
    visitor.test("apply").click()
    visitor.test("yes").click()
    expect(visitor.page.locator("h1")).to_contain_text(re.compile("[Aa]ctive configuration"))
    assert server.get("/config")["text"] == PACKING
