"""Strategic merge patch: lists merge by the merge keys of the schema, and directives express everything else.

Directives: ``$patch`` (replace, delete, merge), ``$retainKeys``, ``$setElementOrder/LIST``,
``$deleteFromPrimitiveList/LIST``.

Source:
https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md
"""

from __future__ import annotations

from typing import TypeAlias, cast

from bayplan.base.plain_data import Document
from bayplan.formats.schema import FieldFacts, TypeFacts, schema

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"
_NO_FACTS = TypeFacts({})


def go_map(value: object) -> str:
    """Return a JSON value as Go prints a map."""
    if isinstance(value, dict):
        inner = " ".join(f"{name}:{go_map(item)}" for name, item in sorted(value.items()))
        return f"map[{inner}]"
    if isinstance(value, list):
        return f"[{' '.join(go_map(item) for item in value)}]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)


class StrategicPatchError(ValueError):
    """A patch contradicts itself or the schema."""


class UndeclaredKeyError(StrategicPatchError):
    """A list item lacks the merge key; upstream reports an internal error."""


def strategic_merge(type_name: str, document: Document, patch: Document) -> Document:
    """Return an object with a strategic merge patch applied; both stay unchanged.

    Args:
        type_name: the name of the type in OpenAPI.
        document: the current object.
        patch: the patch.

    Raises:
        StrategicPatchError: a directive is invalid, or an item lacks its merge key.
    """
    return _merge_map(schema().types.get(type_name, _NO_FACTS), document, patch)


def _merge_map(facts: TypeFacts, original: Document, patch: Document) -> Document:
    if not any(name.startswith("$") for name in patch):
        return _merge_fields(facts, dict(original), patch)
    directive = patch.get(_PATCH)
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _PATCH}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise StrategicPatchError(f"unrecognized strategic patch directive {directive!r}")
    out = _retained(dict(original), patch)
    ordered = {name.removeprefix(_ORDER) for name in patch if name.startswith(_ORDER)}
    for name in sorted(ordered):
        _merge_ordered(facts, out, name, patch)
    for name, value in patch.items():
        if name in (_PATCH, _RETAIN) or name.startswith(_ORDER) or name in ordered:
            continue
        if name.startswith(_DELETE):
            key = name.removeprefix(_DELETE)
            if isinstance(out.get(key), list) and isinstance(value, list):
                out[key] = _without(cast("list[object]", out[key]), value)
        elif value is None:
            out.pop(name, None)
        else:
            out[name] = _merge_value(facts.fields.get(name), out.get(name), value)
    return out


def _merge_fields(facts: TypeFacts, out: Document, patch: Document) -> Document:
    """Merge a patch without directives into `out`, a copy of the original, and return it."""
    for name, value in patch.items():
        if value is None:
            out.pop(name, None)
        elif isinstance(value, dict | list):
            out[name] = _merge_value(facts.fields.get(name), out.get(name), value)
        else:
            out[name] = value
    return out


def _without(items: list[object], gone: list[object]) -> list[object]:
    keys = set(map(_key, gone))
    return [item for item in items if _key(item) not in keys]


def _retained(original: Document, patch: Document) -> Document:
    keep = patch.get(_RETAIN)
    if not isinstance(keep, list):
        return original
    extra = [name for name in patch if not name.startswith("$") and patch[name] is not None and name not in keep]
    if extra:
        raise StrategicPatchError(f"{_RETAIN} list doesn't match fields present in patch: {', '.join(extra)}")
    return {name: value for name, value in original.items() if name in keep}


def _inner(facts: FieldFacts | None) -> TypeFacts:
    return _NO_FACTS if facts is None else schema().types.get(facts.type, _NO_FACTS)


def _merge_value(facts: FieldFacts | None, original: object, value: object) -> object:
    if isinstance(value, dict):
        inner = _NO_FACTS if facts is not None and facts.containers else _inner(facts)
        if isinstance(original, dict):
            if facts is not None and facts.strategy == "replace":
                return value
            return _merge_map(inner, original, value)
        return _without_directives(inner, value)
    if isinstance(value, list) and isinstance(original, list) and facts is not None and "merge" in facts.strategy:
        merged = _merge_list(facts, original, value)
        return _in_order(facts, merged, value, original)
    if isinstance(value, list) and (original is None or facts is None or "merge" in facts.strategy):
        return [_item_without_directives(item) for item in value if not _is_directive(item)]
    # A list without merge key replaces the original unchanged.
    return value


