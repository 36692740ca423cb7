"""A naive version of preemption that considers only CPU and the number of pods, one node and one pod at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

LATER_THAN_ALL = 10**30


@dataclass(frozen=True)
class SmallPod:
    """A pod: its CPU request, its priority, its labels and its start time."""

    name: str
    priority: int
    cpu: int
    started: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def start(self) -> int:
        """Return the start time; pods without one count as started last."""
        return LATER_THAN_ALL if self.started is None else self.started


@dataclass
class SmallNode:
    """A node with its running pods and the pods nominated to it."""

    name: str
    cpu: int
    pods: int
    running: list[SmallPod] = field(default_factory=list)
    nominated: list[SmallPod] = field(default_factory=list)


@dataclass(frozen=True)
class SmallBudget:
    """A PodDisruptionBudget: the labels that it selects, and the number of disruptions that it allows."""

    selects: Mapping[str, str]
    allowed: int
    disrupted: tuple[str, ...] = ()


def fits(node: SmallNode, running: Sequence[SmallPod], pod: SmallPod) -> bool:
    """Return whether a pod fits next to `running`, with and without nominated pods of equal or higher priority."""
    crowd = [other for other in node.nominated if other.priority >= pod.priority and other.name != pod.name]
    for others in ([*running, *crowd], list(running)):
        if len(others) + 1 > node.pods:
            return False
        if pod.cpu > 0 and sum(other.cpu for other in others) + pod.cpu > node.cpu:
            return False
    return True


def victims(node: SmallNode, pod: SmallPod, budgets: Sequence[SmallBudget]) -> tuple[list[str], int] | None:
    """Return the victims, highest priority first, and the number of budget violations; None if evictions don't help."""
    kept = [other for other in node.running if other.priority >= pod.priority]
    potential = [other for other in node.running if other.priority < pod.priority]
    if not potential or not fits(node, kept, pod):
        return None
    potential.sort(key=lambda other: (-other.priority, other.start))
    left = [budget.allowed for budget in budgets]
    protected: list[SmallPod] = []
    others: list[SmallPod] = []
    for other in potential:
        violates = False
        for number, budget in enumerate(budgets):
            selected = bool(budget.selects) and bool(other.labels)
            selected = selected and all(other.labels.get(key) == value for key, value in budget.selects.items())
            if selected and other.name not in budget.disrupted:
                left[number] -= 1
                if left[number] < 0:
                    violates = True
        (protected if violates else others).append(other)
    gone: list[SmallPod] = []
    violations = 0
    for group in (protected, others):
        for other in group:
            if fits(node, [*kept, other], pod):
                kept.append(other)
            else:
                gone.append(other)
                violations += group is protected
    if protected and others:
        gone.sort(key=lambda other: (-other.priority, other.start))
    return ([other.name for other in gone], violations) if gone else None


def best_nodes(candidates: Mapping[str, tuple[Sequence[SmallPod], int]]) -> list[str]:
    """Return the names of the equally good nodes among candidates with victims and numbers of violations."""
    names = sorted(candidates)

    def keep(measure: Mapping[str, int]) -> None:
        smallest = min(measure[name] for name in names)
        names[:] = [name for name in names if measure[name] == smallest]

    keep({name: candidates[name][1] for name in names})
    keep({name: max(pod.priority for pod in candidates[name][0]) for name in names})
    keep({name: sum(pod.priority + 2**31 for pod in candidates[name][0]) for name in names})
    keep({name: len(candidates[name][0]) for name in names})
    highest = {name: max(pod.priority for pod in candidates[name][0]) for name in names}
    earliest = {name: min(pod.start for pod in candidates[name][0] if pod.priority == highest[name]) for name in names}
    keep({name: -earliest[name] for name in names})
    return names
