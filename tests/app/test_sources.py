"""All questions accept the same sources: files, a result directory, a Bayplan server, a live cluster."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest
import yaml

from bayplan.analysis.export import export
from bayplan.app.simulation import SimulationOptions, simulate
from bayplan.app.sources.api_source import LISTED_KINDS
from bayplan.app.sources.cluster_source import ClusterSource, SourceKind, SourceOptions
from bayplan.app.sources.opening import open_source
from bayplan.base.errors import InputError
from bayplan.cli.main import main
from bayplan.library import Cluster
from bayplan.objects.kinds import kind_of
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.policy import PodDisruptionBudget
from bayplan.testing.builders import make_node, make_pod

Document = dict[str, object]


def node(name: str, cpu: str = "4", *, uid: str = "u") -> Document:
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "50"}
    metadata = dict[str, object](name=name) | (
        {"uid": f"{uid}-{name}", "creationTimestamp": "2026-05-01T10:00:00Z"} if uid else {}
    )
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": amounts}}


def pod(
    name: str, cpu: str = "1", *, on: str = "", uid: str = "u", namespace: str = "default", **spec: object
) -> Document:
    container: Document = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}, **spec}
    metadata = dict[str, object](name=name, namespace=namespace) | ({"uid": f"{uid}-{name}"} if uid else {})
    found: Document = {"containers": [container]} | ({"nodeName": on} if on else {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": found}


def deployment(name: str, replicas: int, cpu: str = "1") -> Document:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod("x", cpu)["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": spec,
    }


def write(folder: Path, *documents: Document, name: str = "all.json") -> str:
    path = folder / name
    path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": documents}))
    return str(path)


def placed(objects: object) -> dict[str, str]:
    assert isinstance(objects, list)
    return {item.key: item.spec.node_name for item in objects if isinstance(item, Pod)}


def test_a_dump_is_read_without_scheduling_its_pods(tmp_path: Path) -> None:
    path = write(tmp_path, node("a"), pod("runs", on="a"), pod("waits"))
    source = open_source(SourceOptions(paths=[path]))
    assert source.kind is SourceKind.DUMP
    assert placed(source.objects) == {"default/runs": "a", "default/waits": ""}
    reported = {each.about: each.text for each in source.assumptions}
    assert reported["time"] == "the current time is taken to be 2026-05-01T10:00:00Z, the newest timestamp in the input"
    assert reported["configuration"].startswith("kube-scheduler's defaults apply, because")


def kinds_unread(source: ClusterSource) -> list[str]:
    return [each.text for each in source.assumptions if each.about == "unread"]


def test_a_dump_reports_missing_kinds_that_its_pods_refer_to(tmp_path: Path) -> None:
    builders = (
        make_node("a").uid("a").capacity(cpu="4"),
        make_pod("db-1").uid("p").owner("StatefulSet", "db").claim("data-db-1"),
    )
    path = write(tmp_path, *(each.document() for each in builders))
    scores = (
        "default spreading does not know which pods belong together, so scores may differ from those in the cluster"
    )
    assert kinds_unread(open_source(SourceOptions(paths=[path]))) == [
        "the input has no PersistentVolumeClaims: pods with claims can't be evaluated",
        f"the input has no StatefulSets and no Services: {scores}",
    ]
    cluster = Cluster.open(path)
    want = (
        "default/db-1 is pending: it is unknown why: the input has no PersistentVolumeClaims; "
        'without them, the scheduler reports: persistentvolumeclaim "data-db-1" not found'
    )
    assert cluster.explain("db-1").verdict == want
    found = cluster.unblock("db-1")
    assert found.verdict == f"{want}; nothing that was tried helps"
    # The claim may exist in the cluster, so its creation must not be suggested.
    assert found.suggestions == []


def test_a_missing_resource_claim_may_exist_if_the_dump_has_no_claims(tmp_path: Path) -> None:
    builders = (
        make_node("a").uid("a").capacity(cpu="4"),
        make_pod("x").uid("p").spec(resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]),
    )
    cluster = Cluster.open(write(tmp_path, *(each.document() for each in builders)))
    assert cluster.explain("x").verdict == (
        "default/x is pending: it is unknown why: the input has no ResourceClaims; "
        'without them, the scheduler reports: could not find ResourceClaim "default/gpu"'
    )


def test_a_dump_without_nodes_says_so(tmp_path: Path) -> None:
    (tmp_path / "dump.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default, uid: u}\n"
        "spec: {containers: [{name: c, image: x}]}\nstatus: {phase: Pending}\n"
    )
    cluster = Cluster.open(str(tmp_path / "dump.yaml"))
    assert cluster.explain("p").verdict == "default/p is pending: the input has no nodes"
    text = "the input has no Nodes: no pod can be evaluated; dump nodes, too (kubectl get nodes,pods -A -o yaml)"
    assert text in cluster.assumptions


def test_a_dump_without_missing_references_reports_no_missing_kinds(tmp_path: Path) -> None:
    assert not kinds_unread(open_source(SourceOptions(paths=[write(tmp_path, node("a"), pod("alone", on="a"))])))


def test_explain_and_unblock_assume_the_same_state_for_manifests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, node("a", uid=""), *(deployment(f"web-{number}", 3, "900m") for number in range(2)))
    assumed = "these objects were never in a cluster: they are applied and scheduled for 1 min of virtual time"
    assert main(["unblock", "deployment/web-1", path, "--json"]) == 0
    unblocked = msgspec.json.decode(capsys.readouterr().out)
    assert main(["explain", unblocked["waiting"][0], path, "--json"]) == 0
    explained = msgspec.json.decode(capsys.readouterr().out)
    assert assumed in unblocked["assumptions"]
    assert assumed in explained["assumptions"]
    assert explained["verdict"].partition(" is pending: ")[2] == unblocked["cause"]["headline"]


def test_manifests_from_no_cluster_are_applied_for_one_minute(tmp_path: Path) -> None:
    path = write(tmp_path, node("a", uid=""), deployment("web", 3))
    source = open_source(SourceOptions(paths=[path]))
    assert source.kind is SourceKind.MANIFESTS
    assert list(placed(source.objects).values()) == ["a", "a", "a"]
    assert any("scheduled for 1 min of virtual time" in each.text for each in source.assumptions)


def test_new_workloads_next_to_a_dump_create_pending_pods(tmp_path: Path) -> None:
    running: Document = deployment("old", 1)
    running["metadata"] = {"name": "old", "namespace": "shop", "uid": "u-old"}
    dump = write(tmp_path, node("a"), pod("runs", on="a"), running)
    quota: Document = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l", "namespace": "shop"},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"memory": "64Mi"}}]},
    }
    new = write(tmp_path, deployment("web", 2), quota, name="new.json")
    source = open_source(SourceOptions(paths=[dump, new]))
    waiting = [item for item in source.objects if isinstance(item, Pod) and not item.spec.node_name]
    assert len(waiting) == 2
    assert all(item.metadata.name.startswith("web-") for item in waiting)
    assert all(item.spec.containers[0].resources.requests["memory"] == "64Mi" for item in waiting)
    text = "1 object not in the cluster yet: pods of new workloads are created, and stay pending"
    assert text in [each.text for each in source.assumptions]


def test_a_result_directory_yields_the_final_cluster_with_budgets(tmp_path: Path) -> None:
    budget: Document = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "shop"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    path = write(tmp_path, node("a", uid=""), deployment("web", 5), budget)
    export(simulate(SimulationOptions(paths=[path])), tmp_path / "out")
    source = open_source(SourceOptions(paths=[str(tmp_path / "out")]))
    assert source.kind is SourceKind.RESULT
    assert sorted(placed(source.objects).values()) == ["", "a", "a", "a", "a"]
    assert [item.key for item in source.objects if isinstance(item, PodDisruptionBudget)] == ["shop/b"]
    owners = {item.metadata.controller().name for item in source.objects if isinstance(item, Pod)}  # type: ignore[union-attr]
    assert owners == {"web"}
    (tmp_path / "out" / "objects.parquet").unlink()
    older = open_source(SourceOptions(paths=[str(tmp_path / "out")]))
    assert [each.kind for each in older.unread] == ["Other"]


def test_flags_of_the_kube_scheduler_pod_in_a_dump_are_used(tmp_path: Path) -> None:
    scheduler = pod(
        "kube-scheduler-cp", on="a", namespace="kube-system", command=["kube-scheduler", "--leader-elect=true"]
    )
    source = open_source(SourceOptions(paths=[write(tmp_path, node("a"), scheduler)]))
    assert source.assumptions[0].text.startswith("kube-scheduler's defaults apply: kube-system/kube-scheduler-cp runs")
    gated = pod(
        "kube-scheduler-cp",
        on="a",
        namespace="kube-system",
        command=["kube-scheduler", "--feature-gates=SchedulerPopFromBackoffQ=false"],
    )
    source = open_source(SourceOptions(paths=[write(tmp_path, node("a"), gated)]))
    assert not source.scheduler.feature_gates.enabled("SchedulerPopFromBackoffQ")
    hidden = pod(
        "kube-scheduler-cp", on="a", namespace="kube-system", command=["kube-scheduler", "--config", "/etc/s.yaml"]
    )
    source = open_source(SourceOptions(paths=[write(tmp_path, node("a"), hidden)]))
    assert "reads /etc/s.yaml, which the API does not show" in source.assumptions[0].text


@pytest.mark.parametrize(
    ("options", "want"),
    [
        pytest.param(SourceOptions(), "source: expected manifests, a dump", id="no source is given"),
        pytest.param(
            SourceOptions(paths=["a.yaml"], context="prod"), "got a.yaml and --context prod", id="files and a context"
        ),
        pytest.param(
            SourceOptions(paths=["http://127.0.0.1:1", "a.yaml"]),
            "got http://127.0.0.1:1 and 1 other source",
            id="a server and files",
        ),
        pytest.param(
            SourceOptions(paths=["http://127.0.0.1:1"]), "http://127.0.0.1:1 does not respond", id="nothing answers"
        ),
        pytest.param(SourceOptions(paths=["localhost:6443"]), "try http://localhost:6443", id="a URL without scheme"),
        pytest.param(SourceOptions(paths=["/nowhere"]), "no such file or folder", id="no such file"),
    ],
)
def test_an_invalid_source_is_refused_with_a_suggestion(options: SourceOptions, want: str) -> None:
    with pytest.raises(InputError) as raised:
        open_source(options)
    assert want in str(raised.value)


# --- over HTTP --------------------------------------------------------------------------------------------------------


class FakeApi:
    """Lists in pages of two, refuses some collections, and records the requests."""

    def __init__(self, tables: dict[str, list[Document]], forbidden: tuple[str, ...] = ()) -> None:
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                path, _, query = self.path.partition("?")
                plural = path.rpartition("/")[2]
                if plural in forbidden:
                    message = (
                        f'{plural} is forbidden: User "viewer" cannot list resource "{plural}" at the cluster scope'
                    )
                    self.answer(403, {"kind": "Status", "message": message})
                elif plural not in tables:
                    self.answer(404, {"kind": "Status", "message": "the server could not find the requested resource"})
                elif isinstance(tables[plural], dict):
                    self.answer(200, tables[plural])
                else:
                    start = int(query.partition("continue=")[2] or 0)
                    items = tables[plural][start : start + 2]
                    more = str(start + 2) if start + 2 < len(tables[plural]) else ""
                    self.answer(200, {"kind": "List", "metadata": {"continue": more}, "items": items})

            def answer(self, status: int, document: object) -> None:
                body = msgspec.json.encode(document)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self._handler = Handler

    @contextlib.contextmanager
    def running(self) -> Iterator[str]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join(10)


def kubeconfig(folder: Path, url: str) -> Path:
    path = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "prod", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "prod",
    }
    path.write_bytes(msgspec.json.encode(config))
    return path


def test_a_live_cluster_is_listed_in_pages_without_secrets_or_watches(tmp_path: Path) -> None:
    nodes = [node(name) for name in "abc"]
    api = FakeApi(
        {"nodes": nodes, "pods": [pod("runs", on="a"), pod("waits")], "namespaces": []},
        forbidden=("poddisruptionbudgets", "secrets"),
    )
    with api.running() as url:
        source = open_source(SourceOptions(context="prod", kubeconfig=kubeconfig(tmp_path, url)))
    assert (source.kind, source.name) == (SourceKind.CLUSTER, "context prod")
    assert sorted(item.key for item in source.objects if isinstance(item, Node)) == ["a", "b", "c"]
    assert placed(source.objects) == {"default/runs": "a", "default/waits": ""}
    assert [(each.kind, "budget" in each.effect) for each in source.unread] == [("PodDisruptionBudget", True)]
    assert any(
        "PodDisruptionBudget objects could not be read (poddisruptionbudgets is forbidden" in each.text
        for each in source.assumptions
    )
    assert "/api/v1/nodes?limit=500&continue=2" in api.asked
    assert not any("secret" in path or "configmap" in path or "watch" in path for path in api.asked)
    assert len(source.requests) == len(api.asked)


@pytest.mark.parametrize("plural", ["nodes", "pods"])
def test_a_cluster_that_forbids_listing_nodes_or_pods_is_refused(tmp_path: Path, plural: str) -> None:
    api = FakeApi({"nodes": [node("a")], "pods": [pod("p")]}, forbidden=(plural,))
    with api.running() as url, pytest.raises(InputError) as raised:
        open_source(SourceOptions(context="prod", kubeconfig=kubeconfig(tmp_path, url)))
    assert f"expected permission to list {plural} in all namespaces" in str(raised.value)
    assert f"try kubectl auth can-i list {plural} --all-namespaces" in str(raised.value)


def test_a_bayplan_server_supplies_its_configuration_and_clock() -> None:
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\npercentageOfNodesToScore: 100\n"
    )
    tables: dict[str, object] = {
        "nodes": [node("a")],
        "pods": [pod("waits")],
        "config": {"text": text, "effective": {}},
        "clock": {"now": "2026-03-01T00:00:00Z"},
    }
    with FakeApi(tables).running() as url:  # type: ignore[arg-type]
        source = open_source(SourceOptions(paths=[url]))
    assert source.kind is SourceKind.SERVER
    assert source.scheduler.configuration.percentage_of_nodes_to_score == 100
    assert [each.text for each in source.assumptions][:2] == [
        f"the configuration is that of {url}",
        "read when its clock was at 2026-03-01T00:00:00Z",
    ]
    cluster = Cluster.of(source)
    assert cluster.pending == ["default/waits"]
    assert [decision.record.node for decision in cluster.schedule()] == ["a"]


def test_a_bayplan_server_is_reached_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = f"127.0.0.1:{listener.getsockname()[1]}"
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(InputError, match=f"proxyconnect tcp: dial tcp {proxy}: connection refused"):
        open_source(SourceOptions(paths=["https://bayplan.example.com"]))


def test_a_server_with_an_invalid_port_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"^server: expected a URL .* a valid port, got 'https://bayplan\.example\.com:x'"
    ):
        open_source(SourceOptions(paths=["https://bayplan.example.com:x"]))


def test_a_server_other_than_bayplan_is_refused() -> None:
    with FakeApi({"nodes": []}).running() as url, pytest.raises(InputError, match="expected a Bayplan server, got"):
        open_source(SourceOptions(paths=[url]))


@pytest.mark.parametrize(
    ("user", "path", "is_page"),
    [("", "/ui", True), ("", "/ui/pods/default/web", True), ("", "/uist", False), ("ui@", "", False)],
)
def test_the_url_of_the_page_suggests_that_of_the_server(user: str, path: str, is_page: bool) -> None:
    with FakeApi({}).running() as url, pytest.raises(InputError) as caught:
        open_source(SourceOptions(paths=[f"http://{user}{url.removeprefix('http://')}{path}"]))
    assert caught.value.hint == (url if is_page else "--context NAME for a cluster")


def test_the_documented_role_grants_exactly_the_used_permissions() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "unblock.md").read_text(encoding="utf-8")
    role = yaml.safe_load(page.split("```yaml\n")[1].split("```")[0])
    granted = {(group, name) for rule in role["rules"] for group in rule["apiGroups"] for name in rule["resources"]}
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"list"}
    assert granted == {(kind_of(struct).group, kind_of(struct).plural) for struct in LISTED_KINDS}
