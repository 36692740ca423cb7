"""Custom resources between versions and schemas: fields that a schema lacks are dropped, and defaults are set."""

from __future__ import annotations

import json

from bayplan.apiserver.codec.decode_error import DecodeError, go_kind
from bayplan.apiserver.codec.shape import shape_of
from bayplan.apiserver.kinds.custom_types import OBJECT_META, PRESERVE
from bayplan.apiserver.model.errors import too_large
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.validation.custom_values import EMBEDDED
from bayplan.base.plain_data import Document, part

_META_FIELDS = ("apiVersion", "kind", "metadata")


def prune(resource: Resource | None, value: Document, *, preserve_nulls: bool = False) -> tuple[Document, list[str]]:
    """Return an object without unknown fields and with defaults, and the paths of the dropped fields, sorted.

    Without a schema, the object is returned unchanged.

    Args:
        resource: the resource.
        value: the object.
        preserve_nulls: whether to keep nulls of fields that are not nullable and have no default, as an apply does.
    """
    schema: Document = {}
    if resource is not None and resource.custom is not None:
        schema = part(resource.custom, "schema", "openAPIV3Schema")
    if not schema:
        return dict(value), []
    dropped: list[str] = []
    body = {name: item for name, item in value.items() if name not in _META_FIELDS}
    defaults = _Defaults(preserve_nulls=preserve_nulls)
    pruned = _prune(schema, body, "", dropped, defaults)
    assert isinstance(pruned, dict)
    dropped = [*sorted(dropped), *sorted(defaults.dropped_metadata)]
    return {name: value[name] for name in _META_FIELDS if name in value} | pruned, dropped


class PruningConverter:
    """The conversion strategy None between versions with different schemas: fields that a version lacks are dropped.

    Args:
        served: the schema of the served version.
        stored: the schema of the stored version.
    """

    def __init__(self, served: Document, stored: Document) -> None:
        self._served, self._stored = served, stored

    def to_storage(self, document: Document) -> Document:
        """Return an object in the stored version, with the defaults that upstream sets when it reads the object."""
        return _converted(self._stored, document, _Defaults())

    def from_storage(self, document: Document) -> Document:
        """Convert a stored object to the served version."""
        return _converted(self._served, document, _NoDefaults())


def through_storage(resource: Resource, document: Document) -> Document:
    """Return an object without the fields that its stored version lacks, as in the response to a write."""
    if isinstance(resource.converter, PruningConverter):
        return resource.converter.from_storage(resource.converter.to_storage(document))
    return document


def _converted(schema: Document, document: Document, defaults: _Defaults) -> Document:
    body = {name: item for name, item in document.items() if name not in _META_FIELDS}
    pruned = _prune(schema, body, "", [], defaults)
    assert isinstance(pruned, dict)
    return {name: document[name] for name in _META_FIELDS if name in document} | pruned


def as_read(schema: Document, document: Document) -> Document:
    """Return a stored object that is older than its schema, with the schema's defaults and without unknown fields."""
    return _converted(schema, document, _Defaults())


def stored_earlier(resource: Resource, revision: int, document: Document) -> Document | None:
    """Return what a read shows of an object that was stored in a different version; None if the version is still in use.

    Args:
        resource: the resource in the version that is read.
        revision: the revision of the object.
        document: the stored object.
    """
    schema = next((each for until, each in resource.earlier_schemas if revision < until), None)
    if schema is None:
        return None
    document = as_read(schema, document)
    if resource.converter is not None or resource.stored_schema is None:
        return document
    return _converted(resource.stored_schema, document, _NoDefaults())


MAX_DEFAULTS = 500_000
"""Maximum number of defaults set in one object. A schema of 1 MB could set 10,000 defaults in each of 100,000 items."""


