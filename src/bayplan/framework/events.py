"""Cluster events: what plugins register to retry the pods that they rejected, and what an object change causes.

Source: KEP-4247 (queueing hints).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum, IntFlag, StrEnum
from functools import wraps
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from bayplan.base.go_text.times import parse_time_ns
from bayplan.objects.meta import KubernetesObject, ResourceList
from bayplan.objects.node import Node, Taint
from bayplan.objects.pod import Pod
from bayplan.objects.quantity import parse_quantity
from bayplan.objects.requests import DEFAULT_GATES, RequestGates
from bayplan.objects.scaled_down import is_scaled_down


class ActionType(IntFlag):
    """The change of an object. `ClusterEvent.matches` relies on the order of the values."""

    ADD = 1 << 0
    DELETE = 1 << 1
    UPDATE_NODE_ALLOCATABLE = 1 << 2
    UPDATE_NODE_LABEL = 1 << 3
    UPDATE_NODE_TAINT = 1 << 4
    UPDATE_NODE_CONDITION = 1 << 5
    UPDATE_NODE_ANNOTATION = 1 << 6
    UPDATE_NODE_DECLARED_FEATURE = 1 << 7
    UPDATE_POD_LABEL = 1 << 8
    UPDATE_POD_SCALE_DOWN = 1 << 9
    UPDATE_POD_TOLERATION = 1 << 10
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 11
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 1 << 12
    UPDATE = (1 << 13) - 1 - ADD - DELETE
    ALL = (1 << 13) - 1

    @property
    def text(self) -> str:
        """Return upstream's name, e.g. `UpdateNodeTaint`; `""` for a combination without a name."""
        return _TEXT_BY_ACTION.get(self, "")

    @property
    def texts(self) -> list[str]:
        """Return the names of the single actions that this value combines, in the order of their bits."""
        return [text for action, text in _TEXT_BY_ACTION.items() if action.bit_count() == 1 and action & self]


_TEXT_BY_ACTION: dict[ActionType, str] = {
    action: "".join(word.capitalize() for word in str(action.name).split("_"))
    for action in ActionType.__members__.values()
}
ACTION_BY_TEXT: Mapping[str, ActionType] = {text: action for action, text in _TEXT_BY_ACTION.items()}
"""Actions by upstream's names, for example in recorded traces."""


class EventResource(StrEnum):
    """The kind of object of an event. Plugins may also register any other kind, as ``plural.version.group``."""

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULABLE_POD = "UnschedulablePod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    POD_GROUP = "scheduling.k8s.io/PodGroup"
    WILDCARD = "*"


class ClusterEvent(NamedTuple):
    """An event that a plugin registers or the queue receives.

    Attributes:
        resource: the kind of object; plugins register ``Pod``, the queue gets ``AssignedPod`` or ``UnschedulablePod``.
        actions: the change; a registration may combine several.
        custom_label: the name of an event with a special label (UnschedulableTimeout, ForceActivate).
    """

    resource: str
    actions: ActionType
    custom_label: str = ""

    @property
    def label(self) -> str:
        """Return the event's name in metrics and traces, e.g. ``NodeUpdateNodeTaint``."""
        return self.custom_label or f"{self.resource}{self.actions.text}"

    @property
    def is_wildcard(self) -> bool:
        """Return whether the event concerns every pod, regardless of the plugins that rejected it."""
        return self.resource == EventResource.WILDCARD and self.actions == ActionType.ALL

    def matches(self, incoming: ClusterEvent) -> bool:
        """Return whether this registration matches an incoming event.

        An incoming general Update does not match a registration for a specific update, because it means that no
        specific change happened.
        """
        if self.is_wildcard:
            return True
        if not (
            self.resource in (incoming.resource, EventResource.WILDCARD)
            or (self.resource == EventResource.POD and incoming.resource in _POD_RESOURCES)
        ):
            return False
        return bool(self.actions & incoming.actions) and incoming.actions <= self.actions


_POD_RESOURCES = (EventResource.ASSIGNED_POD, EventResource.UNSCHEDULABLE_POD)

NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_DELETE = ClusterEvent(EventResource.NODE, ActionType.DELETE)
ASSIGNED_POD_ADD = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD)
ASSIGNED_POD_DELETE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
UNSCHEDULABLE_POD_ADD = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.ADD)
UNSCHEDULABLE_POD_UPDATE = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE)
UNSCHEDULABLE_TIMEOUT = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "UnschedulableTimeout")
ANY_EVENT = ClusterEvent(EventResource.WILDCARD, ActionType.ALL)
"""Registered by plugins whose rejections any event may lift."""
FORCE_ACTIVATE = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "ForceActivate")

SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"
"""Label of requeueing a failed pod. Plugins can't register it."""
BACKOFF_COMPLETE = "BackoffComplete"
"""Label of moving a pod from a backoff queue to the active queue after its backoff."""
POP_FROM_BACKOFF_QUEUE = "PopFromBackoffQ"
"""Label of popping a pod before its backoff ends, because the active queue is empty."""


class HintAnswer(IntEnum):
    """The result of a hint for a waiting pod and an event. QUEUE and ERROR requeue the pod."""

    SKIP = 0
    QUEUE = 1
    ERROR = 2
    """The hint failed. This counts as QUEUE, so that a failing hint can't leave a pod waiting forever."""


QueueingHint: TypeAlias = Callable[[Pod, object | None, object | None], HintAnswer | bool]
"""Called with the waiting pod and the old and new object of an event; returns whether to queue the pod."""

Registration: TypeAlias = tuple[ClusterEvent, str, QueueingHint | None]
"""An event, the plugin that registered it, and its hint; without a hint, the result is always QUEUE."""

HintTable: TypeAlias = Mapping[str, Sequence[Registration]]
"""The registrations of each profile's plugins, by scheduler name."""

_NODE_TAINT_UPDATE = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)


def registrations(
    plugins: Iterable[tuple[str, Sequence[tuple[ClusterEvent, QueueingHint | None]]]],
) -> list[Registration]:
    """Return the registrations of one profile, in the order of its plugins, completed as upstream does.

    A plugin that registers added nodes but not their taint updates is registered for these, too, always with QUEUE:
    otherwise a pod could wait forever because of a node that had a taint when it was added.
    """
    table: list[Registration] = []
    for name, events in plugins:
        table += [(event, name, hint) for event, hint in events]
        node_actions = ActionType(0)
        for event, _ in events:
            if event.resource == EventResource.NODE:
                node_actions |= event.actions
        if node_actions & ActionType.ADD and not node_actions & ActionType.UPDATE_NODE_TAINT:
            table.append((_NODE_TAINT_UPDATE, name, None))
    return table


_ANSWERS = tuple(HintAnswer)

Hint: TypeAlias = Callable[..., HintAnswer]
"""A `QueueingHint`, as a function or a method."""


def hint(
    kind: type[object], *, old: bool = False, new: bool = False
) -> Callable[[Callable[..., HintAnswer | bool]], Hint]:
    """Return a decorator that checks the objects of an event before it calls a queueing hint (function or method).

    The hint returns ERROR for objects of other types than `kind`, and with `old` or `new` if that object is None.
    """

    def decorate(function: Callable[..., HintAnswer | bool]) -> Hint:
        @wraps(function)
        def checked(*args: object) -> HintAnswer:
            before, after = args[-2:]
            if (isinstance(before, kind) or (before is None and not old)) and (
                isinstance(after, kind) or (after is None and not new)
            ):
                return _ANSWERS[function(*args)]
            return HintAnswer.ERROR

        return checked

    return decorate


_RESOURCE_BY_KIND = {resource.rpartition("/")[2]: resource for resource in EventResource}
"""Event resources by kind. Updates of other kinds than pods and nodes have no specific action."""


class ObjectChange(Struct, frozen=True, gc=False):
    """An event as passed to the queue.

    Attributes:
        event: the event.
        old, new: the objects for the hints; None before an addition or after a deletion.
        max_priority: only pods of at most this priority are moved; None for all.
    """

    event: ClusterEvent
    old: KubernetesObject | None
    new: KubernetesObject | None
    max_priority: int | None = None


