"""VolumeBinding's Filter: the volumes of a pod, on all nodes at once.

On each node, bound claims must be accessible; each unbound claim takes the smallest volume that fits, smaller claims
first; volumes for the remaining claims must be provisioned there. None of this depends on the pods of a node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from bayplan.base.go_sort import sort_slice
from bayplan.framework.status import Status, error, unresolvable
from bayplan.objects.quantity import Quantity, value
from bayplan.objects.selectors import EVERYTHING, SelectorError, compile_label_selector
from bayplan.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from bayplan.plugins.csi_migration import MIGRATED, TranslationError, in_tree_plugin, translate_volume
from bayplan.plugins.pod_claims import (
    BIND_COMPLETED,
    NO_PROVISIONER,
    SELECTED_NODE,
    STORAGE,
    WAIT_FOR_FIRST_CONSUMER,
    PodVolumes,
    claim_not_found,
    class_of_claim,
    ownership_error,
    storage_amount,
)
from bayplan.plugins.volume_binding.assumed_objects import AssumedObjects
from bayplan.plugins.volume_binding.matching import (
    Reach,
    ReachableRows,
    affinity_reach,
    choose_volume,
    label_reach,
    topology_reach,
)
from bayplan.plugins.volume_binding.solution import (
    BIND_CONFLICT,
    NODE_CONFLICT,
    NOT_ENOUGH_SPACE,
    NOTHING,
    VOLUME_MISSING,
    Provision,
    Solution,
)
from bayplan.state.arrays import Bools
from bayplan.state.cluster_state import ClusterState
from bayplan.state.object_catalog import ObjectCatalog

UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"


class BoundVolume(msgspec.Struct, frozen=True):
    """The nodes that can access the volume of a bound claim; volumes with equal values get equal verdicts.

    Attributes:
        missing: the name of the volume if it does not exist, else "".
        reach: its node affinity.
        plugin: its in-tree plugin if nodes may access it through a CSI driver, else "".
        driver_reach: its node affinity for nodes that access it through that driver.
        error: why the volume can't be translated for such nodes, or "".
    """

    missing: str = ""
    reach: Reach = None
    plugin: str = ""
    driver_reach: Reach = None
    error: str = ""


class VolumeNeeds(msgspec.Struct, frozen=True):
    """All data that determines the volumes of a pod on each node; compared by value.

    Attributes:
        bound: for each bound claim, the nodes that can access its volume.
        delayed: the claims that wait for their first consumer, each with its storage class.
        versions: the versions of the other objects that are read, and of the assumed volumes.
    """

    bound: tuple[BoundVolume, ...]
    delayed: tuple[tuple[PersistentVolumeClaim, StorageClass], ...]
    versions: tuple[int, ...] = ()


def claims_error(spec: PodVolumes, catalog: ObjectCatalog) -> str:
    """Return why one of a pod's claims can't be used at all, or "". Ignores assumed versions."""
    for volume in spec.volumes:
        if volume.claim is None:
            continue
        claim = catalog.get(PersistentVolumeClaim, f"{spec.namespace}/{volume.claim}")
        if claim is None:
            if volume.ephemeral:
                return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{volume.claim}"'
            return claim_not_found(volume.claim)
        name = claim.metadata.name
        if claim.status.phase == "Lost":
            volume_name = claim.spec.volume_name
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume_name}"'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if volume.ephemeral:
            text = ownership_error(claim, spec.namespace, spec.pod_name, spec.pod_uid)
            if text:
                return text
    return ""


def find_needs(
    spec: PodVolumes,
    catalog: ObjectCatalog,
    claims: AssumedObjects[PersistentVolumeClaim],
    volumes: AssumedObjects[PersistentVolume],
    *,
    migration: bool,
) -> VolumeNeeds | Status:
    """Return a pod's needs, or why the pod is rejected. All its claims must exist.

    `migration`: whether nodes may access in-tree volumes through CSI drivers.
    """
    bound: list[BoundVolume] = []
    delayed: list[tuple[PersistentVolumeClaim, StorageClass]] = []
    immediate = False
    for volume in spec.volumes:
        if volume.claim is None:
            continue
        claim = claims.get(f"{spec.namespace}/{volume.claim}")
        assert claim is not None
        name = claim.spec.volume_name
        if name and BIND_COMPLETED in claim.metadata.annotations:
            found = volumes.get(name)
            bound.append(BoundVolume(name) if found is None else _bound_volume(found, migration=migration))
            continue
        class_name = class_of_claim(claim)
        storage_class = catalog.get(StorageClass, class_name) if class_name else None
        if storage_class is not None and storage_class.volume_binding_mode is None:
            return error(f'VolumeBindingMode not set for StorageClass "{class_name}"')
        if storage_class is None or storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER or name:
            # A claim that a user has bound to a volume in advance is also bound by the volume controller, not by the
            # scheduler.
            immediate = True
        else:
            delayed.append((claim, storage_class))
    if immediate:
        return unresolvable(UNBOUND_IMMEDIATE)
    versions: tuple[int, ...] = ()
    if any(item.plugin for item in bound):
        versions = (catalog.version(CSINode),)
    if delayed:
        kinds = (PersistentVolume, CSIDriver, CSIStorageCapacity)
        versions = (*versions, *(catalog.version(kind) for kind in kinds), volumes.version)
    return VolumeNeeds(tuple(bound), tuple(delayed), versions)


def _bound_volume(volume: PersistentVolume, *, migration: bool) -> BoundVolume:
    affinity = volume.spec.node_affinity
    reach = None if affinity is None else affinity_reach(affinity.required)
    plugin = in_tree_plugin(volume.spec) if migration else ""
    if plugin not in MIGRATED:
        return BoundVolume(reach=reach)
    try:
        translated = translate_volume(volume).node_affinity
    except TranslationError as problem:
        return BoundVolume(reach=reach, plugin=plugin, error=f"could not translate pv: {problem}")
    return BoundVolume(reach=reach, plugin=plugin, driver_reach=affinity_reach(translated))


def solve(
    needs: VolumeNeeds,
    cluster: ClusterState,
    reachable: ReachableRows,
    volumes_for: Callable[[PersistentVolumeClaim], Sequence[PersistentVolume]],
) -> Solution:
    """Return a pod's volumes on all nodes. `volumes_for` returns the volumes, also assumed ones, for `choose_volume`."""
    solving = _Solving(cluster, reachable)
    solving.check_bound_claims(needs.bound)
    if needs.delayed:
        solving.find_volumes(needs, volumes_for)
    return solving.solution


