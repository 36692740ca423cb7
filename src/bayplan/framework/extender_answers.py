"""Decode extenders' responses like upstream's Go structs: names in any case, null as the zero value, Go's type errors.

Source: the types of k8s.io/kube-scheduler/extender/v1, and the rules of Go's encoding/json.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from bayplan.formats.json_tree import kind_of

MIN_INT64, MAX_INT64 = -(1 << 63), (1 << 63) - 1


class ExtenderFailure(Exception):
    """An extender could not be called, or its response is unusable. The text is upstream's error text."""


class Filtered(msgspec.Struct, frozen=True):
    """The result of an extender's filter verb.

    Attributes:
        nodes: names of the remaining nodes, in the extender's order, each once.
        failed, unresolvable: the reasons for rejected nodes, by name; for unresolvable nodes, preemption can't help.
        bare: whether the extender returned node objects instead of names; from then on, the cycle sees only these.
    """

    nodes: tuple[str, ...]
    failed: Mapping[str, str]
    unresolvable: Mapping[str, str]
    bare: bool


class MetaVictims(msgspec.Struct, frozen=True):
    """The UIDs of victims, and the number of them that a disruption budget protects."""

    uids: tuple[str, ...]
    num_pdb_violations: int


_STRUCTS: Final[Mapping[str, Mapping[str, str]]] = {
    "v1.ExtenderFilterResult": {
        "Nodes": "*v1.NodeList",
        "NodeNames": "[]string",
        "FailedNodes": "v1.FailedNodesMap",
        "FailedAndUnresolvableNodes": "v1.FailedNodesMap",
        "Error": "string",
    },
    "v1.NodeList": {"items": "[]v1.Node"},
    "v1.Node": {"metadata": "v1.ObjectMeta"},
    "v1.ObjectMeta": {"name": "string"},
    "v1.HostPriority": {"Host": "string", "Score": "int64"},
    "v1.ExtenderPreemptionResult": {"NodeNameToMetaVictims": "map[string]*v1.MetaVictims"},
    "v1.MetaVictims": {"Pods": "[]*v1.MetaPod", "NumPDBViolations": "int64"},
    "v1.MetaPod": {"UID": "string"},
    "v1.ExtenderBindingResult": {"Error": "string"},
}
"""The fields that are read from each Go struct, with their Go types."""

_ELEMENT_OF_MAP: Final = {"v1.FailedNodesMap": "string", "map[string]*v1.MetaVictims": "*v1.MetaVictims"}


def filter_answer(value: object, *, by_name: bool) -> Filtered:
    """Decode the response of a filter verb. With `by_name`, a list of node names counts before a list of nodes.

    Raises:
        ExtenderFailure: the response has a wrong type, or contains an error.
    """
    found = _decode(value, "v1.ExtenderFilterResult")
    if found["Error"]:
        raise ExtenderFailure(found["Error"])
    nodes, names = found["Nodes"], found["NodeNames"] if by_name else None
    bare = names is None and nodes is not None
    if bare:
        names = [node["metadata"]["name"] for node in nodes["items"] or ()]
    return Filtered(
        tuple(dict.fromkeys(names or ())),
        found["FailedNodes"] or {},
        found["FailedAndUnresolvableNodes"] or {},
        bare,
    )


def host_priorities(value: object) -> tuple[tuple[str, int], ...]:
    """Decode the response of a prioritize verb into (host, score) pairs; raises like `filter_answer`."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ExtenderFailure(f"json: cannot unmarshal {kind_of(value)} into Go value of type v1.HostPriorityList")
    found = []
    for entry in value:
        if type(entry) is dict and len(entry) == 2:
            # Fast path for entries formatted like upstream's; there is one entry per node.
            name, score = entry.get("Host"), entry.get("Score")
            if type(name) is str and type(score) is int and MIN_INT64 <= score <= MAX_INT64:
                found.append((name, score))
                continue
        priority = _decode(entry, "v1.HostPriority")
        found.append((priority["Host"], priority["Score"]))
    return tuple(found)


def meta_victims(value: object) -> Mapping[str, MetaVictims]:
    """Decode the response of a preempt verb into victims by node name; raises like `filter_answer`."""
    answer = _decode(value, "v1.ExtenderPreemptionResult")["NodeNameToMetaVictims"] or {}
    found: dict[str, MetaVictims] = {}
    for name, victims in answer.items():
        of_node = victims or {"Pods": None, "NumPDBViolations": 0}
        uids = tuple(pod["UID"] if pod is not None else "" for pod in of_node["Pods"] or ())
        found[name] = MetaVictims(uids, of_node["NumPDBViolations"])
    return found


def check_bound(value: object) -> None:
    """Decode the response of a bind verb; raises like `filter_answer`."""
    if problem := _decode(value, "v1.ExtenderBindingResult")["Error"]:
        raise ExtenderFailure(problem)


def _decode(value: object, go_type: str, struct: str = "", path: str = "") -> Any:
    """Return a value decoded as a Go type: structs become dicts of their fields.

    null becomes the zero value; None for pointers, lists and maps. `struct`: the type of the innermost enclosing
    struct; `path`: the field names from there.
    """
    kind = go_type.removeprefix("*")
    if value is None and kind != go_type:
        return None
    if kind == "string" and (value is None or isinstance(value, str)):
        return value or ""
    if kind == "int64" and (value is None or (type(value) is int and MIN_INT64 <= value <= MAX_INT64)):
        return value or 0
    if kind in _STRUCTS and (value is None or isinstance(value, dict)):
        # Go accepts field names in any case; of duplicate names, the last counts.
        given = {name.lower(): item for name, item in (value or {}).items()}
        prefix = f"{path}." if path else ""
        return {
            name: _decode(given.get(name.lower()), of_field, kind, f"{prefix}{name}")
            for name, of_field in _STRUCTS[kind].items()
        }
    if value is None:
        return None
    if kind.startswith("[]") and isinstance(value, list):
        return [_decode(item, kind[2:], struct, path) for item in value]
    if kind in _ELEMENT_OF_MAP and isinstance(value, dict):
        return {name: _decode(item, _ELEMENT_OF_MAP[kind], struct, path) for name, item in value.items()}
    is_number = isinstance(value, float | int) and not isinstance(value, bool)
    word = f"number {value}" if kind == "int64" and is_number else kind_of(value)
    target = f"struct field {struct.removeprefix('v1.')}.{path} of" if path else "value of"
    raise ExtenderFailure(f"json: cannot unmarshal {word} into Go {target} type {kind}")
