"""The attached volumes of each CSI driver on each node, the limits, and the rows that use each volume."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from bayplan.objects.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from bayplan.plugins.node_volume_limits.csi_names import CsiNames, csi_names
from bayplan.plugins.pod_claims import pod_volumes
from bayplan.state.arrays import Bools, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import PodInfo
from bayplan.state.volume_use import count_user, moved_rows, pods_with_volumes

NO_LIMIT = 1 << 62
READ = (PersistentVolumeClaim, PersistentVolume, StorageClass, VolumeAttachment)
"""The types of objects from which the volumes of pods and the attached volumes are determined."""

CLAIM, VOLUME = "claim:", "volume:"


class OfPod(NamedTuple):
    """The volumes of one pod on a node, and the keys of the claims and volumes that were read for them."""

    info: PodInfo
    names: CsiNames
    read: tuple[str, ...]


class AttachedVolumes:
    """The volumes on the nodes of a cluster; `refresh` takes time proportional to the changes since its last call.

    Attributes:
        has_csi_node: bool[capacity], nodes with a CSINode.
        limited: bool[capacity], nodes whose CSINode has a limit for at least one driver.
        limits: int64[capacity] per driver, `NO_LIMIT` if the node has no limit.
        rows_of: by unique name of a volume, the rows whose pods use it, each with the number of these pods.
        errors: by row, why the volumes of a pod there are unknown.
        version: changes when rows may have changed that are not in the change log.
    """

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._position = -1
        self._of_pods: dict[int, list[OfPod]] = {}
        # By row, the driver of each volume that a VolumeAttachment attaches, by unique name.
        self._attached: dict[int, dict[str, str]] = {}
        self._attached_volumes: dict[str, None] = {}
        self._versions: dict[type[Struct], int] = dict.fromkeys(READ, -1)
        self._nodes_seen = (-1, -1, -1)
        self._writes = -1
        # By key of a claim or volume (a prefix distinguishes them), the rows whose pods use it, each with the number of
        # times that it was read for them.
        self._readers: dict[str, dict[int, int]] = {}
        self.has_csi_node: Bools = np.zeros(0, dtype=np.bool_)
        self.limited: Bools = np.zeros(0, dtype=np.bool_)
        self.limits: dict[str, Ints] = {}
        self._counts: dict[str, Ints] = {}
        self.rows_of: dict[str, dict[int, int]] = {}
        self.errors: dict[int, str] = {}
        self.version = 0

    def counts_of(self, driver: str) -> Ints:
        """Return int64[capacity], the number of a driver's volumes that pods use on each node or that are attached."""
        counts = self._counts.get(driver)
        if counts is None:
            counts = self._counts[driver] = np.zeros(self._cluster.nodes.capacity, dtype=np.int64)
        return counts

    def refresh(self) -> None:
        """Apply the changes of the cluster."""
        cluster = self._cluster
        moved = moved_rows(cluster, self._position)
        self._position = cluster.change_log.end
        stale: dict[int, None] = {}
        if self._writes != cluster.catalog.writes or self._nodes() != self._nodes_seen:
            self._writes = cluster.catalog.writes
            stale = self._find_stale(moved)
        for row in moved:
            if row not in stale:
                self._update_row(row, True)
        for row in stale:
            self._update_row(row)

    def _nodes(self) -> tuple[int, int, int]:
        """Return a value that changes whenever nodes or their CSINodes may have changed."""
        cluster = self._cluster
        return (cluster.catalog.version(CSINode), cluster.node_log.end, cluster.nodes.capacity)

    def _find_stale(self, moved: Collection[int]) -> dict[int, None]:
        """Read nodes and attachments again if they changed; return the rows whose pods or attachments must be read."""
        stale: dict[int, None] = {}
        nodes_changed = self._nodes() != self._nodes_seen
        if nodes_changed:
            self._nodes_seen = self._nodes()
            self._read_nodes()
            stale.update(dict.fromkeys(self._of_pods))
        written = {kind: self._written(kind) for kind in READ}
        claims, volumes = written[PersistentVolumeClaim], written[PersistentVolume]
        attached_written = volumes is None or any(name in self._attached_volumes for name in volumes)
        if nodes_changed or written[VolumeAttachment] != [] or attached_written:
            stale.update(dict.fromkeys(self._attached))
            self._read_attachments()
            stale.update(dict.fromkeys(self._attached))
        if written[StorageClass] != [] or claims is None or volumes is None:
            stale.update(dict.fromkeys(self._of_pods))
        else:
            for key in [*[CLAIM + claim for claim in claims], *[VOLUME + volume for volume in volumes]]:
                stale.update(dict.fromkeys(self._readers.get(key, ())))
        if nodes_changed or not stale.keys() <= set(moved):
            self.version += 1
        return stale

    def _written(self, kind: type[Struct]) -> list[str] | None:
        """Return the keys of the objects of a type written since the last call, or None if all may have been."""
        catalog, known = self._cluster.catalog, self._versions[kind]
        self._versions[kind] = catalog.version(kind)
        return catalog.written(kind, known) if known >= 0 else None

    def _read_nodes(self) -> None:
        """Read the limits of all nodes again, and forget all counts."""
        capacity, row_of = self._cluster.nodes.capacity, self._cluster.nodes.row_of
        self.has_csi_node = np.zeros(capacity, dtype=np.bool_)
        self.limited = np.zeros(capacity, dtype=np.bool_)
        self.limits = {}
        self._counts = {}
        for csi_node in self._cluster.catalog.all(CSINode):
            row = row_of.get(csi_node.metadata.name)
            if row is None:
                continue
            self.has_csi_node[row] = True
            for item in csi_node.spec.drivers:
                if item.allocatable is not None and item.allocatable.count is not None:
                    self.limited[row] = True
                    if item.name not in self.limits:
                        self.limits[item.name] = np.full(capacity, NO_LIMIT, dtype=np.int64)
                    self.limits[item.name][row] = item.allocatable.count

    def _read_attachments(self) -> None:
        """Read the volumes that are attached to nodes, even if no pod uses them."""
        catalog, row_of = self._cluster.catalog, self._cluster.nodes.row_of
        self._attached = {}
        self._attached_volumes = {}
        for attachment in catalog.all(VolumeAttachment):
            spec = attachment.spec
            row, name = row_of.get(spec.node_name), spec.source.persistent_volume_name
            if row is None or not spec.attacher or name is None:
                continue
            self._attached_volumes[name] = None
            volume = catalog.get(PersistentVolume, name)
            if volume is not None and volume.spec.csi is not None:
                names = self._attached.setdefault(row, {})
                names[f"{spec.attacher}/{volume.spec.csi.volume_handle}"] = spec.attacher

    def _update_row(self, row: int, placed: bool = False) -> None:
        """Update the volumes of one node. With `placed`, pods were only added or removed: read only those of new pods."""
        infos, known, same = pods_with_volumes(self._cluster, row), self._of_pods.pop(row, []), 0
        while placed and same < min(len(known), len(infos)) and known[same].info is infos[same]:
            same += 1
        for of_pod in known[same:]:
            self._count(row, of_pod, -1)
        if not placed:
            for counts in self._counts.values():
                counts[row] = 0
            for driver in self._attached.get(row, {}).values():
                self.counts_of(driver)[row] += 1
        of_pods = known[:same]
        for info in infos[same:]:
            of_pod = self._of_pod(info, migrated=bool(self.has_csi_node[row]))
            self._count(row, of_pod, 1)
            of_pods.append(of_pod)
        if of_pods:
            self._of_pods[row] = of_pods
        self.errors.pop(row, None)
        for of_pod in of_pods:
            if of_pod.names.error:
                self.errors.setdefault(row, of_pod.names.error)

    def _count(self, row: int, of_pod: OfPod, change: int) -> None:
        """Add (1) or remove (-1) the volumes of a pod on a row."""
        for name, driver in of_pod.names.drivers.items():
            if count_user(self.rows_of, name, row, change) and name not in self._attached.get(row, ()):
                self.counts_of(driver)[row] += change
        for key in of_pod.read:
            count_user(self._readers, key, row, change)

    def _of_pod(self, info: PodInfo, *, migrated: bool) -> OfPod:
        catalog, volumes = self._cluster.catalog, pod_volumes(info.pod, shared=True)
        read = []
        for volume in volumes.volumes:
            if volume.claim is not None:
                key = f"{volumes.namespace}/{volume.claim}"
                claim = catalog.get(PersistentVolumeClaim, key)
                read += [CLAIM + key, VOLUME + (claim.spec.volume_name if claim is not None else "")]
        return OfPod(info, csi_names(volumes, catalog, migrated=migrated, new_pod=False), tuple(read))
