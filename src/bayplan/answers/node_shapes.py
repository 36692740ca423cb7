"""Shapes of nodes that could be added: those of the cluster, those of a catalogue, and one tailored to a pod."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

import msgspec
from msgspec.structs import replace

from bayplan.analysis.root_cause import bound_volumes, untolerated_taints, volume_labels
from bayplan.analysis.units import format_amount
from bayplan.answers.pod_steps import is_condition_taint
from bayplan.answers.trial_cluster import TrialCluster
from bayplan.objects.affinity import NodeSelectorTerm
from bayplan.objects.meta import KubernetesObject, ObjectMeta, ResourceList
from bayplan.objects.node import Node, NodeSpec, NodeStatus
from bayplan.objects.node_prices import PRICE
from bayplan.objects.pod import Pod, PodStatus
from bayplan.objects.requests import accounted_requests, node_amounts
from bayplan.objects.resource import ResourceSlice
from bayplan.objects.selectors import compile_required_node_affinity
from bayplan.objects.storage import CSINode

HOSTNAME = "kubernetes.io/hostname"
POOL_LABELS = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "node.kubernetes.io/instance-type",
)
"""Labels that name a pool, most specific first."""

ZONE = "topology.kubernetes.io/zone"

_CORE = 1000
_GIB = 1 << 30
_GENERIC: ResourceList = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}


class NodeShape(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of node.

    Attributes:
        name: the name for users.
        node: the template.
        count: number of nodes of this shape in the cluster.
        price: the price of a node; from a catalogue, or else by its size.
        csi: the objects of its CSI drivers.
        slices: its devices.
        differs: how it differs from its template, in words; empty for a shape that exists.
    """

    name: str
    node: Node
    count: int
    price: float
    csi: CSINode | None = None
    slices: tuple[ResourceSlice, ...] = ()
    differs: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Return the shape in words."""
        zone = self.node.metadata.labels.get(ZONE)
        where = f" in {zone}" if zone and not any("in " in each for each in self.differs) else ""
        like = f"like {self.name}" if not self.differs else f"like {self.name}, but {' and '.join(self.differs)}"
        return f"{like}{where} ({self.size})" if self.size else f"{like}{where}"

    @property
    def distance(self) -> int:
        """Return the number of labels, taints and amounts in which it differs from its template.

        A taint counts three times: nodes reserved for other workloads are rarely the ones to add.
        """
        return sum((each.count(",") + 1) * (3 if each.startswith("without") else 1) for each in self.differs)

    @property
    def size(self) -> str:
        """Return what a node offers, in words."""
        amounts = node_amounts(self.node.status.allocatable)
        shown = [
            f"{format_amount(name, amount)} {name}" for name, amount in amounts.items() if amount and name != "pods"
        ]
        return ", ".join(shown[:4])


def size_price(node: Node) -> float:
    """Return a price by size: a core counts 1, 8 GiB count 1, any other device 10."""
    amounts = node_amounts(node.status.allocatable)
    price = amounts.get("cpu", 0) / _CORE + amounts.get("memory", 0) / (8 * _GIB)
    return price + 10.0 * sum(amount for name, amount in amounts.items() if "/" in name and amount < 1000)


class ShapeCatalogue:
    """The shapes of a cluster, and those that a user names.

    Args:
        trial: the cluster.
        catalogue: available nodes, one for each shape; their names are those of the shapes.
    """

    def __init__(self, trial: TrialCluster, catalogue: Sequence[Node] = ()) -> None:
        self._trial = trial
        self._given = catalogue

    @cached_property
    def shapes(self) -> list[NodeShape]:
        """Return all shapes, the cheapest first; those of the catalogue alone, if there is one."""
        found = self._from_catalogue() if self._given else self._from_cluster()
        if not found:
            node = Node(metadata=ObjectMeta(name="generic"), status=NodeStatus(allocatable=_GENERIC, capacity=_GENERIC))
            found = [NodeShape(name="a generic node", node=node, count=0, price=size_price(node))]
        return sorted(found, key=lambda each: (each.price, each.name, each.node.metadata.name))

    def _from_catalogue(self) -> list[NodeShape]:
        return [
            NodeShape(
                name=node.metadata.name,
                node=node,
                count=0,
                price=float(node.metadata.annotations.get(PRICE) or size_price(node)),
            )
            for node in self._given
        ]

    def _from_cluster(self) -> list[NodeShape]:
        nodes = self._trial.nodes()
        own = _labels_of_one_node(nodes)
        groups: dict[object, list[Node]] = {}
        for node in nodes:
            labels = tuple(sorted((key, text) for key, text in node.metadata.labels.items() if key not in own))
            taints = tuple(
                (each.key, each.value, each.effect) for each in node.spec.taints if not is_condition_taint(each)
            )
            groups.setdefault(
                (labels, taints, tuple(sorted(node_amounts(node.status.allocatable).items()))), []
            ).append(node)
        slices: dict[str, list[ResourceSlice]] = {}
        for each in self._trial.catalog.all(ResourceSlice):
            if each.spec.node_name:
                slices.setdefault(each.spec.node_name, []).append(each)
        found = []
        alike: dict[str, list[Node]] = {}
        for members in groups.values():
            alike.setdefault(_pool_name(members[0]), []).append(members[0])
        for members in groups.values():
            first = members[0]
            name = first.metadata.name
            pool = _pool_name(first)
            found.append(
                NodeShape(
                    name=f"{pool}{_distinguished(first, alike[pool], own)}",
                    node=first,
                    count=len(members),
                    price=size_price(first),
                    csi=self._trial.catalog.get(CSINode, name),
                    slices=tuple(slices.get(name, ())),
                )
            )
        return found

    @cached_property
    def daemons(self) -> list[Pod]:
        """Return one pod of each DaemonSet."""
        found: dict[tuple[str, str], Pod] = {}
        for info in self._trial.state.pods.values():
            owners = info.pod.metadata.owner_references
            if owners:
                owner = info.pod.metadata.controller()
                if owner is not None and owner.kind == "DaemonSet":
                    found.setdefault((info.pod.metadata.namespace, owner.name), info.pod)
        return list(found.values())

    def objects(self, shape: NodeShape, number: int = 0) -> tuple[KubernetesObject, ...]:
        """Return the objects of one new node of a shape: the node, its CSI and device objects, the pods of DaemonSets."""
        name = f"new-node-{number}" if number else "new-node"
        node = fresh_node(shape.node, name)
        found: list[KubernetesObject] = [node]
        if shape.csi is not None:
            found.append(replace(shape.csi, metadata=ObjectMeta(name=name)))
        for place, each in enumerate(shape.slices):
            pool = replace(
                each.spec.pool, name=name if each.spec.pool.name == shape.node.metadata.name else f"{name}-{place}"
            )
            spec = replace(each.spec, node_name=name, pool=pool)
            found.append(replace(each, metadata=ObjectMeta(name=f"{name}-slice-{place}"), spec=spec))
        found += [pod for daemon in self.daemons if (pod := _daemon_on(daemon, node)) is not None]
        return tuple(found)

    # --- a node that is made for a pod --------------------------------------------------------------------------------

    def tailored(self, shape: NodeShape, pod: Pod) -> NodeShape:
        """Return a shape with the labels and the room that a pod needs, and without taints that it does not tolerate."""
        node, differs = shape.node, list[str]()
        labels = self._wanted_labels(pod, node)
        missing = {key: text for key, text in labels.items() if node.metadata.labels.get(key) != text}
        if missing:
            metadata = replace(node.metadata, labels={**node.metadata.labels, **missing})
            node = replace(node, metadata=metadata)
            if ZONE in missing:
                differs.append(f"in {missing[ZONE]}")
            rest = [
                f"{key}={text}" for key, text in missing.items() if key not in (ZONE, "topology.kubernetes.io/region")
            ]
            if rest:
                differs.append(f"with {', '.join(rest)}")
        # A new node has neither conditions nor cordons.
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
        return replace(shape, node=node, differs=tuple(differs), price=size_price(node) if differs else shape.price)

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
        """Return the resources of which a new node would have too little, with the required amounts."""
        taken: dict[str, int] = {}
        # A node of this shape runs the pods of DaemonSets, too.
        runs = [made for daemon in self.daemons if (made := _daemon_on(daemon, node)) is not None]
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


def fresh_node(node: Node, name: str) -> Node:
    """Return a copy of a node as a new one that has just become ready."""
    labels = {**node.metadata.labels, HOSTNAME: name}
    taints = tuple(each for each in node.spec.taints if not is_condition_taint(each))
    status = NodeStatus(
        allocatable=node.status.allocatable,
        capacity=node.status.capacity,
        declared_features=node.status.declared_features,
    )
    return replace(node, metadata=ObjectMeta(name=name, labels=labels), spec=NodeSpec(taints=taints), status=status)


def _daemon_on(daemon: Pod, node: Node) -> Pod | None:
    """Return the pod of a DaemonSet on a new node; None if it does not run there."""
    spec = daemon.spec
    affinity = spec.affinity
    if affinity is not None and affinity.node_affinity is not None:
        # The controller pins each pod to its node by name, which is the only thing that differs.
        of_node = affinity.node_affinity
        required = of_node.required_during_scheduling_ignored_during_execution
        if required is not None:
            terms = tuple(replace(term, match_fields=()) for term in required.node_selector_terms)
            kept = tuple(term for term in terms if term.match_expressions)
            found = replace(required, node_selector_terms=kept) if kept else None
            of_node = replace(of_node, required_during_scheduling_ignored_during_execution=found)
            spec = replace(spec, affinity=replace(affinity, node_affinity=of_node))
    pod = replace(daemon, spec=replace(spec, node_name=""))
    if not compile_required_node_affinity(pod).matches(node.metadata.labels, node.metadata.name):
        return None
    if untolerated_taints(pod, node):
        return None
    metadata = replace(
        daemon.metadata, name=f"{daemon.metadata.name[:40]}-{node.metadata.name}", uid="", resource_version=""
    )
    return replace(
        pod, metadata=metadata, spec=replace(pod.spec, node_name=node.metadata.name), status=PodStatus(phase="Running")
    )


def _labels_for(term: NodeSelectorTerm, labels: dict[str, str]) -> dict[str, str]:
    """Return labels with which a node meets the expressions of a term, as far as labels can."""
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


def _labels_of_one_node(nodes: Iterable[Node]) -> frozenset[str]:
    """Return the labels of single nodes rather than pools: the host name, and labels whose values are all different."""
    values: dict[str, list[str]] = {}
    for node in nodes:
        for key, text in node.metadata.labels.items():
            values.setdefault(key, []).append(text)
    unique = {key for key, texts in values.items() if len(texts) > 3 and len(set(texts)) == len(texts)}
    return frozenset(unique | {HOSTNAME})


def _distinguished(node: Node, alike: Sequence[Node], own: Collection[str]) -> str:
    """Return the labels that tell a node from others of its pool, zone and size left out; "" if there are none."""
    labels = node.metadata.labels
    differ = [
        f"{key}={text}"
        for key, text in sorted(labels.items())
        if key not in own and key != ZONE and any(other.metadata.labels.get(key) != text for other in alike)
    ]
    return f" with {', '.join(differ[:2])}" if differ else ""


def _pool_name(node: Node) -> str:
    for key in POOL_LABELS:
        if node.metadata.labels.get(key):
            return f"the nodes of {node.metadata.labels[key]}"
    return node.metadata.name
