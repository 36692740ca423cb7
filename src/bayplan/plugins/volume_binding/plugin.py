"""The plugin VolumeBinding: PreFilter, Filter, PreScore, Score, Reserve, PreBind, and its queueing hints (KEP-4247)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from bayplan.framework.configuration.plugin_arguments import VolumeBindingArgs
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint, hint
from bayplan.framework.plugin import (
    MAX_NODE_SCORE,
    FilterPlugin,
    Handle,
    Params,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
    ReservePlugin,
    ScorePlugin,
)
from bayplan.framework.status import ERROR_BIT, SKIP, SUCCESS, Status, error, unresolvable
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from bayplan.plugins.pod_claims import (
    PodVolumes,
    VolumePlugin,
    class_of_claim,
    is_schedulable_after_claim_change,
    pod_volumes,
)
from bayplan.plugins.verdict_texts import VerdictTexts
from bayplan.plugins.volume_binding.assumed_objects import AssumedObjects, claim_for_node, volume_for_claim
from bayplan.plugins.volume_binding.matching import ReachableRows, class_and_claim
from bayplan.plugins.volume_binding.solution import REASONS, Decision, Solution, capacity_score
from bayplan.plugins.volume_binding.solve import (
    VolumeNeeds,
    claims_error,
    find_needs,
    migrated_plugins,
    solve,
    volume_limit,
)
from bayplan.state.arrays import Bools, Codes, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.object_catalog import ObjectGroups
from bayplan.state.views import Rows

MAX_CUSTOM_PRIORITY_SCORE = 10
"""The maximum of scores in shapes."""

STATE_KEY = "VolumeBinding"
RESERVED_KEY = "VolumeBinding/reserved"
"""Cycle state key of the decision with volumes and claims as the pod's binding writes them."""

NOT_FOUND = "not found"
MAX_CACHED_SOLUTIONS = 8