def _without_directives(facts: TypeFacts, value: Document) -> Document:
    """Return the result of a patch for a value that does not exist."""
    return {} if _PATCH in value else _merge_map(facts, {}, value)


def _is_directive(item: object) -> bool:
    return isinstance(item, dict) and _PATCH in item


def _item_without_directives(item: object) -> object:
    if not isinstance(item, dict):
        return item
    return {name: value for name, value in item.items() if not name.startswith("$")}


def _merge_list(facts: FieldFacts, original: list[object], patch: list[object]) -> list[object]:
    if not facts.merge_key:
        return list({_key(item): item for item in reversed([*original, *patch])}.values())[::-1]
    key, inner = facts.merge_key, _inner(facts)
    plain: list[Document] = []
    deleted: set[Key] = set()
    replace = False
    for item in patch:
        if not isinstance(item, dict):
            raise StrategicPatchError(f"expected objects in a list that merges by {key}")
        directive = item.get(_PATCH)
        if directive == "replace":
            replace = True
        elif directive == "delete":
            if key not in item:
                raise StrategicPatchError(f"delete patch type with no merge key defined: {key}")
            deleted.add(_key(item[key]))
        else:
            plain.append(item)
    if replace:
        return list(plain)
    out = [each for each in original if not (isinstance(each, dict) and key in each and _key(each[key]) in deleted)]
    places: dict[Key, int] = {}
    for place, each in enumerate(out):
        if isinstance(each, dict):
            places.setdefault(_key(each.get(key)), place)
    for item in plain:
        if key not in item:
            raise UndeclaredKeyError(f"map: {go_map(item)} does not contain declared merge key: {key}")
        identity = _key(item[key])
        at = places.get(identity)
        if at is None:
            places[identity] = len(out)
            out.append(_merge_map(inner, {}, item))
        else:
            out[at] = _merge_map(inner, cast("Document", out[at]), item)
    return out


Key: TypeAlias = "tuple[str, str]"


def _key(value: object) -> Key:
    """Return a hashable key that is equal for equal values."""
    return type(value).__name__, str(value)


def _identity(facts: FieldFacts, item: object) -> Key:
    return _key(item.get(facts.merge_key) if isinstance(item, dict) and facts.merge_key else item)


def _in_order(facts: FieldFacts, merged: list[object], order: list[object], server: list[object]) -> list[object]:
    """Return the items of a merged list, sorted by `order`.

    Items that `order` lacks keep their positions relative to the other items in `server`, the original list.
    """
    wanted = dict.fromkeys(_identity(facts, item) for item in order)
    known: dict[Key, int] = {}
    for place, item in enumerate(server):
        known.setdefault(_identity(facts, item), place)
    items: dict[Key, list[object]] = {}
    for item in merged:
        items.setdefault(_identity(facts, item), []).append(item)
    last = len(server)
    right = [(known.get(each, last), item) for each in wanted for item in items.get(each, ())]
    left = [(known.get(each, last), item) for item in merged if (each := _identity(facts, item)) not in wanted]
    left.sort(key=lambda entry: entry[0])
    out: list[object] = []
    at = to = 0
    while at < len(left) and to < len(right):
        if left[at][0] < right[to][0] < last:
            out.append(left[at][1])
            at += 1
        else:
            out.append(right[to][1])
            to += 1
    return out + [item for _, item in left[at:]] + [item for _, item in right[to:]]


def _merge_ordered(facts: TypeFacts, out: Document, name: str, patch: Document) -> None:
    """Merge a list for which the patch has a `$setElementOrder` directive."""
    field = facts.fields.get(name, FieldFacts("any"))
    order = patch[_ORDER + name]
    original, changes = out.get(name), patch.get(name)
    if not isinstance(order, list):
        raise StrategicPatchError(f"{_ORDER}{name} must be a list")
    server = cast("list[object]", original) if isinstance(original, list) else []
    if name in patch and changes is None:
        out.pop(name, None)
        return
    gone = patch.get(_DELETE + name)
    if isinstance(gone, list):
        server = _without(server, gone)
    merged = _merge_list(field, server, changes) if isinstance(changes, list) else server
    if merged or isinstance(original, list):
        out[name] = _in_order(field, merged, order, server)
