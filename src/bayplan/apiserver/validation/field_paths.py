"""Paths of fields in the schema of a custom resource, as CEL rules write them: ``.spec.names['a.b']``."""

from __future__ import annotations

import re

from bayplan.base.plain_data import Document, part

_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]]+", re.DOTALL)
_ESCAPES = {"\\": "\\", "'": "'", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def normalized_path(schema: Document, text: str) -> str | None:
    """Return a path in the form that error messages show, or None if the schema has no such field."""
    tokens = _TOKEN.findall(text)
    shown, at = "", schema
    while tokens:
        opening = tokens.pop(0)
        if opening not in (".", "[") or not tokens:
            return None
        name = tokens.pop(0)
        if opening == "[":
            if len(name) < 2 or not (name[0] == name[-1] == "'") or not tokens or tokens.pop(0) != "]":
                return None
            name = re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), name[1:-1])
        properties, more = part(at, "properties"), at.get("additionalProperties")
        if properties:
            inner = properties.get(name)
            shown += f".{name}" if shown else name
        else:
            inner = more
            shown += f"[{name}]"
        if not isinstance(inner, dict):
            return None
        at = inner
    return shown


def find_field(schema: Document, text: str) -> tuple[object, str]:
    """Return the schema of the field at a path without brackets, such as ``.spec.size``, or why the path is invalid.

    Source: ValidFieldPath in apiextensions-apiserver/pkg/apiserver/schema/cel v1.36.3.
    """
    tokens = _TOKEN.findall(text)
    at: object = schema
    while tokens:
        opening = tokens.pop(0)
        if opening == "[":
            return None, "array notation is not allowed"
        if opening != ".":
            return None, f"expected [ or . but got: {opening}"
        if not tokens:
            return None, "unexpected end of JSON path"
        name, outer = tokens.pop(0), at if isinstance(at, dict) else {}
        properties = part(outer, "properties")
        # `additionalProperties: false` is a field without a schema for upstream.
        at = properties.get(name) if properties else outer.get("additionalProperties")
        if at is None:
            return None, "does not refer to a valid field"
    return at, ""
