"""A pod's claims and its volumes on all nodes, computed in the steps that upstream runs for one node."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from bayplan.framework.status import Status, error, unresolvable
from bayplan.objects.quantity import value
from bayplan.objects.selectors import Selector, SelectorError, compile_label_selector
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
    SELECTED_NODE,
    STORAGE,
    WAIT_FOR_FIRST_CONSUMER,
    PodVolumes,
    claim_not_found,
    class_of_claim,
    ownership_error,
)
from bayplan.plugins.volume_binding.assumed_objects import AssumedObjects
from bayplan.plugins.volume_binding.matching import EVERY_NODE, Reach, ReachableRows, by_size, choose_volume
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


class ClassifiedClaims(msgspec.Struct, frozen=True):
    """The claims of a pod. Unbound claims with immediate binding are not included, because they reject the pod.

    Attributes:
        bound: for each bound claim, the name of its volume, and the volume, or None if it does not exist.
        delayed: the claims that wait for their first consumer.
        classes: the storage classes of the delayed claims, in the same order.
    """

    bound: tuple[tuple[str, PersistentVolume | None], ...]
    delayed: tuple[PersistentVolumeClaim, ...]
    classes: tuple[StorageClass, ...]


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


def classify_claims(
    spec: PodVolumes,
    catalog: ObjectCatalog,
    claims: AssumedObjects[PersistentVolumeClaim],
    volumes: AssumedObjects[PersistentVolume],
) -> ClassifiedClaims | Status:
    """Return a pod's claims divided into bound and delayed ones, or why the pod is rejected. All claims must exist."""
    bound: list[tuple[str, PersistentVolume | None]] = []
    delayed: list[PersistentVolumeClaim] = []
    classes: list[StorageClass] = []
    immediate = False
    for volume in spec.volumes:
        if volume.claim is None:
            continue
        claim = claims.get(f"{spec.namespace}/{volume.claim}")
        assert claim is not None
        name = claim.spec.volume_name
        if name and BIND_COMPLETED in claim.metadata.annotations:
            bound.append((name, volumes.get(name)))
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
            delayed.append(claim)
            classes.append(storage_class)
    if immediate:
        return unresolvable(UNBOUND_IMMEDIATE)
    return ClassifiedClaims(tuple(bound), tuple(delayed), tuple(classes))


MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
NO_PROVISIONER = "kubernetes.io/no-provisioner"

VolumesOfClass = Callable[[str], Sequence[PersistentVolume]]
"""Returns the volumes of a storage class sorted by name, including assumed versions."""


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
    reach: Reach = EVERY_NODE
    plugin: str = ""
    driver_reach: Reach = EVERY_NODE
    error: str = ""


EVERYWHERE = BoundVolume()


class VolumeNeeds(msgspec.Struct, frozen=True):
    """All data that determines the volumes of a pod on each node; compared by value.

    Attributes:
        bound: for each bound claim, the nodes that can access its volume.
        delayed: the claims that wait for their first consumer.
        classes: the storage classes of the delayed claims, in the same order.
        versions: the versions of the other objects that are read, and of the assumed volumes.
    """

    bound: tuple[BoundVolume, ...]
    delayed: tuple[PersistentVolumeClaim, ...]
    classes: tuple[StorageClass, ...]
    versions: tuple[int, ...]


def bound_volume(
    bound: tuple[str, PersistentVolume | None], reachable: ReachableRows, *, migration: bool
) -> BoundVolume:
    """Return the nodes that can access a bound claim's volume, given by name and object.

    `migration`: whether nodes may access in-tree volumes through CSI drivers.
    """
    name, volume = bound
    if volume is None:
        return BoundVolume(missing=name)
    affinity = volume.spec.node_affinity
    plugin = in_tree_plugin(volume.spec) if migration else ""
    if plugin not in MIGRATED:
        return EVERYWHERE if affinity is None else BoundVolume(reach=reachable.reach_of(affinity.required))
    reach = EVERY_NODE if affinity is None else reachable.reach_of(affinity.required)
    try:
        translated = translate_volume(volume).node_affinity
    except TranslationError as problem:
        return BoundVolume(reach=reach, plugin=plugin, error=f"could not translate pv: {problem}")
    return BoundVolume(reach=reach, plugin=plugin, driver_reach=reachable.reach_of(translated))


def solve(
    claims: VolumeNeeds, cluster: ClusterState, reachable: ReachableRows, volumes_of_class: VolumesOfClass
) -> Solution:
    """Return a pod's volumes on all nodes."""
    solution = Solution(cluster.nodes.count)
    _check_bound_claims(claims, cluster, reachable, solution)
    if claims.delayed:
        _find_volumes(claims, cluster, reachable, volumes_of_class, solution)
    return solution


# Bound claims.


def _check_bound_claims(
    claims: VolumeNeeds, cluster: ClusterState, reachable: ReachableRows, solution: Solution
) -> None:
    """Record the nodes where a bound volume is missing or not accessible; only the first failure of a node counts."""
    unrejected = np.ones(cluster.nodes.count, dtype=np.bool_)
    for volume in claims.bound:
        if volume.missing:
            solution.flags[unrejected] |= VOLUME_MISSING
            return
        reached = np.zeros_like(unrejected)
        reached[reachable.rows_of(volume.reach)] = True
        if volume.plugin:
            migrated = _migrated_rows(volume.plugin, cluster)
            if volume.error:
                failed = migrated & unrejected
                solution.errors.append((volume.error, failed))
                unrejected = unrejected & ~failed
            else:
                by_driver = np.zeros_like(unrejected)
                by_driver[reachable.rows_of(volume.driver_reach)] = True
                reached = np.where(migrated, by_driver, reached)
        solution.flags[unrejected & ~reached] |= NODE_CONFLICT
        unrejected = unrejected & reached


