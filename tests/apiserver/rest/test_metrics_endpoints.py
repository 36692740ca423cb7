"""Usage of nodes and pods: the requests of running pods, or the values of their annotations."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.apiserver.rest.metrics_endpoints import CPU_USAGE, GROUP, MEMORY_USAGE, MetricsEndpoints
from tests.apiserver.client import Client
from tests.apiserver.serving import ask, call, serving

BASE = "/apis/metrics.k8s.io/v1beta1"


def pod(name: str, cpu: str = "", phase: str = "Running", **annotations: str) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c", "image": "i"}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu, "memory": "64Mi"}}
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": {"app": name}, "annotations": annotations}
    spec = {"nodeName": "n", "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}}


NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
PODS = [
    NODE,
    pod("a", "250m"),
    pod("b", "1"),
    pod("c"),
    pod("d", "1", "Succeeded"),
    pod("e", "1", **{CPU_USAGE: "1500m", MEMORY_USAGE: "1Gi"}),
]


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param("/namespaces/default/pods/a", {"cpu": "250m", "memory": "64Mi"}, id="as requested"),
        pytest.param("/namespaces/default/pods/c", {"cpu": "0", "memory": "0"}, id="nothing requested"),
        pytest.param("/namespaces/default/pods/e", {"cpu": "1500m", "memory": "1Gi"}, id="as annotated"),
        pytest.param("/nodes/n", {"cpu": "2750m", "memory": "1152Mi"}, id="a node has the sum of those that run"),
    ],
)
def test_usage_is_the_sum_of_requests_or_annotations(path: str, want: dict[str, str]) -> None:
    with serving(PODS) as server:
        found = call(server, "GET", BASE + path)
        assert (found["containers"][0]["usage"] if "containers" in found else found["usage"]) == want


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param("/pods", ["a", "b", "c", "e"], id="all running pods"),
        pytest.param("/namespaces/default/pods?labelSelector=app%20in%20(a,b)", ["a", "b"], id="by label"),
        pytest.param("/namespaces/other/pods", [], id="of another namespace"),
        pytest.param("/nodes?fieldSelector=metadata.name%3Dn", ["n"], id="nodes by name"),
    ],
)
def test_usage_lists_contain_running_pods_and_support_selectors(path: str, want: list[str]) -> None:
    with serving(PODS) as server:
        assert [each["metadata"]["name"] for each in call(server, "GET", BASE + path)["items"]] == want


def test_the_metrics_group_is_discoverable_and_read_only() -> None:
    with serving(PODS) as server:
        groups = [each["name"] for each in call(server, "GET", "/apis")["groups"]]
        assert "metrics.k8s.io" in groups
        assert {each["kind"] for each in call(server, "GET", BASE)["resources"]} == {"NodeMetrics", "PodMetrics"}
        assert ask(f"{server.url}{BASE}/nodes", "POST", b"{}")[0] == 405
        assert ask(f"{server.url}{BASE}/namespaces/default/pods/d")[0] == 404
        assert ask(f"{server.url}{BASE}/nope")[0] == 404


def test_publishing_the_group_counts_as_one_change_of_the_registry() -> None:
    backend = Client().backend
    before = backend.registry.changes
    for _ in range(2):
        MetricsEndpoints(backend).publish()
    assert backend.registry.changes == before + 1
    assert backend.registry.groups.count(GROUP) == 1
