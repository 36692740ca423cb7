"""Deletions of single objects: finalizers, propagation policies and dry runs."""

from __future__ import annotations

import pytest

from bayplan.base.plain_data import Document
from tests.apiserver.client import MERGE, PODS, Client, pod

MAPS = "/api/v1/namespaces/default/configmaps"
EVENTS = "/api/v1/namespaces/default/events"
FOREGROUND = "foregroundDeletion"


@pytest.mark.parametrize(
    ("finalizers", "policy", "want"),
    [
        pytest.param([FOREGROUND], "Background", "ConfigMap", id="the last finalizer would be removed: no values"),
        pytest.param([FOREGROUND], "Foreground", "ConfigMap", id="the finalizer stays"),
        pytest.param([], "Background", "Status", id="no finalizers"),
    ],
)
def test_dry_run_of_a_deletion_that_removes_finalizers(finalizers: list[str], policy: str, want: str) -> None:
    client = Client()
    client.post(MAPS, {"metadata": {"name": "m", "finalizers": finalizers}, "data": {"a": "1"}})
    answer = client.delete(f"{MAPS}/m", {"dryRun": ["All"], "propagationPolicy": policy})
    assert (answer.status, answer.at("kind")) == (200, want)
    if want == "ConfigMap" and policy == "Background":
        assert answer.document == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}}
    assert client.get(f"{MAPS}/m").at("metadata.deletionTimestamp") is None


@pytest.mark.parametrize("options", [{"propagationPolicy": "Foreground"}, {"orphanDependents": True}], ids=str)
def test_propagation_policies_have_no_effect_on_events(options: Document) -> None:
    client = Client()
    client.post(
        EVENTS, {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}}
    )
    assert client.delete(f"{EVENTS}/e", options).at("kind") == "Status"
    assert client.get(f"{EVENTS}/e").status == 404


def test_deletion_of_a_namespace_removes_its_finalizer_of_another_policy() -> None:
    client = Client()
    client.post("/api/v1/namespaces", {"metadata": {"name": "n", "finalizers": [FOREGROUND]}})
    answer = client.delete("/api/v1/namespaces/n", {"propagationPolicy": "Background"})
    assert answer.at("metadata.finalizers") is None
    assert answer.at("status.phase") == "Terminating"


def eviction(**options: object) -> Document:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}, "deleteOptions": options}


def test_a_second_eviction_of_a_terminating_pod_does_not_change_it() -> None:
    client = Client()
    client.post(PODS, pod("p", lambda new: new["metadata"].update(finalizers=["example.com/f"])))  # type: ignore[attr-defined]
    assert client.post(f"{PODS}/p/eviction", eviction()).status == 201
    before = client.get(f"{PODS}/p").document
    assert client.post(f"{PODS}/p/eviction", eviction()).status == 201
    assert client.get(f"{PODS}/p").document == before


def test_an_eviction_ignores_an_empty_resource_version() -> None:
    client = Client()
    client.post(PODS, pod("p"))
    assert client.post(f"{PODS}/p/eviction", eviction(preconditions={"resourceVersion": ""})).status == 201
    assert client.get(f"{PODS}/p").status == 404


def test_objects_that_outlive_their_namespace_can_only_be_deleted() -> None:
    client = Client()
    maps = "/api/v1/namespaces/n/configmaps"
    client.post("/api/v1/namespaces", {"metadata": {"name": "n"}})
    client.post(maps, {"metadata": {"name": "m"}})
    client.delete("/api/v1/namespaces/n")
    finalized = {"metadata": {"name": "n"}, "spec": {"finalizers": []}}
    assert client.put("/api/v1/namespaces/n/finalize", finalized).status == 200
    answer = client.patch(f"{maps}/m", {"metadata": {"labels": {"a": "b"}}})
    assert (answer.status, answer.at("message")) == (404, 'namespaces "n" not found')
    assert client.delete(f"{maps}/m").status == 200


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        pytest.param(
            {"preconditions": {"uid": "x"}}, 429, "would violate the pod's disruption budget", id="another uid"
        ),
        pytest.param({"preconditions": {"resourceVersion": "1"}}, 201, "", id="an old version is replaced"),
        pytest.param(
            {"preconditions": {"uid": "x", "resourceVersion": "1"}}, 409, "UID in the precondition (x)", id="both"
        ),
        pytest.param(
            {"ignoreStoreReadErrorWithClusterBreakingPotential": True},
            422,
            "can not be set for pod eviction",
            id="forced",
        ),
    ],
)
def test_evictions_of_unhealthy_pods_with_preconditions(options: Document, status: int, message: str) -> None:
    client = Client()
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    client.post(budgets, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {}}})
    client.patch(f"{budgets}/b/status", {"status": {"observedGeneration": 1, "currentHealthy": 2, "desiredHealthy": 1}})
    client.post(PODS, pod("p"))
    client.patch(f"{PODS}/p/status", {"status": {"phase": "Running"}})
    answer = client.post(f"{PODS}/p/eviction", eviction(**options))
    assert answer.status == status
    assert message in str(answer.at("message") or "")


def _emptied_namespace(client: Client, *finalizers: str) -> str:
    """Create a namespace whose spec has no finalizers, and return its path."""
    place = "/api/v1/namespaces/n"
    client.post("/api/v1/namespaces", {"metadata": {"name": "n", "finalizers": list(finalizers)}})
    emptied: Document = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "n", "finalizers": [*finalizers]},
    }
    assert client.put(f"{place}/finalize", emptied).status == 200
    return place


def test_a_second_deletion_of_a_namespace_without_finalizers_in_its_spec_sets_a_grace_period() -> None:
    client = Client()
    place = _emptied_namespace(client, "example.com/f")
    assert client.delete(place).at("metadata.deletionGracePeriodSeconds") is None
    answer = client.delete(place, {"propagationPolicy": "Orphan"})
    assert answer.at("metadata.deletionGracePeriodSeconds") == 0
    assert answer.at("metadata.finalizers") == ["example.com/f", "orphan"]


def test_a_patch_without_changes_removes_a_terminating_namespace_without_finalizers() -> None:
    client = Client()
    place = _emptied_namespace(client)
    assert client.delete(place).at("status.phase") == "Terminating"
    assert client.get(place).status == 200
    assert client.patch(place, {}, MERGE).status == 200
    assert client.get(place).status == 404
