"""The workload of a pod is the topmost of its controlling owners, in whatever order a dump lists them."""

from __future__ import annotations

from itertools import permutations

import pytest
from msgspec.structs import replace

from bayplan.base.random_streams import RandomStreams
from bayplan.cluster.store import ObjectStore
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.sim.timelines import Timelines
from bayplan.sim.workloads import Workloads
from bayplan.testing.builders import make_node
from tests.analysis.runs import run

Document = dict[str, object]


def owned(kind: str, name: str, owner: tuple[str, str] | None, **spec: object) -> Document:
    metadata: Document = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    if owner is not None:
        reference = {"apiVersion": "apps/v1", "kind": owner[0], "name": owner[1], "uid": f"uid-{owner[1]}"}
        metadata["ownerReferences"] = [{**reference, "controller": True}]
    version = "v1" if kind == "Pod" else "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SELECTOR = {"matchLabels": {"app": "web"}}
OBJECTS = [
    owned("Pod", "web-1-x", ("ReplicaSet", "web-1"), nodeName="n", containers=[{"name": "c", "image": "i"}]),
    owned("ReplicaSet", "web-1", ("Deployment", "web"), replicas=1, selector=SELECTOR, template=TEMPLATE),
    owned("Deployment", "web", None, replicas=1, selector=SELECTOR, template=TEMPLATE),
]


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_a_pod_belongs_to_its_deployment_in_any_input_order(order: tuple[int, ...]) -> None:
    made: list[KubernetesObject] = [decode(OBJECTS[place], where="test") for place in order]
    result = run(make_node("n").capacity(cpu="4").obj(), *made)
    workload = next(each.workload for each in result.pods if each.key == "default/web-1-x")
    assert workload == "Deployment default/web"


def make_store() -> tuple[ObjectStore, Pod, KubernetesObject]:
    """Return a store with a ReplicaSet that a Deployment controls, a pod of the ReplicaSet, and the ReplicaSet."""
    store = ObjectStore(RandomStreams(1).stream("uids"))
    pod, replica_set = (decode(document, where="test") for document in OBJECTS[:2])
    assert isinstance(pod, Pod)
    return store, pod, store.add(replica_set, 0)


def test_new_pods_of_a_replica_set_that_lost_its_deployment_belong_to_the_replica_set() -> None:
    store, pod, replica_set = make_store()
    timelines = Timelines(store)
    timelines.record(None, replica_set, 0)
    timelines.record(None, pod, 0)
    alone = store.update(replace(replica_set, metadata=replace(replica_set.metadata, owner_references=())))
    timelines.record(replica_set, alone, 1)
    timelines.record(None, replace(pod, metadata=replace(pod.metadata, name="late")), 2)
    assert [each.workload for each in timelines.pods] == ["Deployment default/web", "ReplicaSet default/web-1"]


def test_workloads_of_stored_owners_are_looked_up_once() -> None:
    store, pod, replica_set = make_store()
    workloads = Workloads(store)
    found = [workloads.of(pod)]
    store.remove(type(replica_set), replica_set.key)
    found.append(workloads.of(pod))
    workloads.forget(replica_set)
    found.append(workloads.of(pod))
    known = ("Deployment default/web", True)
    assert found == [known, known, ("ReplicaSet default/web-1", False)]
