"""A scheduler over a small cluster for tests of preemption, and the result of PostFilter in one scheduling cycle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

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


class Candidate(NamedTuple):
    """A node on which preemption could make room, with the keys of the victims, and how many of them a budget protects."""

    node_name: str
    victims: tuple[str, ...]
    pdb_violations: int


@dataclass
class Preemption:
    """The results of one scheduling cycle: of filtering, of PostFilter with its status, and the message for the pod.

    Attributes:
        shortlist: All candidates.
        best_nodes: The names of the equally good candidates.
    """

    result: ScheduleResult
    found: PostFilterResult | None
    status: Status | None
    message: str
    shortlist: list[Candidate]
    best_nodes: list[str]

    @property
    def candidates(self) -> dict[str, tuple[str, ...]]:
        """Return the keys of the victims by the name of the candidate."""
        return {each.node_name: each.victims for each in self.shortlist}


def scheduler_of(
    objects: Iterable[object],
    *,
    config: Mapping[str, object] | None = None,
    gates: Mapping[str, bool] | None = None,
) -> Scheduler:
    """Return a scheduler that knows `objects` (builders or documents) and picks the first by name of equal nodes."""
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
    """Run a scheduling cycle for a pod up to and including PostFilter, without evicting victims."""
    scheduler.pods[pod.key] = pod
    profile = scheduler.profiles[pod.spec.scheduler_name]
    plan = scheduler.plans.plan_for(profile, pod)
    state = CycleState()
    result = schedule_pod(plan, pod, state, scheduler.nominated_pods, first_by_name)
    if result.diagnosis is None:
        return Preemption(result, None, None, result.failure.message if result.failure is not None else "", [], [])
    found, status = scheduler.run_post_filter_plugins(profile, pod, result.diagnosis, state)
    names, shortlist = scheduler.state.nodes.names, found.shortlist if found is not None else None
    candidates, best_nodes = list[Candidate](), list[str]()
    if shortlist is not None:
        for number, row in enumerate(shortlist.rows.tolist()):
            victims = tuple(info.key for info in shortlist.victims_at(number))
            candidates.append(Candidate(names[row] or "", victims, shortlist.violations_at(number)))
        best_nodes = sorted(names[row] or "" for row in shortlist.rows[shortlist.best()].tolist())
    return Preemption(result, found, status, result.diagnosis.message(), candidates, best_nodes)


def node(name: str = "n1", cpu: str = "4", **more: str) -> NodeBuilder:
    """Return the builder of a node with 4 CPUs and 16 GiB unless other amounts are given."""
    return make_node(name).capacity(cpu=cpu, memory="16Gi", **more)


def running(name: str, cpu: str, priority: int = 0, on: str = "n1", started: str | None = None) -> PodBuilder:
    """Return the builder of a pod that runs on the node `on`."""
    builder = make_pod(name).req(cpu=cpu).priority(priority).node(on)
    if started is not None:
        builder.document()["status"]["startTime"] = started
    return builder


def preemptor(cpu: str = "2", priority: int = 100, name: str = "vip") -> PodBuilder:
    """Return the builder of a pod with priority 100, unless a priority is given."""
    return make_pod(name).req(cpu=cpu).priority(priority)


def terminating(builder: PodBuilder, *, by_preemption: bool = False) -> PodBuilder:
    """Give a pod a deletion timestamp and, if `by_preemption`, the condition that the scheduler sets on victims."""
    document = builder.document()
    document["metadata"]["deletionTimestamp"] = TERMINATING
    if by_preemption:
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        document["status"]["conditions"] = [condition]
    return builder


def budget(selector: Mapping[str, str] | None, allowed: int, name: str = "budget") -> dict[str, object]:
    """Return a PodDisruptionBudget that selects labels; if `selector` is None, it has no selector."""
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
