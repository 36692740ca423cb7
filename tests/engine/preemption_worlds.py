"""A scheduler over a small cluster, for tests of preemption: one cycle, and the result of its PostFilter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.cycle import ScheduleResult, schedule_pod
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.engine.select_host import first_by_name
from bayplan.framework.configuration.loading import default_configuration, load_configuration
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.diagnosis import PostFilterResult
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.status import Status
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from bayplan.testing.builders import NodeBuilder, PodBuilder, make_node, make_pod

TERMINATING = "2026-01-01T00:00:00Z"


@dataclass
class Preemption:
    """The results of one cycle: those of filtering and of PostFilter, PostFilter's status, the pod's message."""

    result: ScheduleResult
    found: PostFilterResult | None
    status: Status | None
    message: str

    @property
    def candidates(self) -> dict[str, tuple[str, ...]]:
        """Return the victims by candidate node."""
        return {each.node_name: each.victims for each in (self.found.candidates if self.found else ())}


def scheduler_of(
    objects: Iterable[object],
    *,
    config: Mapping[str, object] | None = None,
    gates: Mapping[str, bool] | None = None,
) -> Scheduler:
    """Return a scheduler that knows some objects (builders or documents), and picks the first of equals by name."""
    feature_gates = FeatureGates.from_mapping(dict(gates or {}))
    configuration = default_configuration(feature_gates)
    if config is not None:
        document = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            **config,
        }
        configuration = load_configuration(document, feature_gates=feature_gates)
    scheduler = assemble_scheduler(
        configuration,
        in_tree_registry(),
        feature_gates=feature_gates,
        pick=first_by_name,
        record_level=RecordLevel.SUMMARY,
    )
    for item in objects:
        assert isinstance(item, NodeBuilder | PodBuilder | Mapping)
        scheduler.handle(None, item.obj() if isinstance(item, NodeBuilder | PodBuilder) else _decoded(item), 0)
    return scheduler


def preempt(scheduler: Scheduler, pod: Pod) -> Preemption:
    """Run a cycle for a pod as far as PostFilter; nothing is done about what it finds."""
    scheduler.pods[pod.key] = pod
    profile = scheduler.profiles[pod.spec.scheduler_name]
    plan = scheduler.plans.plan_for(profile, pod)
    state = CycleState()
    result = schedule_pod(plan, pod, state, scheduler.nominated_pods, first_by_name)
    if result.diagnosis is None:
        return Preemption(result, None, None, result.failure.message if result.failure is not None else "")
    found, status = scheduler.run_post_filter_plugins(profile, pod, result.diagnosis, state)
    return Preemption(result, found, status, result.diagnosis.message())


def node(name: str = "n1", cpu: str = "4", **more: str) -> NodeBuilder:
    """Return a node with CPUs."""
    return make_node(name).capacity(cpu=cpu, memory="16Gi", **more)


def running(name: str, cpu: str, priority: int = 0, on: str = "n1", started: str | None = None) -> PodBuilder:
    """Return a pod that runs on a node."""
    builder = make_pod(name).req(cpu=cpu).priority(priority).node(on)
    if started is not None:
        builder.document()["status"]["startTime"] = started
    return builder


def preemptor(cpu: str = "2", priority: int = 100, name: str = "vip") -> PodBuilder:
    """Return a pod that wants room."""
    return make_pod(name).req(cpu=cpu).priority(priority)


def terminating(builder: PodBuilder, *, by_preemption: bool = False) -> PodBuilder:
    """Let a pod be on its way out, perhaps because the scheduler preempted it."""
    document = builder.document()
    document["metadata"]["deletionTimestamp"] = TERMINATING
    if by_preemption:
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        document["status"]["conditions"] = [condition]
    return builder


def budget(selector: Mapping[str, str] | None, allowed: int, name: str = "budget") -> dict[str, object]:
    """Return a disruption budget that selects labels; None leaves the selector out."""
    spec: dict[str, object] = {} if selector is None else {"selector": {"matchLabels": dict(selector)}}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
        "status": {"disruptionsAllowed": allowed},
    }


def _decoded(document: Mapping[str, object]) -> KubernetesObject:
    return default_object(decode(dict(document)))
