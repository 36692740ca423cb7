"""An external scheduler binds pods of `bayplan up --no-scheduler` and writes annotations, which the page shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from bayplan.formats.result_annotations import decode, history_of
from tests.recorded_annotations import Json, cloud_name, with_cloud_nodes
from tests.ui.browsing import Visitor
from tests.ui.running import Running, running

Visit = Callable[..., Visitor]
MERGE = {"content-type": "application/merge-patch+json"}
PODS = "/api/v1/namespaces/default/pods"


class Outside:
    """Repeats the writes of kube-scheduler-simulator's scheduler in a recorded scenario, on a Bayplan server."""

    def __init__(self, server: Running, scenario: Json) -> None:
        self._url = server.url
        self._scenario = scenario

    def _send(self, method: str, path: str, document: object, headers: dict[str, str] | None = None) -> None:
        httpx.request(method, self._url + path, json=document, headers=headers, timeout=30).raise_for_status()

    def schedule(self, name: str) -> None:
        """Create a pod, bind it or set its condition, and annotate it with the recorded results."""
        pod = next(item for item in self._scenario["objects"] if item["metadata"]["name"] == name)
        self._send("POST", PODS, pod)
        node = self._scenario["nodeName"].get(name)
        if node:
            target = {"kind": "Node", "name": node}
            self._send("POST", f"{PODS}/{name}/binding", {"metadata": {"name": name}, "target": target})
        else:
            conditions = self._scenario["conditions"][name]
            self._send("PATCH", f"{PODS}/{name}/status", {"status": {"conditions": conditions}}, MERGE)
        annotations = self._scenario["annotations"][name]
        self._send("PATCH", f"{PODS}/{name}", {"metadata": {"annotations": annotations}}, MERGE)


@pytest.fixture(scope="module")
def scenario() -> Json:
    return with_cloud_nodes("basic-fit")


@pytest.fixture
def server(tmp_path: Path, scenario: Json) -> Iterator[Running]:
    nodes = [item for item in scenario["objects"] if item["kind"] == "Node"]
    with running(tmp_path, nodes, "--no-scheduler", settled=False) as found:
        outside = Outside(found, scenario)
        for name in scenario["annotations"]:
            outside.schedule(name)
        yield found


def test_external_scheduling_results_are_shown_on_the_pod_page(server: Running, scenario: Json, visit: Visit) -> None:
    visitor = visit(server.url)
    visitor.go("/ui/pods/default/no-requests")
    node, annotations = scenario["nodeName"]["no-requests"], scenario["annotations"]["no-requests"]
    results = decode(annotations)
    expect(visitor.test("verdict")).to_contain_text(f"default/no-requests is on {node}")
    expect(visitor.test("annotated")).to_have_text(
        "Attempts of default-scheduler, read from the pod's result annotations"
    )
    expect(visitor.page.locator(".mrow:not([hidden])")).to_have_count(len(results.filter))
    expect(visitor.page.locator(".mrow.winner")).to_have_attribute("data-node", node)
    total = sum(results.final_score[node].values())
    expect(visitor.page.locator(".mrow.winner .total")).to_contain_text(str(total))
    expect(visitor.page.locator(".tools")).not_to_contain_text("normalised")
    expect(visitor.page.get_by_role("grid")).to_contain_text("Scores, weighted")
    visitor.shoot("annotated-pod-placed")
    visitor.go(f"/ui/pods/default/no-requests?columns=all&cell={node}.NodeResourcesFit")
    panel = visitor.test("cell-panel")
    expect(panel).to_contain_text(f"Raw score{results.score[node]['NodeResourcesFit']}")
    expect(panel).to_contain_text("Weightnot in the annotations")
    expect(panel).to_contain_text(f"Product{results.final_score[node]['NodeResourcesFit']}")
    visitor.shoot("annotated-cell")


def test_an_external_pending_pod_shows_its_reason_and_attempts(server: Running, scenario: Json, visit: Visit) -> None:
    name = "gpu-too-many"
    annotations = scenario["annotations"][name]
    visitor = visit(server.url)
    visitor.go("/ui/pods?q=gpu-too-many")
    expect(visitor.test("pod-table")).to_contain_text("Insufficient")
    visitor.test("pod-table").locator("a.name", has_text=name).click()
    visitor.still()
    assert visitor.verdict == server.get(f"/pods/default/{name}")["summary"]
    assert "none of 4 nodes has room" in visitor.verdict
    expect(visitor.page.locator(".mrow.failed")).to_have_count(4)
    rows = {row.get_attribute("data-node") for row in visitor.page.locator(".mrow.failed").all()}
    assert rows == {cloud_name(f"n{number}") for number in range(4)}
    visitor.shoot("annotated-pod-waiting")
    assert len(history_of(annotations)) == 2
    expect(visitor.test("tab-attempts")).to_contain_text("2")
    visitor.page.get_by_role("button", name="Previous attempt").click()
    visitor.still()
    assert "attempt=1" in visitor.place
    expect(visitor.page.locator(".mrow.failed")).to_have_count(4)
    visitor.test("tab-unblock").click()
    expect(visitor.page.locator(".tab-content")).to_contain_text("Bayplan can't run its plugins")
