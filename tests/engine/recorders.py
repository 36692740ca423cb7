"""A test plugin that implements every extension point, records its calls, and returns results that the test defines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from msgspec import structs

from bayplan.engine.actions import Action, Bind, Emit, Evict, Nominate, SetCondition
from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.scheduler import Scheduler
from bayplan.engine.select_host import first_by_name
from bayplan.framework.configuration.loading import load_configuration
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.diagnosis import Diagnosis, PostFilterResult
from bayplan.framework.events import ClusterEvent, QueueingHint
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import (
    PROCEED,
    BindPlugin,
    FilterPlugin,
    NormalizePlugin,
    Params,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ReservePlugin,
)
from bayplan.framework.status import SKIP, SUCCESS, Status, unschedulable
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from bayplan.state.arrays import Bools, Codes, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows
from bayplan.testing import make_node

SECOND = 1_000_000_000
HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
Log = list[tuple[Any, ...]]


@dataclass(frozen=True)
class RecorderSpec:
    key: str
    pod: Pod


class Recorder(
    PreEnqueuePlugin[RecorderSpec],
    PreFilterPlugin[RecorderSpec],
    FilterPlugin[RecorderSpec],
    PostFilterPlugin[RecorderSpec],
    PreScorePlugin[RecorderSpec],
    NormalizePlugin[RecorderSpec],
    ReservePlugin[RecorderSpec],
    PermitPlugin[RecorderSpec],
    PreBindPlugin[RecorderSpec],
    BindPlugin[RecorderSpec],
    PostBindPlugin[RecorderSpec],
):
    """Return the result that `says` defines for an extension point, or success if it defines none; for Bind, skip.

    The keys of `says` are names of methods, and most values are statuses. Under ``scores`` it has scores by node name,
    under ``refuses`` the names of nodes that Filter rejects, under ``post_filter`` and ``permit`` a pair. If `events`
    is None, the plugin registers for all events.
    """

    log: ClassVar[Log]
    says: ClassVar[dict[str, Any]]
    events: ClassVar[Sequence[tuple[ClusterEvent, QueueingHint | None]] | None] = None

    def _note(self, point: str, *arguments: object) -> None:
        self.log.append((self.name, point, *arguments))

    def _status(self, point: str, otherwise: Status = SUCCESS) -> Status:
        status = self.says.get(point, otherwise)
        assert isinstance(status, Status)
        return status

    def compile(self, pod: Pod, cluster: ClusterState) -> RecorderSpec:
        return RecorderSpec(pod.metadata.name, pod)

    def sign_pod(self, pod: Pod) -> str:
        return pod.metadata.name

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        return super().events_to_register() if self.events is None else self.events

    def pre_enqueue(self, pod: Pod) -> Status:
        self._note("pre_enqueue", pod.metadata.name)
        return self._status("pre_enqueue")

    def pre_filter(self, spec: RecorderSpec, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        self._note("pre_filter", spec.pod.metadata.name)
        answer: PreFilterResult | Status = self.says.get("pre_filter", PROCEED)
        return answer

    def filter(self, spec: RecorderSpec, params: Params | None, rows: Rows) -> Codes:
        names = [rows.state.nodes.names[row] or "" for row in rows.row_numbers().tolist()]
        self._note("filter", spec.pod.metadata.name, tuple(names), params)
        refused = self.says.get("refuses", ())
        return np.array([name in refused for name in names], dtype=np.uint16)

    def reasons(self, spec: RecorderSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        return ("node(s) were refused",)

    def post_filter(self, pod: Pod, diagnosis: Diagnosis, state: CycleState) -> tuple[PostFilterResult | None, Status]:
        self._note("post_filter", pod.metadata.name, diagnosis.message())
        answer: tuple[PostFilterResult | None, Status] = self.says.get("post_filter", (None, unschedulable()))
        return answer

    def pre_score(self, spec: RecorderSpec, cluster: ClusterState, feasible: Bools) -> Params | Status:
        self._note("pre_score", spec.pod.metadata.name, tuple(feasible.tolist()))
        answer: Params | Status = self.says.get("pre_score", ("from pre_score",))
        return answer

    def score(self, spec: RecorderSpec, params: Params | None, rows: Rows) -> Ints:
        self._note("score", spec.pod.metadata.name, params)
        scores = self.says.get("scores", {})
        return np.array(
            [scores.get(rows.state.nodes.names[row], 0) for row in rows.row_numbers().tolist()], dtype=np.int64
        )

    def scale(self, spec: RecorderSpec, params: Params | None, raw: Ints) -> Params:
        self._note("scale", tuple(raw.tolist()))
        return (int(raw.max()),)

    def normalize(self, spec: RecorderSpec, scale: Params, raw: Ints, rows: Rows) -> Ints:
        self._note("normalize", scale)
        return raw

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        self._note("reserve", pod.metadata.name, node_name)
        state.write(self.name, node_name)
        return self._status("reserve")

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._note("unreserve", pod.metadata.name, node_name)

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, int]:
        self._note("permit", pod.metadata.name, node_name)
        answer: tuple[Status, int] = self.says.get("permit", (SUCCESS, 0))
        return answer

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        # What Reserve wrote to the cycle state is still available here, even if the pod has waited for a permit.
        self._note("pre_bind", pod.metadata.name, node_name, state.read(self.name, str))
        return self._status("pre_bind")

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        self._note("bind", pod.metadata.name, node_name)
        return self._status("bind", SKIP)

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._note("post_bind", pod.metadata.name, node_name)


def make_recorder(
    name: str,
    log: Log,
    says: Mapping[str, object] | None = None,
    events: Sequence[tuple[ClusterEvent, QueueingHint | None]] | None = None,
) -> type[Recorder]:
    """Return a recorder that appends its calls to `log`; changing its `says` later changes its results."""
    return type(name, (Recorder,), {"name": name, "log": log, "says": dict(says or {}), "events": events})


def make_scheduler(
    *plugins: type[Plugin[Any]],
    in_tree: Sequence[str] = (),
    nodes: Sequence[str] = (),
    post_filter: bool = False,
    feature_gates: FeatureGates | None = None,
) -> Scheduler:
    """Return a scheduler with the plugins, DefaultBinder and 2-CPU nodes; it picks the first by name of equals."""
    registry = in_tree_registry().with_plugins(*plugins)
    enabled = [{"name": name} for name in (*in_tree, *(plugin.name for plugin in plugins), "DefaultBinder")]
    points: dict[str, object] = {
        "multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": "PrioritySort"}, *enabled]}
    }
    if not post_filter:
        points["postFilter"] = {"disabled": [{"name": "*"}]}
    configuration = load_configuration(
        {**HEADER, "profiles": [{"schedulerName": "default-scheduler", "plugins": points}]},
        extension_points_of=registry.extension_points_for_configuration,
    )
    scheduler = assemble_scheduler(
        configuration, registry, feature_gates=feature_gates or FeatureGates(), pick=first_by_name
    )
    for name in nodes:
        scheduler.handle(None, small_node(name), 0)
    return scheduler


def allow(scheduler: Scheduler, key: str, plugin: str, now_ns: int) -> list[Action]:
    """Allow a waiting pod for a Permit plugin; return the actions, with its binding if it waits for no other."""
    waiting = scheduler.waiting_pods.get(key)
    if waiting is not None:
        waiting.allow(plugin)
    return scheduler.bindings.process_decided(now_ns)


def small_node(name: str) -> Node:
    return make_node(name).capacity(cpu="2", memory="4Gi").obj()


def as_tuples(actions: Sequence[Action]) -> list[tuple[str, ...]]:
    """Return actions as tuples of strings."""
    found: list[tuple[str, ...]] = []
    for action in actions:
        match action:
            case Bind(pod, node_name):
                found.append(("bind", pod.metadata.name, node_name))
            case Nominate(pod, node_name):
                found.append(("nominate", pod.metadata.name, node_name))
            case Evict(pod, preemptor, node_name):
                found.append(("evict", pod.metadata.name, preemptor.metadata.name, node_name))
            case SetCondition(pod, reason, message):
                found.append(("condition", pod.metadata.name, reason, message))
            case Emit(pod, kind, reason, verb, note):
                found.append(("event", pod.metadata.name, f"{kind} {reason} {verb}", note))
    return found


def waits(scheduler: Scheduler) -> dict[str, str]:
    """Return the part of the queue that each pod is in, by the pod's name."""
    queue = scheduler.queue
    found = {queued.pod.metadata.name: "active" for queued in queue.active()}
    found |= {queued.pod.metadata.name: "backoff" for queued in queue.backing_off()}
    return found | {queued.pod.metadata.name: "unschedulable" for queued in queue.unschedulable()}


def on_nodes(scheduler: Scheduler) -> dict[str, str]:
    """Return the node of each pod that is assumed or bound, by the pod's name."""
    names = scheduler.state.nodes.names
    return {info.pod.metadata.name: names[info.row] or "" for info in scheduler.state.pods.values()}


def confirm(scheduler: Scheduler, name: str, node_name: str, now_ns: int) -> list[tuple[str, ...]]:
    """Report a pod to the scheduler as bound to a node; return the scheduler's actions."""
    pod = scheduler.pods[f"default/{name}"]
    bound = structs.replace(pod, spec=structs.replace(pod.spec, node_name=node_name))
    return as_tuples(scheduler.handle(pod, bound, now_ns))
