"""Answer queue traces: replay the operations of a case on Bayplan's scheduling queue and return the state after each.

Traces with ``defaultPlugins`` use the hints and gates of the default configuration (`_default_plugins`).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import msgspec

from bayplan.base.errors import InputError
from bayplan.conformance.cases import JsonObject
from bayplan.conformance.cross_topology import assigned_pod_added, assigned_pod_updated
from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.queue import PreCheck, PreEnqueue, QueueOptions, SchedulingQueue
from bayplan.engine.queue_options import DEFAULT_OPTIONS
from bayplan.engine.queued_pod import QueuedPod, key_of, uid_of
from bayplan.framework.configuration.loading import default_configuration
from bayplan.framework.events import (
    ACTION_BY_TEXT,
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    ActionType,
    ClusterEvent,
    ObjectChange,
    QueueingHint,
    Registration,
    node_update_events,
    pod_update_events,
    registrations,
)
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import Handle
from bayplan.framework.status import Code, Status
from bayplan.objects import kinds
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from bayplan.plugins.scheduling_gates import SchedulingGates
from bayplan.state.cluster_state import ClusterState

_START_NS = 1_700_000_000_000_000_000
_PROFILE = "default-scheduler"
_CODES = {"Error": Code.ERROR, "Unschedulable": Code.UNSCHEDULABLE}


class _Camel(msgspec.Struct, rename="camel", kw_only=True):
    """The base class of the structs of a case, which have fields in camel case."""


class _Options(_Camel, kw_only=True):
    start_unix_ns: int = _START_NS
    initial_backoff_ns: int = DEFAULT_OPTIONS.initial_backoff_ns
    max_backoff_ns: int = DEFAULT_OPTIONS.max_backoff_ns
    max_in_unschedulable_ns: int = DEFAULT_OPTIONS.max_in_unschedulable_ns
    pop_from_backoff_q: bool = True
    profiles: list[str] = msgspec.field(default_factory=lambda: [_PROFILE])
    default_plugins: bool = False


class _Event(_Camel, kw_only=True):
    resource: str
    actions: list[str]
    label: str = ""

    def typed(self) -> ClusterEvent:
        actions = ActionType(0)
        for action in self.actions:
            actions |= ACTION_BY_TEXT[action]
        return ClusterEvent(self.resource, actions, self.label)


class _Hint(_Camel, kw_only=True):
    event: _Event
    answer: str
    by_pod: dict[str, str] = msgspec.field(default_factory=dict)


class _Op(_Camel, kw_only=True):
    op: str
    pod: str = ""
    pods: list[str] = msgspec.field(default_factory=list)
    old: str | None = None
    new: str | None = None
    plugin: str = ""
    code: str = ""
    unschedulable: list[str] | None = None
    pending: list[str] | None = None
    raw: bool = False
    via: str = ""
    event: _Event | None = None
    pre_check: list[str] | None = None
    max_priority: int | None = None
    ns: int = 0
    node: str = ""
    mode: str = ""

    @property
    def overriding_node(self) -> str | None:
        """The nominated node that replaces the pod's own; None to keep that one."""
        return self.node if self.mode == "override" else None


class _Case(_Camel, kw_only=True):
    id: str
    options: _Options = msgspec.field(default_factory=_Options)
    pre_enqueue: list[str] | None = None
    hints: dict[str, list[_Hint]] | None = None
    pods: dict[str, dict[str, object]] | None = None
    objects: dict[str, dict[str, object]] | None = None
    cluster: list[dict[str, object]] | None = None
    ops: list[_Op]


def answer_queue_case(case: JsonObject) -> JsonObject:
    """Return Bayplan's answer to a queue trace, in the recorded format.

    Raises:
        InputError: the trace is malformed.
    """
    try:
        trace = msgspec.convert(case, _Case)
    except msgspec.ValidationError as problem:
        raise InputError("queue trace", wanted="the recorded format", got=str(problem)) from None
    replay = _Replay(trace)
    steps: list[JsonObject] = []
    for op in trace.ops:
        result = replay.run(op)
        replay.queue.check_invariants()
        steps.append({"result": result, "state": replay.state()})
    return msgspec.convert({"id": trace.id, "error": None, "steps": steps}, dict)


