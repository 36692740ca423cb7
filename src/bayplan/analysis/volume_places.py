"""The locations of a pod's volumes, and the nodes that can reach them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeVar, cast

from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.object_lookup import ObjectLookup
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import compile_node_term
from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim
from bayplan.plugins.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONE_DELIMITER
from bayplan.plugins.pod_claims import claim_name_of

T = TypeVar("T", bound=KubernetesObject)

_TOPOLOGY = (ZONE, BETA_ZONE, REGION, BETA_REGION)


class NoObjects:
    """An empty lookup, for sources without objects."""

    def get(self, kind: type[T], key: str) -> T | None:
        """Return None: there are no objects."""
        return None


class StoredObjects:
    """A lookup of the given objects.

    Args:
        items: the objects by kind and key.
    """

    def __init__(self, items: Mapping[tuple[type[KubernetesObject], str], KubernetesObject]) -> None:
        self._items = items

    def get(self, kind: type[T], key: str) -> T | None:
        """Return an object by its key, or None."""
        return cast("T | None", self._items.get((kind, key)))


def claims_of(pod: Pod, lookup: ObjectLookup) -> list[PersistentVolumeClaim]:
    """Return the claims that a pod uses, except those that the lookup lacks."""
    names = (claim_name_of(pod.metadata.name, volume) for volume in pod.spec.volumes)
    claims = (lookup.get(PersistentVolumeClaim, f"{pod.metadata.namespace}/{name}") for name in names if name)
    return [claim for claim in claims if claim is not None]


def bound_volumes(pod: Pod, lookup: ObjectLookup) -> list[tuple[PersistentVolumeClaim, PersistentVolume]]:
    """Return the bound claims of a pod with their volumes, except those that the lookup lacks."""
    found = []
    for claim in claims_of(pod, lookup):
        volume = lookup.get(PersistentVolume, claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            found.append((claim, volume))
    return found


def volume_labels(volume: PersistentVolume) -> dict[str, str]:
    """Return the labels that a node needs to reach a volume, with one value each: the first if several are possible."""
    found: dict[str, str] = {}
    required = volume.spec.node_affinity.required if volume.spec.node_affinity is not None else None
    for term in required.node_selector_terms[:1] if required is not None else ():
        for each in term.match_expressions:
            if each.operator == "In" and each.values:
                found[each.key] = each.values[0]
    for key in _TOPOLOGY:
        value = volume.metadata.labels.get(key)
        if value and key not in found:
            found[key] = value.split(ZONE_DELIMITER)[0]
    return found


def volume_place(volume: PersistentVolume) -> str:
    """Return the location of a volume, in words: ``in eu-1d``, ``on node-3``; "" if unknown."""
    labels = volume_labels(volume)
    for key in _TOPOLOGY:
        if key in labels:
            return f"in {labels[key]}"
    if "kubernetes.io/hostname" in labels:
        return f"on {labels['kubernetes.io/hostname']}"
    return f"where {', '.join(f'{key}={value}' for key, value in labels.items())}" if labels else ""


def nodes_reaching(volume: PersistentVolume, nodes: Iterable[Node]) -> dict[str, Node]:
    """Return the nodes, by name, that can reach a volume, according to its node affinity and its topology labels."""
    required = volume.spec.node_affinity.required if volume.spec.node_affinity is not None else None
    terms = None if required is None else [compile_node_term(term, "") for term in required.node_selector_terms]
    zones = [(key, values.split(ZONE_DELIMITER)) for key in _TOPOLOGY if (values := volume.metadata.labels.get(key))]
    return {
        node.metadata.name: node
        for node in nodes
        if (terms is None or any(term.matches(node.metadata.labels, node.metadata.name) for term in terms))
        and all(not (own := node.metadata.labels.get(key)) or own in values for key, values in zones)
    }


class PlacedVolume(NamedTuple):
    """A persistent volume to which a claim of a pod is bound.

    Attributes:
        claim: the name of the claim.
        where: the location of the volume, in words; "" if unknown.
        nodes: the nodes that can reach the volume, by name.
    """

    claim: str
    where: str
    nodes: dict[str, Node]


def placed_volumes(pod: Pod, lookup: ObjectLookup, nodes: Collection[Node]) -> list[PlacedVolume]:
    """Return the known volumes to which claims of a pod are bound, with those of the given nodes that can reach them."""
    return [
        PlacedVolume(claim.metadata.name, volume_place(volume), nodes_reaching(volume, nodes))
        for claim, volume in bound_volumes(pod, lookup)
    ]


def volume_exclusion(volumes: Iterable[PlacedVolume], node_name: str) -> str:
    """Return the location of the first volume that a node can't reach, as a reason: ``its volume is in b``; "" if there is none."""
    far = next((each for each in volumes if each.where and node_name not in each.nodes), None)
    return f"its volume is {far.where}" if far is not None else ""