def pod_update_events(old: Pod, new: Pod, gates: RequestGates = DEFAULT_GATES) -> list[ClusterEvent]:
    """Return the events of a pod's update, one per kind of change; a general Update if there is no specific change."""
    resource = EventResource.ASSIGNED_POD if new.spec.node_name else EventResource.UNSCHEDULABLE_POD
    actions = []
    if old.metadata.labels != new.metadata.labels:
        actions.append(ActionType.UPDATE_POD_LABEL)
    # Summing requests is expensive, and many updates change neither spec nor status but annotations or managed fields.
    if (old.spec != new.spec or old.status != new.status) and is_scaled_down(old, new, gates):
        actions.append(ActionType.UPDATE_POD_SCALE_DOWN)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        actions.append(ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    # Tolerations of a pod can only be added.
    if len(old.spec.tolerations) != len(new.spec.tolerations):
        actions.append(ActionType.UPDATE_POD_TOLERATION)
    if (
        old.status.resource_claim_statuses != new.status.resource_claim_statuses
        or old.status.extended_resource_claim_status != new.status.extended_resource_claim_status
    ):
        actions.append(ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    return [ClusterEvent(resource, action) for action in actions or (ActionType.UPDATE,)]


def node_update_events(old: Node, new: Node, *, declared_features: bool = True) -> list[ClusterEvent]:
    """Return the events of a node's update, one per kind of change; empty if nothing relevant changed.

    `declared_features` is the feature gate NodeDeclaredFeatures.
    """
    actions = []
    if old.spec.unschedulable and not new.spec.unschedulable:
        actions.append(ActionType.UPDATE_NODE_TAINT)
    if _amounts(old.status.allocatable) != _amounts(new.status.allocatable):
        actions.append(ActionType.UPDATE_NODE_ALLOCATABLE)
    if old.metadata.labels != new.metadata.labels:
        actions.append(ActionType.UPDATE_NODE_LABEL)
    if _taints(old.spec.taints) != _taints(new.spec.taints):
        actions.append(ActionType.UPDATE_NODE_TAINT)
    if _condition_statuses(old) != _condition_statuses(new):
        actions.append(ActionType.UPDATE_NODE_CONDITION)
    if old.metadata.annotations != new.metadata.annotations:
        actions.append(ActionType.UPDATE_NODE_ANNOTATION)
    if declared_features and old.status.declared_features != new.status.declared_features:
        actions.append(ActionType.UPDATE_NODE_DECLARED_FEATURE)
    return [ClusterEvent(EventResource.NODE, action) for action in actions]


def object_changes(
    old: KubernetesObject | None,
    new: KubernetesObject | None,
    *,
    declared_features: bool = True,
    gang_scheduling: bool = False,
    gates: RequestGates = DEFAULT_GATES,
) -> list[ObjectChange]:
    """Return the events of one object's addition (`old` is None), update, or deletion (`new` is None), in order.

    `declared_features` is the gate NodeDeclaredFeatures, `gang_scheduling` is GangScheduling.
    """
    if isinstance(old, Pod | None) and isinstance(new, Pod | None):
        return _pod_changes(old, new, gang_scheduling, gates)
    if isinstance(new, Node):
        if not isinstance(old, Node):
            return [ObjectChange(NODE_ADD, None, new)]
        events = node_update_events(old, new, declared_features=declared_features)
        return [ObjectChange(event, old, new) for event in events]
    if isinstance(old, Node):
        return [ObjectChange(NODE_DELETE, old, None)]
    resource = _RESOURCE_BY_KIND.get(type(new if new is not None else old).__name__)
    if resource is None:
        return []
    action = ActionType.ADD if old is None else ActionType.DELETE if new is None else ActionType.UPDATE
    return [ObjectChange(ClusterEvent(resource, action), old, new)]


def _pod_changes(old: Pod | None, new: Pod | None, gang_scheduling: bool, gates: RequestGates) -> list[ObjectChange]:
    if new is None:
        assert old is not None
        if old.spec.node_name:
            return [ObjectChange(ASSIGNED_POD_DELETE, old, None)]
        return [_resources_freed(old)] if old.status.nominated_node_name else []
    if old is None:
        if new.spec.node_name:
            return [ObjectChange(ASSIGNED_POD_ADD, None, new)]
        return [ObjectChange(UNSCHEDULABLE_POD_ADD, None, new)] if gang_scheduling else []
    if new.spec.node_name and not old.spec.node_name:
        return [ObjectChange(ASSIGNED_POD_ADD, None, new)]
    changes = [ObjectChange(event, old, new) for event in pod_update_events(old, new, gates)]
    if not old.spec.node_name and nominated_node_changed(old, new):
        changes.append(_resources_freed(old))
    return changes


def nominated_node_changed(old: Pod, new: Pod) -> bool:
    """Return whether a pod's nominated node changed or was cleared; for other pods, this frees room on the old node."""
    name = old.status.nominated_node_name
    return bool(name) and name != new.status.nominated_node_name


def _resources_freed(pod: Pod) -> ObjectChange:
    # Only pods of at most this priority can have been rejected because of the nominated pod.
    return ObjectChange(ASSIGNED_POD_DELETE, pod, None, pod.spec.priority or 0)


def _amounts(resources: ResourceList) -> dict[str, object]:
    return {name: parse_quantity(amount) for name, amount in resources.items()}


def _taints(taints: tuple[Taint, ...]) -> list[tuple[str, str, str, int | None]]:
    return [
        (taint.key, taint.value, taint.effect, None if taint.time_added is None else parse_time_ns(taint.time_added))
        for taint in taints
    ]


def _condition_statuses(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}