def _default_plugins(objects: Sequence[KubernetesObject]) -> tuple[list[Registration], list[tuple[str, PreEnqueue]]]:
    """Return the registrations and the PreEnqueue plugins of the default profile in a cluster with these objects."""
    scheduler = assemble_scheduler(default_configuration(), in_tree_registry(), feature_gates=FeatureGates())
    for item in objects:
        scheduler.handle(None, item, 0)
    profile = scheduler.profiles[_PROFILE]
    table = registrations([(plugin.name, plugin.events_to_register()) for plugin in profile.plugins.values()])
    return table, [(plugin.name, plugin.pre_enqueue) for plugin in profile.pre_enqueue]


class _Gate:
    """A PreEnqueue plugin that gates the pods in `held`."""

    def __init__(self) -> None:
        self.held: dict[str, Code] = {}

    def __call__(self, pod: Pod) -> Status | None:
        code = self.held.get(pod.metadata.name)
        return None if code is None else Status(code, ("held back",))


def _recorded_hint(hint: _Hint) -> QueueingHint:
    # An error counts as Queue.
    return lambda pod, old, new: hint.by_pod.get(pod.metadata.name, hint.answer) != "Skip"


class _Replay:
    """The queue of one trace, and the pods and objects of its cluster."""

    def __init__(self, trace: _Case) -> None:
        options = trace.options
        self.now_ns = options.start_unix_ns
        self.pods = {key: _pod(key, document) for key, document in (trace.pods or {}).items()}
        self.objects = {key: kinds.decode(document) for key, document in (trace.objects or {}).items()}
        self.known: dict[str, Pod] = {}
        self.popped: dict[str, QueuedPod] = {}
        self.nodes = {pod.status.nominated_node_name for pod in self.pods.values()} | {op.node for op in trace.ops}
        self.gates: dict[str, _Gate] = {}
        registrations: list[Registration] = []
        plugins: list[tuple[str, PreEnqueue]] = []
        if options.default_plugins:
            registered, pre_enqueue = _default_plugins([kinds.decode(document) for document in trace.cluster or ()])
            registrations += registered
            plugins += pre_enqueue
        for plugin, hints in sorted((trace.hints or {}).items()):
            registrations += [(hint.event.typed(), plugin, _recorded_hint(hint)) for hint in hints]
        for plugin in trace.pre_enqueue or ():
            plugins = [each for each in plugins if each[0] != plugin]
            if plugin == SchedulingGates.name:
                real = SchedulingGates(None, Handle(ClusterState(), FeatureGates()))
                registrations += [(event, plugin, hint) for event, hint in real.events_to_register()]
                plugins.append((plugin, real.pre_enqueue))
            else:
                self.gates[plugin] = _Gate()
                plugins.append((plugin, self.gates[plugin]))
        self.queue = SchedulingQueue(
            dict.fromkeys(options.profiles, registrations),
            dict.fromkeys(options.profiles, plugins),
            self.known.get,
            options=QueueOptions(
                initial_backoff_ns=options.initial_backoff_ns,
                max_backoff_ns=options.max_backoff_ns,
                max_in_unschedulable_ns=options.max_in_unschedulable_ns,
                pop_from_backoff=options.pop_from_backoff_q,
                start_ns=options.start_unix_ns,
            ),
        )

    def run(self, op: _Op) -> JsonObject:
        """Execute an operation and return its result."""
        queue, now_ns = self.queue, self.now_ns
        match op.op:
            case "add":
                queue.add(self._learn(op.pod), now_ns)
            case "update":
                queue.update(self.pods[op.old or ""], self._learn(op.new or ""), now_ns)
            case "delete":
                queue.delete(self._forget(op.pod))
            case "pop":
                if not queue.closed and not self._can_pop():
                    return {"pod": None, "wouldBlock": True}
                return self._remember(queue.pop())
            case "popSpecific":
                return self._remember(queue.pop_specific(self.pods[op.pod], now_ns))
            case "fail":
                return self._return_to_queue(op) if op.raw else self._fail(op)
            case "done":
                self.popped.pop(key_of(self.pods[op.pod]), None)
                queue.done(uid_of(self.pods[op.pod]))
            case "move":
                assert op.event is not None
                queue.move_all(op.event.typed(), self._object(op.old), self._object(op.new), now_ns, _pre_check(op))
            case "activate":
                queue.activate({key_of(self.pods[key]): self.pods[key] for key in op.pods}.values(), now_ns)
            case "advance":
                self.now_ns += op.ns
            case "flushBackoff":
                queue.flush_backoff(now_ns)
            case "flushUnschedulable":
                queue.flush_unschedulable(now_ns)
            case "close":
                queue.close()
            case "gate":
                self.gates[op.plugin].held = dict.fromkeys(
                    op.pods, _CODES.get(op.code, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
                )
            case "nominate":
                queue.nominator.add(self.pods[op.pod], op.overriding_node)
            case "unnominate":
                queue.nominator.remove(uid_of(self.pods[op.pod]))
            case "updateNominated":
                queue.nominator.update(self.pods[op.old or ""], self.pods[op.new or ""])
            case "listerSet":
                self._learn(op.pod)
            case "listerRemove":
                self._forget(op.pod)
            case _:
                return self._change_cluster(op)
        return {}

    def _change_cluster(self, op: _Op) -> JsonObject:
        queue, now_ns = self.queue, self.now_ns
        match op.op:
            case "assignedAdd" if op.via == "queue":
                assigned_pod_added(queue, self._learn(op.pod), now_ns)
            case "assignedAdd":
                queue.move_all(ASSIGNED_POD_ADD, None, self._learn(op.pod), now_ns)
            case "assignedDelete":
                queue.move_all(ASSIGNED_POD_DELETE, self._forget(op.pod), None, now_ns)
            case "assignedUpdate":
                old, new = self.pods[op.old or ""], self._learn(op.new or "")
                events = pod_update_events(old, new)
                for event in events:
                    if op.via == "queue":
                        assigned_pod_updated(queue, event, old, new, now_ns)
                    else:
                        queue.move_all(event, old, new, now_ns)
                return {"events": [event.label for event in events]}
            case "nodeUpdate":
                before, after = self._object(op.old), self._object(op.new)
                assert isinstance(before, Node)
                assert isinstance(after, Node)
                events = node_update_events(before, after)
                for event in events:
                    queue.move_all(event, before, after, now_ns, _pre_check(op))
                return {"events": [event.label for event in events]}
            case _:
                raise InputError("queue trace", got=f"operation {op.op!r}", wanted="a known operation")
        return {}

    def _learn(self, key: str) -> Pod:
        pod = self.pods[key]
        self.known[key_of(pod)] = pod
        return pod

    def _forget(self, key: str) -> Pod:
        pod = self.pods[key]
        self.known.pop(key_of(pod), None)
        return pod

    def _object(self, key: str | None) -> KubernetesObject | None:
        if not key:
            return None
        return self.objects[key] if key in self.objects else self.pods[key]

    def _can_pop(self) -> bool:
        # If no pod is ready, upstream would block. The recorded traces don't pop in that case.
        queued = self.queue.active()
        if self.queue.options.pop_from_backoff:
            queued += [each for each in self.queue.backing_off() if not each.failed_by_error]
        busy = {each.uid for each in self.queue.in_flight() if isinstance(each, QueuedPod)}
        return any(each.uid not in busy for each in queued)

    def _remember(self, queued: QueuedPod | None) -> JsonObject:
        if queued is None:
            return {"pod": None}
        self.popped[queued.key] = queued
        return {"pod": _record(queued)}

    def _fail(self, op: _Op) -> JsonObject:
        """Report the failed attempt of a popped pod, as the scheduler does."""
        queued = self.popped.pop(key_of(self.pods[op.pod]), None)
        if queued is None:
            raise InputError("queue trace", got=f"the failure of pod {op.pod}", wanted="the failure of a popped pod")
        outcome = self.queue.fail(
            queued,
            self.now_ns,
            unschedulable_plugins=frozenset(op.unschedulable or ()),
            pending_plugins=frozenset(op.pending or ()),
            nominated_node_name=op.overriding_node,
        )
        return {"requeued": outcome is not None, "error": outcome or None}

    def _return_to_queue(self, op: _Op) -> JsonObject:
        """Return any pod to the queue, popped or not, without the scheduler's checks."""
        pod = self.pods[op.pod]
        queued = self.popped.pop(key_of(pod), None)
        if queued is None:
            waiting = self.queue.get(key_of(pod))
            queued = self.queue.new_record(pod, self.now_ns) if waiting is None else copy(waiting)
        queued.unschedulable_plugins, queued.pending_plugins = (
            frozenset(op.unschedulable or ()),
            frozenset(op.pending or ()),
        )
        queued.gating_plugin = ""
        error = self.queue.add_unschedulable_if_not_present(queued, self.now_ns)
        self.queue.nominator.add(queued.pod, op.overriding_node)
        return {"requeued": True, "error": error or None}

    def state(self) -> JsonObject:
        """Return the whole state in the recorded format. Pods that compare equal are sorted by name."""
        queue = self.queue
        waiting = queue.backing_off()
        active = sorted(queue.active(), key=lambda each: (-each.priority, each.timestamp_ns, each.key))
        failed = [each for each in waiting if each.failed_by_error]
        rejected = [each for each in waiting if not each.failed_by_error]
        by_priority = queue.options.pop_from_backoff
        rejected.sort(
            key=lambda each: (
                each.backoff_expiry_ns,
                *((-each.priority, each.timestamp_ns) if by_priority else ()),
                each.key,
            )
        )
        nominated: JsonObject = {
            node: [*queue.nominator.on_node(node).values()]
            for node in sorted(self.nodes - {""})
            if queue.nominator.on_node(node)
        }
        return {
            "now": self.now_ns,
            "cycle": queue.scheduling_cycle,
            "active": [_record(each) for each in active],
            "backoff": [_record(each, backing_off=True) for each in rejected],
            "errorBackoff": [
                _record(each, backing_off=True)
                for each in sorted(failed, key=lambda each: (each.backoff_expiry_ns, each.key))
            ],
            "unschedulable": [_record(each) for each in sorted(queue.unschedulable(), key=lambda each: each.key)],
            "inFlight": [_in_flight_name(each) for each in queue.in_flight()],
            "nominated": nominated,
        }


def _pod(key: str, document: dict[str, object]) -> Pod:
    pod = kinds.convert(document, Pod)
    metadata = pod.metadata
    metadata = msgspec.structs.replace(
        metadata,
        namespace=metadata.namespace or "default",
        uid=metadata.uid or f"uid-{metadata.name}",
        resource_version=metadata.resource_version or key,
    )
    spec = msgspec.structs.replace(pod.spec, scheduler_name=pod.spec.scheduler_name or _PROFILE)
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec)


