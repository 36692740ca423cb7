"""Adoption of objects without a controller, and what the controllers remember about them."""

from __future__ import annotations

import gc
from types import ModuleType
from typing import cast
from weakref import WeakSet

import pytest

from bayplan.cluster.source_copies import SOURCE_UID
from bayplan.controllers import adoption, daemon_set_state, stateful_set
from bayplan.controllers.adoption import SeenObjects
from bayplan.controllers.revisions import RevisionHistory
from bayplan.objects.meta import KubernetesObject, ObjectMeta
from bayplan.objects.workloads import ReplicaSet
from tests.apiserver.bridge.bridge_fixture import API, APPS, BATCH, BridgeFixture, job, template, workload
from tests.apiserver.client import Document

PODS = f"{API}/namespaces/default/pods"
CONTROLLERS = f"{API}/namespaces/default/replicationcontrollers"


def replica_set(uid: str) -> ReplicaSet:
    return ReplicaSet(metadata=ObjectMeta(name="web", namespace="default", uid=uid))


def test_an_object_is_new_until_it_is_noted_and_after_it_is_recreated() -> None:
    known = SeenObjects()
    first, second = replica_set("1"), replica_set("2")
    assert known.is_new(first)
    assert known.is_new(first), "until it is noted"
    known.note(first)
    assert not known.is_new(first)
    assert known.is_new(second)
    known.note(second)
    assert len(known) == 1
    known.forget("default/web")
    assert known.is_new(second)
    assert len(known) == 0


def test_controllers_forget_deleted_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    memories: list[SeenObjects] = []

    class RecordingSeenObjects(SeenObjects):
        def __init__(self) -> None:
            super().__init__()
            memories.append(self)

    monkeypatch.setattr(adoption, "SeenObjects", RecordingSeenObjects)
    fixture = BridgeFixture(nodes=1)
    for number in range(3):
        fixture.post(f"{APPS}/deployments", workload("Deployment", f"web-{number}", {"replicas": 1}))
        fixture.run()
    assert sum(map(len, memories)) >= 3
    for number in range(3):
        fixture.delete(f"{APPS}/deployments/web-{number}")
    fixture.run(60)
    assert sum(map(len, memories)) == 0


