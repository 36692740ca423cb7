"""The plugin NodeVolumeLimits: PreFilter, Filter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, cast

import msgspec
import numpy as np

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, EventResource, HintAnswer, QueueingHint, hint
from bayplan.framework.plugin import FilterPlugin, Handle, Params, PreFilterPlugin, PreFilterResult, Reads
from bayplan.framework.rule import FilterRule
from bayplan.framework.status import ERROR_BIT, SKIP, Status
from bayplan.objects.pod import Pod
from bayplan.objects.storage import CSIDriver, CSINode, VolumeAttachment
from bayplan.plugins.csi_migration import DRIVERS, MIGRATED, TranslationError, in_tree_plugin, translate_inline_volume
from bayplan.plugins.node_volume_limits.attached_volumes import AttachedVolumes
from bayplan.plugins.node_volume_limits.csi_names import CsiNames, csi_names
from bayplan.plugins.pod_claims import PodVolumes, VolumePlugin, is_schedulable_after_claim_change, pod_volumes
from bayplan.plugins.verdict_texts import VerdictTexts
from bayplan.state.arrays import Ints
from bayplan.state.cluster_state import ClusterState

EXCEEDED = 1
REASON_EXCEEDED = "node(s) exceed max volume count"


class NodeVolumeLimits(VolumePlugin, PreFilterPlugin[PodVolumes], FilterPlugin[PodVolumes]):
    """Rejects nodes that would have to attach more volumes of a driver than they can.

    Params: the pod's volumes on nodes without CSINode and on nodes with one, and the version of `AttachedVolumes`.
    """

    name = "NodeVolumeLimits"
    reads = Reads.NODES | Reads.USAGE
    pre_reads = Reads.OBJECTS
    compiles_requests = False

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._needs_driver = handle.feature_gates.enabled("VolumeLimitScaling")
        self.attached = AttachedVolumes(handle.cluster)
        self.messages = VerdictTexts()
        # Whether the profile runs PreFilter; then verdicts depend only on the params.
        self._pre_filters = False

    def compile(self, pod: Pod, cluster: ClusterState) -> PodVolumes:
        """Return the pod's volumes."""
        return pod_volumes(pod, shared=self._pre_filters)

    def pre_filter_reads(self, spec: PodVolumes) -> Reads:
        """Return NOTHING for pods without claims and migratable volumes, which PreFilter skips."""
        return Reads.OBJECTS if _may_count(spec) else Reads.NOTHING

    def pre_filter(self, spec: PodVolumes, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        """Return SKIP for pods without claims and migratable volumes."""
        if not _may_count(spec):
            return SKIP
        self._pre_filters = True
        return PreFilterResult(self.examine(spec))

    def examine(self, spec: PodVolumes) -> Examined:
        """Return the params for a pod."""
        self.attached.refresh()
        catalog = self.handle.cluster.catalog
        names = csi_names(spec, catalog, migrated=True, new_pod=True)
        plain = migrated = self._wanted(names)
        if names.migrates:
            plain = self._wanted(csi_names(spec, catalog, migrated=False, new_pod=True))
        return plain, migrated, self.attached.version

    def _wanted(self, names: CsiNames) -> RequiredVolumes:
        if names.error:
            return RequiredVolumes(problem=self.messages.verdict(names.error, names.flags))
        counts: dict[str, int] = {}
        for driver in names.drivers.values():
            counts[driver] = counts.get(driver, 0) + 1
        in_use = tuple([name for name in names.drivers if name in self.attached.rows_of])
        needed = tuple([driver for driver in sorted(counts) if self._is_required(driver)]) if self._needs_driver else ()
        return RequiredVolumes(tuple(counts.items()), in_use, 0, needed, names.drivers)

    def _is_required(self, driver: str) -> bool:
        """Return whether pods with volumes of a driver may run only on nodes with the driver."""
        described = self.handle.cluster.catalog.get(CSIDriver, driver)
        return described is not None and bool(described.spec.prevent_pod_scheduling_if_missing)

    def filter_rule(self, spec: PodVolumes, cluster: ClusterState) -> FilterRule:
        """Return the rule that compares the pod's volumes with a node's limits."""
        return AttachableVolumes(self, spec, cluster)

    def missing_driver(self, row: int, needed: Iterable[str]) -> int:
        """Return the verdict on a node that lacks one of the needed drivers; 0 if it has them all."""
        cluster = self.handle.cluster
        csi_node = cluster.catalog.get(CSINode, cluster.nodes.names[row] or "")
        installed = [driver.name for driver in csi_node.spec.drivers] if csi_node is not None else []
        missing = next((driver for driver in needed if driver not in installed), None)
        if missing is None:
            return 0
        return self.messages.verdict(f"{missing} CSI driver is not installed on the node", 0)

    def reasons(self, spec: PodVolumes, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the message of a verdict."""
        return (REASON_EXCEEDED if verdict == EXCEEDED else self.messages.text(verdict),)

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register CSINodes added or with higher limits, deleted pods, added claims, and deleted VolumeAttachments."""
        return (
            (ClusterEvent(EventResource.CSI_NODE, ActionType.ADD), None),
            (ClusterEvent(EventResource.CSI_NODE, ActionType.UPDATE), is_schedulable_after_csi_node_updated),
            (ClusterEvent(EventResource.POD, ActionType.DELETE), is_schedulable_after_pod_deleted),
            (
                ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD),
                is_schedulable_after_claim_change,
            ),
            (
                ClusterEvent(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE),
                is_schedulable_after_volume_attachment_deleted,
            ),
        )


def _may_count(spec: PodVolumes) -> bool:
    return spec.has_claims or any(in_tree_plugin(volume.source) for volume in spec.volumes)


class RequiredVolumes(msgspec.Struct, frozen=True, eq=False):
    """The volumes that a node would have to attach for a pod. Equal values get equal verdicts on every node.

    Attributes:
        counts: the number of volumes by driver.
        in_use: the unique names of volumes that pods on some node already use; that node does not attach them again.
        problem: the verdict on all nodes if the volumes are unknown, else 0.
        needed: drivers that must be installed.
        drivers: the driver by unique name, for counting again while pods are moved; not compared.
    """

    counts: tuple[tuple[str, int], ...] = ()
    in_use: tuple[str, ...] = ()
    problem: int = 0
    needed: tuple[str, ...] = ()
    drivers: dict[str, str] = {}

    def __eq__(self, other: object) -> bool:
        mine = (self.counts, self.in_use, self.problem, self.needed)
        return isinstance(other, RequiredVolumes) and mine == (other.counts, other.in_use, other.problem, other.needed)


Examined: TypeAlias = tuple[RequiredVolumes, RequiredVolumes, int]
"""The params of a pod: its volumes on nodes without CSINode and on nodes with one, and `AttachedVolumes.version`."""


class DriverLimit:
    """The limits and counts of one driver on all nodes, and the volumes that the pod adds.

    Args:
        limits, counts: int64[capacity].
        fresh: the number of the pod's volumes that no pod on any node uses.
        in_use: for each other volume of the pod, the rows whose pods use it.
    """

    def __init__(self, limits: Ints, counts: Ints, fresh: int, in_use: list[dict[int, int]]) -> None:
        self._limits: Any = limits
        self._counts: Any = counts
        self._fresh = fresh
        self._in_use = in_use

    def exceeded(self, row: int) -> bool:
        """Return whether the node of a row would exceed its limit; False if the pod adds no volumes there."""
        wanted = self._fresh
        for rows in self._in_use:
            if row not in rows:
                wanted += 1
        return wanted > 0 and wanted + self._counts[row] > self._limits[row]


class AttachableVolumes(FilterRule):
    """Returns `EXCEEDED`, or the verdict of a message about invalid volumes or a missing driver."""

    def __init__(self, plugin: NodeVolumeLimits, spec: PodVolumes, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self.reads_pods = True
        self._plugin, self._spec, self._attached = plugin, spec, plugin.attached
        self._plain = self._migrated = RequiredVolumes()
        self._limits: list[DriverLimit] = []
        self._has_csi_node: Any = None
        self._problem_on_plain = self._problem_on_migrated = 0
        self._has_errors = self._needs_drivers = False

    def refresh(self) -> bool:
        """Look up the volumes; the params report changes that are not in the logs."""
        attached = self._attached
        attached.refresh()
        params = self._plugin.examine(self._spec) if self.params is None else cast("Examined", self.params)
        plain, migrated, _ = params
        # A pod on the node whose volumes are unknown causes an error if the new pod adds volumes.
        self._has_errors = bool(attached.errors) and bool(migrated.counts)
        self._plain, self._migrated = plain, migrated
        self._problem_on_plain, self._problem_on_migrated = plain.problem, migrated.problem
        self._has_csi_node = attached.has_csi_node.view(np.uint8)
        self._needs_drivers = bool(plain.needed or migrated.needed)
        self._limits = []
        for driver, count in migrated.counts:
            limits = attached.limits.get(driver)
            if limits is not None:
                names = [name for name, other in migrated.drivers.items() if other == driver]
                in_use = [attached.rows_of[name] for name in names if name in attached.rows_of]
                self._limits.append(DriverLimit(limits, attached.counts_of(driver), count - len(in_use), in_use))
        return False

    def filter(self, row: int) -> int:
        """Return the verdict of the first check that fails.

        The checks are, in order: the pod's volumes, the drivers, the volumes on the node, the limits.
        """
        migrated = self._has_csi_node[row] != 0
        problem = self._problem_on_migrated if migrated else self._problem_on_plain
        if problem:
            return problem
        verdict = 0
        if migrated:
            for limit in self._limits:
                if limit.exceeded(row):
                    verdict = EXCEEDED
                    break
            if self._has_errors:
                verdict = self._verdict_of_error(row, verdict)
        if self._needs_drivers:
            needed = self._migrated.needed if migrated else self._plain.needed
            return self._plugin.missing_driver(row, needed) or verdict
        return verdict

    def _verdict_of_error(self, row: int, verdict: int) -> int:
        text = self._attached.errors.get(row)
        if text is None or not self._attached.limited[row]:
            return verdict
        return self._plugin.messages.verdict(text, ERROR_BIT)


# Queueing hints (KEP-4247).


@hint(CSINode, old=True, new=True)
def is_schedulable_after_csi_node_updated(pod: Pod, old: CSINode, new: CSINode) -> bool:
    """Queue the pod if the limit of a driver increased; a missing limit counts as 0."""
    before = _limits(old)
    return any(limit > before.get(driver, 0) for driver, limit in _limits(new).items())


@hint(Pod, old=True)
def is_schedulable_after_pod_deleted(pod: Pod, left: Pod, new: Pod | None) -> bool:
    """Queue the pod if the deleted pod had a node or a nomination, and volumes that may count towards limits."""
    if not left.spec.node_name and not left.status.nominated_node_name:
        return False
    return any(
        volume.persistent_volume_claim is not None or volume.ephemeral is not None or in_tree_plugin(volume)
        for volume in left.spec.volumes
    )


@hint(VolumeAttachment, old=True)
def is_schedulable_after_volume_attachment_deleted(
    pod: Pod, old: VolumeAttachment, new: VolumeAttachment | None
) -> bool | HintAnswer:
    """Queue the pod if it has a claim, or an inline volume of the same driver as the detached volume."""
    attacher = old.spec.attacher
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            return True
        plugin = in_tree_plugin(volume)
        if plugin in MIGRATED:
            try:
                translate_inline_volume(volume)
            except TranslationError:
                return HintAnswer.ERROR
        if plugin and DRIVERS[plugin] == attacher:
            return True
    return False


def _limits(csi_node: CSINode) -> dict[str, int]:
    return {
        item.name: item.allocatable.count or 0 if item.allocatable is not None else 0 for item in csi_node.spec.drivers
    }
