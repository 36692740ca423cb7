"""Limit ranges and quotas: a simulated cluster and the API server treat the same manifest alike."""

from __future__ import annotations

import pytest

from bayplan.base.errors import InputError
from bayplan.base.random_streams import RandomStreams
from bayplan.objects.kinds import decode
from bayplan.objects.pod import Pod
from bayplan.sim.virtual_cluster import VirtualCluster
from tests.apiserver.client import MERGE, Client, Document

_NAMESPACE = "/api/v1/namespaces/default"
_BOUNDS: Document = {
    "type": "Container",
    "min": {"cpu": "100m"},
    "max": {"cpu": "2", "memory": "1Gi"},
    "defaultRequest": {"cpu": "200m"},
    "maxLimitRequestRatio": {"cpu": "4"},
}
_POD_BOUNDS: Document = {"type": "Pod", "max": {"cpu": "3"}}


def _limits(*items: Document) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l", "namespace": "default"},
        "spec": {"limits": [*items]},
    }


def _quota(hard: Document, **spec: object) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": hard, **spec},
    }


def _pod(name: str = "p", requests: Document | None = None, limits: Document | None = None, **spec: object) -> Document:
    resources: Document = {"requests": requests or {}, "limits": limits or {}}
    container = {"name": "c", "image": "x", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], **spec},
    }


def _in_api(policies: list[Document], pods: list[Document]) -> list[object]:
    """Return the API's answers to pods: the errors, or the resources of their containers."""
    client = Client()
    for policy in policies:
        kind = "limitranges" if policy["kind"] == "LimitRange" else "resourcequotas"
        client.call("POST", f"{_NAMESPACE}/{kind}", policy)
        spec = policy["spec"]
        assert isinstance(spec, dict)
        if kind == "resourcequotas":
            status = {"hard": spec["hard"], "used": dict.fromkeys(spec["hard"], "0")}
            client.call("PATCH", f"{_NAMESPACE}/resourcequotas/q/status", {"status": status}, content_type=MERGE)
    found: list[object] = []
    for pod in pods:
        answer = client.call("POST", f"{_NAMESPACE}/pods", pod)
        if answer.status == 403:
            found.append(str(answer.at("message")).partition("is ")[2])
        else:
            assert answer.status == 201, answer.body
            found.append(_resources(answer.at("spec.containers.0.resources")))
    return found


def _in_cluster(policies: list[Document], pods: list[Document]) -> list[object]:
    """Return the results of a virtual cluster in the same form."""
    cluster = VirtualCluster(RandomStreams(1))
    for policy in policies:
        cluster.apply(decode(policy), 0)
    found: list[object] = []
    for pod in pods:
        try:
            cluster.apply(decode(pod), 0)
        except InputError as problem:
            found.append(problem.got)
            continue
        metadata = pod["metadata"]
        assert isinstance(metadata, dict)
        stored = cluster.store.get(Pod, f"default/{metadata['name']}")
        assert stored is not None
        resources = stored.spec.containers[0].resources
        found.append(_resources({"requests": resources.requests, "limits": resources.limits}))
    return found


def _resources(resources: object) -> Document:
    assert isinstance(resources, dict)
    return {name: dict(sorted(amounts.items())) for name, amounts in resources.items() if amounts}


@pytest.mark.parametrize(
    ("policies", "pods"),
    [
        pytest.param([_limits(_BOUNDS)], [_pod()], id="a container without amounts gets defaults"),
        pytest.param([_limits(_BOUNDS)], [_pod(requests={"cpu": "50m"})], id="a request below the minimum is refused"),
        pytest.param(
            [_limits(_BOUNDS)], [_pod(limits={"cpu": "4", "memory": "2Gi"})], id="limits above the maximum are refused"
        ),
        pytest.param(
            [_limits(_BOUNDS)],
            [_pod(requests={"cpu": "100m"}, limits={"cpu": "1"})],
            id="a limit far above the request is refused",
        ),
        pytest.param(
            [_limits(_POD_BOUNDS)],
            [_pod(limits={"cpu": "4"}), _pod("a", limits={"cpu": "3"}), _pod("b")],
            id="the sum of a pod is bounded",
        ),
        pytest.param(
            [_quota({"pods": "2"})], [_pod("a"), _pod("b"), _pod("c")], id="the third pod of a quota for two is refused"
        ),
        pytest.param(
            [_quota({"requests.cpu": "1", "limits.memory": "1Gi"})],
            [_pod("a"), _pod("b", {"cpu": "600m"}, {"memory": "1Mi"}), _pod("c", {"cpu": "500m"}, {"memory": "2Gi"})],
            id="amounts that a quota counts must be stated, and there must be room",
        ),
        pytest.param(
            [_quota({"pods": "1"}, scopes=["BestEffort"])],
            [_pod("a", {"cpu": "1"}), _pod("b"), _pod("c"), _pod("d", {"memory": "1Mi"})],
            id="a quota for BestEffort pods does not count other pods",
        ),
        pytest.param(
            [_quota({"requests.example.com/gpu": "1"})],
            [
                _pod("a", {"example.com/gpu": "1"}, {"example.com/gpu": "1"}),
                _pod("b", {"example.com/gpu": "1"}, {"example.com/gpu": "1"}),
            ],
            id="extended resources are counted",
        ),
        pytest.param(
            [_limits(_BOUNDS), _quota({"limits.cpu": "3"})],
            [_pod("a"), _pod("b"), _pod("c", limits={"cpu": "500m"})],
            id="defaults from a limit range are counted",
        ),
    ],
)
def test_the_virtual_cluster_and_the_api_apply_limit_ranges_and_quotas_equally(
    policies: list[Document], pods: list[Document]
) -> None:
    assert _in_cluster(policies, pods) == _in_api(policies, pods)


def test_a_replica_set_creates_only_as_many_pods_as_its_quota_allows() -> None:
    cluster = VirtualCluster(RandomStreams(1))
    cluster.apply(decode(_quota({"pods": "2"})), 0)
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"replicas": 5, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    cluster.apply(decode({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r"}, "spec": spec}), 0)
    while (due := cluster.next_wakeup()) is not None and due <= 10**9:
        cluster.advance(due)

    assert len(cluster.store.pods) == 2
    assert "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2" in str(cluster.failures())


def test_deleting_a_pod_frees_quota() -> None:
    cluster = VirtualCluster(RandomStreams(1))
    cluster.apply(decode(_quota({"pods": "1"})), 0)
    cluster.apply(decode(_pod("a")), 0)
    with pytest.raises(InputError, match=r"^Pod default/b is forbidden: exceeded quota: q, "):
        cluster.apply(decode(_pod("b")), 1)

    cluster.delete(Pod, "default/a", 2)
    cluster.apply(decode(_pod("b")), 3)

    assert list(cluster.store.pods) == ["default/b"]
