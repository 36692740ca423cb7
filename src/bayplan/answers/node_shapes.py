"""Shapes of nodes that could be added: those of the cluster, of a catalogue, or written by a user."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from bayplan.analysis.near_spellings import existing_values
from bayplan.analysis.node_taints import is_condition_taint, parse_taint
from bayplan.analysis.units import format_amount, format_list
from bayplan.answers.daemon_pods import with_daemons
from bayplan.answers.node_amounts import check_node_amount
from bayplan.answers.node_groups import INSTANCE_TYPE, REGION, ZONE, describes_place, group_of
from bayplan.answers.prices import equal_price, parse_number
from bayplan.base.counted_nouns import plural
from bayplan.base.errors import InputError
from bayplan.base.near_names import near_name
from bayplan.objects.meta import KubernetesObject, ObjectMeta, ResourceList
from bayplan.objects.node import Node, NodeSpec, NodeStatus, Taint
from bayplan.objects.node_prices import PRICE
from bayplan.objects.pod import Pod
from bayplan.objects.requests import node_amounts
from bayplan.objects.resource import ResourceSlice
from bayplan.objects.storage import CSINode
from bayplan.state.cluster_state import ClusterState

HOSTNAME = "kubernetes.io/hostname"

OWN_LABELS = (HOSTNAME, "alpha.eksctl.io/instance-id", "topology.ebs.csi.aws.com/instance-id")
"""Labels that identify a single node and are not copied."""

PLATFORM_LABELS = ("kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch")
"""Labels that the kubelet sets for the operating system and architecture."""

DEFAULT_PODS = "110"
"""The number of pods that a kubelet allows by default (maxPods)."""


class NodeShape(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of node that could be added.

    Attributes:
        name: the name of the shape in tables.
        template: a node of this shape.
        like: the existing nodes that the shape resembles, in words.
        price: the price of one node, in any unit.
        has_price: whether the price is a given one.
        most: the maximum number of additional nodes; None for any number.
        csi: the CSINode of the template.
        slices: the ResourceSlices of the template, i.e. its devices.
        differs: the differences from the existing nodes, in words; empty for an existing shape.
        labels: the labels that distinguish the shape from others of its pool, except those for size and location.
    """

    name: str
    template: Node
    like: str = ""
    price: float = 1.0
    has_price: bool = False
    most: int | None = None
    csi: CSINode | None = None
    slices: tuple[ResourceSlice, ...] = ()
    differs: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def zone(self) -> str:
        """Return the zone of nodes of this shape; "" if it has none."""
        return self.template.metadata.labels.get(ZONE, "")

    @property
    def text(self) -> str:
        """Return the shape in words."""
        return self.text_for(())

    def text_for(self, keys: Collection[str]) -> str:
        """Return the shape in words, including its labels with one of these keys."""
        where = f"in {self.zone} " if self.zone and not any("in " in each for each in self.differs) else ""
        like = f"like {self.like or self.name}"
        own = [f"{key}={text}" for key, text in self.labels if key in keys]
        like = f"{like} with {', '.join(own)}" if own else like
        like = f"{like}, but {' and '.join(self.differs)}" if self.differs else like
        return f"{where}{like} ({self.size})" if self.size else f"{where}{like}"

    @property
    def distance(self) -> int:
        """Return the number of labels, taints and amounts in which the shape differs from the existing nodes that it resembles.

        A removed taint counts three times: nodes reserved for other workloads are rarely the ones to add.
        """
        return sum((each.count(",") + 1) * (3 if each.startswith("without") else 1) for each in self.differs)

    @property
    def size(self) -> str:
        """Return the allocatable resources of a node, in words."""
        amounts = node_amounts(self.template.status.allocatable)
        shown = [
            f"{format_amount(name, amount)} {name}" for name, amount in amounts.items() if amount and name != "pods"
        ]
        return ", ".join(shown[:4])

    def node(self, name: str) -> Node:
        """Return a new, ready node of this shape, without pods."""
        node = self.template
        labels = {key: value for key, value in node.metadata.labels.items() if key not in OWN_LABELS}
        status = NodeStatus(
            allocatable=node.status.allocatable,
            capacity=node.status.capacity,
            declared_features=node.status.declared_features,
        )
        taints = tuple(taint for taint in node.spec.taints if not is_condition_taint(taint))
        metadata = ObjectMeta(name=name, uid=f"node-{name}", labels={**labels, HOSTNAME: name})
        return Node(metadata=metadata, spec=NodeSpec(taints=taints), status=status)

    def objects(self, name: str, daemons: Iterable[Pod]) -> tuple[KubernetesObject, ...]:
        """Return the objects of a new node: its CSINode and ResourceSlices, the node, and its pods of DaemonSets.

        Args:
            name: the name of the node.
            daemons: see `daemon_models`.
        """
        found: list[KubernetesObject] = []
        if self.csi is not None:
            found.append(replace(self.csi, metadata=ObjectMeta(name=name)))
        for place, each in enumerate(self.slices):
            own = each.spec.pool.name == self.template.metadata.name
            pool = replace(each.spec.pool, name=name if own else f"{name}-{place}")
            spec = replace(each.spec, node_name=name, pool=pool)
            found.append(replace(each, metadata=ObjectMeta(name=f"{name}-slice-{place}"), spec=spec))
        return (*found, *with_daemons(self.node(name), daemons))


