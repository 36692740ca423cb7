"""Strategic merge patches as upstream's errors quote them."""

from __future__ import annotations

_ORDER, _PATCH, _RETAIN = "$setElementOrder/", "$patch", "$retainKeys"


def as_quoted(old: object, changes: object) -> object:
    """Return a strategic patch as upstream's errors quote it.

    Its library drops nulls and directives from parts that the object lacks, and the directives that it has carried out from others.
    """
    if not isinstance(changes, dict):
        return changes
    if not isinstance(old, dict):
        return _new_part(_without_nulls(changes))
    ordered = {name.removeprefix(_ORDER) for name in changes if name.startswith(_ORDER)}
    return {
        name: item if item is None else as_quoted(old[name], item) if name in old else _new_part(_without_nulls(item))
        for name, item in changes.items()
        if name not in ordered
        and name != _RETAIN
        and not name.startswith(_ORDER)
        and (name, item) != (_PATCH, "replace")
    }


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _new_part(value: object) -> object:
    """Return a part that the object lacks: maps with a directive are dropped from other maps, and from the lists in these."""
    if isinstance(value, dict):
        return (
            value if _PATCH in value else {name: _kept(item) for name, item in value.items() if not _is_directive(item)}
        )
    return [_new_part(item) for item in value] if isinstance(value, list) else value


def _kept(value: object) -> object:
    if isinstance(value, list):
        return [_kept(item) for item in value if not _is_directive(item)]
    return _new_part(value)


def _is_directive(value: object) -> bool:
    return isinstance(value, dict) and _PATCH in value
