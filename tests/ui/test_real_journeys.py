"""User journeys in a browser on `bayplan up`: the page, both APIs and the scheduler together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.ui.browsing import Visitor
from tests.ui.cloud_names import cloud_name
from tests.ui.running import Running, node, pod, running, ten_nodes

Visit = Callable[..., Visitor]

TOLERANT = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    filter:
      disabled:
      - name: TaintToleration
"""
PLUGIN = """from bayplan import PerNodePlugin


class Whim(PerNodePlugin):
    def score_node(self, pod, node):
        {line}
"""
MOST_ALLOCATED = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources:
        - {name: cpu, weight: 1}
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path, ten_nodes()) as found:
        yield found


def test_pending_and_placed_pods_are_explained(server: Running, visit: Visit) -> None:
    visitor = visit(server.url)
    visitor.go("/")
    assert visitor.verdict == server.get("/waiting")["summary"]
    assert visitor.test("node-card").count() == 10
    visitor.shoot("real-overview-10")
    visitor.page.get_by_role("link", name="Insufficient cpu", exact=True).click()
    visitor.still()
    visitor.test("pod-table").locator("a.name", has_text="too-big").click()
    visitor.still()
    assert visitor.verdict == server.get("/pods/default/too-big")["summary"]
    expect(visitor.page.locator(".mrow:not([hidden])")).to_have_count(10)
    expect(visitor.page.locator(".mrow.failed .gap").first).to_contain_text("lacks")
    visitor.shoot("real-pod-waiting-10")
    visitor.test("tab-unblock").click()
    visitor.still()
    visitor.shoot("real-pod-help-10")
    visitor.go("/ui/pods?q=front")
    visitor.test("pod-table").locator("a.name").first.click()
    visitor.still()
    key = visitor.place.removeprefix("/ui/pods/")
    matrix = server.get(f"/pods/{key}/attempts/latest/matrix")
    expect(visitor.page.locator(".mrow.winner")).to_contain_text(str(matrix["winner"]))
    ties = matrix["tie_set"]
    assert isinstance(ties, list)
    expect(visitor.page.locator(".mrow .total", has_text="★")).to_have_count(len(ties))
    visitor.shoot("real-pod-placed-10")


def test_a_valid_configuration_is_applied_immediately(server: Running, visit: Visit) -> None:
    visitor = visit(server.url)
    visitor.go("/ui/config")
    visitor.test("editor").fill(TOLERANT.replace("TaintToleration", "TaintTolerance").replace("disabled", "enabled"))
    expect(visitor.page.locator("h1")).to_contain_text("problem")
    expect(visitor.test("problems")).to_contain_text("TaintTolerance")
    visitor.shoot("real-config-problem-10")
    visitor.test("editor").fill(TOLERANT)
    expect(visitor.test("apply")).to_be_enabled()
    visitor.shoot("real-config-valid-10")
    visitor.test("apply").click()
    visitor.test("yes").click()
    expect(visitor.page.locator("h1")).to_contain_text("Active configuration")
    visitor.go("/ui/pods/default/homesick")
    expect(visitor.page.locator("h1")).to_contain_text(cloud_name(9))
    expect(visitor.page.locator(".facts-line")).to_contain_text("placed")


def test_a_fork_with_a_changed_configuration_is_compared(server: Running, visit: Visit) -> None:
    visitor = visit(server.url)
    visitor.go("/ui/config")
    visitor.test("editor").fill(TOLERANT)
    expect(visitor.test("try-fork")).to_be_enabled()
    visitor.test("try-fork").click()
    expect(visitor.page.locator("h1")).to_contain_text(re.compile("differ|moved|same|wait"))
    visitor.page.wait_for_selector("[data-test=metrics]")
    visitor.still()
    visitor.shoot("real-fork-compared-10")
    expect(visitor.test("compare-table")).to_contain_text("homesick")
    visitor.test("compare-table").locator("a.name", has_text="homesick").click()
    visitor.still()
    assert visitor.verdict == f"default/homesick is pending in A, runs on {cloud_name(9)} in B"
    expect(visitor.test("first-plugin")).to_contain_text(f"TaintToleration rejects {cloud_name(9)} in A")
    expect(visitor.page.get_by_role("grid", name="Nodes by plugins in A")).to_contain_text("TaintToleration")
    expect(visitor.page.locator(".mrow.winner .name")).to_have_text([cloud_name(9)])
    visitor.shoot("real-fork-matrices-10")


