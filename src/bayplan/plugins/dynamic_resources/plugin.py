"""The plugin DynamicResources: PreEnqueue, PreFilter, Filter, PostFilter, Score, Reserve, PreBind."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from bayplan.framework.configuration.plugin_arguments import DynamicResourcesArgs
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.diagnosis import Diagnosis, PostFilterResult
from bayplan.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from bayplan.framework.plugin import (
    FilterPlugin,
    Handle,
    NormalizePlugin,
    Params,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    Reads,
    ReservePlugin,
)
from bayplan.framework.status import ERROR_BIT, SKIP, SUCCESS, Status, error, unresolvable, unschedulable
from bayplan.objects.pod import Pod
from bayplan.plugins.dynamic_resources.claims import ClaimsUnusable, pod_claims
from bayplan.plugins.normalize_score import largest_score, stretched
from bayplan.state.arrays import Codes, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows

NOT_FOUND = "not found"
STATE_MISSING = 0x2000 | ERROR_BIT


@dataclass(frozen=True, slots=True)
class DynamicResourcesSpec:
    """Whose claims a pod's cycle is about.

    Attributes:
        key: empty for all pods without claims, which share all results; else one of this pod alone.
        pod: the pod, or None where it has no claims.
    """

    key: Hashable
    pod: Pod | None = field(compare=False)


WITHOUT_CLAIMS = DynamicResourcesSpec((), None)


class DynamicResources(
    PreEnqueuePlugin[DynamicResourcesSpec],
    PreFilterPlugin[DynamicResourcesSpec],
    FilterPlugin[DynamicResourcesSpec],
    PostFilterPlugin[DynamicResourcesSpec],
    NormalizePlugin[DynamicResourcesSpec],
    ReservePlugin[DynamicResourcesSpec],
    PreBindPlugin[DynamicResourcesSpec],
):
    """Rejects nodes where a pod's claims can't be allocated or used. Arguments: `DynamicResourcesArgs`."""

    name = "DynamicResources"
    reads = Reads.NODES
    pre_reads = Reads.OBJECTS
    scalar = True

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._arguments = arguments if isinstance(arguments, DynamicResourcesArgs) else DynamicResourcesArgs()
        self._catalog = handle.cluster.catalog
        # Where the profile leaves out PreFilter, everything after it finds no state.
        self._pre_filters = False

    def sign_pod(self, pod: Pod) -> Hashable:
        """Return what tells one pod with claims from another; None for pods without."""
        if not pod.spec.resource_claims:
            return None
        return (pod.metadata.name, pod.metadata.uid, pod.status.resource_claim_statuses)

    def compile(self, pod: Pod, cluster: ClusterState) -> DynamicResourcesSpec:
        """Note the pod where it has claims."""
        if not pod.spec.resource_claims:
            return WITHOUT_CLAIMS
        return DynamicResourcesSpec((pod.metadata.namespace, self.sign_pod(pod)), pod)

    def pre_enqueue(self, pod: Pod) -> Status:
        """Keep a pod out of the queue until all its claims exist and are its own."""
        if not pod.spec.resource_claims:
            return SUCCESS
        try:
            pod_claims(pod, self._catalog)
        except ClaimsUnusable as problem:
            return unresolvable(str(problem))
        return SUCCESS

    # PreFilter and Filter.

    def pre_filter_reads(self, spec: DynamicResourcesSpec) -> Reads:
        """Nothing is looked at for pods without claims."""
        return Reads.NOTHING if spec.pod is None else Reads.OBJECTS

    def pre_filter(
        self, spec: DynamicResourcesSpec, cluster: ClusterState, state: CycleState
    ) -> PreFilterResult | Status:
        """SKIP pods without claims."""
        self._pre_filters = True
        return SKIP

    def filter(self, spec: DynamicResourcesSpec, params: Params | None, rows: Rows) -> Codes:
        """Let all nodes pass."""
        return rows.codes(rows.fill(STATE_MISSING if params is None else 0))

    def reasons(self, spec: DynamicResourcesSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the text of a verdict."""
        return (NOT_FOUND,)

    # PostFilter.

    def post_filter(self, pod: Pod, diagnosis: Diagnosis, state: CycleState) -> tuple[PostFilterResult | None, Status]:
        """Give up allocations that keep the pod from all nodes. An Error where PreFilter was not reached, as upstream."""
        if not self._pre_filters or self.name in state.unreached_pre_filters:
            return None, error(NOT_FOUND)
        return None, unschedulable("no new claims to deallocate")

    # Score.

    def score(self, spec: DynamicResourcesSpec, params: Params | None, rows: Rows) -> Ints:
        """Return 0 for all nodes."""
        return rows.fill(0)

    def score_error(self, spec: DynamicResourcesSpec, params: Params | None) -> str:
        """Refuse to score where PreFilter is disabled, as upstream does."""
        return "" if self._pre_filters else NOT_FOUND

    def scale(self, spec: DynamicResourcesSpec, params: Params | None, raw: Ints) -> Params:
        """Return the largest score."""
        return largest_score(raw)

    def normalize(self, spec: DynamicResourcesSpec, scale: Params, raw: Ints, rows: Rows) -> Ints:
        """Return 100 for the largest score."""
        return stretched(scale, raw, rows)

    # Reserve and PreBind.

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Take the devices."""
        return SUCCESS if self._pre_filters else error(NOT_FOUND)

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Give the devices back."""

    def reserved(self, state: CycleState) -> Mapping[str, object]:
        """Return ``devices``."""
        return {}

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Let the pod be bound."""
        return SUCCESS

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register claims, device classes, slices, nodes, and pods whose claims were made."""
        changes = ActionType.ADD | ActionType.UPDATE
        node_changes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
        return (
            (ClusterEvent(EventResource.NODE, node_changes), None),
            (ClusterEvent(EventResource.RESOURCE_CLAIM, changes), None),
            (ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM), None),
            (ClusterEvent(EventResource.DEVICE_CLASS, changes), None),
            (ClusterEvent(EventResource.RESOURCE_SLICE, changes), None),
        )
