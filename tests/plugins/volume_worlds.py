"""Clusters with volumes for tests: short builders of objects, and random clusters for Hypothesis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from hypothesis import strategies as st

from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.state.cluster_state import ClusterState
from tests.oracle.volume_rules import World
from tests.plugins.builders import make_node, make_pod, make_state

Document = dict[str, object]
T = TypeVar("T")

ZONE, BETA_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
SELECTED_NODE = "volume.kubernetes.io/selected-node"


def make(
    kind: str, name: str, body: Document, *, group: str = "storage.k8s.io/v1", meta: Document | None = None
) -> KubernetesObject:
    """Return an object of any kind, with defaults."""
    return default_object(
        decode({"apiVersion": group, "kind": kind, "metadata": {"name": name, **(meta or {})}, **body})
    )


def make_volume(
    name: str,
    size: str = "10Gi",
    *,
    storage_class: str = "",
    phase: str = "Available",
    nodes: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
    modes: Sequence[str] = ("ReadWriteOnce",),
    spec: Document | None = None,
) -> KubernetesObject:
    """Return a volume; if `nodes` is given, only nodes whose label ``host`` has one of these values can use it."""
    spec = dict(spec or {})
    if nodes:
        requirement = {"key": "host", "operator": "In", "values": list(nodes)}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}
    body: Document = {
        "capacity": {"storage": size},
        "accessModes": list(modes),
        "storageClassName": storage_class,
        **spec,
    }
    whole: Document = {"spec": body, "status": {"phase": phase}}
    return make("PersistentVolume", name, whole, group="v1", meta={"labels": dict(labels or {})})


def make_claim(
    name: str = "c",
    size: str = "1Gi",
    *,
    storage_class: str | None = None,
    volume: str = "",
    bound: bool = True,
    annotations: Mapping[str, str] | None = None,
    modes: Sequence[str] = ("ReadWriteOnce",),
    phase: str = "",
    namespace: str = "default",
    meta: Document | None = None,
    spec: Document | None = None,
) -> KubernetesObject:
    """Return a claim; if `volume` is given, the claim is bound to it, unless `bound` is false."""
    notes = {**(BOUND if volume and bound else {}), **(annotations or {})}
    body: Document = {"accessModes": list(modes), "resources": {"requests": {"storage": size}}, **(spec or {})}
    if storage_class is not None:
        body["storageClassName"] = storage_class
    if volume:
        body["volumeName"] = volume
    metadata = {"namespace": namespace, "annotations": notes, "uid": f"uid-{name}", **(meta or {})}
    return make("PersistentVolumeClaim", name, {"spec": body, "status": {"phase": phase}}, group="v1", meta=metadata)


def make_class(
    name: str, provisioner: str = "csi.a", *, delayed: bool = True, topologies: Sequence[Document] = ()
) -> KubernetesObject:
    """Return a storage class with delayed or immediate binding."""
    mode = "WaitForFirstConsumer" if delayed else "Immediate"
    body: Document = {"provisioner": provisioner, "volumeBindingMode": mode, "allowedTopologies": list(topologies)}
    return make("StorageClass", name, body)


def make_csi_node(name: str, limits: Mapping[str, int | None], *, migrated: str = "") -> KubernetesObject:
    """Return a CSINode with the limit of each driver (None for no limit)."""
    drivers = [
        {"name": driver, "nodeID": name, "allocatable": None if limit is None else {"count": limit}}
        for driver, limit in limits.items()
    ]
    notes = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else {}
    return make("CSINode", name, {"spec": {"drivers": drivers}}, meta={"annotations": notes})


def make_capacity(name: str, storage_class: str, topology: Document | None, **amounts: str) -> KubernetesObject:
    """Return a CSIStorageCapacity; `topology` is a label selector."""
    body: Document = {"storageClassName": storage_class, "nodeTopology": topology, **amounts}
    return make("CSIStorageCapacity", name, body, meta={"namespace": "default"})


def using(*claims: str, name: str = "p") -> Pod:
    """Return a pod that uses claims."""
    sources: list[Document] = [{"persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    return with_volumes(*sources, name=name)


def with_volumes(*sources: Document, name: str = "p") -> Pod:
    """Return a pod with volumes ``v0``, ``v1``, ... of these sources."""
    return make_pod(name, volumes=[{"name": f"v{number}", **source} for number, source in enumerate(sources)])


def put(state: ClusterState, *objects: KubernetesObject) -> ClusterState:
    """Put objects into the catalog of a state; return the state."""
    for item in objects:
        state.catalog.put(item.key, item)
    return state


def state_of(world: World) -> ClusterState:
    """Return a cluster state with the content of a world."""
    return put(make_state(world.nodes, world.pods), *world.objects)


DISKS: list[Document] = [
    {"gcePersistentDisk": {"pdName": "d", "readOnly": True}},
    {"gcePersistentDisk": {"pdName": "d"}},
    {"awsElasticBlockStore": {"volumeID": "d", "readOnly": True}},
    {"iscsi": {"targetPortal": "t", "iqn": "i", "lun": 0, "readOnly": True}},
    {"iscsi": {"targetPortal": "t", "iqn": "i", "lun": 1}},
    {"rbd": {"monitors": ["m1", "m2"], "image": "i", "readOnly": True}},
    {"rbd": {"monitors": ["m2"], "image": "i"}},
    {"emptyDir": {}},
]


@st.composite
def random_volumes(
    draw: st.DrawFn, name: str, number: int, nodes: Sequence[str], claims: Sequence[str]
) -> KubernetesObject:
    """Draw a volume that some or all nodes can use, and that may be reserved for a claim."""

    def one(*values: T) -> T:
        found: T = draw(st.sampled_from(values))
        return found

    reference: Document = {}
    if one(True, False, False, False):
        reference = {"claimRef": {"namespace": "default", "name": one(*claims)}}
    source: Document = one(
        {"csi": {"driver": "csi.a", "volumeHandle": f"h{number % 3}"}},
        {"csi": {"driver": "csi.b", "volumeHandle": "h"}},
        {"local": {"path": "/x"}},
    )
    return make_volume(
        name,
        one("1Gi", "2Gi", "2048Mi", "3Gi"),
        storage_class=one("fast", "local"),
        phase=one("Available", "Available", "Released"),
        nodes=[node for node in nodes if draw(st.booleans())],
        labels={one(ZONE, BETA_ZONE, "tier"): one("a", "b", "a__b", "a__")},
        modes=one(["ReadWriteOnce"], ["ReadWriteOnce", "ReadWriteMany"]),
        spec={**reference, **source},
    )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Draw a small cluster in which binding often fails.

    All claims exist, and none is in a state that controllers would have bound.
    """

    def one(*values: T) -> T:
        found: T = draw(st.sampled_from(values))
        return found

    def some(values: Iterable[T]) -> list[T]:
        return [item for item in values if draw(st.booleans())]

    names = [f"n{number}" for number in range(draw(st.integers(1, 4)))]
    nodes = []
    objects: list[KubernetesObject] = []
    for name in names:
        zone = {one(ZONE, BETA_ZONE): one("a", "b")} if draw(st.booleans()) else {}
        nodes.append(make_node(name, labels={"host": name, **zone}))
        limits: list[int | None] = [None, 0, 1, 2]
        if draw(st.booleans()):
            objects.append(make_csi_node(name, {driver: one(*limits) for driver in some(("csi.a", "csi.b"))}))
    term: Document = {"matchLabelExpressions": [{"key": "host", "values": ["n0", "n2"]}]}
    objects.append(make_class("fast", "csi.a", topologies=[term] if draw(st.booleans()) else []))
    objects.append(make_class("local", "kubernetes.io/no-provisioner"))
    if draw(st.booleans()):
        objects.append(make("CSIDriver", "csi.a", {"spec": {"storageCapacity": draw(st.booleans())}}))
    for number in range(draw(st.integers(0, 2))):
        topology: Document = one({}, {"matchLabels": {"host": "n0"}}, {"matchLabels": {ZONE: "a"}})
        objects.append(make_capacity(f"k{number}", "fast", topology, capacity=one("1Gi", "3Gi")))
    claims = [f"c{number}" for number in range(draw(st.integers(1, 4)))]
    volumes = [f"pv{number}" for number in range(draw(st.integers(0, 5)))]
    objects += [draw(random_volumes(name, number, names, claims)) for number, name in enumerate(volumes)]
    for name in claims:
        annotations = {SELECTED_NODE: one(*names, "gone")} if one(True, False, False, False) else {}
        objects.append(
            make_claim(
                name,
                one("1Gi", "2Gi", "3Gi"),
                storage_class=one("fast", "local"),
                volume=one("", *volumes, "gone"),
                annotations=annotations,
                modes=one(["ReadWriteOnce"], ["ReadWriteMany"], ["ReadWriteOncePod"]),
                spec={"selector": {"matchLabels": {"tier": "a"}}} if one(True, False, False) else {},
            )
        )
    for number in range(draw(st.integers(0, 2))):
        source = {"persistentVolumeName": one(*volumes, "gone")}
        attachment = {"attacher": one("csi.a", "csi.b"), "nodeName": one(*names), "source": source}
        objects.append(make("VolumeAttachment", f"va{number}", {"spec": attachment}))

    def sources() -> list[Document]:
        used: list[Document] = [{"persistentVolumeClaim": {"claimName": name}} for name in some(claims)]
        return [*used, *([one(*DISKS)] if draw(st.booleans()) else [])]

    pods = [(with_volumes(*sources(), name=f"q{number}"), one(*names)) for number in range(draw(st.integers(0, 3)))]
    return World(nodes, pods, objects, with_volumes(*sources()))
