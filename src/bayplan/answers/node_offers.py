"""Shapes of nodes that could be added: what they offer, their labels and taints, and what one costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from bayplan.answers.copies import PodCopier
from bayplan.answers.node_groups import INSTANCE_TYPE, ZONE, group_of
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.answers.trial import Trial
from bayplan.base.errors import InputError
from bayplan.objects.affinity import NodeSelectorRequirement, NodeSelectorTerm
from bayplan.objects.meta import KubernetesObject, ObjectMeta
from bayplan.objects.node import Node, NodeSpec, NodeStatus, Taint
from bayplan.objects.node_prices import PRICE
from bayplan.objects.pod import Pod
from bayplan.objects.quantity import parse_quantity

HOSTNAME = "kubernetes.io/hostname"

OWN_LABELS = (HOSTNAME, "alpha.eksctl.io/instance-id", "topology.ebs.csi.aws.com/instance-id")
"""Labels that belong to one node and are not copied."""

DEFAULT_PODS = "110"
"""Pods that a kubelet allows by default (maxPods)."""

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class NodeOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of node.

    Attributes:
        name: the name of the shape.
        allocatable: its capacity.
        labels, taints: the labels and taints of every such node.
        price: the price of one, in any unit.
        most: maximum number; None for any number.
        declared_features: as nodes declare them.
    """

    name: str
    allocatable: dict[str, str | int | float]
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    price: float = 1.0
    most: int | None = None
    declared_features: tuple[str, ...] = ()

    def node(self, name: str) -> Node:
        """Return a new node of this shape."""
        return Node(
            metadata=ObjectMeta(name=name, uid=f"node-{name}", labels={**self.labels, HOSTNAME: name}),
            spec=NodeSpec(taints=self.taints),
            status=NodeStatus(
                allocatable=self.allocatable, capacity=self.allocatable, declared_features=self.declared_features
            ),
        )


def offer_like(node: Node, *, name: str = "") -> NodeOffer:
    """Return the shape of a node; taints that reflect its condition are left out.

    The annotation ``bayplan.io/price`` gives the price of one node, by default 1.
    """
    price = _number(PRICE, node.metadata.annotations.get(PRICE, "1"))
    labels = {key: value for key, value in node.metadata.labels.items() if key not in OWN_LABELS}
    taints = tuple(taint for taint in node.spec.taints if not taint.key.startswith("node.kubernetes.io/"))
    return NodeOffer(
        name=name or node.metadata.name,
        allocatable=node.status.allocatable,
        labels=labels,
        taints=taints,
        price=price,
        declared_features=node.status.declared_features,
    )


def offers_of(cluster: QuestionCluster, prices: Mapping[str, float] | None = None) -> list[NodeOffer]:
    """Return the distinct shapes of the nodes of a cluster, named by pool and zone.

    Args:
        cluster: the current one.
        prices: by instance type or pool; 1 if there is none.
    """
    prices = prices or {}
    found: dict[bytes, NodeOffer] = {}
    names: dict[str, int] = {}
    for node in cluster.all(Node):
        shape = offer_like(node)
        key = msgspec.msgpack.encode((sorted(shape.labels.items()), shape.taints, sorted(shape.allocatable.items())))
        if key in found:
            continue
        zone, pool = group_of(node.metadata.labels)
        kind = node.metadata.labels.get(INSTANCE_TYPE, "")
        name = "/".join(part for part in (kind if kind != pool else "", pool, zone) if part) or node.metadata.name
        names[name] = names.get(name, 0) + 1
        if names[name] > 1:
            name = f"{name}#{names[name]}"
        found[key] = replace(shape, name=name, price=prices.get(kind, prices.get(pool, 1.0)))
    return list(found.values())


