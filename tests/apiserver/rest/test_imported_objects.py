"""Writes of whole objects equal a create and an update of the status, in one write."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from bayplan.apiserver.model.errors import ApiError
from bayplan.apiserver.model.requests import RequestInfo, WriteOptions
from bayplan.apiserver.rest.imported_objects import create_with_status
from bayplan.apiserver.store.item import Write
from bayplan.base.plain_data import part
from tests.apiserver.client import Client, Document, pod

RUNNING: Document = {
    "phase": "Running",
    "startTime": "2026-01-01T00:00:00Z",
    "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None}],
    "podIP": "10.1.0.7",
    "podIPs": [{"ip": "10.1.0.7"}],
}


def kept_pod(name: str) -> Document:
    document = pod(name)
    part(document, "spec")["nodeName"] = "n"
    return {**document, "status": RUNNING}


def claim(name: str) -> Document:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "v"}
    status = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    metadata = {"name": name, "labels": {"app": "db"}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec, "status": status}


def budget(name: str) -> Document:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    status = {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}
    metadata = {"name": name}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def make(client: Client, group: str, plural: str, document: Document) -> Document:
    resource = client.backend.registry.find(group, "v1", plural)
    assert resource is not None
    info = RequestInfo("create", resource, "default" if resource.namespaced else "")
    return create_with_status(client.backend, info, document, WriteOptions(manager="test")).document


def without_identity(document: Document) -> Document:
    left = {name: value for name, value in document.items() if name not in ("kind", "apiVersion")}
    hidden = ("uid", "resourceVersion")
    return {
        **left,
        "metadata": {name: value for name, value in part(document, "metadata").items() if name not in hidden},
    }


@pytest.mark.parametrize(
    ("group", "plural", "path", "document"),
    [
        pytest.param("", "pods", "/api/v1/namespaces/default/pods", kept_pod, id="a pod that runs"),
        pytest.param("", "pods", "/api/v1/namespaces/default/pods", pod, id="a pod without status"),
        pytest.param(
            "", "persistentvolumeclaims", "/api/v1/namespaces/default/persistentvolumeclaims", claim, id="a bound claim"
        ),
        pytest.param(
            "policy",
            "poddisruptionbudgets",
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            budget,
            id="a budget",
        ),
    ],
)
def test_create_with_status_equals_a_create_and_a_status_update(
    group: str, plural: str, path: str, document: Callable[[str], Document]
) -> None:
    client = Client()
    made = make(client, group, plural, document("whole"))
    separate = client.post(path, document("whole2")).document
    if "status" in document("x"):
        separate = client.put(f"{path}/whole2/status", {**separate, "status": document("x")["status"]}).document
    cast("Document", separate["metadata"])["name"] = "whole"
    assert without_identity(made) == without_identity(separate)


def test_create_with_status_emits_a_single_watch_event() -> None:
    client = Client()
    seen: list[Write] = []
    client.store.listen("pods", seen.append, lambda: None)
    make(client, "", "pods", kept_pod("p"))
    assert [(each.type, each.new.fields["status.phase"]) for each in seen] == [("ADDED", "Running")]


@pytest.mark.parametrize(
    ("conditions", "want"),
    [
        pytest.param([{"type": "Ready", "status": "True"}], None, id="a ready node is not tainted"),
        pytest.param([{"type": "Ready", "status": "False"}], None, id="a node that is not ready keeps its own taints"),
        pytest.param(
            [],
            [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}],
            id="a node of unknown readiness is tainted",
        ),
    ],
)
def test_nodes_without_a_ready_condition_get_the_not_ready_taint(conditions: list[Document], want: object) -> None:
    document: Document = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"conditions": conditions},
    }
    assert part(make(Client(), "", "nodes", document), "spec").get("taints") == want


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param({"metadata": {"name": "B"}}, 422, id="an invalid name"),
        pytest.param({"metadata": {"name": "there"}}, 409, id="a name in use"),
        pytest.param({"metadata": {"name": "p", "namespace": "else"}}, 400, id="another namespace"),
        pytest.param({"spec": {"containers": []}}, 422, id="a spec that is not valid"),
        pytest.param({"status": {"phase": "Running", "nominatedNodeName": "m"}}, 422, id="a status that is not valid"),
        pytest.param({"status": {"phase": 7}}, 400, id="a status of another type"),
    ],
)
def test_invalid_whole_objects_are_refused_without_being_stored(change: Document, want: int) -> None:
    client = Client()
    make(client, "", "pods", kept_pod("there"))
    revision = client.store.revision
    with pytest.raises(ApiError) as refused:
        make(client, "", "pods", {**kept_pod("p"), **change})
    assert refused.value.code == want
    assert client.store.revision == revision