@pytest.mark.parametrize(("kind", "module"), [("StatefulSet", stateful_set), ("DaemonSet", daemon_set_state)])
def test_controllers_forget_the_revisions_of_deleted_objects(
    kind: str, module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    histories: WeakSet[RevisionHistory] = WeakSet()

    class RecordedHistory(RevisionHistory):
        def __init__(self) -> None:
            super().__init__()
            histories.add(self)

    monkeypatch.setattr(module, "RevisionHistory", RecordedHistory)
    fixture, plural = BridgeFixture(nodes=1), f"{kind.lower()}s"
    for number in range(3):
        spec: Document = {} if kind == "DaemonSet" else {"replicas": 1}
        fixture.post(f"{APPS}/{plural}", workload(kind, f"web-{number}", spec))
        fixture.run()
    assert len(histories) == 3
    for number in range(3):
        fixture.delete(f"{APPS}/{plural}/web-{number}")
    fixture.run(60)
    gc.collect()
    assert len(histories) == 0


def test_a_replica_set_adopts_no_copy_of_a_pod() -> None:
    fixture = BridgeFixture(nodes=1)
    metadata: Document = {"name": "copy", "labels": {"app": "x"}, "annotations": {SOURCE_UID: "1"}}
    spec: Document = {"containers": [{"name": "c", "image": "app:1"}]}
    fixture.post(f"{API}/namespaces/default/pods", {"metadata": metadata, "spec": spec})
    fixture.run()
    fixture.post(f"{APPS}/replicasets", workload("ReplicaSet", "web", {"replicas": 1}))
    fixture.run()
    assert len(fixture.names("pods")) == 2
    assert fixture.bridge.store.pods["default/copy"].metadata.owner_references == ()


def test_a_stateful_set_adopts_no_copy_of_a_pod() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(PODS, template(name="web-0", annotations={SOURCE_UID: "1"}))
    fixture.post(f"{APPS}/statefulsets", workload("StatefulSet", "web", {"replicas": 1, "serviceName": "web"}))
    fixture.run(5)
    metadata = fixture.bridge.store.pods["default/web-0"].metadata
    assert (metadata.owner_references, metadata.labels) == ((), {"app": "x"})
    assert list(fixture.bridge.failures()) == ["StatefulSet default/web"]


def replication_controller(replicas: int) -> Document:
    spec = {"replicas": replicas, "selector": {"app": "x"}, "template": template()}
    return {"metadata": {"name": "web"}, "spec": spec}


WORKLOADS: list[tuple[str, Document]] = [
    (CONTROLLERS, replication_controller(1)),
    (f"{APPS}/statefulsets", workload("StatefulSet", "web", {"replicas": 1, "serviceName": "web"})),
    (f"{APPS}/daemonsets", workload("DaemonSet", "web")),
    (f"{BATCH}/jobs", job("web", "600s")),
]
# The pods, failures and count after the only pod is released. The pods of a StatefulSet have fixed names, so none is created.
RELEASED: list[tuple[int, list[str], tuple[str, int]]] = [
    (2, [], ("replicas", 1)),
    (1, ["StatefulSet default/web"], ("replicas", 0)),
    (2, [], ("currentNumberScheduled", 1)),
    (2, [], ("active", 1)),
]
KINDS = ["ReplicationController", "StatefulSet", "DaemonSet", "Job"]


def owner_of(fixture: BridgeFixture, name: str) -> str:
    controller = fixture.bridge.store.pods[f"default/{name}"].metadata.controller()
    return controller.kind if controller is not None else ""


@pytest.mark.parametrize(("path", "document"), WORKLOADS, ids=KINDS)
def test_a_pod_that_loses_its_owner_but_matches_is_adopted_again(path: str, document: Document) -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(path, document)
    fixture.run(5)
    (name,) = fixture.names("pods")
    owner = owner_of(fixture, name)
    before = fixture.get(f"{PODS}/{name}").at("metadata.finalizers")
    fixture.patch(f"{PODS}/{name}", {"metadata": {"ownerReferences": None}})
    fixture.run(5)
    assert (fixture.names("pods"), owner_of(fixture, name)) == ([name], owner)
    assert fixture.get(f"{PODS}/{name}").at("metadata.finalizers") == before


@pytest.mark.parametrize(
    ("path", "document", "want_pods", "want_failures", "want_count"),
    [(*each, *want) for each, want in zip(WORKLOADS, RELEASED, strict=True)],
    ids=KINDS,
)
def test_a_pod_that_no_longer_matches_is_released(
    path: str, document: Document, want_pods: int, want_failures: list[str], want_count: tuple[str, int]
) -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(path, document)
    fixture.run(5)
    (name,) = fixture.names("pods")
    labels = {"app": None, "batch.kubernetes.io/controller-uid": None}
    fixture.patch(f"{PODS}/{name}", {"metadata": {"labels": labels}})
    fixture.run(5)
    assert owner_of(fixture, name) == ""
    assert len(fixture.names("pods")) == want_pods
    assert list(fixture.bridge.failures()) == want_failures
    field, count = want_count
    assert fixture.get(f"{path}/web").at(f"status.{field}") == count


def test_a_stateful_set_adopts_and_deletes_pods_beyond_its_replicas_but_only_those_with_its_name() -> None:
    fixture = BridgeFixture(nodes=1)
    for name in ("web-1", "web-7", "web-x", "other-2"):
        fixture.post(PODS, template(name=name))
    spec: Document = {"replicas": 2, "serviceName": "web", "updateStrategy": {"type": "OnDelete"}}
    fixture.post(f"{APPS}/statefulsets", workload("StatefulSet", "web", spec))
    fixture.run(60)
    assert fixture.names("pods") == ["other-2", "web-0", "web-1", "web-x"]
    assert [owner_of(fixture, name) for name in fixture.names("pods")] == ["", "StatefulSet", "StatefulSet", ""]
    labels = cast("dict[str, Document]", fixture.get(f"{PODS}/web-1").document["metadata"])["labels"]
    assert labels == {"app": "x", "apps.kubernetes.io/pod-index": "1", "statefulset.kubernetes.io/pod-name": "web-1"}
    assert "SuccessfulUpdate: Update Pod web-1 in StatefulSet web successful" in fixture.reported("StatefulSet")


def test_a_replication_controller_adopts_and_releases_pods_when_its_selector_changes() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(PODS, template(name="plain", labels={"app": "y"}))
    fixture.post(CONTROLLERS, replication_controller(2))
    fixture.run()
    former = [name for name in fixture.names("pods") if name != "plain"]
    spec = {"selector": {"app": "y"}, "template": {"metadata": {"labels": {"app": "y"}}}}
    fixture.patch(f"{CONTROLLERS}/web", {"spec": spec})
    fixture.run()
    assert [owner_of(fixture, name) for name in former] == ["", ""]
    assert owner_of(fixture, "plain") == "ReplicationController"
    assert len(fixture.names("pods")) == 4


def test_a_daemon_set_adopts_ended_pods_but_a_replica_set_does_not() -> None:
    fixture = BridgeFixture(nodes=1)
    for name in ("one", "two"):
        fixture.post(PODS, template(name=name, labels={"app": name}, annotations={"bayplan.io/run-time": "1s"}))
        fixture.patch(f"{PODS}/{name}/status", {"status": {"phase": "Failed"}})
    fixture.run(5)
    for kind, name in (("ReplicaSet", "one"), ("DaemonSet", "two")):
        spec: Document = {"selector": {"matchLabels": {"app": name}}}
        fixture.post(f"{APPS}/{kind.lower()}s", workload(kind, name, spec, labels={"app": name}))
    fixture.run()
    assert owner_of(fixture, "one") == ""
    assert "two" not in fixture.names("pods")


def test_a_daemon_set_adopts_but_does_not_count_a_pod_without_a_node() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/daemonsets", workload("DaemonSet", "web"))
    fixture.run(5)
    fixture.post(PODS, template(name="plain"))
    fixture.run(5, schedule=False)
    assert owner_of(fixture, "plain") == "DaemonSet"
    assert fixture.get(f"{APPS}/daemonsets/web").at("status.currentNumberScheduled") == 1
    assert len(fixture.names("pods")) == 2


def test_a_job_of_another_controller_neither_adopts_nor_releases_pods() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(PODS, template(name="plain"))
    document = job("other", "600s")
    selected: Document = {"manualSelector": True, "selector": {"matchLabels": {"app": "x"}}}
    document["spec"] = {**cast("Document", document["spec"]), **selected, "managedBy": "example.com/other"}
    owner: Document = {"apiVersion": "batch/v1", "kind": "Job", "name": "other", "controller": True}
    owner["uid"] = fixture.post(f"{BATCH}/jobs", document).at("metadata.uid")
    owned = template(name="owned", labels={"app": "y"})
    owned["metadata"] = {**cast("Document", owned["metadata"]), "ownerReferences": [owner]}
    fixture.post(PODS, owned)
    fixture.run(5)
    fixture.patch(f"{PODS}/owned", {"metadata": {"labels": {"app": "z"}}})
    fixture.run(5)
    assert (owner_of(fixture, "plain"), owner_of(fixture, "owned")) == ("", "Job")
    fixture.delete(f"{PODS}/plain")
    fixture.run(60)
    assert fixture.names("pods") == ["owned"]


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param({"matchLabels": {"app": "x", "tier": "front"}}, id="by labels"),
        pytest.param(
            {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["front"]}]}, id="by expressions"
        ),
        pytest.param(
            {
                "matchLabels": {"app": "x"},
                "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["back"]}],
            },
            id="by both",
        ),
    ],
)
def test_a_workload_adopts_pods_that_are_older_newer_or_get_its_labels_later(selector: Document) -> None:
    fixture = BridgeFixture(nodes=1)
    labels = {"app": "x", "tier": "front"}
    fixture.post(PODS, template(name="older", labels=labels))
    fixture.post(PODS, template(name="later", labels={"app": "x", "tier": "back"}))
    document = workload("ReplicaSet", "web", {"selector": selector, "replicas": 3}, labels=labels)
    fixture.post(f"{APPS}/replicasets", document)
    fixture.post(PODS, template(name="newer", labels=labels))
    fixture.run(schedule=False)
    assert [owner_of(fixture, name) for name in ("older", "later", "newer")] == ["ReplicaSet", "", "ReplicaSet"]
    fixture.patch(f"{PODS}/later", {"metadata": {"labels": {"tier": "front"}}})
    fixture.run(schedule=False)
    assert owner_of(fixture, "later") == "ReplicaSet"


def test_jobs_and_pods_without_common_labels_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[object] = []
    match = adoption.Selectors.match

    def recording_match(selectors: adoption.Selectors, owner: adoption.Owner, item: KubernetesObject) -> bool:
        compared.append((owner, item))
        return match(selectors, owner, item)

    monkeypatch.setattr(adoption.Selectors, "match", recording_match)
    fixture = BridgeFixture(nodes=1)
    for number in range(3):
        fixture.post(PODS, template(name=f"pod-{number}"))
        fixture.post(f"{BATCH}/jobs", job(f"job-{number}", spec={"suspend": True}))
        fixture.run(schedule=False)
    assert compared == []
    fixture.post(f"{APPS}/daemonsets", workload("DaemonSet", "web"))
    fixture.run(schedule=False)
    assert compared != []