def parse_offer(text: str, cluster: QuestionCluster | None = None) -> NodeOffer:
    """Parse a shape.

    E.g. ``name=big,cpu=8,memory=32Gi,price=0.4,most=3,zone=a,label.disk=ssd,taint=gpu=yes:NoSchedule``. ``like=NODE`` begins
    with the shape of a node of the cluster. Any other key is a resource.

    Raises:
        InputError: it can't be parsed.
    """
    allocatable: dict[str, str | int | float] = {}
    labels: dict[str, str] = {}
    taints: list[Taint] = []
    name, price, most = "", 1.0, None
    features: tuple[str, ...] = ()
    for part in text.split(","):
        key, equals, value = part.strip().partition("=")
        if not equals or not value:
            raise InputError("shape", got=repr(part), wanted="key=value", hint="cpu=8,memory=32Gi,price=0.4")
        if key == "like":
            node = cluster.get(Node, value) if cluster is not None else None
            if node is None:
                raise InputError("shape", got=f"like={value}", wanted="the name of a node of this cluster")
            model = offer_like(node)
            allocatable, labels, taints = (
                {**model.allocatable, **allocatable},
                {**model.labels, **labels},
                [*model.taints],
            )
            features, name = model.declared_features, name or f"like {value}"
        elif key == "name":
            name = value
        elif key in ("price", "most"):
            number = _number(key, value)
            price, most = (number, most) if key == "price" else (price, int(number))
        elif key == "zone":
            labels[ZONE] = value
        elif key.startswith("label."):
            labels[key.removeprefix("label.")] = value
        elif key == "taint":
            taints.append(parse_taint(value))
        else:
            parse_quantity(value)
            allocatable[key] = value
    if "cpu" not in allocatable or "memory" not in allocatable:
        raise InputError("shape", got=repr(text), wanted="cpu and memory, or like=NODE", hint="cpu=8,memory=32Gi")
    allocatable.setdefault("pods", DEFAULT_PODS)
    return NodeOffer(
        name=name or text,
        allocatable=allocatable,
        labels=labels,
        taints=tuple(taints),
        price=price,
        most=most,
        declared_features=features,
    )


def parse_prices(texts: Sequence[str]) -> dict[str, float]:
    """Parse prices by name, e.g. ``m5.large=0.096``.

    Raises:
        InputError: one can't be parsed.
    """
    found = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals or not name:
            raise InputError("price", got=repr(text), wanted="TYPE=PRICE", hint="m5.large=0.096")
        found[name] = _number("price", value)
    return found


def prices_by_node(cluster: QuestionCluster, prices: Mapping[str, float]) -> dict[str, float]:
    """Return the price of each node: by its name, its instance type, or its pool; nodes without any are left out."""
    found = {}
    for node in cluster.all(Node):
        labels = node.metadata.labels
        for name in (node.metadata.name, labels.get(INSTANCE_TYPE, ""), group_of(labels).pool):
            if name in prices:
                found[node.metadata.name] = prices[name]
                break
    return found


def parse_taint(text: str) -> Taint:
    """Parse a taint as kubectl writes it: ``key=value:Effect`` or ``key:Effect``.

    Raises:
        InputError: it is not a taint.
    """
    rest, colon, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    if not colon or not key or effect not in _EFFECTS:
        raise InputError("taint", got=repr(text), wanted=f"key=value:Effect with {', '.join(_EFFECTS)}")
    return Taint(key=key, value=value, effect=effect)


def _number(key: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e12:
        raise InputError("shape", got=f"{key}={value}", wanted="a number that is not negative")
    return number


# --- DaemonSets -------------------------------------------------------------------------------------------------------


def daemon_models(cluster: QuestionCluster) -> list[Pod]:
    """Return one pod of each DaemonSet, to run on a new node before anything else."""
    found: dict[tuple[str, str], Pod] = {}
    for pod in cluster.all(Pod):
        owner = pod.metadata.controller()
        if owner is not None and owner.kind == "DaemonSet" and pod.spec.node_name:
            found.setdefault((pod.metadata.namespace, owner.name), pod)
    return list(found.values())


def add_node(trial: Trial, node: Node, daemons: Sequence[Pod], cluster: QuestionCluster) -> list[str]:
    """Add a node with the pods of DaemonSets that fit it; return their keys."""
    trial.put(node)
    keys = []
    for model in daemons:
        owner = model.metadata.controller()
        assert owner is not None
        copier = PodCopier(_bound_for(model, node.metadata.name), cluster)
        items: list[KubernetesObject] = copier.copy(f"{owner.name}-on-{node.metadata.name}")
        key = items[-1].key
        if trial.place(items):
            keys.append(key)
        else:
            trial.remove_pod(key)
    return keys


def _bound_for(pod: Pod, node_name: str) -> Pod:
    """Return a DaemonSet's pod as its controller creates it for a node: with that node's name in its affinity."""
    affinity = pod.spec.affinity
    node_affinity = affinity.node_affinity if affinity is not None else None
    required = node_affinity.required_during_scheduling_ignored_during_execution if node_affinity is not None else None
    if affinity is None or node_affinity is None or required is None:
        return replace(
            pod, spec=replace(pod.spec, node_selector={**(pod.spec.node_selector or {}), HOSTNAME: node_name})
        )
    here = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node_name,))
    terms: tuple[NodeSelectorTerm, ...] = tuple(
        replace(term, match_fields=(here,)) for term in required.node_selector_terms
    )
    required = replace(required, node_selector_terms=terms)
    node_affinity = replace(node_affinity, required_during_scheduling_ignored_during_execution=required)
    return replace(pod, spec=replace(pod.spec, affinity=replace(affinity, node_affinity=node_affinity)))
