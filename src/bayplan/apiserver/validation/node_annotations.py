"""Validation of the annotations of nodes that once held taints, and the controllers whose pods a node avoids."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from bayplan.apiserver.model.errors import invalid_value, required
from bayplan.apiserver.validation.engine import Causes
from bayplan.apiserver.validation.tolerations import check_taints
from bayplan.base.go_text.json import json_entries, json_problem
from bayplan.base.go_text.quoting import GoTextError
from bayplan.base.go_text.times import utc_time
from bayplan.base.plain_data import Document, part, parts
from bayplan.objects.selectors import quote

AVOID_PODS = "scheduler.alpha.kubernetes.io/preferAvoidPods"
TAINTS = "scheduler.alpha.kubernetes.io/taints"
_GO_KINDS = {"{": "object", "[": "array", '"': "string", "t": "bool", "f": "bool"}


def node_annotations(node: Document, _path: str, out: Causes) -> None:
    """Check the annotations of a node."""
    annotations, here = part(node, "metadata", "annotations"), "metadata.annotations"
    text = str(annotations.get(TAINTS) or "")
    if text:
        found, problem = _unmarshal(text, _TAINTS_TYPE)
        if problem:
            out.append(invalid_value(here, quote(TAINTS), problem))
        else:
            check_taints(_taints(found), f"{here}.{TAINTS}", out)
    text = str(annotations.get(AVOID_PODS) or "")
    if text:
        found, problem = _unmarshal(text, _AVOID_PODS_TYPE)
        if problem:
            out.append(invalid_value(f"{here}.AvoidPods", quote(AVOID_PODS), problem))
        else:
            _avoided_pods(found, f"{here}.{AVOID_PODS}", out)


def _taints(found: object) -> list[Document]:
    """Return taints with the field names of the API."""
    taints = parts({"taints": found}, "taints")
    return [{name[0].lower() + name[1:]: value for name, value in taint.items()} for taint in taints]


def _avoided_pods(found: object, path: str, out: Causes) -> None:
    for index, entry in enumerate(parts(found, "preferAvoidPods") if isinstance(found, dict) else ()):
        here, owner = f"{path}[{index}].PodSignature", part(entry, "podSignature").get("podController")
        if not isinstance(owner, dict):
            out.append(required(here))
        elif owner.get("controller") is False:
            out.append(invalid_value(f"{here}.PodController.Controller", "false", "must point to a controller"))


# --- decoding as Go does ----------------------------------------------------------------------------------------------


class _Type(NamedTuple):
    """A Go type.

    Attributes:
        name: the name as in messages.
        kind: "string", "bool", "time", "array" or "object".
        fields: the fields of a struct.
        item: the type of the items of a slice.
        is_pointer: whether the variable is a pointer, which null sets to nil; it leaves other variables as they are.
    """

    name: str
    kind: str
    fields: dict[str, _Type] = {}  # noqa: RUF012 (never modified)
    item: _Type | None = None
    is_pointer: bool = False


_STRING, _BOOL, _TIME = (
    _Type("string", "string"),
    _Type("bool", "bool", is_pointer=True),
    _Type("string", "time", is_pointer=True),
)
_TAINT = _Type(
    "core.Taint",
    "object",
    {"Key": _STRING, "Value": _STRING, "Effect": _Type("core.TaintEffect", "string"), "TimeAdded": _TIME},
)
_TAINTS_TYPE = _Type("[]core.Taint", "array", item=_TAINT)
_OWNER = _Type(
    "v1.OwnerReference",
    "object",
    {
        **dict.fromkeys(("apiVersion", "kind", "name"), _STRING),
        "uid": _Type("types.UID", "string"),
        **dict.fromkeys(("controller", "blockOwnerDeletion"), _BOOL),
    },
    is_pointer=True,
)
_SIGNATURE = _Type("v1.PodSignature", "object", {"podController": _OWNER})
_ENTRY = _Type(
    "v1.PreferAvoidPodsEntry",
    "object",
    {"podSignature": _SIGNATURE, "evictionTime": _TIME, "reason": _STRING, "message": _STRING},
)
_AVOID_PODS_TYPE = _Type(
    "v1.AvoidPods", "object", {"preferAvoidPods": _Type("[]v1.PreferAvoidPodsEntry", "array", item=_ENTRY)}
)


class _UnmarshalError(Exception):
    """Go's decoder stopped at a value."""


def _unmarshal(text: str, wanted: _Type) -> tuple[object, str]:
    """Return the value of a JSON text, and the error of Go's `json.Unmarshal`, `""` if there is none.

    It decodes only the fields of the type, so that others may hold anything: numbers of any length, and values that
    nest more deeply than the Python decoder accepts.
    """
    problem = json_problem(text)
    if problem:
        return None, problem
    problems: list[str] = []
    try:
        found = _read(text, wanted, None, "", "", problems.append)
    except _UnmarshalError as stopped:
        return None, str(stopped)
    return found, problems[0] if problems else ""


def _read(text: str, wanted: _Type, before: object, struct: str, path: str, report: Callable[[str], None]) -> object:
    """Return a value as Go decodes it into a variable.

    Args:
        text: valid JSON.
        wanted: the type of the variable.
        before: the value of the variable, which a repeated field of an object changes.
        struct, path: the innermost struct with the variable, and the fields that lead to it.
        report: called for a value that does not fit; Go decodes the others.
    """
    text = text.strip(" \t\r\n")
    if text == "null":
        return None if wanted.is_pointer or wanted.kind == "array" else before
    kind = _GO_KINDS.get(text[0], "number")
    if kind != wanted.kind and not (wanted.kind == "time" and kind == "string"):
        into = f"Go struct field {struct}.{path}" if struct else "Go value"
        problem = f"json: cannot unmarshal {kind} into {into} of type {wanted.name}"
        if wanted.kind == "time":
            raise _UnmarshalError(problem)
        report(problem)
        return before
    if wanted.item is not None:
        return [_read(each, wanted.item, {}, struct, path, report) for _, each in json_entries(text)]
    if not wanted.fields:
        found: object = json.loads(text)
        if wanted.kind == "time":
            return _time(str(found))
        return found
    fields = {**before} if isinstance(before, dict) else {}
    inner = wanted.name.partition(".")[2]
    for key, value in json_entries(text):
        name = key if key in wanted.fields else next((n for n in wanted.fields if n.lower() == key.lower()), "")
        if name:
            here = f"{path}.{name}" if path else name
            fields[name] = _read(value, wanted.fields[name], fields.get(name), inner, here, report)
    return fields


def _time(text: str) -> str:
    try:
        return utc_time(text, micro=False)
    except GoTextError as problem:
        raise _UnmarshalError(str(problem)) from problem