def test_fifty_pods_are_created_and_a_refused_text_stays_in_the_editor(server: Running, visit: Visit) -> None:
    visitor = visit(server.url)
    visitor.go("/ui/new?kind=Pod")
    visitor.test("count").fill("50")
    expect(visitor.page.locator("h1")).to_contain_text("Create 50 objects")
    visitor.test("create").click()
    expect(visitor.page.locator("h1")).to_contain_text("50 objects created")
    visitor.shoot("real-created-10")
    text = visitor.test("editor").input_value().replace("500m", "half")
    visitor.test("editor").fill(text)
    expect(visitor.page.locator("h1")).to_contain_text("would be refused")
    expect(visitor.test("create")).to_be_disabled()
    assert visitor.test("editor").input_value() == text
    visitor.shoot("real-create-refused-10")
    visitor.go("/ui/pods?q=web-50")
    visitor.test("pod-table").locator("a.name", has_text="web-50").click()
    visitor.still()
    assert visitor.place == "/ui/pods/default/web-50"


@pytest.mark.parametrize(
    "kind",
    [
        "Node",
        "Deployment",
        "Job",
        "PodDisruptionBudget",
        "PersistentVolumeClaim",
        "gpu",
        "spread",
        "urgent",
        "gpu-node",
    ],
)
def test_every_template_is_valid_for_the_server(kind: str, real: Running, visit: Visit) -> None:
    visitor = visit(real.url)
    query = f"kind={kind}" if kind[0].isupper() else f"template={kind}"
    visitor.go(f"/ui/new?{query}")
    expect(visitor.page.locator("h1")).to_contain_text(re.compile(r"^Create \d"))


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Yield a server whose objects no test changes."""
    with running(tmp_path_factory.mktemp("real"), ten_nodes()) as found:
        yield found


@pytest.mark.parametrize(
    "path",
    [
        "/nodes",
        f"/nodes/{cloud_name(0)}",
        "/queue",
        "/timeline",
        "/objects",
        "/workloads/deployment/default/front",
        "/plugins",
        "/sources",
        "/compare",
        "/settings",
    ],
)
def test_a_page_renders_on_the_real_service(path: str, real: Running, visit: Visit) -> None:
    visitor = visit(real.url)
    visitor.go(f"/ui{path}")
    assert visitor.verdict
    assert visitor.test("error").count() == 0
    visitor.shoot(f"real-{path.strip('/').replace('/', '-')}-10")


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param("/pods/default/nobody", "Pod default/nobody does not exist", id="a pod"),
        pytest.param("/nodes/nowhere", "There is no node nowhere", id="a node"),
        pytest.param("/compare/default/nobody", "default/nobody can't be compared", id="a pod in two runs"),
    ],
)
def test_a_missing_object_is_named_in_the_heading_with_a_link(
    path: str, want: str, real: Running, visit: Visit
) -> None:
    visitor = visit(real.url, expected=("404",))
    visitor.go(f"/ui{path}")
    assert visitor.verdict == want
    assert visitor.test("error").count() == 1
    assert visitor.page.locator("main a").count() > 0


def test_a_node_is_cordoned_drained_and_deleted(server: Running, visit: Visit) -> None:
    visitor = visit(server.url)
    visitor.go(f"/ui/nodes/{cloud_name(0)}")
    visitor.test("cordon").click()
    expect(visitor.test("cordon")).to_have_text("Uncordon")
    visitor.test("drain").click()
    visitor.test("yes").click()
    expect(visitor.test("notice-ok").last).to_contain_text("evicted")
    visitor.test("delete").click()
    expect(visitor.test("question")).to_contain_text(f"Delete the node {cloud_name(0)}?")
    visitor.page.keyboard.press("Escape")
    assert visitor.place == f"/ui/nodes/{cloud_name(0)}"
    visitor.test("delete").click()
    visitor.test("yes").click()
    visitor.page.wait_for_url("**/ui/nodes")
    expect(visitor.page.locator("h1")).to_contain_text("9 nodes")


def test_the_clock_is_paused_and_stepped(server: Running, visit: Visit) -> None:
    visitor = visit(server.url)
    visitor.go("/ui/timeline")
    visitor.page.keyboard.press(" ")
    expect(visitor.test("pause")).to_have_attribute("aria-pressed", "true")
    visitor.go("/ui/new?kind=Pod")
    expect(visitor.page.locator("h1")).to_contain_text(re.compile(r"^Create \d"))
    visitor.test("create").click()
    expect(visitor.page.locator("h1")).to_contain_text("created")
    before = server.get("/overview")["decisions"]
    visitor.go("/ui/pods/default/web-1")
    expect(visitor.page.locator(".facts-line")).to_contain_text("pending")
    visitor.test("step").click()
    expect(visitor.page.locator(".facts-line")).to_contain_text("placed")
    # The matrix of the first attempt appears without a reload.
    expect(visitor.page.locator(".mrow:not([hidden])")).to_have_count(10)
    assert server.get("/overview")["decisions"] != before
    visitor.test("pause").click()
    expect(visitor.test("pause")).to_have_attribute("aria-pressed", "false")


def test_a_conflicting_edit_preserves_both_texts(server: Running, visit: Visit) -> None:
    visitor, other = visit(server.url, expected=("409",)), visit(server.url)
    for each in (visitor, other):
        each.go("/ui/objects/apps/v1/deployments/default/front?tab=edit")
    for each, replicas in ((other, 13), (visitor, 14)):
        text = each.test("editor").input_value()
        each.test("editor").fill(text.replace("  replicas: 12\n", f"  replicas: {replicas}\n", 1))
        each.test("save").click()
    expect(visitor.test("conflict")).to_contain_text("replicas: 13")
    assert "replicas: 14" in visitor.test("editor").input_value()
    visitor.shoot("real-conflict-10")
    visitor.page.get_by_role("button", name="Keep mine").click()
    visitor.test("save").click()
    expect(visitor.page.locator(".badge.ok", has_text="saved")).to_be_visible()


def test_preemption_shows_the_victim(tmp_path: Path, visit: Visit) -> None:
    with running(tmp_path, [node("only", "a", cpu="4"), pod("old", cpu="3")]) as server:
        visitor = visit(server.url)
        visitor.go("/ui/new?template=urgent")
        expect(visitor.page.locator("h1")).to_contain_text("Create 1 object")
        visitor.test("create").click()
        expect(visitor.page.locator("h1")).to_contain_text("created")
        visitor.go("/ui/pods/default/urgent-1?tab=preemption&attempt=1")
        expect(visitor.test("chosen-candidate")).to_contain_text("default/old")
        visitor.shoot("real-preemption-1")


def test_a_plugin_is_reloaded_and_its_exceptions_are_shown(tmp_path: Path, visit: Visit) -> None:
    file = tmp_path / "whim.py"
    file.write_text(PLUGIN.format(line="return 7"))
    with running(tmp_path, ten_nodes(), "--plugin", f"{file}:Whim") as server:
        visitor = visit(server.url)
        visitor.go("/ui/pods?status=placed")
        visitor.test("pod-table").locator("a.name").first.click()
        visitor.still()
        visitor.page.get_by_role("button", name="raw").click()
        expect(visitor.test("column-Whim")).to_be_visible()
        file.write_text(PLUGIN.format(line="return len(node.name) / 0"))
        visitor.go("/ui/plugins")
        visitor.test("reload").click()
        expect(visitor.test("notice-ok")).to_contain_text("reloaded")
        visitor.go("/ui/new?kind=Pod")
        expect(visitor.page.locator("h1")).to_contain_text(re.compile(r"^Create \d"))
        visitor.test("create").click()
        expect(visitor.page.locator("h1")).to_contain_text("created")
        visitor.go("/ui/plugins")
        expect(visitor.page.locator("h1")).to_contain_text("Whim")
        visitor.shoot("real-plugin-failed-10")
        visitor.go("/ui/pods?status=placed")
        visitor.test("pod-table").locator("a.name").first.click()
        expect(visitor.test("column-Whim")).to_contain_text("raised")


def test_the_page_reconnects_to_a_killed_server(tmp_path: Path, visit: Visit) -> None:
    with running(tmp_path, ten_nodes()) as server:
        port = int(server.url.rpartition(":")[2])
        visitor = visit(server.url)
        visitor.go("/ui/pods?q=front")
        server.kill()
        expect(visitor.test("live")).to_contain_text("reconnecting")
        assert visitor.test("pod-table").locator("a.name").count() > 0
    with running(tmp_path, ten_nodes(), port=port):
        expect(visitor.test("live")).to_contain_text("live", timeout=20_000)
        visitor.still()
        assert visitor.place == "/ui/pods?q=front"


def test_an_empty_cluster_shows_the_next_steps(tmp_path: Path, visit: Visit) -> None:
    with running(tmp_path, [], settled=False) as server:
        visitor = visit(server.url)
        for path, verdict in (
            ("/", "empty"),
            ("/nodes", "No nodes"),
            ("/pods", "No pods"),
            ("/timeline", "No decisions yet"),
        ):
            visitor.go(f"/ui{path}")
            expect(visitor.page.locator("h1")).to_contain_text(verdict)
            assert visitor.test("empty").first.locator("a.button").count() > 0
            visitor.shoot(f"real-empty-{path.strip('/') or 'overview'}")


def test_the_token_is_requested_once(tmp_path: Path, visit: Visit) -> None:
    with running(tmp_path, [], "--token", "sesame", settled=False) as server:
        visitor = visit(server.url, expected=("401", "WebSocket"))
        visitor.page.goto(f"{server.url}/ui/pods")
        visitor.test("token").locator("input").fill("sesame")
        visitor.page.keyboard.press("Enter")
        visitor.still()
        expect(visitor.test("live")).to_contain_text("live")
        visitor.go("/ui/nodes")
        expect(visitor.page.locator("h1")).to_contain_text("No nodes")