class VolumeBinding(
    VolumePlugin,
    PreFilterPlugin[PodVolumes],
    FilterPlugin[PodVolumes],
    PreScorePlugin[PodVolumes],
    ScorePlugin[PodVolumes],
    ReservePlugin[PodVolumes],
    PreBindPlugin[PodVolumes],
):
    """Rejects nodes where the pod's volumes can't be accessed, found or provisioned, and reserves volumes.

    Arguments: `VolumeBindingArgs`. Params: the pod's `VolumeNeeds`. As upstream, the plugin stores the objects that
    Reserve assumed, separately for each profile.
    """

    name = "VolumeBinding"
    binds_skipped_pods = False
    reads_feasible = False
    reads = Reads.NODES
    pre_reads = Reads.OBJECTS
    compiles_requests = False
    migration: ClassVar[bool] = True
    """Whether nodes may access in-tree volumes through CSI drivers."""

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        catalog = handle.cluster.catalog
        self._scores = handle.feature_gates.enabled("StorageCapacityScoring")
        given = arguments if isinstance(arguments, VolumeBindingArgs) else VolumeBindingArgs()
        factor = MAX_NODE_SCORE // MAX_CUSTOM_PRIORITY_SCORE
        self._shape = tuple((point.utilization, point.score * factor) for point in given.shape)
        self._volumes = AssumedObjects(PersistentVolume, catalog)
        self._claims = AssumedObjects(PersistentVolumeClaim, catalog)
        self._reachable = ReachableRows(handle.cluster)
        # With 500 bound volumes, a pod with an unbound claim takes 1.07 million instructions instead of 2.42 million with
        # a comparison of all volumes of its class.
        self._volumes_by_class = ObjectGroups(catalog, PersistentVolume, lambda volume: (class_and_claim(volume),))
        self._texts = VerdictTexts()
        self._solutions: list[tuple[VolumeNeeds, int, Solution]] = []
        # Whether the profile runs PreFilter and Filter; without them, upstream's cycle state is missing or empty.
        self._pre_filters = False
        self._filters = False

    def compile(self, pod: Pod, cluster: ClusterState) -> PodVolumes:
        """Return the pod's volumes. All pods with volumes share a spec key; params distinguish them."""
        return pod_volumes(pod, shared=True)

    # Filter.

    def pre_filter_reads(self, spec: PodVolumes) -> Reads:
        """Return NOTHING for pods without claims, which PreFilter skips."""
        return Reads.OBJECTS if spec.has_claims else Reads.NOTHING

    def pre_filter(self, spec: PodVolumes, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        """Reject pods whose claims can't be used or should already be bound; return SKIP for pods without claims."""
        self._pre_filters = True
        if not spec.has_claims:
            return SKIP
        needs = self._examine(spec)
        if isinstance(needs, Status):
            return needs
        state.write(STATE_KEY, needs)
        return PreFilterResult((needs,))

    def _examine(self, spec: PodVolumes) -> VolumeNeeds | Status:
        """Return the needs of a pod with claims, or the status with which the pod is rejected."""
        text = claims_error(spec, self.handle.cluster.catalog)
        return unresolvable(text) if text else self.needs(spec)

    def needs(self, spec: PodVolumes) -> VolumeNeeds | Status:
        """Return the needs of a pod whose claims all exist, or the status with which the pod is rejected."""
        catalog = self.handle.cluster.catalog
        return find_needs(spec, catalog, self._claims, self._volumes, migration=self.migration)

    def filter(self, spec: PodVolumes, params: Params | None, rows: Rows) -> Codes:
        """Look up the verdicts: volumes are chosen on all nodes at once."""
        return rows.select(self.verdicts(params))

    def verdicts(self, params: Params | None) -> Codes:
        """Return the flags of each node's problems (`REASONS`), or errors; errors everywhere if PreFilter is disabled."""
        self._filters = True
        if params is None:
            return self._everywhere(NOT_FOUND)
        needs = params[0]
        assert isinstance(needs, VolumeNeeds)
        return self._solution(needs).verdicts(self._texts)

    def _everywhere(self, text: str) -> Codes:
        """Return an error on every node."""
        return np.full(self.handle.cluster.columns.capacity, self._texts.verdict(text, ERROR_BIT), dtype=np.uint16)

    def _solution(self, needs: VolumeNeeds) -> Solution:
        """Return the volumes of a pod on all nodes; computed once for equal needs."""
        cluster = self.handle.cluster
        position = cluster.node_log.end
        for known, known_position, solution in self._solutions:
            if known_position == position and known == needs:
                return solution
        solution = solve(needs, cluster, self._reachable, self._volumes_for)
        self._solutions = [(needs, position, solution), *self._solutions[: MAX_CACHED_SOLUTIONS - 1]]
        return solution

    def _volumes_for(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        """Return the volumes of a claim's class that are reserved for the claim or not reserved, as stored.

        Assumed versions replace the stored ones.
        """
        name, found = class_of_claim(claim), []
        for reserved_for in (f"{claim.metadata.namespace}/{claim.metadata.name}", ""):
            for key in self._volumes_by_class.keys((name, reserved_for)):
                volume = self._volumes.get(key)
                assert volume is not None
                found.append(volume)
        return found

    def reasons(self, spec: PodVolumes, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the reasons for a verdict."""
        if verdict & ERROR_BIT:
            return (self._texts.text(verdict),)
        return tuple(text for flag, text in REASONS.items() if verdict & flag)

    # Score.

    def pre_score_reads(self, spec: PodVolumes) -> Reads:
        """Return OBJECTS if storage capacity is scored (feature gate) and the pod has claims, else NOTHING."""
        return Reads.OBJECTS if self._scores and spec.has_claims else Reads.NOTHING

    def pre_score(self, spec: PodVolumes, cluster: ClusterState, feasible: Bools) -> Params | Status:
        """Return SKIP unless storage capacity is scored. The params are those of Filter."""
        if not self._scores:
            return SKIP
        if not self._pre_filters:
            return error(NOT_FOUND)
        if not spec.has_claims or not self._filters:
            return ()
        needs = self._examine(spec)
        return needs if isinstance(needs, Status) else (needs,)

    def score(self, spec: PodVolumes, params: Params | None, rows: Rows) -> Ints:
        """Return scores from 0 to 100 by the used share of storage; 0 if no volume is chosen."""
        scores = np.zeros(len(rows), dtype=np.int64)
        if not params or not self._scores:
            return scores
        needs = params[0]
        assert isinstance(needs, VolumeNeeds)
        solution = self._solution(needs)
        passing = solution.verdicts(self._texts) == 0
        for place, row in enumerate(rows.row_numbers().tolist()):
            if passing[row]:
                scores[place] = capacity_score(solution.decision(row), self._shape)
        return scores

    # Reserve, PreBind.

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Assume the volumes and claims that were chosen for the pod on the node."""
        decision = self._decision(state, node_name)
        if decision is None:
            return SUCCESS if self._pre_filters else error(NOT_FOUND)
        bindings = tuple((claim, volume_for_claim(volume, claim)) for claim, volume in decision.bindings)
        provisions = tuple((claim_for_node(claim, node_name), room) for claim, room in decision.provisions)
        for (_, volume), (_, wanted) in zip(decision.bindings, bindings, strict=True):
            if wanted is not volume:
                self._volumes.assume(volume.metadata.name, wanted)
        for claim, _ in provisions:
            self._claims.assume(claim.key, claim)
        state.write(RESERVED_KEY, Decision(bindings, provisions))
        return SUCCESS

    def _decision(self, state: CycleState, node_name: str) -> Decision | None:
        """Return the volumes that Filter chose for the pod on a node; None if PreFilter or Filter did not run."""
        needs = state.read(STATE_KEY, VolumeNeeds)
        if needs is None or not self._filters:
            return None
        row = self.handle.cluster.nodes.row_of.get(node_name)
        return None if row is None else self._solution(needs).decision(row)

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Undo Reserve. If Reserve did not run, drop assumed versions of Filter's choice, as upstream does."""
        decision = state.read(RESERVED_KEY, Decision) or self._decision(state, node_name)
        if decision is None:
            return
        for _, volume in decision.bindings:
            self._volumes.restore(volume.metadata.name)
        for claim, _ in decision.provisions:
            self._claims.restore(claim.key)
        state.delete(RESERVED_KEY)
        state.delete(STATE_KEY)

    def reserved(self, state: CycleState) -> Mapping[str, object]:
        """Return ``volumes``, the volume of each claim, and ``provision``, the claims that need provisioning."""
        reserved = state.read(RESERVED_KEY, Decision)
        if reserved is None:
            return {}
        return {
            "volumes": {claim.key: volume.metadata.name for claim, volume in reserved.bindings},
            "provision": [claim.key for claim, _ in reserved.provisions],
        }

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Return SUCCESS: the host writes the `updates` before it binds the pod."""
        return SUCCESS

    def updates(self, state: CycleState) -> Sequence[KubernetesObject]:
        """Return volumes with the claims for which they are reserved, then claims with the selected node."""
        reserved = state.read(RESERVED_KEY, Decision)
        if reserved is None:
            return ()
        return (*(volume for _, volume in reserved.bindings), *(claim for claim, _ in reserved.provisions))

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register all kinds of objects that affect the choice of volumes, and nodes added or relabelled."""
        changes = ActionType.ADD | ActionType.UPDATE
        return (
            (ClusterEvent(EventResource.STORAGE_CLASS, changes), is_schedulable_after_storage_class_change),
            (
                ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, changes),
                is_schedulable_after_claim_change,
            ),
            (ClusterEvent(EventResource.PERSISTENT_VOLUME, changes), None),
            (ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL), None),
            (ClusterEvent(EventResource.CSI_NODE, changes), is_schedulable_after_csi_node_change),
            (ClusterEvent(EventResource.CSI_DRIVER, ActionType.UPDATE), is_schedulable_after_csi_driver_change),
            (
                ClusterEvent(EventResource.CSI_STORAGE_CAPACITY, changes),
                is_schedulable_after_csi_storage_capacity_change,
            ),
        )


@hint(StorageClass, new=True)
def is_schedulable_after_storage_class_change(pod: Pod, old: StorageClass | None, new: StorageClass) -> bool:
    """Queue the pod if a storage class was added, or its allowed topologies changed."""
    return old is None or old.allowed_topologies != new.allowed_topologies


@hint(CSINode, new=True)
def is_schedulable_after_csi_node_change(pod: Pod, old: CSINode | None, new: CSINode) -> bool:
    """Queue the pod if a CSINode was added, or its set of migrated plugins changed."""
    return old is None or migrated_plugins(old) != migrated_plugins(new)


@hint(CSIDriver, old=True, new=True)
def is_schedulable_after_csi_driver_change(pod: Pod, old: CSIDriver, new: CSIDriver) -> bool:
    """Queue the pod if the driver of one of its inline volumes stopped tracking capacity."""
    if not old.spec.storage_capacity or new.spec.storage_capacity:
        return False
    return any(volume.csi is not None and volume.csi.driver == new.metadata.name for volume in pod.spec.volumes)


@hint(CSIStorageCapacity, new=True)
def is_schedulable_after_csi_storage_capacity_change(
    pod: Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity
) -> bool:
    """Queue the pod if a capacity was added, or has room for larger volumes than before."""
    if old is None:
        return True
    was, is_now = volume_limit(old), volume_limit(new)
    return is_now is not None and (was is None or is_now > was)
