"""A classic scheduler over a small cluster, and the result of one cycle."""

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
from bayplan.engine.full_pass import score_over
from bayplan.engine.plan import Plan
from bayplan.engine.select_host import first_by_name
from bayplan.framework.cycle_state import CycleState
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.testing.builders import NodeBuilder, PodBuilder, make_node

ZONE = "failure-domain.beta.kubernetes.io/zone"
Item = NodeBuilder | PodBuilder | Mapping[str, object]


@dataclass
class Cycle:
    """A cycle: its plan, its result, its scheduler."""

    scheduler: ClassicScheduler
    pod: Pod
    plan: Plan
    result: ClassicResult

    @property
    def chosen(self) -> str:
        """Return the chosen node, or the empty text."""
        row = self.result.common.row
        return "" if row < 0 else self.scheduler.state.nodes.names[row] or ""

    @property
    def message(self) -> str:
        """Return why there is no node."""
        if self.result.fit_error is not None:
            return self.result.fit_error.message()
        return self.result.common.failure.message if self.result.common.failure is not None else ""

    @property
    def feasible(self) -> list[str]:
        """Return the feasible nodes, sorted."""
        return sorted(self.scheduler.state.nodes.names[row] or "" for row in self.result.order.tolist())

    def reasons(self, node_name: str) -> list[str]:
        """Return the reasons that count against a node."""
        column = self.result.failing[:, self.scheduler.state.nodes.row_of[node_name]]
        return [
            text
            for number in column.nonzero()[0].tolist()
            for text in self.plan.explain(number, int(column[number])).reasons
        ]

    def scores(self, priority: str) -> dict[str, int]:
        """Return the reduced scores of a priority on all feasible nodes."""
        return self.table()[priority]

    def table(self) -> dict[str, dict[str, int]]:
        """Return the reduced scores of all priorities on all feasible nodes."""
        nodes = self.scheduler.state.nodes
        feasible = np.zeros(nodes.capacity, dtype=np.bool_)
        feasible[self.result.order] = True
        table = score_over(self.plan, feasible)
        rows = self.result.order.tolist()
        return {
            name: {nodes.names[row] or "": int(scores.normalized[row]) for row in rows}
            for name, scores in table.scores.items()
        }

    def preemption(self) -> Preemption:
        """Return the result of preemption."""
        return self.scheduler.find_preemption(self.pod, self.result)

    def candidates(self) -> dict[str, list[str]]:
        """Return the victims by candidate node."""
        names = self.scheduler.state.nodes.names
        found = self.preemption().candidates
        return {names[row] or "": [key.split("/")[1] for key in victims.keys] for row, victims in found.items()}

    def best(self) -> list[str]:
        """Return the nodes among which preemption takes any, sorted."""
        return sorted(self.scheduler.state.nodes.names[row] or "" for row in self.preemption().best)


def configured(
    *,
    provider: str = "DefaultProvider",
    policy: Mapping[str, object] | None = None,
    gates: Mapping[str, bool] | None = None,
    sample: int = 100,
) -> ClassicConfiguration:
    """Return a configuration; a policy is given without kind and version."""
    return ClassicConfiguration(
        provider=provider,
        policy=None if policy is None else policy_from_mapping({"kind": "Policy", "apiVersion": "v1", **policy}),
        gates=ClassicGates.from_mapping(gates or {}),
        percentage_of_nodes_to_score=sample,
    )


def only_priority(name: str, argument: object = None) -> dict[str, object]:
    """Return a policy without predicates (but the mandatory ones) and with one priority."""
    rule: dict[str, object] = {"name": name, "weight": 1}
    return {"predicates": [], "priorities": [rule if argument is None else {**rule, "argument": argument}]}


def only_predicate(name: str, argument: object = None) -> dict[str, object]:
    """Return a policy with one predicate (and the mandatory ones) and no priorities."""
    rule: dict[str, object] = {"name": name}
    return {"predicates": [rule if argument is None else {**rule, "argument": argument}], "priorities": []}


def scheduler_of(objects: Iterable[Item], configuration: ClassicConfiguration | None = None) -> ClassicScheduler:
    """Return a scheduler that knows some objects, and picks the first of equals by name."""
    scheduler = assemble_classic_scheduler(configuration or configured(), pick=first_by_name)
    for item in objects:
        scheduler.handle(None, typed(item), 0)
    return scheduler


def cycle(scheduler: ClassicScheduler, builder: PodBuilder) -> Cycle:
    """Run a cycle for a pod; nothing is done about what it finds."""
    pod = builder.obj()
    scheduler.pods[pod.key] = pod
    plan = scheduler.plans.plan_for(scheduler.profiles[pod.spec.scheduler_name], pod)
    result = schedule_pod(plan, pod, CycleState(), scheduler.nominated_pods, scheduler.settings, scheduler.extenders)
    return Cycle(scheduler, pod, plan, result)


def cycle_of(objects: Iterable[Item], builder: PodBuilder, configuration: ClassicConfiguration | None = None) -> Cycle:
    """Run a cycle for a pod over some objects."""
    return cycle(scheduler_of(objects, configuration), builder)


def typed(item: Item) -> KubernetesObject:
    """Return the object of a builder or document."""
    if isinstance(item, NodeBuilder | PodBuilder):
        return item.obj()
    return default_object(decode(dict(item)))


def node(name: str = "n1", cpu: str = "4", memory: str = "8Gi", **more: str) -> NodeBuilder:
    """Return a node with room."""
    return make_node(name).capacity(cpu=cpu, memory=memory, **more)