class _Solving:
    """The steps that upstream runs for one node, each on all nodes that passed the steps before it (bool per row)."""

    def __init__(self, cluster: ClusterState, reachable: ReachableRows) -> None:
        self.solution = Solution(cluster.nodes.count)
        self._cluster = cluster
        self._reachable = reachable

    def _rows(self, reach: Reach) -> Bools:
        rows = np.zeros(self._cluster.nodes.count, dtype=np.bool_)
        rows[self._reachable.find(reach)] = True
        return rows

    # Bound claims.

    def check_bound_claims(self, volumes: Sequence[BoundVolume]) -> None:
        """Record the nodes where a volume is missing or not accessible; only the first failure of a node counts."""
        solution, unrejected = self.solution, np.ones(self._cluster.nodes.count, dtype=np.bool_)
        for volume in volumes:
            if volume.missing:
                solution.flags[unrejected] |= VOLUME_MISSING
                return
            reached = self._rows(volume.reach)
            if volume.plugin:
                migrated = self._migrated_rows(volume.plugin)
                if volume.error:
                    failed = migrated & unrejected
                    solution.errors.append((volume.error, failed))
                    unrejected = unrejected & ~failed
                else:
                    reached = np.where(migrated, self._rows(volume.driver_reach), reached)
            solution.flags[unrejected & ~reached] |= NODE_CONFLICT
            unrejected = unrejected & reached

    def _migrated_rows(self, plugin: str) -> Bools:
        """Return the nodes that use the CSI driver for volumes of an in-tree plugin."""
        rows = np.zeros(self._cluster.nodes.count, dtype=np.bool_)
        for csi_node in self._cluster.catalog.all(CSINode):
            row = self._cluster.nodes.row_of.get(csi_node.metadata.name)
            if row is not None and plugin in migrated_plugins(csi_node).split(","):
                rows[row] = True
        return rows

    # Unbound claims.

    def find_volumes(
        self, needs: VolumeNeeds, volumes_for: Callable[[PersistentVolumeClaim], Sequence[PersistentVolume]]
    ) -> None:
        """Choose volumes for the delayed claims, and check whether the remaining volumes can be provisioned."""
        solution, count = self.solution, self._cluster.nodes.count
        everywhere = np.ones(count, dtype=np.bool_)
        unrejected = everywhere
        unselected: list[tuple[PersistentVolumeClaim, StorageClass]] = []
        wanted: list[tuple[PersistentVolumeClaim, StorageClass, Bools]] = []
        for claim, storage_class in needs.delayed:
            node_name = claim.metadata.annotations.get(SELECTED_NODE)
            if node_name is None:
                unselected.append((claim, storage_class))
                continue
            wanted.append((claim, storage_class, everywhere))
            selected = np.zeros(count, dtype=np.bool_)
            row = self._cluster.nodes.row_of.get(node_name)
            if row is not None:
                selected[row] = True
            unrejected = unrejected & selected
        solution.flags[~unrejected] |= BIND_CONFLICT
        # Equal sizes are in the order of Go's unstable sort.
        for claim, storage_class in sort_slice(unselected, _requested_storage):
            try:
                selector = EVERYTHING if claim.spec.selector is None else compile_label_selector(claim.spec.selector)
            except SelectorError as problem:
                name = f"{claim.metadata.namespace}/{claim.metadata.name}"
                text = f"error creating internal label selector for claim: {name}: {problem}"
                solution.errors.append((text, unrejected))
                return
            choice = choose_volume(claim, selector, volumes_for(claim), self._reachable, count, solution.static)
            solution.static.append(choice)
            wanted.append((claim, storage_class, choice.picks == NOTHING))
        for claim, storage_class, rows in wanted:
            unrejected = self._check_provision(claim, storage_class, rows, unrejected)

    def _check_provision(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass, wanted: Bools, unrejected: Bools
    ) -> Bools:
        """Record the nodes where a claim's volume can't be provisioned; return `unrejected` without them."""
        solution, wanted = self.solution, wanted & unrejected
        if storage_class.provisioner in ("", NO_PROVISIONER):
            solution.flags[wanted] |= BIND_CONFLICT
            return unrejected & ~wanted
        allowed = self._rows(topology_reach(storage_class.allowed_topologies))
        solution.flags[wanted & ~allowed] |= BIND_CONFLICT
        unrejected = unrejected & (allowed | ~wanted)
        wanted = wanted & allowed
        picks = np.full(len(wanted), NOTHING, dtype=np.int64)
        capacities: list[CSIStorageCapacity] = []
        if wanted.any() and self._tracks_capacity(claim, storage_class):
            capacities = self._sufficient_capacities(claim, storage_class)
            for number in range(len(capacities) - 1, -1, -1):
                picks[self._reachable.find(label_reach(capacities[number].node_topology))] = number
            short = wanted & (picks == NOTHING)
            solution.flags[short] |= NOT_ENOUGH_SPACE
            unrejected = unrejected & ~short
        solution.provisions.append(Provision(claim, wanted, capacities, picks))
        return unrejected

    def _tracks_capacity(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> bool:
        """Return whether the driver publishes its capacity, and the claim specifies a size."""
        driver = self._cluster.catalog.get(CSIDriver, storage_class.provisioner)
        return STORAGE in claim.spec.resources.requests and driver is not None and bool(driver.spec.storage_capacity)

    def _sufficient_capacities(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass
    ) -> list[CSIStorageCapacity]:
        """Return the capacities of a class that are large enough for a claim, sorted by namespace and name."""
        size = value(claim.spec.resources.requests[STORAGE])
        found = [
            capacity
            for capacity in self._cluster.catalog.all(CSIStorageCapacity)
            if capacity.storage_class_name == storage_class.metadata.name
            and (limit := volume_limit(capacity)) is not None
            and limit >= size
        ]
        return sorted(found, key=lambda item: item.key)


def _requested_storage(delayed: tuple[PersistentVolumeClaim, StorageClass]) -> Quantity:
    return storage_amount(delayed[0].spec.resources.requests)


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """Return the size in bytes of the largest volume for which a capacity has room, or None if unknown."""
    limit = capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
    return None if limit is None else value(limit)


def migrated_plugins(node: CSINode) -> str:
    """Return the in-tree plugins whose volumes a node accesses through CSI drivers, separated by commas."""
    return node.metadata.annotations.get(MIGRATED_PLUGINS, "")
