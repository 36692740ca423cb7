"""Small clusters for the tests of `bayplan.answers`."""

from __future__ import annotations

from bayplan.answers.question_cluster import QuestionCluster
from bayplan.app.scheduler_setup import read_setup
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.testing.builders import PodBuilder, make_node, make_pod
from bayplan.testing.object_builders import make_object


def cluster_of(*items: KubernetesObject, seed: int = 0) -> QuestionCluster:
    """Return the cluster of these objects, with the default scheduler."""
    return QuestionCluster(items, read_setup(), seed=seed)


def node(name: str, *, zone: str = "a", cpu: str = "4", memory: str = "8Gi", pool: str = "") -> Node:
    """Return a node; `pool` adds a label of that name."""
    made = make_node(name).capacity(cpu=cpu, memory=memory, pods="20").zone(zone)
    return (made.label({"pool": pool}) if pool else made).obj()


def running(
    name: str, on: str, *, cpu: str = "1", owner: str = "web", kind: str = "ReplicaSet", priority: int = 0
) -> PodBuilder:
    """Return the builder of a pod that has been running on the node `on` since the start of 2026."""
    made = make_pod(name).req(cpu=cpu, memory="256Mi").node(on).label({"app": owner}).priority(priority)
    made.started("2026-01-01T00:00:00Z")
    return made.owner(kind, owner) if kind else made


def waiting(name: str, *, cpu: str = "1", owner: str = "") -> Pod:
    """Return a pod that has no node yet."""
    made = make_pod(name).req(cpu=cpu, memory="256Mi").label({"app": owner or name}).priority(0)
    return (made.owner("ReplicaSet", owner) if owner else made).obj()


_SLICE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "a-gpus"},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "a",
        "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0"}],
    },
}
_REQUESTS = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
_RESULT = {"request": "gpu", "driver": "gpu.example.com", "pool": "a", "device": "gpu-0"}
_DEVICES = [
    {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
    _SLICE,
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "wanted", "namespace": "default", "uid": "uid-wanted"},
        "spec": _REQUESTS,
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "held", "namespace": "default", "uid": "uid-held"},
        "spec": _REQUESTS,
        "status": {
            "allocation": {"devices": {"results": [_RESULT]}},
            "reservedFor": [{"resource": "pods", "name": "holder", "uid": "uid-holder"}],
        },
    },
]


def device_objects() -> list[KubernetesObject]:
    """Return objects of dynamic resource allocation.

    Node a has one device; it is allocated to the claim ``held``, which is reserved for the pod ``holder``. The claim
    ``wanted`` is not allocated.
    """
    return [make_object(document) for document in _DEVICES]
