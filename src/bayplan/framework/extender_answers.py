"""Decode extenders' responses like upstream's Go structs: names in any case, null for nothing, Go's errors for wrong types.

Source: the types of k8s.io/kube-scheduler/extender/v1, and the rules of Go's encoding/json.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

Value = TypeVar("Value")

MIN_INT64, MAX_INT64 = -(1 << 63), (1 << 63) - 1


class AnswerError(ValueError):
    """A response with a wrong type; the text is that of Go's decoder. Only `bayplan.framework.extender` handles it."""


class FilterAnswer(msgspec.Struct, frozen=True):
    """An ExtenderFilterResult with the nodes' names only. None for a list that was not given."""

    nodes: tuple[str, ...] | None
    node_names: tuple[str, ...] | None
    failed: Mapping[str, str]
    unresolvable: Mapping[str, str]
    error: str


class MetaVictims(msgspec.Struct, frozen=True):
    """Pods by uid, and how many of them a disruption budget protects."""

    uids: tuple[str, ...]
    num_pdb_violations: int


def filter_answer(value: object) -> FilterAnswer:
    """Decode the response of a filter verb.

    Raises:
        AnswerError: it has another structure.
    """
    fields = _Fields(value, "ExtenderFilterResult")
    return FilterAnswer(
        fields.get("Nodes", "v1.NodeList", _node_names),
        fields.get("NodeNames", "[]string", _strings),
        fields.get("FailedNodes", "v1.FailedNodesMap", _texts) or {},
        fields.get("FailedAndUnresolvableNodes", "v1.FailedNodesMap", _texts) or {},
        fields.get("Error", "string", _string) or "",
    )


def host_priorities(value: object) -> tuple[tuple[str, int], ...]:
    """Decode the response of a prioritize verb: (host, score) in its order; raises like `filter_answer`."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise AnswerError(f"json: cannot unmarshal {_kind(value)} into Go value of type v1.HostPriorityList")
    found = []
    for entry in value:
        if type(entry) is dict and len(entry) == 2:
            # Fast path for entries written as upstream does; there is one per node.
            name, score = entry.get("Host"), entry.get("Score")
            if type(name) is str and type(score) is int and MIN_INT64 <= score <= MAX_INT64:
                found.append((name, score))
                continue
        fields = _Fields(entry, "HostPriority")
        host = fields.get("Host", "string", _string) or ""
        found.append((host, fields.get("Score", "int64", _int64) or 0))
    return tuple(found)


def meta_victims(value: object) -> Mapping[str, MetaVictims]:
    """Decode the response of a preempt verb: victims by node name; raises like `filter_answer`."""
    fields = _Fields(value, "ExtenderPreemptionResult")
    found = fields.get("NodeNameToMetaVictims", "map[string]*v1.MetaVictims", _object) or {}
    return {name: _meta_victims(entry, "NodeNameToMetaVictims.") for name, entry in found.items()}


def bind_error(value: object) -> str:
    """Decode the response of a bind verb: its error, or ""; raises like `filter_answer`."""
    return _Fields(value, "ExtenderBindingResult").get("Error", "string", _string) or ""


def _meta_victims(value: object, path: str) -> MetaVictims:
    fields = _Fields(value, "MetaVictims", path)
    pods = fields.get("Pods", "[]*v1.MetaPod", _list) or []
    uids = tuple(_Fields(pod, "MetaPod", f"{path}Pods.").get("UID", "string", _string) or "" for pod in pods)
    return MetaVictims(uids, fields.get("NumPDBViolations", "int64", _int64) or 0)


def _node_names(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, dict):
        return None
    items = _Fields(value, "NodeList").get("items", "[]v1.Node", _list) or []
    names = []
    for item in items:
        metadata = _Fields(item, "Node").get("metadata", "v1.ObjectMeta", _object)
        names.append(_Fields(metadata, "ObjectMeta").get("name", "string", _string) or "")
    return tuple(names)


class _Fields:
    """The fields of a JSON object for a Go struct; `path` leads to it, and ends in a dot if it is not empty."""

    def __init__(self, value: object, struct: str, path: str = "") -> None:
        if value is not None and not isinstance(value, dict):
            target = f"struct field {struct}.{path[:-1]} of" if path else "value of"
            raise AnswerError(f"json: cannot unmarshal {_kind(value)} into Go {target} type v1.{struct}")
        self._struct = f"{struct}.{path}" if path else f"{struct}."
        # Go accepts a name in any case, and the last of several.
        self._values: dict[str, object] = {} if value is None else {name.lower(): it for name, it in value.items()}

    def get(self, name: str, go_type: str, read: Callable[[object], Value | None]) -> Value | None:
        """Return a field, None if it is missing or null; `read` returns None for a value of another type."""
        value = self._values.get(name.lower())
        if value is None:
            return None
        try:
            found = read(value)
        except _ElementError as problem:
            value, go_type, found = problem.value, problem.go_type, None
        if found is None:
            is_number = isinstance(value, float | int) and not isinstance(value, bool)
            word = f"number {value}" if go_type == "int64" and is_number else _kind(value)
            field = f"{self._struct}{name}"
            raise AnswerError(f"json: cannot unmarshal {word} into Go struct field {field} of type {go_type}")
        return found


class _ElementError(ValueError):
    """An element of a list or map is not a string."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value, self.go_type = value, "string"


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _int64(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if MIN_INT64 <= value <= MAX_INT64 else None


def _list(value: object) -> list[object] | None:
    return value if isinstance(value, list) else None


def _object(value: object) -> Mapping[str, object] | None:
    return value if isinstance(value, dict) else None


def _element(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _ElementError(value)
    return value


def _strings(value: object) -> tuple[str, ...] | None:
    return tuple(map(_element, value)) if isinstance(value, list) else None


def _texts(value: object) -> Mapping[str, str] | None:
    return {name: _element(text) for name, text in value.items()} if isinstance(value, dict) else None


def _kind(value: object) -> str:
    """Return Go's word for the type of a JSON value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"
