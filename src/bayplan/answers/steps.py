"""Steps that a user can take to get a pod placed: what each step changes, what it costs, and the commands for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from msgspec.structs import replace

from bayplan.answers.instant_host import Change
from bayplan.answers.trial import Trial
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod


class StepKind(StrEnum):
    """The kind of a step. The order is that of the ranking, the least risky first."""

    WAIT = "wait"
    CREATE = "create object"
    UNGATE = "remove gate"
    TOLERATE_OWN = "tolerate taint of its nodes"
    COUNT_DOMAINS = "count reachable domains"
    ADD_NODE = "add node"
    SHRINK = "shrink request"
    MOVE = "move pods"
    RELAX = "relax constraint"
    UNCORDON = "uncordon node"
    EVICT = "evict pods"
    PRIORITY = "raise priority"
    TOLERATE = "tolerate taint"
    LABEL = "label node"


RISKS: Mapping[StepKind, str] = {
    StepKind.WAIT: "the scheduler does it by itself",
    StepKind.CREATE: "nothing else changes",
    StepKind.UNGATE: "the gate may still be needed",
    StepKind.TOLERATE_OWN: "the taint reserves the nodes for pods that ask for them or their devices, as this one does",
    StepKind.COUNT_DOMAINS: "the spread constraint then ignores domains whose nodes the pod can't use",
    StepKind.ADD_NODE: "costs money, disturbs nothing",
    StepKind.SHRINK: "the pod may need more than the reduced requests",
    StepKind.MOVE: "the moved pods restart",
    StepKind.RELAX: "the rule no longer holds if nodes are scarce",
    StepKind.UNCORDON: "the node may have been cordoned for a reason",
    StepKind.EVICT: "the evicted pods stop, and become pending or are lost",
    StepKind.PRIORITY: "the pod preempts others, now and later",
    StepKind.TOLERATE: "the pod takes room that is reserved for others",
    StepKind.LABEL: "other pods that select the label may be placed there, too",
}
"""The risk of each kind of step, unless a step has an individual one."""

DROPPED = "the rule no longer applies"
"""The risk of a step that removes a rule instead of making it a preference."""

RANKS: Mapping[StepKind, int] = {kind: place for place, kind in enumerate(StepKind)}

PodEdit = Callable[[Pod], Pod]
NodeEdit = Callable[[Node], Node]


@dataclass(frozen=True)
class Step:
    """One step.

    Attributes:
        kind: see `StepKind`.
        text: the change, as an imperative sentence.
        lifts: the filter whose rejection the step resolves.
        cost: the relative cost from 0 to 1, among steps of the same kind.
        commands: the kubectl commands for the change, if there are any.
        nodes: the nodes on which the step is meant to help; None for any.
        edit_pod: returns the changed pod.
        edit_nodes: return the changed nodes, by name.
        evicts: the keys of the pods to evict.
        adds: the new objects, in order.
        copies: returns the objects of one more new node, by its number.
        replaces: objects that replace existing objects of the same names.
        preempts: whether the pod preempts other pods.
        group: equal for equivalent steps, of which only one is shown; "" for a step without equivalents.
        parts: the texts of smaller steps. If one of them is enough, this step is not suggested.
        risk: the risk, if it differs from that of the kind.
    """

    kind: StepKind
    text: str
    lifts: str
    cost: float = 0.0
    commands: tuple[str, ...] = ()
    nodes: frozenset[str] | None = None
    edit_pod: PodEdit | None = None
    edit_nodes: Mapping[str, NodeEdit] = field(default_factory=dict)
    evicts: tuple[str, ...] = ()
    adds: tuple[KubernetesObject, ...] = ()
    copies: Callable[[int], tuple[KubernetesObject, ...]] | None = None
    replaces: tuple[KubernetesObject, ...] = ()
    preempts: bool = False
    group: str = ""
    parts: tuple[str, ...] = ()
    risk: str = ""


relaxation = partial(Step, StepKind.RELAX)
"""Returns a step that relaxes a constraint of the pod."""


def with_spec(pod: Pod, **fields: object) -> Pod:
    """Return a pod with other values of some fields of its spec."""
    return replace(pod, spec=replace(pod.spec, **fields))


def includes(steps: Sequence[Step], others: Sequence[Step]) -> bool:
    """Return whether steps do at least what the others do, so that they are pointless if the others are enough."""
    return all(any(_covers(step, other) for step in steps) for other in others)


def _covers(step: Step, other: Step) -> bool:
    return step is other or other.text in step.parts or (bool(step.group) and step.group == other.group)


def edited(pod: Pod, steps: Sequence[Step]) -> Pod:
    """Return a pod with the edits of these steps."""
    for step in steps:
        if step.edit_pod is not None:
            pod = step.edit_pod(pod)
    return pod


def changes_of(steps: Sequence[Step], trial: Trial) -> list[Change]:
    """Return the changes that steps make to the cluster: first evictions, then changed nodes, then new objects."""
    found: list[Change] = []
    for key in dict.fromkeys(key for step in steps for key in step.evicts):
        pod = trial.bound(key)
        if pod is not None:
            found.append((pod, None))
    edits: dict[str, list[NodeEdit]] = {}
    for step in steps:
        for name, edit in step.edit_nodes.items():
            edits.setdefault(name, []).append(edit)
    for name, of_node in edits.items():
        old = node = trial.node(name)
        if old is None or node is None:
            continue
        for edit in of_node:
            node = edit(node)
        found.append((old, node))
    for step in steps:
        for item in step.replaces:
            found.append((_known(item, trial), item))
        found += [(_known(item, trial), item) for item in step.adds]
    return found


def _known(item: KubernetesObject, trial: Trial) -> KubernetesObject | None:
    if isinstance(item, Pod):
        return trial.bound(item.key)
    if isinstance(item, Node):
        return trial.node(item.metadata.name)
    return trial.catalog.get(type(item), item.key)
