"""Objects in the form of Go's internal structs, which messages show: every field, with its Go name, in Go's order.

The field names are in ``schema/internal_types.json.gz``, which `scripts/make_internal_facts.py` generates. They are
matched with the fields of the API by name, ignoring case.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from difflib import SequenceMatcher
from functools import cache
from importlib import resources
from typing import TypeAlias, cast

from bayplan.apiserver.schema.emptied import Emptied
from bayplan.apiserver.schema.facts import api_facts
from bayplan.base.go_text.json import json_text
from bayplan.base.plain_data import Document, part, parts

Fields: TypeAlias = list[list[str]]

_SCALARS: dict[str, object] = {
    "string": "", "bool": False, "int": 0, "int32": 0, "int64": 0, "float64": 0, "byte": 0,
    "resource.Quantity": "0", "intstr.IntOrString": 0, "metav1.Duration": "0s", "metav1.Time": None,
    "metav1.MicroTime": None, "types.UID": "", "runtime.Object": None,
}  # fmt: skip
_CORE = ("api.", "core.", "corev1.", "v1.")
_POD_LEVEL = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
_JSON_NAMES = (
    {
        ("AzureDiskVolumeSource", "DataDiskURI"): "diskURI",
        ("GlusterfsPersistentVolumeSource", "EndpointsName"): "endpoints",
        ("GlusterfsVolumeSource", "EndpointsName"): "endpoints",
        **{
            (f"ISCSI{kind}VolumeSource", name): json_name
            for kind in ("", "Persistent")
            for name, json_name in (("DiscoveryCHAPAuth", "chapAuthDiscovery"), ("SessionCHAPAuth", "chapAuthSession"))
        },
        **{
            (f"RBD{kind}VolumeSource", name): json_name
            for kind in ("", "Persistent")
            for name, json_name in (
                ("CephMonitors", "monitors"),
                ("RBDImage", "image"),
                ("RBDPool", "pool"),
                ("RadosUser", "user"),
            )
        },
    }
    | {
        ("DeviceAttribute", f"{name}{end}"): f"{name}{end.removeprefix('Value')}"
        for name in ("Int", "Bool", "String", "Version")
        for end in ("Value", "Values")
    }
    | {
        ("JSONSchemaProps", name): json_name
        for name, json_name in (
            ("Ref", "$ref"),
            ("Schema", "$schema"),
            ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields"),
            ("XEmbeddedResource", "x-kubernetes-embedded-resource"),
            ("XIntOrString", "x-kubernetes-int-or-string"),
            ("XListMapKeys", "x-kubernetes-list-map-keys"),
            ("XListType", "x-kubernetes-list-type"),
            ("XMapType", "x-kubernetes-map-type"),
            ("XValidations", "x-kubernetes-validations"),
        )
    }
)
"""API names of fields that differ from the Go name in more than case, by type and Go name."""
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
_CONTEXT = 3
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


@cache
def _types() -> dict[str, dict[str, Fields | str]]:
    packed = resources.files("bayplan.apiserver.schema").joinpath("internal_types.json.gz").read_bytes()
    return cast("dict[str, dict[str, Fields | str]]", json.loads(gzip.decompress(packed)))


def internal(type_name: str, found: object) -> object:
    """Return a value in the form of its internal struct.

    Args:
        type_name: the type with its package, e.g. ``core.PodSpec``, possibly within another Go type:
            ``[]core.Toleration``.
        found: the value in the API's form; None if it is missing.
    """
    package = re.split(r"[^\w]", type_name.lstrip("[]*"))[0]
    return _convert(package, type_name.replace(f"{package}.", ""), found)


def _convert(package: str, go_type: str, found: object) -> object:
    if go_type.startswith("*"):
        return None if found is None else _convert(package, go_type[1:], found)
    if go_type.startswith("[]"):
        if go_type == "[]byte" or not isinstance(found, list):
            return found
        return [_convert(package, go_type[2:], item) for item in found]
    if go_type.startswith("map["):
        if not isinstance(found, dict):
            return None
        inner = go_type.partition("]")[2]
        return {name: _convert(package, inner, item) for name, item in sorted(found.items())}
    if go_type in _SCALARS:
        return _SCALARS[go_type] if found is None else found
    return _convert_named(package, go_type, found)


def _convert_named(package: str, go_type: str, found: object) -> object:
    for prefix in _CORE:
        if go_type.startswith(prefix):
            package, go_type = "core", go_type.removeprefix(prefix)
    if "." in go_type and go_type.partition(".")[0] in _types():
        package, _, go_type = go_type.partition(".")
    definition = _types().get(package, {}).get(go_type)
    if isinstance(definition, str):
        return _convert(package, definition, found)
    if go_type in _ALTERNATIVES:
        found = _alternative(go_type, found)
    if definition is None:
        # Types of metav1 and similar packages have JSON names.
        if isinstance(found, dict) and go_type.endswith("LabelSelector"):
            return ordered_selector(found)
        if go_type == "runtime.RawExtension":
            return found
        return {} if found is None else found
    return _convert_struct(package, definition, found if isinstance(found, dict) else {}, go_type)


def ordered_selector(selector: Document) -> Document:
    """Return a label selector with its fields in Go's order and sorted labels; empty fields are omitted."""
    expressions = [
        {"key": "", "operator": "", **{name: each[name] for name in ("key", "operator", "values") if name in each}}
        for each in parts(selector, "matchExpressions")
    ]
    shown = {"matchLabels": dict(sorted(part(selector, "matchLabels").items())), "matchExpressions": expressions}
    return {name: value for name, value in shown.items() if value}