class _Defaults:
    """The properties with a default, determined once per schema, and the number of defaults that may still be set.

    Attributes:
        preserve_nulls: see `prune`.
        dropped_metadata: the paths of unknown metadata of embedded objects, which upstream reports last.
    """

    __slots__ = ("_known", "_left", "dropped_metadata", "preserve_nulls")

    def __init__(self, *, preserve_nulls: bool = False) -> None:
        self.preserve_nulls = preserve_nulls
        self.dropped_metadata: list[str] = []
        self._known: dict[int, list[tuple[str, Document]]] = {}
        self._left = MAX_DEFAULTS

    def of(self, schema: Document) -> list[tuple[str, Document]]:
        """Return the properties of a schema that have a default, as names and schemas, and deduct their number from the limit.

        Raises:
            ApiError: the object gets too many defaults.
        """
        found = self._known.get(id(schema))
        if found is None:
            properties = part(schema, "properties").items()
            found = [(name, each) for name, each in properties if isinstance(each, dict) and "default" in each]
            self._known[id(schema)] = found
        self._count(len(found))
        return found

    def of_null(self, schema: Document) -> object:
        """Return the default that replaces a null of a list or a map, or None."""
        if schema.get("nullable") or "default" not in schema:
            return None
        self._count(1)
        return schema["default"]

    def _count(self, number: int) -> None:
        self._left -= number
        if self._left < 0:
            raise too_large(f"the schema adds more than {MAX_DEFAULTS} defaults to the object")


class _NoDefaults(_Defaults):
    """No defaults: a conversion adds none."""

    def of(self, schema: Document) -> list[tuple[str, Document]]:
        """Return an empty list."""
        return []

    def of_null(self, schema: Document) -> object:
        """Return None."""
        return None


_NO_SCHEMA: Document = {"type": "null"}


def _prune(
    schema: Document, value: object, path: str, dropped: list[str], known: _Defaults, *, preserves: bool = False
) -> object:
    # What a list preserves includes the fields of its items, and those of lists within it.
    preserves = preserves or bool(schema.get(PRESERVE)) or not schema
    if isinstance(value, dict):
        properties, more = part(schema, "properties"), schema.get("additionalProperties")
        embedded = bool(schema.get(EMBEDDED))
        out: Document = {}
        for name, item in value.items():
            here = f"{path}.{name}" if path else name
            inner = properties.get(name, more)
            if embedded and name in _META_FIELDS:
                out[name] = _embedded(name, item, here, known.dropped_metadata)
            elif isinstance(inner, dict):
                found = item if item is not None or name in properties else known.of_null(inner)
                is_typed = bool(inner.get("type") or inner.get("x-kubernetes-int-or-string"))
                kept = known.preserve_nulls and "default" not in inner and is_typed
                if found is not None or kept or inner.get("nullable"):
                    out[name] = _prune(inner, found, here, dropped, known)
            elif inner is True:
                # Any value is allowed, but its objects have no schema, so that all their fields are unknown.
                out[name] = _prune(_NO_SCHEMA, item, here, dropped, known)
            elif preserves:
                out[name] = item
            else:
                dropped.append(here)
        for name, inner in known.of(schema):
            if name not in out:
                out[name] = _prune(inner, inner["default"], f"{path}.{name}", dropped, known)
        return out
    if isinstance(value, list):
        inner = schema.get("items")
        # Items of a list in place of another type have no schema, so that all their fields are unknown.
        items = inner if isinstance(inner, dict) else {} if preserves else _NO_SCHEMA
        found_items = [known.of_null(items) if item is None else item for item in value]
        return [
            _prune(items, item, f"{path}[{index}]", dropped, known, preserves=preserves)
            for index, item in enumerate(found_items)
        ]
    return value


def _embedded(name: str, value: object, path: str, dropped: list[str]) -> object:
    """Return the metadata, version or kind of an embedded object, the metadata without unknown fields.

    Raises:
        DecodeError: it cannot be decoded.
    """
    if name != "metadata" and not isinstance(value, str):
        raise DecodeError(f"{path}: Invalid value: {json.dumps(value)}: must be a string")
    if name != "metadata":
        return value
    if value is None:
        return {}
    if not isinstance(value, dict):
        problem = f"json: cannot unmarshal {go_kind(value)} into Go value of type v1.ObjectMeta"
        raise DecodeError(f"{path}: Invalid value: {json.dumps(value)}: {problem}")
    shape = shape_of(OBJECT_META)
    try:
        read = shape.read(value)
    except DecodeError as problem:
        text = str(problem).replace("ObjectMeta.metadata.", "ObjectMeta.")
        shown = json.dumps(value, separators=(",", ":"), sort_keys=True)
        raise DecodeError(f"{path}: Invalid value: {shown}: {text}") from problem
    dropped += [f"{path}.{each}" for each in shape.unknown_fields(value)]
    return {name: item for name, item in read.items() if name in value} if isinstance(read, dict) else value