# --- the shapes of a cluster, or of a catalogue -----------------------------------------------------------------------


def shape_of(node: Node, price: Callable[[Node], float] = equal_price) -> NodeShape:
    """Return the shape of a node of a catalogue.

    The annotation ``bayplan.io/price`` of the node gives its price; without it, `price` returns it.
    """
    text = node.metadata.annotations.get(PRICE)
    name = node.metadata.name
    return NodeShape(
        name=name, template=node, like=name, price=price(node) if text is None else parse_number(PRICE, text)
    )


def shapes_of(state: ClusterState, price: Callable[[Node], float] = equal_price) -> list[NodeShape]:
    """Return the distinct shapes of the nodes of a cluster, named by pool and zone, with their CSINodes and devices.

    Of nodes that differ only in these, a shape has the CSINode of the one with the most drivers, and the devices of the one
    with the most: the drivers of the others may not be ready yet.

    Args:
        state: the cluster.
        price: returns the price of a node.
    """
    nodes = [node for node in state.nodes.nodes if node is not None]
    own = _labels_of_one_node(nodes)
    slices: dict[str, list[ResourceSlice]] = {}
    for each in state.catalog.all(ResourceSlice):
        if each.spec.node_name:
            slices.setdefault(each.spec.node_name, []).append(each)

    equal: dict[object, list[Node]] = {}
    for node in nodes:
        labels = tuple(sorted((key, text) for key, text in node.metadata.labels.items() if key not in own))
        taints = tuple((each.key, each.value, each.effect) for each in node.spec.taints if not is_condition_taint(each))
        key = (labels, taints, tuple(sorted(node_amounts(node.status.allocatable).items())))
        equal.setdefault(key, []).append(node)
    alike: dict[str, list[Node]] = {}
    for node, *_ in equal.values():
        alike.setdefault(_nodes_of_pool(node), []).append(node)
    found, names = [], dict[str, int]()
    for members in equal.values():
        node, keys = members[0], [each.metadata.name for each in members]
        csis = [csi for key in keys if (csi := state.catalog.get(CSINode, key)) is not None]
        devices = (slices.get(key, []) for key in keys)
        name, like = _table_name(node), _nodes_of_pool(node)
        names[name] = names.get(name, 0) + 1
        found.append(
            NodeShape(
                name=name if names[name] == 1 else f"{name}#{names[name]}",
                template=node,
                like=like,
                labels=_distinguished(node, alike[like], own),
                price=price(node),
                csi=max(csis, key=lambda csi: len(csi.spec.drivers), default=None),
                slices=tuple(max(devices, key=lambda each: sum(len(item.spec.devices) for item in each))),
            )
        )
    return found


