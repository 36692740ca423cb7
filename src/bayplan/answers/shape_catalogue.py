"""The node shapes that could be added for a waiting pod: given ones, those of the cluster, or one tailored to the pod."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from msgspec.structs import replace

from bayplan.analysis.node_taints import is_condition_taint, untolerated_taints
from bayplan.analysis.units import format_amount
from bayplan.analysis.volume_places import bound_volumes, volume_labels
from bayplan.answers.daemon_pods import daemon_models, daemon_on
from bayplan.answers.node_groups import INSTANCE_TYPE, POOL_LABELS, describes_place
from bayplan.answers.node_shapes import HOSTNAME, NodeShape, shape_of, shapes_of
from bayplan.answers.prices import size_price
from bayplan.answers.trial import Trial
from bayplan.objects.affinity import NodeSelectorTerm
from bayplan.objects.meta import KubernetesObject, ObjectMeta, ResourceList
from bayplan.objects.node import Node, NodeStatus
from bayplan.objects.pod import Pod
from bayplan.objects.requests import accounted_requests, node_amounts
from bayplan.objects.selectors import compile_required_node_affinity

_CORE = 1000
_GIB = 1 << 30
_GENERIC: ResourceList = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}


class ShapeCatalogue:
    """The available node shapes: those of a cluster, or those that the user gives.

    Args:
        trial: the cluster.
        catalogue: one node for each available shape, which has the name of the node; by default the shapes of the
            cluster.
    """

    def __init__(self, trial: Trial, catalogue: Sequence[Node] = ()) -> None:
        self._trial = trial
        self._given = catalogue

    @cached_property
    def shapes(self) -> list[NodeShape]:
        """Return all shapes, the cheapest first. If a catalogue is given, only its shapes."""
        found = [shape_of(node, size_price) for node in self._given] or shapes_of(self._trial.state, size_price)
        if not found:
            node = Node(metadata=ObjectMeta(name="generic"), status=NodeStatus(allocatable=_GENERIC, capacity=_GENERIC))
            found = [NodeShape(name="a generic node", template=node, price=size_price(node))]
        return sorted(found, key=lambda each: (each.price, each.like, each.template.metadata.name))

    @cached_property
    def daemons(self) -> list[Pod]:
        """Return one pod of each DaemonSet, as a model for its pods on new nodes."""
        return daemon_models(self._trial.state)

    def objects(self, shape: NodeShape, number: int = 0) -> tuple[KubernetesObject, ...]:
        """Return the objects of one new node of a shape: its CSINode and ResourceSlices, the node, and its pods of DaemonSets."""
        return shape.objects(f"new-node-{number}" if number else "new-node", self.daemons)

    def tailored(self, shape: NodeShape, pod: Pod) -> NodeShape:
        """Return a copy of a shape with the labels and capacity that a pod needs, and without taints that it does not tolerate."""
        node, differs = shape.template, list[str]()
        labels = self._wanted_labels(pod, node)
        missing = {key: text for key, text in labels.items() if node.metadata.labels.get(key) != text}
        if missing:
            moved = _moved(node, missing)
            metadata = replace(node.metadata, labels={**node.metadata.labels, **moved, **missing})
            node = replace(node, metadata=metadata)
            zone = next((text for key, text in missing.items() if describes_place(key) and key.endswith("zone")), "")
            if zone:
                differs.append(f"in {zone}")
            rest = [f"{key}={text}" for key, text in missing.items() if not describes_place(key)]
            if rest:
                differs.append(f"with {', '.join(rest)}")
        # A new node has no condition taints and no cordon.
        taints = [each for each in untolerated_taints(pod, node) if not is_condition_taint(each)]
        if taints:
            left = tuple(each for each in node.spec.taints if each not in taints)
            node = replace(node, spec=replace(node.spec, taints=left))
            differs.append(f"without the taint {', '.join(each.key for each in taints)}")
        larger = self._larger(node, pod)
        if larger:
            amounts = {**node.status.allocatable, **larger}
            node = replace(node, status=replace(node.status, allocatable=amounts, capacity=amounts))
            shown = ", ".join(
                f"{format_amount(name, node_amounts({name: text})[name])} {name}" for name, text in larger.items()
            )
            differs.append(f"with {shown}")
        price = size_price(node) if differs else shape.price
        return replace(shape, template=node, differs=tuple(differs), price=price)

    def can_match(self, shape: NodeShape, pod: Pod) -> bool:
        """Return whether a pod's node can be of this shape: no shape can get another pool's label, instance type or devices."""
        node = shape.template
        labels = self._wanted_labels(pod, node)
        for key in (*POOL_LABELS, INSTANCE_TYPE):
            text = labels.get(key)
            known = {other.template.metadata.labels.get(key) for other in self.shapes}
            if text in known - {None} and node.metadata.labels.get(key) != text:
                return False
        offered = node_amounts(node.status.allocatable)
        for name, amount in accounted_requests(pod, self._trial.state.request_gates).requests.items():
            if "/" not in name or not amount or offered.get(name):
                continue
            if any(node_amounts(other.template.status.allocatable).get(name) for other in self.shapes):
                return False
        return True

    def _wanted_labels(self, pod: Pod, node: Node) -> dict[str, str]:
        found = dict(pod.spec.node_selector or {})
        required = compile_required_node_affinity(pod)
        if not required.matches({**node.metadata.labels, **found}, node.metadata.name):
            affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
            selector = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
            for term in selector.node_selector_terms if selector is not None else ():
                more = _labels_for(term, {**node.metadata.labels, **found})
                if required.matches({**node.metadata.labels, **found, **more}, node.metadata.name):
                    found |= more
                    break
        for _, volume in bound_volumes(pod, self._trial.catalog):
            found |= {key: text for key, text in volume_labels(volume).items() if key != HOSTNAME}
        return found

    def _larger(self, node: Node, pod: Pod) -> dict[str, str]:
        """Return the resources of which a new node would have too little, with the amounts that it needs."""
        taken: dict[str, int] = {}
        # A new node also runs pods of DaemonSets.
        runs = [made for daemon in self.daemons if (made := daemon_on(daemon, node)) is not None]
        for each in (*runs, pod):
            for name, amount in accounted_requests(each, self._trial.state.request_gates).requests.items():
                taken[name] = taken.get(name, 0) + amount
        offered, found = node_amounts(node.status.allocatable), dict[str, str]()
        for name, amount in taken.items():
            if amount <= offered.get(name, 0):
                continue
            if name == "cpu":
                found[name] = str(-(-amount // _CORE))
            elif name in ("memory", "ephemeral-storage"):
                found[name] = f"{-(-amount // _GIB)}Gi"
            else:
                found[name] = str(amount)
        if offered.get("pods", 0) <= len(self.daemons):
            found["pods"] = str(len(self.daemons) + 10)
        return found


def labels_named_by(pod: Pod) -> set[str]:
    """Return the label keys in a pod's node selector and node affinity."""
    found = set(pod.spec.node_selector or {})
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    for term in required.node_selector_terms if required is not None else ():
        found.update(each.key for each in term.match_expressions)
    return found


def _moved(node: Node, missing: dict[str, str]) -> dict[str, str]:
    """Return the other location labels to change with the missing ones: all zone and region labels of a node must agree."""
    places = {key.rpartition("/")[2]: text for key, text in missing.items() if describes_place(key)}
    return {
        key: places[name]
        for key in node.metadata.labels
        if describes_place(key) and key not in missing and (name := key.rpartition("/")[2]) in places
    }


def _labels_for(term: NodeSelectorTerm, labels: dict[str, str]) -> dict[str, str]:
    """Return labels that a node lacks to match the expressions of a term. Not every expression can be met by adding labels."""
    found: dict[str, str] = {}
    for each in term.match_expressions:
        values = each.values or ()
        if each.operator == "In" and values and labels.get(each.key) not in values:
            found[each.key] = values[0]
        elif each.operator == "Exists" and each.key not in labels:
            found[each.key] = "true"
        elif each.operator in ("Gt", "Lt") and values and values[0].lstrip("-").isdigit():
            found[each.key] = str(int(values[0]) + (1 if each.operator == "Gt" else -1))
        elif each.operator == "NotIn" and labels.get(each.key) in values:
            found[each.key] = "other"
    return found
