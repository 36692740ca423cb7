"""Questions on `bayplan up` in a browser: unblock, capacity, what if, imports, snapshots; by mouse and by keyboard."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import httpx
import pytest
from playwright.sync_api import FilePayload, expect

from tests.ui.browsing import Visitor
from tests.ui.cloud_names import cloud_name
from tests.ui.running import Manifest, Running, deployment, node, pod, running
from tests.ui.test_real_journeys import MOST_ALLOCATED

Visit = Callable[..., Visitor]
ZONES = ("a", "b", "c")
WAITS = "feature-store-compaction-28471920-x7kq2"


def cluster() -> list[Manifest]:
    """Return six nodes (one cordoned), a Deployment, a pod that waits for a label, and a pod that was imported with its node."""
    nodes = [node(cloud_name(number), ZONES[number % 3]) for number in range(6)]
    cast("dict[str, object]", nodes[5]["spec"])["unschedulable"] = True
    imported = {**pod("legacy-billing-6f5d4c7b8-2xk9q", nodeName=cloud_name(0)), "status": {"phase": "Running"}}
    return [*nodes, deployment("front", 10), pod(WAITS, nodeSelector={"disktype": "nvme"}), imported]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("questions"), cluster()) as found:
        yield found


def fork_names(server: Running) -> list[str]:
    """Return the names of the forks of a server."""
    return [fork["name"] for fork in cast("list[dict[str, str]]", server.get("/forks")["items"])]


def test_a_suggestion_for_a_pending_pod_is_tried_in_a_fork(server: Running, visit: Visit) -> None:
    visitor = visit(server.url)
    visitor.go(f"/ui/pods/default/{WAITS}")
    visitor.test("tab-unblock").click()
    visitor.still()
    suggestions = visitor.test("suggestions").locator("li")
    answer = server.get(f"/unblock?workload=pod/default/{WAITS}")
    found = cast("list[dict[str, str]]", answer["suggestions"])
    expect(suggestions).to_have_count(len(found))
    expect(suggestions.first).to_contain_text(found[0]["text"])
    relaxed = suggestions.filter(has_text="drop disktype=nvme")
    relaxed.locator("[data-test=try]").click()
    visitor.page.wait_for_selector("[data-test=metrics]")
    expect(visitor.test("compare-table")).to_contain_text("feature-store")
    visitor.shoot("real-unblock-fork")


def test_a_matrix_cell_links_to_the_changes_for_its_node(server: Running, visit: Visit) -> None:
    visitor = visit(server.url)
    visitor.go(f"/ui/pods/default/{WAITS}?cell={cloud_name(1)}.NodeAffinity")
    visitor.test("node-rules-of").click()
    visitor.still()
    expect(visitor.test("node-rules")).to_contain_text("drop disktype=nvme from the nodeSelector")
    visitor.page.go_back()
    expect(visitor.test("cell-panel")).to_be_visible()


def test_a_workload_links_to_its_capacity(server: Running, visit: Visit) -> None:
    visitor = visit(server.url)
    visitor.go("/ui/workloads/deployment/default/front")
    visitor.test("capacity").click()
    visitor.still()
    answer = server.get("/capacity?workload=deployment/default/front")
    expect(visitor.page.locator("h1")).to_have_text(str(answer["summary"]))
    expect(visitor.test("capacity-groups")).to_contain_text("a")
    visitor.test("preempt").check()
    visitor.still()
    assert "preempt=1" in visitor.place
    visitor.test("target").fill("front=2,pod/default/legacy-billing-6f5d4c7b8-2xk9q")
    visitor.page.keyboard.press("Enter")
    expect(visitor.page.locator("h1")).to_contain_text("more mixes of 2 deployment/default/front")


def test_a_node_links_to_unblock_and_capacity(server: Running, visit: Visit) -> None:
    visitor = visit(server.url)
    visitor.go(f"/ui/nodes/{cloud_name(1)}")
    visitor.test("unblock").click()
    visitor.still()
    expect(visitor.test("node-rules")).to_contain_text("drop disktype=nvme from the nodeSelector")
    visitor.go(f"/ui/nodes/{cloud_name(1)}")
    visitor.test("capacity-menu").locator("summary").click()
    visitor.page.get_by_role("link", name="of deployment/default/front").click()
    visitor.still()
    expect(visitor.page.locator("h1")).to_contain_text("more copies of deployment/default/front")


def test_a_what_if_is_extended_stored_downloaded_and_discarded(server: Running, visit: Visit) -> None:
    visitor = visit(server.url)
    visitor.go(f"/ui/nodes/{cloud_name(1)}")
    visitor.test("what-if-menu").locator("summary").click()
    visitor.page.get_by_role("link", name="it is removed").click()
    visitor.still()
    expect(visitor.page.locator("h1")).to_contain_text("move")
    expect(visitor.test("what-if-table")).to_contain_text("front")
    expect(visitor.test("measures")).to_contain_text("nodes")
    visitor.test("change-kind").select_option("lose-zone")
    visitor.test("change-target").fill("b")
    visitor.test("add-change").click()
    visitor.still()
    expect(visitor.test("changes").locator(".chip")).to_have_count(2)
    visitor.shoot("real-what-if")
    visitor.test("fork-name").fill("zone b without its node")
    visitor.test("keep").click()
    expect(visitor.page.locator("h1")).to_contain_text("zone b without its node: of")
    with visitor.page.expect_download() as downloading:
        visitor.test("download").click()
    report = json.loads(Path(downloading.value.path()).read_text())
    assert report["changes"] == [f"remove-nodes={cloud_name(1)}", "lose-zone=b"]
    visitor.test("open-fork").click()
    visitor.page.wait_for_selector("[data-test=metrics]")
    expect(visitor.test("compare-table")).to_contain_text("front")
    assert "zone b without its node" in fork_names(server)
    visitor.go("/ui/what-if")
    visitor.test("kept").get_by_role("link", name="zone b without its node").click()
    visitor.still()
    visitor.test("discard").click()
    visitor.still()
    expect(visitor.test("kept")).to_have_count(0)
    assert cast("list[object]", server.get("/what-if")["items"]) == []
    assert "zone b without its node" not in fork_names(server)
    assert len(cast("list[object]", server.get("/nodes")["items"])) == 6, "nothing of it has happened"


def test_a_disabled_plugin_moves_pods_only_if_they_are_rescheduled(server: Running, visit: Visit) -> None:
    visitor = visit(server.url)
    visitor.go("/ui/what-if?changes=disable%3DNodeResourcesFit")
    expect(visitor.page.locator("h1")).to_contain_text("o difference")
    visitor.page.get_by_role("button", name="all pods").click()
    visitor.still()
    expect(visitor.page.locator("h1")).to_contain_text("move")
    assert "reschedule=*" in visitor.place or "reschedule=%2A" in visitor.place
    visitor.page.go_back()


def test_an_edited_configuration_opens_as_a_what_if(server: Running, visit: Visit) -> None:
    visitor = visit(server.url)
    visitor.go("/ui/config")
    visitor.test("editor").fill(MOST_ALLOCATED)
    expect(visitor.test("what-if")).to_be_enabled()
    visitor.test("what-if").click()
    visitor.still()
    expect(visitor.test("changes")).to_contain_text("another configuration")
    expect(visitor.page.locator("h1")).to_contain_text("move")
    visitor.test("discard").click()
    visitor.still()
    expect(visitor.page.locator("h1")).to_contain_text("What if")


def test_a_what_if_is_operated_by_keyboard(server: Running, visit: Visit) -> None:
    visitor = visit(server.url)
    visitor.go("/")
    visitor.page.keyboard.press("g")
    visitor.page.keyboard.press("w")
    visitor.still()
    visitor.page.keyboard.press("/")
    expect(visitor.test("change-target")).to_be_focused()
    visitor.page.keyboard.type(cloud_name(2))
    visitor.page.keyboard.press("Enter")
    visitor.still()
    expect(visitor.test("changes")).to_contain_text("Drain")
    expect(visitor.page.locator("h1")).to_contain_text("pods")


def test_a_changed_weight_is_named_as_a_weight(server: Running, visit: Visit) -> None:
    visitor = visit(server.url)
    visitor.go("/ui/what-if?changes=weight%3DNodeResourcesFit%3A9")
    expect(visitor.test("changes")).to_contain_text("Weight NodeResourcesFit:9")


def test_a_drain_shows_the_pods_that_kubectl_would_not_evict(server: Running, visit: Visit) -> None:
    visitor = visit(server.url)
    visitor.go(f"/ui/what-if?changes=drain%3D{cloud_name(0)}")
    warnings = visitor.test("warnings")
    expect(warnings).to_contain_text("without --force: default/legacy-billing")
    expect(warnings).to_be_in_viewport()
    visitor.shoot("real-what-if-warnings")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/ui/what-if?changes=scale%3Ddeployment/default/front:11", id="what if"),
        pytest.param("/ui/capacity?of=deployment/default/front", id="capacity"),
        pytest.param(f"/ui/unblock?of=pod/default/{WAITS}", id="unblock"),
    ],
)
def test_an_answer_is_marked_when_the_cluster_changes(tmp_path: Path, visit: Visit, path: str) -> None:
    with running(tmp_path, cluster()) as server:
        visitor = visit(server.url)
        visitor.go(path)
        note = visitor.test("outdated")
        visitor.page.wait_for_timeout(1_000)
        expect(note).to_be_hidden()
        nodes = f"{server.url}/api/v1/nodes/{cloud_name(1)}"
        headers = {"Content-Type": "application/merge-patch+json"}
        httpx.patch(nodes, json={"spec": {"unschedulable": True}}, headers=headers).raise_for_status()
        expect(note).to_be_visible()
        visitor.page.get_by_role("button", name="Run again").click()
        expect(note).to_be_hidden()
        httpx.delete(f"{server.url}/api/v1/namespaces/default/pods/legacy-billing-6f5d4c7b8-2xk9q").raise_for_status()
        expect(note).to_be_visible()
        visitor.shoot("real-outdated")


def test_an_invalid_change_shows_an_error_and_can_be_removed(server: Running, visit: Visit) -> None:
    visitor = visit(server.url, expected=("422",))
    visitor.go("/ui/what-if?changes=drain%3Dno-such-node")
    expect(visitor.test("error")).to_contain_text("no-such-node")
    visitor.page.get_by_role("button", name="Remove the change Drain no-such-node").click()
    expect(visitor.test("error")).to_have_count(0)


def test_an_imported_pod_shows_a_hypothetical_matrix(server: Running, visit: Visit) -> None:
    visitor = visit(server.url)
    visitor.go("/ui/pods/default/legacy-billing-6f5d4c7b8-2xk9q")
    expect(visitor.test("hypothetical")).to_contain_text("would be scheduled now")
    expect(visitor.page.locator(".mrow:not([hidden])")).to_have_count(6)


def test_causes_on_the_overview_link_to_a_pod(server: Running, visit: Visit) -> None:
    visitor = visit(server.url)
    visitor.go("/")
    expect(visitor.test("causes")).to_contain_text("no node has the label disktype=nvme")
    expect(visitor.test("verdict")).to_contain_text("1 of 12 pods is pending: no node has the label disktype=nvme")
    visitor.test("causes").locator("a.name").first.click()
    visitor.still()
    assert visitor.place == f"/ui/pods/default/{WAITS}"


def test_a_table_keeps_its_place_when_the_user_returns(tmp_path: Path, visit: Visit) -> None:
    nodes = [node(cloud_name(number), ZONES[number % 3]) for number in range(6)]
    with running(tmp_path, [*nodes, *(pod(f"p-{number:02}", cpu="100m") for number in range(60))]) as server:
        visitor = visit(server.url)
        visitor.go("/ui/pods?sort=name")
        table, cursor = visitor.test("pod-table"), visitor.page.locator(".grid-row.cursor")
        table.evaluate("(table) => { table.scrollTop = 600; }")
        visitor.page.keyboard.press("j")
        expect(cursor).to_contain_text("p-20")
        visitor.page.keyboard.press("Enter")
        expect(visitor.page.locator("h1")).to_contain_text("default/p-20")
        visitor.page.keyboard.press("Escape")
        expect(cursor).to_contain_text("p-20")
        assert table.evaluate("(table) => table.scrollTop") == 600
        visitor.page.keyboard.press("j")
        expect(cursor).to_contain_text("p-21")


def test_node_lanes_are_shown_on_the_time_axis_only(server: Running, visit: Visit) -> None:
    visitor = visit(server.url)
    visitor.go("/ui/timeline")
    lanes = visitor.test("node-lanes")
    expect(lanes).to_be_visible()
    lanes.focus()
    visitor.page.keyboard.press("ArrowDown")
    visitor.page.get_by_role("button", name="decisions", exact=True).click()
    visitor.still()
    expect(lanes).to_be_hidden()
    visitor.page.get_by_role("button", name="time", exact=True).click()
    visitor.still()
    lanes.click(position={"x": 400, "y": 10})
    visitor.still()
    assert visitor.place.startswith("/ui/nodes/")


def test_snapshot_export_import_restore_and_reset_work(server: Running, visit: Visit) -> None:
    visitor = visit(server.url)
    visitor.go("/ui/sources")
    visitor.test("snapshot-name").fill("before")
    visitor.test("snapshot").click()
    expect(visitor.test("snapshots")).to_contain_text("before")
    with visitor.page.expect_download() as downloading:
        visitor.test("export").click()
    exported = Path(downloading.value.path())
    assert {item["kind"] for item in json.loads(exported.read_text())["items"]} >= {"Node", "Pod", "Deployment"}
    document = json.dumps({"items": [node("imported", "a")]}).encode()
    file: FilePayload = {"name": "more.json", "mimeType": "application/json", "buffer": document}
    visitor.test("import-file").set_input_files(file)
    visitor.test("yes").click()
    expect(visitor.page.locator("#notices")).to_contain_text("1 object imported")
    assert len(cast("list[object]", server.get("/nodes")["items"])) == 7
    visitor.test("snapshots").get_by_role("button", name="Restore").click()
    visitor.test("yes").click()
    expect(visitor.page.locator("#notices")).to_contain_text("Restore before: done")
    assert len(cast("list[object]", server.get("/nodes")["items"])) == 6
    visitor.test("reset").click()
    visitor.test("yes").click()
    expect(visitor.page.locator("#notices")).to_contain_text("Reset: done")
