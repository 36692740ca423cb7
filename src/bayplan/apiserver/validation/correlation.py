"""Values of a custom resource and their old values: an unchanged value may break rules that its schema has gained since.

Source: apiserver/pkg/cel/common/equality.go v1.36.3.
"""

from __future__ import annotations

from bayplan.apiserver.validation.list_types import identity
from bayplan.base.plain_data import Document, part, same_json, texts

ABSENT = object()
"""The old value of a value that has none."""


def is_unchanged(schema: Document, value: object, old: object) -> bool:
    """Return whether upstream finds a value equal to its old value.

    It can't match fields without a schema, and items of a keyed list without their keys, with old values. Objects and
    lists that contain these count as changed.
    """
    return value == old and _is_matched(schema, value, old)


def _is_matched(schema: Document, value: object, old: object) -> bool:
    """Return whether every part of a value has an equal old value; both are equal for Python."""
    if isinstance(value, dict) and isinstance(old, dict):
        properties, more = part(schema, "properties"), schema.get("additionalProperties")
        for name, item in value.items():
            inner = properties.get(name, more)
            if not isinstance(inner, dict) or not _is_matched(inner, item, old[name]):
                return False
        return True
    if isinstance(value, list) and isinstance(old, list) and schema.get("x-kubernetes-list-type") == "map":
        inner = part(schema, "items")
        before = items_before(schema, value, old)
        return all(
            each is not ABSENT and _is_matched(inner, item, each) for item, each in zip(value, before, strict=True)
        )
    return same_json(value, old)


def items_before(schema: Document, value: list[object], old: object) -> list[object]:
    """Return the old value of each item, matched by the list's keys; `ABSENT` if none matches."""
    keys = texts(schema, "x-kubernetes-list-map-keys")
    if not isinstance(old, list) or not keys:
        return [ABSENT] * len(value)
    known = {identity(each, keys): each for each in old if _has_keys(each, keys)}
    return [known.get(identity(each, keys), ABSENT) if _has_keys(each, keys) else ABSENT for each in value]


def _has_keys(item: object, keys: list[str]) -> bool:
    return isinstance(item, dict) and all(key in item for key in keys)
