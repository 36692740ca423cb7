"""A classic scheduler over a small cluster, and the result of one scheduling cycle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from bayplan.classic.assemble import assemble_classic_scheduler
from bayplan.classic.configuration import ClassicConfiguration
from bayplan.classic.cycle import ClassicResult, schedule_pod
from bayplan.classic.gates import ClassicGates
from bayplan.classic.policy import policy_from_mapping
from bayplan.classic.preemption import Preemption
from bayplan.classic.scheduler import ClassicScheduler
from bayplan.engine.plan import Plan
from bayplan.engine.select_host import first_by_name
from bayplan.framework.cycle_state import CycleState
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.testing.builders import NodeBuilder, PodBuilder, make_node
from tests.engine.full_pass import full_pass

ZONE = "failure-domain.beta.kubernetes.io/zone"
Item = NodeBuilder | PodBuilder | Mapping[str, object]


@dataclass
class Cycle:
    """A scheduling cycle: its pod, its plan, its result and its scheduler."""

    scheduler: ClassicScheduler
    pod: Pod
    plan: Plan
    result: ClassicResult

    @property
    def chosen(self) -> str:
        """Return the name of the chosen node, or the empty string if there is none."""
        row = self.result.common.row
        return "" if row < 0 else self.scheduler.state.nodes.names[row] or ""

    @property
    def message(self) -> str:
        """Return the message that says why no node was chosen, or the empty string."""
        if self.result.fit_error is not None:
            return self.result.fit_error.message()
        return self.result.common.failure.message if self.result.common.failure is not None else ""

    @property
    def feasible(self) -> list[str]:
        """Return the names of the feasible nodes, sorted."""
        return sorted(self.scheduler.state.nodes.names[row] or "" for row in self.result.order.tolist())

    def reasons(self, node_name: str) -> list[str]:
        """Return the reasons why a node is not feasible."""
        column = self.result.failing[:, self.scheduler.state.nodes.row_of[node_name]]
        return [
            text
            for number in column.nonzero()[0].tolist()
            for text in self.plan.explain(number, int(column[number])).reasons
        ]

    def scores(self, priority: str) -> dict[str, int]:
        """Return the scores of one priority by feasible node, after its reduce function."""
        return self.table()[priority]

    def table(self) -> dict[str, dict[str, int]]:
        """Return the scores by priority and feasible node, after the reduce functions."""
        nodes = self.scheduler.state.nodes
        feasible = np.zeros(nodes.capacity, dtype=np.bool_)
        feasible[self.result.order] = True
        rows = self.result.order.tolist()
        return {
            name: {nodes.names[row] or "": int(scores.normalized[row]) for row in rows}
            for name, scores in full_pass(self.plan, feasible).scores.items()
        }

    def preemption(self) -> Preemption:
        """Run preemption for the pod and return its result."""
        return self.scheduler.find_preemption(self.pod, self.result)

    def candidates(self) -> dict[str, list[str]]:
        """Return the names of the victims by candidate node."""
        names = self.scheduler.state.nodes.names
        found = self.preemption().candidates
        return {names[row] or "": [key.split("/")[1] for key in victims.keys] for row, victims in found.items()}

    def best(self) -> list[str]:
        """Return the names of the equally good nodes among which preemption picks one, sorted."""
        return sorted(self.scheduler.state.nodes.names[row] or "" for row in self.preemption().best)


def configured(
    *,
    provider: str = "DefaultProvider",
    policy: Mapping[str, object] | None = None,
    gates: Mapping[str, bool] | None = None,
    sample: int = 100,
) -> ClassicConfiguration:
    """Return a configuration; `policy` is a policy without its kind and API version."""
    return ClassicConfiguration(
        provider=provider,
        policy=None if policy is None else policy_from_mapping({"kind": "Policy", "apiVersion": "v1", **policy}),
        gates=ClassicGates.from_mapping(gates or {}),
        percentage_of_nodes_to_score=sample,
    )


def only_priority(name: str, argument: object = None) -> dict[str, object]:
    """Return a policy with one priority and with no predicates except the mandatory ones."""
    rule: dict[str, object] = {"name": name, "weight": 1}
    return {"predicates": [], "priorities": [rule if argument is None else {**rule, "argument": argument}]}


def only_predicate(name: str, argument: object = None) -> dict[str, object]:
    """Return a policy with one predicate besides the mandatory ones, and with no priorities."""
    rule: dict[str, object] = {"name": name}
    return {"predicates": [rule if argument is None else {**rule, "argument": argument}], "priorities": []}


def scheduler_of(objects: Iterable[Item], configuration: ClassicConfiguration | None = None) -> ClassicScheduler:
    """Return a scheduler that knows `objects` and, among equally good nodes, picks the first by name."""
    scheduler = assemble_classic_scheduler(configuration or configured(), pick=first_by_name)
    for item in objects:
        scheduler.handle(None, typed(item), 0)
    return scheduler


def cycle(scheduler: ClassicScheduler, builder: PodBuilder) -> Cycle:
    """Run a scheduling cycle for a pod, without binding it or preempting for it."""
    pod = builder.obj()
    scheduler.pods[pod.key] = pod
    plan = scheduler.plans.plan_for(scheduler.profiles[pod.spec.scheduler_name], pod)
    result = schedule_pod(plan, pod, CycleState(), scheduler.nominated_pods, scheduler.settings, scheduler.extenders)
    return Cycle(scheduler, pod, plan, result)


def cycle_of(objects: Iterable[Item], builder: PodBuilder, configuration: ClassicConfiguration | None = None) -> Cycle:
    """Run a scheduling cycle for a pod in a cluster of `objects`."""
    return cycle(scheduler_of(objects, configuration), builder)


def typed(item: Item) -> KubernetesObject:
    """Return the object of a builder or of a document, with defaults."""
    if isinstance(item, NodeBuilder | PodBuilder):
        return item.obj()
    return default_object(decode(dict(item)))


def node(name: str = "n1", cpu: str = "4", memory: str = "8Gi", **more: str) -> NodeBuilder:
    """Return the builder of a node with 4 CPUs and 8 GiB unless other amounts are given."""
    return make_node(name).capacity(cpu=cpu, memory=memory, **more)