_ALTERNATIVES = ("JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray")
"""Types whose JSON is one of their fields."""


def _alternative(go_type: str, found: object) -> object:
    if isinstance(found, list):
        return {"JSONSchemas" if go_type.endswith("OrArray") else "Property": found}
    return {"Allows": found} if isinstance(found, bool) else {"Allows": True, "Schema": found}


def _convert_struct(package: str, fields: Fields, found: Document, go_type: str) -> Document:
    if go_type == "PodSpec":
        level = {name: found[name] for name in _POD_LEVEL if name in found}
        if level or "securityContext" in found:
            context = {**cast("Document", found.get("securityContext") or {}), **level}
            empties = found.empties if isinstance(found, Emptied) else {}
            found = Emptied({**found, "securityContext": context}, empties)
    lower = {name.lower(): item for name, item in found.items()}
    if isinstance(found, Emptied):
        lower |= {name.lower(): item for name, item in found.empties.items() if name not in found}
    out: Document = {}
    for name, kind in fields:
        if name:
            out[name] = _convert(package, kind, lower.get(_JSON_NAMES.get((go_type, name), name).lower()))
        elif kind == "metav1.ObjectMeta":
            out |= _metadata(cast("Document", found.get("metadata") or {}))
        elif kind != "metav1.TypeMeta":
            out |= cast("Document", _convert(package, kind, found))
    return out


def _metadata(metadata: Document) -> Document:
    """Return metadata as Go encodes it: in Go's field order, without null fields, and with sorted maps."""
    order = {facts.name: index for index, facts in enumerate(api_facts().types[_OBJECT_META])}
    return {
        name: dict(sorted(item.items())) if isinstance(item, dict) else item
        for name, item in sorted(metadata.items(), key=lambda each: order.get(each[0], len(order)))
        if item is not None
    }


def shown_as(type_name: str) -> Callable[[object], str]:
    """Return the function that formats values of an internal type for messages."""
    return lambda found: json_text(internal(type_name, found))


def difference(type_name: str, old: object, new: object) -> str:
    """Return the unified diff of two internal structs, which upstream appends to errors about forbidden changes."""
    before, after = (
        json.dumps(internal(type_name, each), indent=1, ensure_ascii=False).translate(_ESCAPES).split("\n")
        for each in (old, new)
    )
    lines: list[str] = []
    for group in SequenceMatcher(None, before, after, autojunk=True).get_grouped_opcodes(_CONTEXT):
        (_, first, _, first_new, _), (_, _, last, _, last_new) = group[0], group[-1]
        lines.append(f"@@ -{_range(first, last)} +{_range(first_new, last_new)} @@")
        for tag, start, end, start_new, end_new in group:
            if tag == "equal":
                lines += [f" {line}" for line in before[start:end]]
                continue
            lines += [f"-{line}" for line in before[start:end]]
            lines += [f"+{line}" for line in after[start_new:end_new]]
    return "".join(f"{line}\n" for line in lines)


def _range(start: int, stop: int) -> str:
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
