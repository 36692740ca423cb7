"""The order of keys in the JSON of a patched object, which some errors quote.

Upstream encodes the object as Go does, the fields of a struct in their order and the keys of a map sorted. Its patch library then
sorts the keys of each object that the patch opens.
"""

from __future__ import annotations

from bayplan.apiserver.schema.facts import PlacedField, placed_fields
from bayplan.base.plain_data import Document

_FIELDS_V1 = "fieldsV1"
_RAW = "io.k8s.apimachinery.pkg.runtime.RawExtension"


def in_go_order(type_name: str, value: object) -> object:
    """Return JSON in the order in which Go encodes it.

    Args:
        type_name: the name of the type in OpenAPI; empty for an untyped value, whose keys are all sorted.
        value: the decoded JSON.
    """
    if isinstance(value, list):
        return [in_go_order(type_name, each) for each in value]
    if not isinstance(value, dict):
        return value
    if type_name == _RAW:
        return value
    fields = placed_fields(type_name) if type_name else {}
    if not fields:
        return {name: in_go_order(type_name, value[name]) for name in sorted(value)}
    end = len(fields)
    ordered = sorted(value, key=lambda name: (fields[name].position if name in fields else end, name))
    return {name: _field(name, fields.get(name), value[name]) for name in ordered}


def _field(name: str, field: PlacedField | None, value: object) -> object:
    if field is None or name == _FIELDS_V1:
        return in_go_order("", value)
    return _contents(field.facts.type, field.containers, value)


def _contents(type_name: str, containers: tuple[str, ...], value: object) -> object:
    """Return the value of a field. `containers`: the lists and maps around values of the type, outermost first."""
    if not containers:
        return in_go_order(type_name, value)
    if isinstance(value, dict):
        return {name: _contents(type_name, containers[1:], value[name]) for name in sorted(value)}
    return [_contents(type_name, containers[1:], each) for each in value] if isinstance(value, list) else value


def opened_by_merge(value: Document, changes: object) -> Document:
    """Return JSON with sorted keys in every object that a merge patch opens, which includes all objects in the patch."""
    if not isinstance(changes, dict):
        return value
    return {name: _opened(value[name], changes.get(name)) for name in sorted(value)}


def _opened(value: object, changes: object) -> object:
    if isinstance(value, list) and isinstance(changes, list):
        return in_go_order("", value)
    return opened_by_merge(value, changes) if isinstance(value, dict) else value
