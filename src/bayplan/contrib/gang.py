"""Gang: either all pods of a group get nodes, or none does.

A group is the pods of one namespace that have the same value of `group_label`; the label `size_label` is the number of
them that must run together. Without it, two jobs that each need most of a cluster can block each other, each with half
of its pods placed.

The plugin is the example of a plugin that keeps state between cycles. PreFilter rejects a pod while its group is
incomplete, or while the rest of the group does not fit. Reserve and Permit let the first members wait on their nodes
until enough members have one; then all are bound. If a waiting member times out or loses its node, Unreserve rejects
the others, too, and frees their nodes for other pods. docs/gang.md shows an example.

The labels are those of the lightweight mode of the out-of-tree plugin Coscheduling (KEP-42 of
kubernetes-sigs/scheduler-plugins).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import ConfigurationError
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from bayplan.framework.plugin import PROCEED, Handle, PermitPlugin, PreFilterPlugin, PreFilterResult, ReservePlugin
from bayplan.framework.status import SUCCESS, Code, Status, unresolvable, unschedulable
from bayplan.framework.waiting_pods import WaitingPod
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import FIRST_RESOURCE, POD_COUNT

GROUP_LABEL = "pod-group.scheduling.sigs.k8s.io/name"
SIZE_LABEL = "pod-group.scheduling.sigs.k8s.io/min-available"
DEFAULT_TIMEOUT_SECONDS = 60
_FIELDS = {"groupLabel": "a label", "sizeLabel": "a label", "permitTimeoutSeconds": "a whole number from 1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GangArgs:
    """Arguments of Gang; in a configuration ``groupLabel``, ``sizeLabel`` and ``permitTimeoutSeconds``.

    Attributes:
        group_label: the label that names the group of a pod.
        size_label: the label with the number of members to place together.
        permit_timeout_seconds: the maximum time that members wait on their nodes for the other members.
    """

    group_label: str = GROUP_LABEL
    size_label: str = SIZE_LABEL
    permit_timeout_seconds: int = DEFAULT_TIMEOUT_SECONDS


@dataclass(frozen=True, slots=True)
class GangSpec:
    """The data of a pod for PreFilter.

    Attributes:
        key: the group, size and requests, for comparisons.
        group: the namespace and name of the group; None for a pod without a group.
        size: the number of members to place together; 0 if the label is missing or invalid.
        requests: the requests of the pod, in the layout of a column of the usage matrix.
    """

    key: tuple[object, ...]
    group: tuple[str, str] | None = field(compare=False)
    size: int = field(compare=False)
    requests: Ints = field(compare=False)


class Gang(PreFilterPlugin[GangSpec], ReservePlugin[GangSpec], PermitPlugin[GangSpec]):
    """Places the pods of a group together. Arguments: `GangArgs`."""

    name = "Gang"

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self.args = arguments if isinstance(arguments, GangArgs) else read_arguments(arguments)

    # Group membership.

    def group_of(self, pod: Pod) -> tuple[str, str] | None:
        """Return the namespace and name of a pod's group; None if it has none."""
        name = pod.metadata.labels.get(self.args.group_label)
        return (pod.metadata.namespace, name) if name else None

    def size_of(self, pod: Pod) -> int:
        """Return the required number of members of a pod's group; 0 if the label is missing or invalid."""
        text = pod.metadata.labels.get(self.args.size_label, "")
        return int(text) if text.isascii() and text.isdigit() else 0

    def members(self, group: tuple[str, str]) -> list[str]:
        """Return the keys of a group's pods, except pods that are being deleted. Looks at all pods of the cluster."""
        return [
            key
            for key, pod in self.handle.pods.items()
            if self.group_of(pod) == group and pod.metadata.deletion_timestamp is None
        ]

    def siblings_waiting(self, pod: Pod) -> list[WaitingPod]:
        """Return the other members of a pod's group that wait in Permit."""
        group = self.group_of(pod)
        waiting = self.handle.waiting_pods
        if group is None or waiting is None:
            return []
        return [each for each in waiting if self.group_of(each.pod) == group and each.pod is not pod]

    # PreFilter: reject groups that can't be placed.

    def compile(self, pod: Pod, cluster: ClusterState) -> GangSpec:
        """Return the group and the requests of a pod."""
        group, size = self.group_of(pod), self.size_of(pod)
        if group is None:
            return GangSpec((None,), None, 0, np.zeros(0, dtype=np.int64))
        requests = cluster.footprint(pod).vector
        return GangSpec((group, size, requests.tobytes()), group, size, requests)

    def pre_filter(self, spec: GangSpec, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        """Reject a pod whose group is incomplete or does not fit as a whole."""
        if spec.group is None:
            return PROCEED
        if not spec.size:
            return unresolvable(f"pod of gang {_named(spec.group)} without a number in label {self.args.size_label}")
        members = self.members(spec.group)
        if len(members) < spec.size:
            return unresolvable(f"gang {_named(spec.group)} has {len(members)} of {spec.size} pods")
        missing = spec.size - sum(key in cluster.pods for key in members)
        room = room_for(spec.requests, cluster) if missing > 0 else missing
        if room < missing:
            return unschedulable(
                f"gang {_named(spec.group)} needs room for {missing} more pods, but there is room for {room}"
            )
        return PROCEED

    # Reserve and Permit: members wait for each other, and give up together.

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Reserve nothing: the plugin only needs Unreserve."""
        return SUCCESS

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, int]:
        """Let a pod wait until enough of its group have nodes; the last one releases all of them."""
        group = self.group_of(pod)
        if group is None:
            return SUCCESS, 0
        members = self.members(group)
        placed = [key for key in members if key in self.handle.cluster.pods]
        if len(placed) < self.size_of(pod):
            # Retry the other members at once: they may have been rejected while the group had too few pods.
            state.pods_to_activate = tuple(self.handle.pods[key] for key in members if key not in placed)
            return Status(Code.WAIT), self.args.permit_timeout_seconds * SECOND_NS
        for sibling in self.siblings_waiting(pod):
            sibling.allow(self.name)
        return SUCCESS, 0

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Reject the other members that wait: without this one, the group can't run, and they would occupy nodes."""
        for sibling in self.siblings_waiting(pod):
            sibling.reject(self.name, f"gang {_named(self.group_of(pod))} was abandoned")

    # Events that cause a retry of a group.

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register deleted pods of other groups, added members, nodes, and changes of the pod's own labels."""
        pod, node = EventResource.POD, EventResource.NODE
        return (
            (ClusterEvent(pod, ActionType.DELETE), self._is_of_another_group),
            (ClusterEvent(pod, ActionType.ADD), self._is_of_the_group),
            (ClusterEvent(pod, ActionType.UPDATE_POD_LABEL), self._is_of_the_group),
            (ClusterEvent(node, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE), None),
        )

    def _is_of_another_group(self, pod: Pod, old: object | None, new: object | None) -> bool:
        # When the plugin rejects a group's own pods, that frees no more room than there was before.
        return not isinstance(old, Pod) or self.group_of(old) != self.group_of(pod)

    def _is_of_the_group(self, pod: Pod, old: object | None, new: object | None) -> bool:
        return not isinstance(new, Pod) or self.group_of(new) == self.group_of(pod)


def room_for(requests: Ints, cluster: ClusterState) -> int:
    """Return how many pods with the given requests fit on all nodes together, by resources only.

    Args:
        requests: int64[3 + resources], in the layout of a column of the usage matrix.
        cluster: the cluster.
    """
    nodes, count = cluster.nodes, cluster.nodes.count
    wanted = np.flatnonzero(requests[FIRST_RESOURCE:] > 0)
    fits = nodes.allowed_pods[:count] - cluster.usage[POD_COUNT, :count]
    for number in wanted.tolist():
        free = nodes.allocatable[number, :count] - cluster.usage[FIRST_RESOURCE + number, :count]
        fits = np.minimum(fits, free // requests[FIRST_RESOURCE + number])
    usable = nodes.alive[:count] & (fits > 0)
    return int(fits[usable].sum())


def read_arguments(arguments: object) -> GangArgs:
    """Return the arguments from a configuration.

    Raises:
        ConfigurationError: a field is unknown, or a value has the wrong type.
    """
    if arguments is None:
        return GangArgs()
    if not isinstance(arguments, Mapping):
        raise ConfigurationError("pluginConfig of Gang", got=repr(arguments), wanted="an object")
    given = {str(name): value for name, value in arguments.items() if name not in ("apiVersion", "kind")}
    for name, value in given.items():
        if name not in _FIELDS:
            raise ConfigurationError("pluginConfig of Gang", got=f"{name!r}", wanted=f"one of {', '.join(_FIELDS)}")
        is_label = isinstance(value, str) and bool(value)
        is_number = isinstance(value, int) and not isinstance(value, bool) and value > 0
        if not (is_label if _FIELDS[name] == "a label" else is_number):
            raise ConfigurationError(f"pluginConfig of Gang: {name}", got=repr(value), wanted=_FIELDS[name])
    default = GangArgs()
    return GangArgs(
        group_label=str(given.get("groupLabel", default.group_label)),
        size_label=str(given.get("sizeLabel", default.size_label)),
        permit_timeout_seconds=int(str(given.get("permitTimeoutSeconds", default.permit_timeout_seconds))),
    )


def _named(group: tuple[str, str] | None) -> str:
    return "/".join(group) if group is not None else ""