def _migrated_rows(plugin: str, cluster: ClusterState) -> Bools:
    """Return the nodes that use the CSI driver for volumes of an in-tree plugin (bool per row)."""
    rows = np.zeros(cluster.nodes.count, dtype=np.bool_)
    for csi_node in cluster.catalog.all(CSINode):
        row = cluster.nodes.row_of.get(csi_node.metadata.name)
        plugins = csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "")
        if row is not None and plugin in plugins.split(","):
            rows[row] = True
    return rows


# Unbound claims.


def _find_volumes(
    claims: VolumeNeeds,
    cluster: ClusterState,
    reachable: ReachableRows,
    volumes_of_class: VolumesOfClass,
    solution: Solution,
) -> None:
    """Choose volumes for the delayed claims, and check whether the remaining volumes can be provisioned."""
    count = cluster.nodes.count
    unrejected = np.ones(count, dtype=np.bool_)
    selected: list[PersistentVolumeClaim] = []
    unselected: list[PersistentVolumeClaim] = []
    for claim in claims.delayed:
        node_name = claim.metadata.annotations.get(SELECTED_NODE)
        if node_name is None:
            unselected.append(claim)
            continue
        selected.append(claim)
        elsewhere = np.ones(count, dtype=np.bool_)
        row = cluster.nodes.row_of.get(node_name)
        if row is not None:
            elsewhere[row] = False
        unrejected = unrejected & ~elsewhere
    solution.flags[~unrejected] |= BIND_CONFLICT
    for claim in by_size(unselected):
        try:
            selector = _selector_of(claim)
        except SelectorError as problem:
            name = f"{claim.metadata.namespace}/{claim.metadata.name}"
            text = f"error creating internal label selector for claim: {name}: {problem}"
            solution.errors.append((text, unrejected))
            return
        volumes = volumes_of_class(class_of_claim(claim))
        solution.static.append(choose_volume(claim, selector, volumes, reachable, count, solution.static))
    unmatched = [(choice.claim, choice.picks == NOTHING) for choice in solution.static]
    everywhere = np.ones(count, dtype=np.bool_)
    classes = {id(claim): storage_class for claim, storage_class in zip(claims.delayed, claims.classes, strict=True)}
    for claim, wanted in (*((claim, everywhere) for claim in selected), *unmatched):
        unrejected = _check_provision(claim, classes[id(claim)], wanted, unrejected, cluster, reachable, solution)


def _selector_of(claim: PersistentVolumeClaim) -> Selector | None:
    return compile_label_selector(claim.spec.selector) if claim.spec.selector is not None else None


def _check_provision(
    claim: PersistentVolumeClaim,
    storage_class: StorageClass,
    wanted: Bools,
    unrejected: Bools,
    cluster: ClusterState,
    reachable: ReachableRows,
    solution: Solution,
) -> Bools:
    """Record the nodes where a claim's volume can't be provisioned.

    Return the nodes on which later claims are checked.
    """
    wanted = wanted & unrejected
    if storage_class.provisioner in ("", NO_PROVISIONER):
        solution.flags[wanted] |= BIND_CONFLICT
        return unrejected & ~wanted
    allowed = np.zeros(len(wanted), dtype=np.bool_)
    allowed[reachable.by_topologies(storage_class.allowed_topologies)] = True
    solution.flags[wanted & ~allowed] |= BIND_CONFLICT
    unrejected = unrejected & (allowed | ~wanted)
    wanted = wanted & allowed
    picks = np.full(len(wanted), NOTHING, dtype=np.int64)
    capacities: list[CSIStorageCapacity] = []
    if wanted.any() and _tracks_capacity(claim, storage_class, cluster):
        capacities = _sufficient_capacities(claim, storage_class, cluster)
        for number in range(len(capacities) - 1, -1, -1):
            picks[reachable.by_labels(capacities[number].node_topology)] = number
        short = wanted & (picks == NOTHING)
        solution.flags[short] |= NOT_ENOUGH_SPACE
        unrejected = unrejected & ~short
    solution.provisions.append(Provision(claim, wanted, capacities, picks))
    return unrejected


def _tracks_capacity(claim: PersistentVolumeClaim, storage_class: StorageClass, cluster: ClusterState) -> bool:
    """Return whether the driver publishes its capacity, and the claim specifies a size."""
    if STORAGE not in claim.spec.resources.requests:
        return False
    driver = cluster.catalog.get(CSIDriver, storage_class.provisioner)
    return driver is not None and bool(driver.spec.storage_capacity)


def _sufficient_capacities(
    claim: PersistentVolumeClaim, storage_class: StorageClass, cluster: ClusterState
) -> list[CSIStorageCapacity]:
    """Return the capacities of a class that are large enough for a claim, sorted by namespace and name."""
    size = value(claim.spec.resources.requests[STORAGE])
    found = []
    for capacity in cluster.catalog.all(CSIStorageCapacity):
        if capacity.storage_class_name != storage_class.metadata.name:
            continue
        limit = volume_limit(capacity)
        if limit is not None and limit >= size:
            found.append(capacity)
    return sorted(found, key=lambda item: item.key)


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """Return the size in bytes of the largest volume for which a capacity has room, or None if unknown."""
    limit = capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
    return None if limit is None else value(limit)
