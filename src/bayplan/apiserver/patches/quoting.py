"""Strategic merge patches as upstream's errors quote them."""

from __future__ import annotations

_ORDER = "$setElementOrder/"


def as_quoted(old: object, changes: object) -> object:
    """Return a strategic patch as upstream's errors quote it.

    Its library drops nulls from parts that the object lacks, and the directives that it has carried out from others.
    """
    if not isinstance(changes, dict) or not isinstance(old, dict):
        return changes
    ordered = {name.removeprefix(_ORDER) for name in changes if name.startswith(_ORDER)}
    return {
        name: item if item is None else as_quoted(old[name], item) if name in old else _without_nulls(item)
        for name, item in changes.items()
        if name not in ordered and not name.startswith(_ORDER) and (name, item) != ("$patch", "replace")
    }


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
