"""Objects as tables: columns from the recorded facts or a custom resource's definition, and rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from bayplan.apiserver.kinds.autoscaler_conversion import V1_ANNOTATIONS
from bayplan.apiserver.kinds.conversion import is_renamed, to_storage
from bayplan.apiserver.kinds.default_functions import TEMPLATE_GENERATION
from bayplan.apiserver.patches.key_order import in_go_order
from bayplan.apiserver.schema.facts import ColumnFacts, api_facts, internal_package
from bayplan.apiserver.tables.ages import age
from bayplan.apiserver.tables.cells import CELLS
from bayplan.apiserver.tables.column_descriptions import describe_column
from bayplan.apiserver.tables.json_paths import MISSING, first_value, is_valid
from bayplan.apiserver.tables.pod_cells import pod_conditions
from bayplan.base.errors import InputError
from bayplan.base.go_text.json import json_text, shortest_text
from bayplan.base.plain_data import Document, part, parts

if TYPE_CHECKING:
    from bayplan.apiserver.model.resources import Resource

INCLUDE = "Metadata"
_POLICIES = ("Metadata", "Object", "None")
_FLOW_SCHEMAS = "flowcontrol.apiserver.k8s.io/flowschemas"
_ZERO_TIME = "0001-01-01T00:00:00Z"
"""The creation of the object of a bookmark, as upstream prints it."""
_NAME_AND_CREATION = (ColumnFacts("Name", "string", "name"), ColumnFacts("Created At", "date"))
_NAME_AND_AGE = (ColumnFacts("Name", "string", "name"), ColumnFacts("Age", "date"))


def include_policy(text: str | None) -> str:
    """Return the value of `includeObject`: the default for an empty value, "" for an unknown value."""
    return INCLUDE if not text else text if text in _POLICIES else ""


def table_of(
    resource: Resource,
    documents: list[Document],
    metadata: Document,
    version: str,
    include: str,
    now: float,
    stored: list[Document] | None = None,
) -> Document:
    """Return objects as a table.

    Args:
        resource: the resource of the objects.
        documents: the objects, in the API version of the resource.
        metadata: the metadata of the table.
        version: the version of the kind Table.
        include: the part of its object that each row includes.
        now: the current time in seconds since 1970, for ages.
        stored: the objects in the stored version, from which cells are computed; None to convert `documents`.
    """
    key = f"{internal_package(resource.group, resource.kind)}.{resource.kind}"
    columns = _columns(resource, key)
    head: Document = {"kind": "Table", "apiVersion": f"meta.k8s.io/{version}", "metadata": metadata}
    if stored is None:
        stored = [to_storage(resource, each) for each in documents] if is_renamed(resource) else documents
    pairs = list(zip(documents, stored, strict=True))
    if resource.table == _FLOW_SCHEMAS:
        pairs.sort(key=lambda pair: _precedence(pair[1]))
    rows = [
        _row(resource, key, _cells(resource, key, kept, now), document, version, include) for document, kept in pairs
    ]
    # Upstream's table of kinds without columns of their own has null for no rows.
    shown: object = None if not rows and columns is _NAME_AND_CREATION else rows
    return {**head, "columnDefinitions": [_definition(each) for each in columns], "rows": shown}


def _precedence(flow_schema: Document) -> tuple[int, str]:
    """Return the key by which a table orders flow schemas."""
    found = part(flow_schema, "spec").get("matchingPrecedence")
    return found if isinstance(found, int) else 0, str(part(flow_schema, "metadata").get("name"))


_API_SERVICE = (
    ColumnFacts("Name", "string", "name"),
    ColumnFacts("Service", "string"),
    ColumnFacts("Available", "string", description="Whether the API is available."),
    ColumnFacts("Age", "string"),
)
_SCALE = (
    ColumnFacts("Name", "string"),
    ColumnFacts("Desired", "integer"),
    ColumnFacts("Available", "integer"),
    ColumnFacts("Age", "string"),
)
_CUSTOM_SCALE = (_NAME_AND_AGE[0], *_SCALE[1:3], _NAME_AND_AGE[1])


def scale_table(scale: Document, version: str, include: str, now: float, *, custom: bool) -> Document:
    """Return a Scale as a table with one row. `custom`: whether it is the Scale of a custom resource."""
    metadata, status = part(scale, "metadata"), part(scale, "status")
    cells = [metadata.get("name"), part(scale, "spec").get("replicas") or 0, status.get("replicas") or 0]
    row: Document = {"cells": [*cells, age(metadata.get("creationTimestamp"), now)], "object": scale}
    if include != "Object":
        shown: Document = {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}"}
        row["object"] = None if include == "None" else {**shown, "metadata": metadata}
    head: Document = {"kind": "Table", "apiVersion": f"meta.k8s.io/{version}"}
    head["metadata"] = {"resourceVersion": metadata.get("resourceVersion") or ""}
    return {
        **head,
        "columnDefinitions": [_definition(each) for each in (_CUSTOM_SCALE if custom else _SCALE)],
        "rows": [row],
    }


def _definition(column: ColumnFacts) -> Document:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description or describe_column(column.name),
        "priority": column.priority,
    }


def _columns(resource: Resource, key: str) -> tuple[ColumnFacts, ...]:
    if resource.custom is not None:
        printed = parts(resource.custom, "additionalPrinterColumns")
        if not printed:
            return _NAME_AND_AGE
        extra = [
            ColumnFacts(
                str(each.get("name")),
                str(each.get("type")),
                str(each.get("format") or ""),
                _priority(each),
                str(
                    each.get("description")
                    or f"Custom resource definition column (in JSONPath format): {each.get('jsonPath')}"
                ),
            )
            for each in _valid_columns(printed)
        ]
        return (_NAME_AND_AGE[0], *extra)
    if key == "apiregistration.APIService":
        return _API_SERVICE
    return api_facts().columns[key] if key in CELLS else _NAME_AND_CREATION


def _valid_columns(printed: list[Document]) -> Iterator[Document]:
    """Return the columns before the first malformed path: as in upstream, it ends the table."""
    return takewhile(lambda each: is_valid(str(each.get("jsonPath") or "")), printed)


def _priority(column: Document) -> int:
    found = column.get("priority")
    return found if isinstance(found, int) else 0


def _cells(resource: Resource, key: str, document: Document, now: float) -> list[object]:
    metadata = part(document, "metadata")
    if resource.custom is not None:
        printed = parts(resource.custom, "additionalPrinterColumns")
        if printed:
            whole = {"apiVersion": resource.api_version, "kind": resource.kind, **document}
            return [metadata.get("name"), *(_custom_cell(each, whole, now) for each in _valid_columns(printed))]
        created = metadata.get("creationTimestamp")
        return [metadata.get("name"), None if created is None else age(created, now)]
    cells = CELLS.get(key)
    if cells is None:
        return [metadata.get("name"), metadata.get("creationTimestamp") or _ZERO_TIME]
    return cells(document, now)


def _custom_cell(column: Document, document: Document, now: float) -> object:
    value = first_value(str(column.get("jsonPath") or ""), document)
    if value is MISSING:
        return None
    kind = column.get("type")
    if value is None:
        return "<no value>" if kind == "string" else None
    if kind == "string":
        return _text_cell(value)
    if kind == "date":
        try:
            return age(value, now) if isinstance(value, str) else None
        except InputError:
            return "<invalid>"
    if kind == "boolean" or isinstance(value, bool):
        return value if kind == "boolean" and isinstance(value, bool) else None
    if not isinstance(value, int | float):
        return None
    return int(value) if kind == "integer" else value


def _text_cell(value: object) -> str:
    """Return a value as text: JSON for lists and objects, otherwise as Go prints it."""
    if isinstance(value, dict | list):
        return json_text(in_go_order("", value))
    if isinstance(value, float):
        return shortest_text(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _row(resource: Resource, key: str, cells: list[object], document: Document, version: str, include: str) -> Document:
    # The object of a bookmark has no name.
    row: Document = {"cells": ["" if cells[0] is None else cells[0], *cells[1:]]}
    if key == "core.Pod" and pod_conditions(document):
        row["conditions"] = pod_conditions(document)
    if include == "None":
        row["object"] = None
    elif include == "Object":
        row["object"] = {"kind": resource.kind, "apiVersion": resource.api_version, **document}
    else:
        kind: Document = {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}"}
        row["object"] = {**kind, "metadata": shown_metadata(part(document, "metadata"))}
    return row


def shown_metadata(metadata: Document) -> Document:
    """Return metadata without the annotations that represent other fields of the object."""
    annotations = part(metadata, "annotations")
    if TEMPLATE_GENERATION not in annotations and not any(name in annotations for name in V1_ANNOTATIONS):
        return metadata
    left = {name: text for name, text in annotations.items() if name not in (TEMPLATE_GENERATION, *V1_ANNOTATIONS)}
    bare = {name: value for name, value in metadata.items() if name != "annotations"}
    return {**bare, "annotations": left} if left else bare