def _pre_check(op: _Op) -> PreCheck | None:
    highest, names = op.max_priority, op.pre_check
    if highest is not None:
        return lambda pod: (pod.spec.priority or 0) <= highest
    if names is not None:
        return lambda pod: pod.metadata.name in names
    return None


def _record(queued: QueuedPod, *, backing_off: bool = False) -> JsonObject:
    record: JsonObject = {
        "pod": queued.key,
        "version": queued.pod.metadata.resource_version,
        "timestamp": queued.timestamp_ns,
        "attempts": queued.attempts,
        "unschedulableCount": queued.unschedulable_count,
        "errorCount": queued.error_count,
        "initialAttempt": queued.initial_attempt_ns,
        "unschedulablePlugins": [*sorted(queued.unschedulable_plugins)],
        "pendingPlugins": [*sorted(queued.pending_plugins)],
        "gatingPlugin": queued.gating_plugin,
        "flushed": queued.flushed,
    }
    if backing_off:
        record["backoffExpiry"] = queued.backoff_expiry_ns
    return record


def _in_flight_name(entry: QueuedPod | ObjectChange) -> str:
    if isinstance(entry, QueuedPod):
        return f"pod {entry.key}"
    event = entry.event
    if event.custom_label or event.actions.text:
        return f"event {event.label}"
    # Upstream's label of combined actions is empty; the recorded traces list the actions.
    return f"event {event.resource}[{' '.join(sorted(event.actions.texts))}]"
