"""The synced kinds: everything that scheduling reads.

These include the workloads whose selectors default spreading uses; their copies are written so that no controller acts
on them (`bayplan.sync.translation`).
"""

from __future__ import annotations

from typing import NamedTuple

_RESOURCE = "resource.k8s.io"
_STORAGE = "storage.k8s.io"
_WORKLOADS = ("replicationcontrollers", "replicasets", "statefulsets")


class FollowedKind(NamedTuple):
    """One synced kind.

    Attributes:
        kind, plural, group, version: the names of the kind.
        namespaced: whether its objects are in namespaces.
        has_status: whether the source's status is copied; it is written through the subresource.
        rank: the position in the order of creation: objects of a lower rank are created first.
    """

    kind: str
    plural: str
    group: str
    version: str
    namespaced: bool
    has_status: bool
    rank: int

    @property
    def api_version(self) -> str:
        """``group/version``, or the version alone in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of the collection (in a namespace, or in all), of an object, or of a subresource of it."""
        path = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if namespace and self.namespaced:
            path += f"/namespaces/{namespace}"
        path += f"/{self.plural}"
        if name:
            path += f"/{name}"
        return f"{path}/{subresource}" if subresource else path


class ObjectRef(NamedTuple):
    """The name of an object: plural of its kind, namespace ("" for none), name."""

    plural: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.plural} {self.namespace}/{self.name}" if self.namespace else f"{self.plural} {self.name}"


def _kinds() -> tuple[FollowedKind, ...]:
    # In the order of dependencies. Claims that a pod owns wait for the pod regardless of this order.
    rows = (
        ("Namespace", "namespaces", "", "v1", False, False),
        ("PriorityClass", "priorityclasses", "scheduling.k8s.io", "v1", False, False),
        ("RuntimeClass", "runtimeclasses", "node.k8s.io", "v1", False, False),
        ("StorageClass", "storageclasses", _STORAGE, "v1", False, False),
        ("CSIDriver", "csidrivers", _STORAGE, "v1", False, False),
        ("DeviceClass", "deviceclasses", _RESOURCE, "v1", False, False),
        ("Node", "nodes", "", "v1", False, True),
        ("CSINode", "csinodes", _STORAGE, "v1", False, False),
        ("ResourceSlice", "resourceslices", _RESOURCE, "v1", False, False),
        ("CSIStorageCapacity", "csistoragecapacities", _STORAGE, "v1", True, False),
        ("Service", "services", "", "v1", True, False),
        ("PodDisruptionBudget", "poddisruptionbudgets", "policy", "v1", True, False),
        ("PersistentVolumeClaim", "persistentvolumeclaims", "", "v1", True, True),
        ("PersistentVolume", "persistentvolumes", "", "v1", False, True),
        ("VolumeAttachment", "volumeattachments", _STORAGE, "v1", False, True),
        ("ResourceClaimTemplate", "resourceclaimtemplates", _RESOURCE, "v1", True, False),
        ("ReplicationController", "replicationcontrollers", "", "v1", True, False),
        ("ReplicaSet", "replicasets", "apps", "v1", True, False),
        ("StatefulSet", "statefulsets", "apps", "v1", True, False),
        ("Pod", "pods", "", "v1", True, True),
        ("ResourceClaim", "resourceclaims", _RESOURCE, "v1", True, True),
    )
    return tuple(FollowedKind(*row, rank=rank) for rank, row in enumerate(rows))


FOLLOWED_KINDS: tuple[FollowedKind, ...] = _kinds()
"""The synced kinds, in the order in which their objects are created."""

BY_PLURAL: dict[str, FollowedKind] = {kind.plural: kind for kind in FOLLOWED_KINDS}
"""The synced kinds by plural name."""

SPREAD_OWNERS: frozenset[tuple[str, str]] = frozenset(
    (kind.api_version, kind.kind) for kind in FOLLOWED_KINDS if kind.plural in _WORKLOADS
)
"""API version and kind of the controllers whose selectors default spreading uses."""

BY_KIND: dict[str, FollowedKind] = {kind.kind: kind for kind in FOLLOWED_KINDS}
"""The synced kinds by kind."""
