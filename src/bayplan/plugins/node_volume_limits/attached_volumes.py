"""The volumes of each CSI driver on each node, the limits, and the rows that use each volume; updated by changes.

Columns are updated lazily, like `VolumeUse`: a reader pays for the rows and objects that changed since the last time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from msgspec import Struct

from bayplan.objects.pod import Pod
from bayplan.objects.storage import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from bayplan.plugins.node_volume_limits.csi_names import CsiNames, csi_names
from bayplan.plugins.pod_claims import pod_volumes
from bayplan.state.arrays import Bools, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import PodInfo
from bayplan.state.volume_use import VolumeUse

NO_LIMIT = 1 << 62
READ = (PersistentVolumeClaim, PersistentVolume, StorageClass, VolumeAttachment)
"""The objects that determine the volumes of pods, and the attached ones."""

CLAIM, VOLUME = "claim:", "volume:"


class OfPod(NamedTuple):
    """The volumes of one pod on a node, and which claims and volumes were read for them."""

    info: PodInfo
    pod: Pod
    names: CsiNames
    read: tuple[str, ...]


class AttachedVolumes:
    """The volumes on the nodes of a cluster.

    Attributes:
        has_csi_node: bool[capacity], nodes with a CSINode.
        limited: those whose CSINode has a limit for some driver.
        limits: int64[capacity] per driver, `NO_LIMIT` where a node has none.
        counts: int64[capacity] per driver, volumes of pods on the node and further volumes that are attached to it.
        rows_of: the rows whose pods use a volume, by its unique name.
        errors: rows on which the volumes of a pod are unknown, with the reason.
        version: changes if something changed in rows that the log of usage does not name.
    """

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._use = VolumeUse(cluster)
        # By row, then by the identity of a pod's record, which the entry holds.
        self._of_pods: dict[int, dict[int, OfPod]] = {}
        self._by_pods: dict[int, dict[str, str]] = {}
        self._attached: dict[int, dict[str, str]] = {}
        self._attached_volumes: dict[str, None] = {}
        self._counted: dict[int, dict[str, int]] = {}
        self._versions: dict[type[Struct], int] = dict.fromkeys(READ, -1)
        self._nodes_seen = (-1, -1, -1)
        self._writes = -1
        # Which rows read a claim, or a volume, through the pods on them: by key, with prefixes that keep both apart.
        self._readers: dict[str, dict[int, None]] = {}
        self._read_by: dict[int, tuple[str, ...]] = {}
        self.has_csi_node: Bools = np.zeros(0, dtype=np.bool_)
        self.limited: Bools = np.zeros(0, dtype=np.bool_)
        self.limits: dict[str, Ints] = {}
        self.counts: dict[str, Ints] = {}
        self.rows_of: dict[str, dict[int, None]] = {}
        self.errors: dict[int, str] = {}
        self.version = 0

    def counts_of(self, driver: str) -> Ints:
        """Return int64[capacity], the volumes of a driver on each node."""
        counts = self.counts.get(driver)
        if counts is None:
            counts = self.counts[driver] = np.zeros(self._cluster.nodes.capacity, dtype=np.int64)
        return counts

    def drivers_of(self, row: int) -> frozenset[str]:
        """Return the drivers that are installed on a node."""
        csi_node = self._cluster.catalog.get(CSINode, self._cluster.nodes.names[row] or "")
        return frozenset(driver.name for driver in csi_node.spec.drivers) if csi_node is not None else frozenset()

    def follow(self) -> None:
        """Update all columns."""
        cluster, catalog = self._cluster, self._cluster.catalog
        stale: dict[int, None] = dict.fromkeys(self._use.follow())
        if self._writes == catalog.writes and self._nodes_seen[1:] == (cluster.node_log.end, cluster.nodes.capacity):
            for row in stale:
                self._look_at(row, placed=True)
            return
        self._writes = catalog.writes
        placed = len(stale)
        nodes_seen = (catalog.version(CSINode), cluster.node_log.end, cluster.nodes.capacity)
        nodes_changed = nodes_seen != self._nodes_seen
        if nodes_changed:
            self._nodes_seen = nodes_seen
            self._read_nodes()
            stale.update(dict.fromkeys((*self._use.pods_on, *self._counted)))
        written = {kind: self._written(kind) for kind in READ}
        if nodes_changed or written[VolumeAttachment] != [] or self._are_attached(written[PersistentVolume]):
            stale.update(dict.fromkeys(self._attached))
            self._read_attachments()
            stale.update(dict.fromkeys(self._attached))
        claims, volumes = written[PersistentVolumeClaim], written[PersistentVolume]
        if written[StorageClass] != [] or claims is None or volumes is None:
            stale.update(dict.fromkeys(self._use.pods_on))
        else:
            for key in (*(CLAIM + claim for claim in claims), *(VOLUME + volume for volume in volumes)):
                stale.update(self._readers.get(key, {}))
        if nodes_changed or len(stale) > placed:
            self.version += 1
        for row in stale:
            self._look_at(row)

    def _written(self, kind: type[Struct]) -> list[str] | None:
        """Return which objects of a type were written since the last call, None for all."""
        catalog, known = self._cluster.catalog, self._versions[kind]
        self._versions[kind] = catalog.version(kind)
        return catalog.written(kind, known) if known >= 0 else None

    def _are_attached(self, volumes: list[str] | None) -> bool:
        """Return whether any of these volumes is attached; True for None, which means that they are unknown."""
        if volumes is None:
            return True
        return bool(self._attached_volumes) and any(name in self._attached_volumes for name in volumes)

    def _read_nodes(self) -> None:
        """Read the limits of all nodes again."""
        cluster = self._cluster
        capacity, row_of = cluster.nodes.capacity, cluster.nodes.row_of
        self.has_csi_node = np.zeros(capacity, dtype=np.bool_)
        self.limited = np.zeros(capacity, dtype=np.bool_)
        self.limits = {}
        for driver, counts in self.counts.items():
            if len(counts) != capacity:
                self.counts[driver] = np.resize(counts, capacity)
                self.counts[driver][len(counts) :] = 0
        for csi_node in cluster.catalog.all(CSINode):
            row = row_of.get(csi_node.metadata.name)
            if row is None:
                continue
            self.has_csi_node[row] = True
            for item in csi_node.spec.drivers:
                if item.allocatable is None or item.allocatable.count is None:
                    continue
                self.limited[row] = True
                limits = self.limits.get(item.name)
                if limits is None:
                    limits = self.limits[item.name] = np.full(capacity, NO_LIMIT, dtype=np.int64)
                limits[row] = item.allocatable.count

    def _read_attachments(self) -> None:
        """Read which volumes are attached to nodes, whether pods use them or not."""
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

    def _look_at(self, row: int, *, placed: bool = False) -> None:
        """Find the volumes of one node; if only pods were `placed` or removed, find those of the new pods."""
        migrated = bool(self.has_csi_node[row])
        names: dict[str, str] = {}
        read: dict[str, None] = {}
        self.errors.pop(row, None)
        known = self._of_pods.get(row, {}) if placed else {}
        of_pods: dict[int, OfPod] = {}
        for info in self._use.pods_on.get(row, ()):
            found = known.get(id(info))
            if found is None or found.info is not info or found.pod is not info.pod:
                found = self._of_pod(info, migrated=migrated)
            of_pods[id(info)] = found
            read.update(dict.fromkeys(found.read))
            if found.names.error:
                self.errors.setdefault(row, found.names.error)
            names.update(found.names.drivers)
        if of_pods:
            self._of_pods[row] = of_pods
        else:
            self._of_pods.pop(row, None)
        self._note_readers(row, read)
        before = self._by_pods.get(row, {})
        for name in before.keys() - names.keys():
            del self.rows_of[name][row]
            if not self.rows_of[name]:
                del self.rows_of[name]
        for name in names:
            if name not in before:
                self.rows_of.setdefault(name, {})[row] = None
        self._by_pods[row] = names
        counted: dict[str, int] = {}
        for driver in (self._attached.get(row, {}) | names).values():
            counted[driver] = counted.get(driver, 0) + 1
        for driver in self._counted.get(row, {}):
            self.counts[driver][row] = 0
        for driver, count in counted.items():
            self.counts_of(driver)[row] = count
        self._counted[row] = counted

    def _of_pod(self, info: PodInfo, *, migrated: bool) -> OfPod:
        catalog, volumes = self._cluster.catalog, pod_volumes(info.pod, shared=True)
        read = []
        for volume in volumes.volumes:
            if volume.claim is not None:
                key = f"{volumes.namespace}/{volume.claim}"
                claim = catalog.get(PersistentVolumeClaim, key)
                read += [CLAIM + key, VOLUME + (claim.spec.volume_name if claim is not None else "")]
        return OfPod(info, info.pod, csi_names(volumes, catalog, migrated=migrated, new_pod=False), tuple(read))

    def _note_readers(self, row: int, read: dict[str, None]) -> None:
        for key in self._read_by.get(row, ()):
            if key not in read:
                del self._readers[key][row]
                if not self._readers[key]:
                    del self._readers[key]
        for key in read:
            self._readers.setdefault(key, {})[row] = None
        self._read_by[row] = tuple(read)
