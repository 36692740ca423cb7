"""Resolve the targets in scenarios to pods, nodes and objects of the current cluster."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from bayplan.analysis.pod_lookup import SHORT_NAMES, find_pods
from bayplan.answers.node_selection import matching_nodes, near_label
from bayplan.base.errors import InputError
from bayplan.base.near_names import near_name
from bayplan.cluster.store import ObjectStore
from bayplan.objects.kinds import KINDS, ResourceKind
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.scenarios.scenario import ZONE, Failure
from bayplan.sim.result import PodTimeline

_LABEL = "label:"
_PATTERN = frozenset("*?[")

_SHORT_NAMES = SHORT_NAMES | {
    "no": "node",
    "ns": "namespace",
    "pc": "priorityclass",
    "pdb": "poddisruptionbudget",
    "pv": "persistentvolume",
    "pvc": "persistentvolumeclaim",
    "quota": "resourcequota",
    "sc": "storageclass",
    "svc": "service",
}
"""Short names of kinds, as in kubectl."""

_KINDS = {row.kind.lower(): row for row in KINDS} | {row.plural: row for row in KINDS}


def select_pods(text: str, pods: Sequence[PodTimeline]) -> list[PodTimeline]:
    """Return the timelines of the pods that a text selects, by arrival.

    Args:
        text: a pattern for ``namespace/name`` (or names, without a slash), ``label:key=value``, or see `find_pods`.
        pods: the timelines of all pods.

    Raises:
        InputError: no pod matches.
    """
    if text.startswith(_LABEL):
        key, equals, value = text.removeprefix(_LABEL).partition("=")
        found = [pod for pod in pods if pod.pod is not None and key in pod.pod.metadata.labels]
        found = [pod for pod in found if not equals or (pod.pod and pod.pod.metadata.labels[key] == value)]
    elif _PATTERN & set(text):
        found = [pod for pod in pods if fnmatchcase(pod.key if "/" in text else pod.key.rpartition("/")[2], text)]
    else:
        return find_pods(text, pods)
    if not found:
        labels = [pod.pod.metadata.labels for pod in pods if pod.pod is not None] if text.startswith(_LABEL) else []
        close = near_label(text, labels)
        hint = f"'{close}'" if close else ""
        raise InputError("pods", got=repr(text), wanted="a pattern or label that matches existing pods", hint=hint)
    return found


def select_nodes(text: str, store: ObjectStore) -> list[Node]:
    """Return the nodes that a text selects; see `matching_nodes`.

    Raises:
        InputError: no node matches.
    """
    return matching_nodes(text, list(store.nodes.values()))


def failing_nodes(failure: Failure, store: ObjectStore, rack_label: str) -> list[Node]:
    """Return the nodes that fail or recover.

    Raises:
        InputError: no node matches.
    """
    if failure.nodes is not None:
        return select_nodes(failure.nodes, store)
    label, value = (ZONE, failure.zone) if failure.zone is not None else (rack_label, failure.rack)
    found = [node for node in store.nodes.values() if node.metadata.labels.get(label) == value]
    if not found:
        known = sorted({node.metadata.labels.get(label, "") for node in store.nodes.values()} - {""})
        what = "zone" if failure.zone is not None else "rack"
        wanted = f"a value of the nodes' label {label}: {', '.join(known) or 'no node has this label'}"
        raise InputError(what, got=repr(value), wanted=wanted)
    return found


def find_objects(text: str, store: ObjectStore) -> list[KubernetesObject]:
    """Return the objects that a text names like kubectl: ``kind/name`` or ``kind/namespace/name``; the name may be a pattern.

    Raises:
        InputError: the kind is unknown, or no object matches.
    """
    row, key = _target(text)
    if _PATTERN & set(key):
        found = [item for item in store.all(row.struct) if fnmatchcase(item.key, key)]
    else:
        item = store.get(row.struct, key)
        found = [] if item is None else [item]
    if not found:
        close = near_name(key, store.keys(row.struct))
        raise InputError(
            "target",
            got=f"'{text}'",
            wanted=f"an existing {row.kind}",
            hint=f"'{row.kind.lower()}/{close}'" if close else "",
        )
    return found


def _target(text: str) -> tuple[ResourceKind, str]:
    """Return the kind of a target, and the key or pattern of its objects."""
    kind, slash, name = text.partition("/")
    kind = kind.lower()
    row = _KINDS.get(_SHORT_NAMES.get(kind, kind))
    if row is None or not slash or not name:
        close = near_name(kind, _KINDS)
        raise InputError(
            "target",
            got=f"'{text}'",
            wanted="kind/name or kind/namespace/name, as kubectl names objects",
            hint=f"'{close}/{name or 'NAME'}'" if close else "'deployment/web'",
        )
    if row.namespaced and "/" not in name:
        name = f"default/{name}"
    return row, name
