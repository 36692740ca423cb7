"""Resource quotas in the API: refused requests, and the counts in their status."""

from __future__ import annotations

import pytest

from tests.apiserver.bridge.bridge_fixture import BridgeFixture
from tests.apiserver.client import MERGE, Client, Document

_BASE = "/api/v1/namespaces/default"
_QUOTAS = f"{_BASE}/resourcequotas"
_HARD: Document = {
    "pods": "2",
    "configmaps": "1",
    "count/deployments.apps": "1",
    "services.nodeports": "1",
    "requests.storage": "2Gi",
    "gold.storageclass.storage.k8s.io/requests.storage": "1Gi",
}


def _quota(hard: Document, *, status: bool = True, **spec: object) -> Client:
    client = Client()
    client.call("POST", _QUOTAS, {"kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard, **spec}})
    if status:
        used = dict.fromkeys(hard, "0")
        client.call("PATCH", f"{_QUOTAS}/q/status", {"status": {"hard": hard, "used": used}}, content_type=MERGE)
    return client


def _named(kind: str, name: str, **rest: object) -> Document:
    return {"kind": kind, "metadata": {"name": name}, **rest}


def _pod(name: str) -> Document:
    return _named("Pod", name, spec={"containers": [{"name": "c", "image": "x"}]})


def _claim(name: str, storage: str, storage_class: str) -> Document:
    resources = {"requests": {"storage": storage}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class, "resources": resources}
    return _named("PersistentVolumeClaim", name, spec=spec)


def _service(name: str, kind: str) -> Document:
    return _named("Service", name, spec={"type": kind, "ports": [{"port": 80}]})


_TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
_DEPLOYMENT = {"selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE}


@pytest.mark.parametrize(
    ("path", "documents", "want"),
    [
        pytest.param(
            f"{_BASE}/configmaps",
            [_named("ConfigMap", "a"), _named("ConfigMap", "b")],
            "requested: configmaps=1, used: configmaps=1, limited: configmaps=1",
            id="objects under their old names",
        ),
        pytest.param(
            "/apis/apps/v1/namespaces/default/deployments",
            [_named("Deployment", "a", spec=_DEPLOYMENT), _named("Deployment", "b", spec=_DEPLOYMENT)],
            "requested: count/deployments.apps=1, used: count/deployments.apps=1, limited: count/deployments.apps=1",
            id="objects of a group",
        ),
        pytest.param(
            f"{_BASE}/services",
            [_service("a", "NodePort"), _service("b", "ClusterIP"), _service("c", "NodePort")],
            "requested: services.nodeports=1, used: services.nodeports=1, limited: services.nodeports=1",
            id="node ports of Services",
        ),
        pytest.param(
            f"{_BASE}/persistentvolumeclaims",
            [_claim("a", "1Gi", "gold"), _claim("b", "1Gi", "tin"), _claim("c", "1Gi", "tin")],
            "requested: requests.storage=1Gi, used: requests.storage=2Gi, limited: requests.storage=2Gi",
            id="storage of claims",
        ),
        pytest.param(
            f"{_BASE}/persistentvolumeclaims",
            [_claim("a", "1Gi", "gold"), _claim("b", "1Gi", "gold")],
            "requested: gold.storageclass.storage.k8s.io/requests.storage=1Gi, "
            "used: gold.storageclass.storage.k8s.io/requests.storage=1Gi, "
            "limited: gold.storageclass.storage.k8s.io/requests.storage=1Gi",
            id="storage of one class",
        ),
    ],
)
def test_requests_exceeding_a_quota_are_forbidden(path: str, documents: list[Document], want: str) -> None:
    client = _quota(_HARD)

    answers = [client.call("POST", path, each) for each in documents]

    assert [each.status for each in answers] == [201] * (len(documents) - 1) + [403]
    assert str(answers[-1].at("message")).endswith(f"is forbidden: exceeded quota: q, {want}")


def test_a_quota_without_usage_in_its_status_forbids_creates() -> None:
    client = _quota({"pods": "2"}, status=False)
    client.call("PATCH", f"{_QUOTAS}/q/status", {"status": {"hard": {"pods": "2"}}}, content_type=MERGE)

    answer = client.call("POST", f"{_BASE}/pods", _pod("p"))

    assert answer.at("message") == 'pods "p" is forbidden: status unknown for quota: q, resources: pods'


def test_dry_runs_are_checked_against_quotas_but_not_counted() -> None:
    client = _quota({"pods": "1"})

    dry = [client.call("POST", f"{_BASE}/pods?dryRun=All", _pod("p")).status for _ in range(2)]
    client.call("POST", f"{_BASE}/pods", _pod("p"))
    refused = client.call("POST", f"{_BASE}/pods?dryRun=All", _pod("o"))

    assert (dry, refused.status) == ([201, 201], 403)
    assert client.call("GET", f"{_QUOTAS}/q").at("status.used") == {"pods": "1"}


def test_cached_pods_count_against_quotas() -> None:
    client = Client()
    for number in range(3):
        client.call("POST", f"{_BASE}/pods", _pod(f"before-{number}"))
    hard = {"pods": "2"}
    client.call("POST", _QUOTAS, _named("ResourceQuota", "q", spec={"hard": hard}))
    client.call("PATCH", f"{_QUOTAS}/q/status", {"status": {"hard": hard, "used": {"pods": "0"}}}, content_type=MERGE)

    assert [client.call("POST", f"{_BASE}/pods", _pod(f"p{number}")).status for number in range(3)] == [201, 201, 403]


def test_the_quota_controller_counts_existing_and_deleted_objects() -> None:
    fixture = BridgeFixture()
    fixture.call("POST", f"{_BASE}/pods", _pod("a"))
    fixture.call("POST", _QUOTAS, _named("ResourceQuota", "q", spec={"hard": {"pods": "2", "count/configmaps": "9"}}))
    fixture.run(1)
    counted = fixture.call("GET", f"{_QUOTAS}/q").at("status")
    fixture.call("POST", f"{_BASE}/pods", _pod("b"))
    refused = fixture.call("POST", f"{_BASE}/pods", _pod("c")).status

    fixture.call("DELETE", f"{_BASE}/pods/a")
    fixture.run(1)

    assert counted == {
        "hard": {"pods": "2", "count/configmaps": "9"},
        "used": {"pods": "1", "count/configmaps": "1"},
    }
    assert refused == 403
    assert fixture.call("POST", f"{_BASE}/pods", _pod("c")).status == 201


def test_a_replica_set_creates_only_as_many_pods_as_its_quota_allows() -> None:
    fixture = BridgeFixture()
    fixture.call("POST", _QUOTAS, _named("ResourceQuota", "q", spec={"hard": {"pods": "2"}}))
    fixture.run(1)
    spec = {"replicas": 4, **_DEPLOYMENT}
    fixture.call("POST", "/apis/apps/v1/namespaces/default/replicasets", _named("ReplicaSet", "r", spec=spec))

    fixture.run(5)

    items = fixture.call("GET", f"{_BASE}/pods").at("items")
    assert isinstance(items, list)
    assert len(items) == 2