def _labels_of_one_node(nodes: Iterable[Node]) -> frozenset[str]:
    """Return the keys of labels that belong to single nodes, not pools: `OWN_LABELS`, and labels whose values are all different."""
    values: dict[str, list[str]] = {}
    for node in nodes:
        for key, text in node.metadata.labels.items():
            values.setdefault(key, []).append(text)
    unique = {key for key, texts in values.items() if len(texts) > 3 and len(set(texts)) == len(texts)}
    return frozenset(unique.union(OWN_LABELS))


def _table_name(node: Node) -> str:
    """Return ``instance type/pool/zone`` of a node, without unknown parts and without a type equal to the pool;
    the node's name if all are unknown.
    """
    zone, pool = group_of(node.metadata.labels)
    kind = node.metadata.labels.get(INSTANCE_TYPE, "")
    return "/".join(part for part in (kind if kind != pool else "", pool, zone) if part) or node.metadata.name


def _nodes_of_pool(node: Node) -> str:
    pool = group_of(node.metadata.labels).pool
    return f"the {pool} nodes" if pool else node.metadata.name


def _distinguished(node: Node, alike: Sequence[Node], own: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return the labels that distinguish a node from the others of its pool, except location and single-node labels."""
    return tuple(
        (key, text)
        for key, text in sorted(node.metadata.labels.items())
        if key not in own
        and not describes_place(key)
        and any(other.metadata.labels.get(key) != text for other in alike)
    )


# --- parsing ----------------------------------------------------------------------------------------------------------


def parse_shape(
    text: str, state: ClusterState | None = None, price_by: Callable[[Node], float] = equal_price
) -> NodeShape:
    """Parse a shape that a user wrote.

    E.g. ``name=big,cpu=8,memory=32Gi,price=0.4,most=3,zone=a,label.disk=ssd,taint=gpu=yes:NoSchedule``. ``like=NODE``
    starts with the shape of a node of the cluster, including its CSINode and devices. Any other key is a resource.
    Without ``price``, `price_by` returns the price. With ``zone``, a model in another zone keeps none of its location
    labels. Labels that all nodes of the cluster share for the operating system and
    architecture, and those of the zone for its region, are added.

    Raises:
        InputError: the text can't be parsed.
    """
    written = _written_shape(text, state)
    nodes = [] if state is None else [node for node in state.nodes.nodes if node is not None]
    labels, model = written.labels, written.model
    labels = {**(place_labels(labels[ZONE], nodes) if ZONE in labels else {}), **labels}
    if model is None:
        labels = {**platform_labels(nodes), **labels}
    elif ZONE in labels and model.zone != labels[ZONE]:
        model = replace(model, template=_without_place(model.template))
    base = model or NodeShape(name=text, template=Node(metadata=ObjectMeta(name=written.name or text)))
    template = base.template
    allocatable = {**template.status.allocatable, **written.allocatable}
    if "cpu" not in allocatable or "memory" not in allocatable:
        raise InputError("shape", got=repr(text), wanted="cpu and memory, or like=NODE", hint="cpu=8,memory=32Gi")
    allocatable.setdefault("pods", DEFAULT_PODS)
    node = replace(
        template,
        metadata=replace(template.metadata, labels={**template.metadata.labels, **labels}),
        spec=replace(template.spec, taints=(*template.spec.taints, *written.taints)),
        status=replace(template.status, allocatable=allocatable, capacity=allocatable),
    )
    price = price_by(node) if written.price is None else written.price
    name, has_price = written.name or base.name, written.price is not None
    return replace(base, name=name, template=node, price=price, has_price=has_price, most=written.most)


class _WrittenShape(msgspec.Struct):
    """The parts of a shape that a user wrote; `model` is the shape of the node after ``like``."""

    name: str = ""
    model: NodeShape | None = None
    price: float | None = None
    most: int | None = None
    labels: dict[str, str] = {}
    taints: list[Taint] = []
    allocatable: ResourceList = {}


def _written_shape(text: str, state: ClusterState | None) -> _WrittenShape:
    written, seen = _WrittenShape(), dict[str, None]()
    for part in text.split(","):
        key, equals, value = part.strip().partition("=")
        if not equals or not value:
            raise InputError("shape", got=repr(part), wanted="key=value", hint="cpu=8,memory=32Gi,price=0.4")
        if key in seen and key != "taint":
            raise InputError(f"shape {text}", got=f"{key} twice", wanted="each key once")
        seen[key] = None
        if key == "like":
            written.model = _like(value, state)
        elif key == "name":
            written.name = value
        elif key == "price":
            written.price = parse_number(key, value)
        elif key == "most":
            written.most = _most(value)
        elif key == "zone":
            written.labels[ZONE] = value
        elif key.startswith("label."):
            written.labels[key.removeprefix("label.")] = value
        elif key == "taint":
            written.taints.append(parse_taint(value))
        else:
            check_node_amount(key, value, what="shape", example="cpu=8,memory=32Gi")
            written.allocatable[key] = value
    return written


def _most(text: str) -> int:
    """Return the value of ``most``."""
    number = parse_number("most", text)
    if not number.is_integer():
        raise InputError("most", got=repr(text), wanted="a whole number", hint=f"most={number:.0f}")
    return int(number)


def place_labels(zone: str, nodes: Iterable[Node]) -> dict[str, str]:
    """Return the location labels of a new node in a zone: the zone, and what all nodes there agree on, such as the region.

    In a zone without nodes, the region is the known one from which the name of the zone is formed as cloud providers do:
    with a letter (``eu-west-1c``) or a suffix after a hyphen (``europe-west1-b``), if any.
    """
    labels = [node.metadata.labels for node in nodes]
    there = [each for each in labels if each.get(ZONE) == zone]
    common = {key: text for key, text in _common(there).items() if describes_place(key)}
    if not there:
        regions = {region for each in labels if (region := each.get(REGION)) and _is_in_region(zone, region)}
        common = {REGION: max(regions, key=len)} if regions else {}
    return {**common, ZONE: zone}


def unknown_zones(shapes: Iterable[NodeShape], nodes: Collection[Node]) -> list[str]:
    """Return a sentence about the zones of shapes that no node of the cluster is in; [] if there are none."""
    known = sorted({zone for node in nodes if (zone := node.metadata.labels.get(ZONE))})
    zones = list(dict.fromkeys(shape.zone for shape in shapes if shape.zone and shape.zone not in known))
    if not zones or not known:
        return []
    existing = existing_values({ZONE: zones}, nodes).removeprefix("; ")
    return [f"no node of the cluster is in {plural('zone', len(zones))} {format_list(zones)} ({existing})"]


def _is_in_region(zone: str, region: str) -> bool:
    return zone.startswith(region) and re.fullmatch(r"[a-z]|-.+", zone[len(region) :]) is not None


def _without_place(node: Node) -> Node:
    labels = {key: text for key, text in node.metadata.labels.items() if not describes_place(key)}
    return replace(node, metadata=replace(node.metadata, labels=labels))


def platform_labels(nodes: Iterable[Node]) -> dict[str, str]:
    """Return the labels for the operating system and architecture, if they are the same on all nodes."""
    common = _common([node.metadata.labels for node in nodes])
    return {key: common[key] for key in PLATFORM_LABELS if key in common}


def _common(labels: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the labels that are the same in all of these."""
    first = labels[0] if labels else {}
    return {key: text for key, text in first.items() if all(each.get(key) == text for each in labels)}


def _like(name: str, state: ClusterState | None) -> NodeShape:
    """Return the shape of a node of a cluster, including its CSINode and devices."""
    row = state.nodes.row_of.get(name) if state is not None else None
    node = state.nodes.nodes[row] if state is not None and row is not None else None
    if state is None or node is None:
        names = [each.metadata.name for each in state.nodes.nodes if each is not None] if state is not None else []
        close = near_name(name, names)
        raise InputError(
            f"shape like={name}",
            wanted="a node of this cluster" if names else "a cluster with this node",
            got=f"'{name}'",
            hint=f"'like={close}'" if close else "",
        )
    slices = tuple(each for each in state.catalog.all(ResourceSlice) if each.spec.node_name == name)
    return replace(shape_of(node), name=f"like {name}", csi=state.catalog.get(CSINode, name), slices=slices)
