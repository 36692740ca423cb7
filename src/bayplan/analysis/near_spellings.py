"""Suggestions for misspelt label keys, label values and names of objects that a pod refers to, as part of the cause."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from bayplan.analysis.surroundings import Surroundings
from bayplan.analysis.units import format_list
from bayplan.base.near_names import near_name
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.resource import DeviceClass, ResourceClaim
from bayplan.objects.storage import PersistentVolumeClaim, StorageClass

_MESSAGES: tuple[tuple[re.Pattern[str], type[KubernetesObject]], ...] = (
    (re.compile(r'persistentvolumeclaim "([^"]+)" not found'), PersistentVolumeClaim),
    (re.compile(r'storageclass\.storage\.k8s\.io "([^"]+)" not found'), StorageClass),
    (re.compile(r'could not find ResourceClaim "([^"]+)"'), ResourceClaim),
    (re.compile(r"device class (\S+) does not exist"), DeviceClass),
)
"""The scheduler's messages about missing objects, with the kind of the object."""


MAX_NAMES = 2_000
"""Maximum number of existing names to compare with a missing one, which takes about 6 ms: `waiting` has many causes."""

SHOWN_VALUES = 4
"""Maximum number of existing values of a label in a sentence."""

_WORDS = re.compile(r"[\w./-]+")
"""The words of a cause, among them complete label keys."""


def near_spelling(cause: str, pod: Pod, nodes: Collection[Node], surroundings: Surroundings) -> str:
    """Return ``perhaps NAME was meant`` if a label key or an object in a cause is perhaps misspelt, else ""."""
    near = [*_near_keys(cause, pod, nodes), *_near_objects(cause, pod, surroundings)]
    return meant_clause(near)


def meant_clause(names: Iterable[str]) -> str:
    """Return ``perhaps NAME was meant`` for names that are similar to those in a cause; "" if there are none."""
    found = list(dict.fromkeys(filter(None, names)))
    return f"perhaps {' and '.join(found)} {'was' if len(found) == 1 else 'were'} meant" if found else ""


def existing_values(missing: Mapping[str, Collection[str]], nodes: Collection[Node]) -> str:
    """Return ``; values of KEY: A, B and C`` for each label of nodes without a value that a pod requires.

    If there are more than `SHOWN_VALUES`, only those similar to the required ones, or the first.

    Args:
        missing: the required values by key.
        nodes: the nodes; keys that none of them has are left out.
    """
    texts = []
    for key, required in missing.items():
        known = sorted({value for node in nodes if (value := node.metadata.labels.get(key))})
        shown = known if len(known) <= SHOWN_VALUES else _nearest(required, known) or known[:SHOWN_VALUES]
        if shown:
            texts.append(f"; values of {key}: {format_list(shown, more=len(known) - len(shown))}")
    return "".join(texts)


def _nearest(required: Iterable[str], known: Sequence[str]) -> list[str]:
    """Return the existing values that resemble required ones, at most `SHOWN_VALUES`."""
    near = (near_name(value, islice(known, MAX_NAMES)) for value in islice(required, SHOWN_VALUES))
    return list(dict.fromkeys(filter(None, near)))


def _near_keys(cause: str, pod: Pod, nodes: Collection[Node]) -> Iterator[str]:
    """Yield the labels of nodes that resemble a label that the cause names and that no node has."""
    words = set(_WORDS.findall(cause))
    missing = [
        key
        for key in dict.fromkeys(_label_keys(pod))
        if key in words and not any(key in node.metadata.labels for node in nodes)
    ]
    if not missing:
        return  # The usual case; all labels of all nodes are read only in the other one.
    known: dict[str, str] = {}
    for node in nodes:
        known.update(node.metadata.labels)
    yield from (near for key in missing if (near := near_name(key, islice(known, MAX_NAMES))))


def _label_keys(pod: Pod) -> Iterator[str]:
    """Yield the keys of node labels that a pod requires."""
    yield from pod.spec.node_selector or {}
    affinity = pod.spec.affinity
    if affinity is not None and affinity.node_affinity is not None:
        required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
        for term in () if required is None else required.node_selector_terms:
            yield from (each.key for each in term.match_expressions)
    if affinity is not None and affinity.pod_affinity is not None:
        yield from (
            term.topology_key for term in affinity.pod_affinity.required_during_scheduling_ignored_during_execution
        )
    yield from (each.topology_key for each in pod.spec.topology_spread_constraints)


def _near_objects(cause: str, pod: Pod, surroundings: Surroundings) -> Iterator[str]:
    """Yield the names of objects that resemble an object that the cause reports as missing."""
    for pattern, kind in _MESSAGES:
        for missing in pattern.findall(cause):
            name = missing.rpartition("/")[2]
            known = _names(surroundings.keys(kind), pod.metadata.namespace)
            if near := near_name(name, islice(known, MAX_NAMES)):
                yield near


def _names(keys: Iterable[str], namespace: str) -> Iterator[str]:
    """Yield the names of objects that are in a namespace or have none, given their keys."""
    for key in keys:
        place, slash, name = key.rpartition("/")
        if not slash or place == namespace:
            yield name
