"""Warnings about CustomResourceDefinitions: formats that upstream does not recognize.

Source: apiextensions-apiserver v1.36.3, pkg/apiserver/validation/formats.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.base.go_text.quoting import quote
from bayplan.base.plain_data import Document, part, parts

_TEXTS = frozenset((
    "bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5",
    "isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "byte",
    "password", "date", "duration", "datetime", "k8sshortname", "k8slongname",
))  # fmt: skip
_NUMBERS = {"integer": ("int32", "int64"), "number": ("float", "double")}


def definition_warnings(definition: Document, before: Document | None) -> list[str]:
    """Return the warnings about a definition. In an update, formats of the previous definition (`before`) cause none."""
    known = set(_unrecognized(before)) if before is not None else set[str]()
    return [f"unrecognized format {quote(each)}" for each in _unrecognized(definition) if each not in known]


def _unrecognized(definition: Document) -> Iterator[str]:
    versions = parts(part(definition, "spec"), "versions")
    rest: list[object] = [part(version, "schema").get("openAPIV3Schema") for version in reversed(versions)]
    while rest:
        schema = rest.pop()
        if not isinstance(schema, dict):
            continue
        if schema.get("format") and not _is_recognized(str(schema.get("type") or ""), str(schema["format"])):
            yield str(schema["format"])
        properties = part(schema, "properties")
        lists = [each for name in ("allOf", "anyOf", "oneOf") for each in parts(schema, name)]
        named = [properties[name] for name in sorted(properties)]
        below = [schema.get("items"), *lists, schema.get("not"), *named, schema.get("additionalProperties")]
        rest += reversed(below)


def _is_recognized(kind: str, form: str) -> bool:
    return form.replace("-", "") in _TEXTS if kind in ("", "string") else form in _NUMBERS.get(kind, ())
