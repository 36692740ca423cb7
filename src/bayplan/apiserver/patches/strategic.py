"""Strategic merge patch: lists merge by the merge keys of the schema, and directives express everything else.

Directives: ``$patch`` (replace, delete, merge), ``$retainKeys``, ``$setElementOrder/LIST``,
``$deleteFromPrimitiveList/LIST``.

Source:
https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md
"""

from __future__ import annotations

from typing import TypeAlias, cast

from bayplan.base.go_text.json import go_map
from bayplan.base.plain_data import Document
from bayplan.formats.schema import FieldFacts, TypeFacts, schema

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"
_NO_FACTS = TypeFacts({})
_RAW = "io.k8s.apimachinery.pkg.runtime.RawExtension"


class StrategicPatchError(ValueError):
    """A patch that contradicts itself or the schema.

    Attributes:
        code: the HTTP status of the response: 500, except for errors that upstream considers the client's fault.
    """

    def __init__(self, message: str, code: int = 500) -> None:
        super().__init__(message)
        self.code = code


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
    if _PATCH in patch:
        raise _unknown_directive(patch)
    out = _retained(dict(original), patch)
    ordered = {name.removeprefix(_ORDER) for name in patch if name.startswith(_ORDER)}
    for name in sorted(ordered):
        _merge_ordered(facts, out, name, patch)
    fields = {
        name: value
        for name, value in patch.items()
        if name != _RETAIN and not name.startswith((_ORDER, _DELETE)) and name not in ordered
    }
    for name, value in patch.items():
        if name.startswith(_DELETE):
            key = name.removeprefix(_DELETE)
            if value is None:
                out.pop(key, None)
            elif isinstance(out.get(key), list) and isinstance(value, list):
                before = cast("list[object]", out[key])
                _check_types(before, value)
                out[key] = _without(before, value)
    return _merge_fields(facts, out, fields)


def _unknown_directive(patch: Document) -> StrategicPatchError:
    return StrategicPatchError(f"unknown patch type: {go_map(patch[_PATCH])} in map: {go_map(patch)}")


def _merge_fields(facts: TypeFacts, out: Document, patch: Document) -> Document:
    """Merge the fields of a patch, which has no directives for the map, into a copy of the original."""
    for name, value in patch.items():
        if value is None:
            out.pop(name, None)
        elif isinstance(value, dict | list):
            merged = _merge_value(facts.fields.get(name), out.get(name), value)
            if merged is None:
                out.pop(name, None)
            else:
                out[name] = merged
        else:
            out[name] = value
    return out


def _without(items: list[object], gone: list[object]) -> list[object]:
    keys = set(map(_key, gone))
    return [item for item in items if _key(item) not in keys]


def _retained(original: Document, patch: Document) -> Document:
    if _RETAIN not in patch:
        return original
    keep = patch[_RETAIN]
    sent = [name for name, value in patch.items() if value is not None and not name.startswith((_ORDER, _DELETE))]
    if not isinstance(keep, list) or any(name not in keep for name in sent if name != _RETAIN):
        raise StrategicPatchError("invalid patch format of retainKeys", 400)
    return {name: value for name, value in original.items() if name in keep}


def _inner(facts: FieldFacts | None) -> TypeFacts:
    return _NO_FACTS if facts is None else schema().types.get(facts.type, _NO_FACTS)


def _merge_value(facts: FieldFacts | None, original: object, value: object) -> object:
    """Return a map or list merged with the stored value, None if nothing is left."""
    if isinstance(value, dict) and isinstance(original, dict):
        if facts is not None and facts.strategy == "replace":
            return value
        if facts is not None and facts.type == _RAW:
            _check_raw(original, value)
        inner = _NO_FACTS if facts is not None and facts.containers else _inner(facts)
        return _merge_map(inner, original, value)
    if isinstance(value, list) and isinstance(original, list):
        if facts is not None and "merge" in facts.strategy:
            return _in_order(facts, _merge_list(facts, original, value), value, original)
        # A list that replaces another is stored unchanged.
        return value
    return _added(value)


def _check_raw(original: Document, patch: Document) -> None:
    """Raise if lists or maps inside raw JSON would be merged, whose Go type has no fields.

    Raises:
        StrategicPatchError: a key has lists or maps in both objects.
    """
    for name in sorted(patch):
        if any(isinstance(patch[name], kind) and isinstance(original.get(name), kind) for kind in (dict, list)):
            raise _no_field("RawExtension", name)


def _no_field(struct: str, name: str) -> StrategicPatchError:
    return StrategicPatchError(f'unable to find api field in struct {struct} for the json field "{name}"')


def _added(value: object) -> object:
    """Return a field's value for an object that lacks the field: without nulls, and None for maps with ``$patch``.

    As in upstream, other directives stay, as unknown fields.
    """
    if isinstance(value, dict):
        if _PATCH in value:
            return None
        items = ((name, _added(item)) for name, item in value.items())
        return {name: item for name, item in items if item is not None}
    if isinstance(value, list):
        return [
            item if item is None else added for item in value if (added := _added(item)) is not None or item is None
        ]
    return value


def _check_types(*lists: list[object]) -> str:
    """Return the Go type that all items of the lists have.

    Raises:
        StrategicPatchError: items are lists, or differ in type.
    """
    first = ""
    for item in (item for items in lists for item in items):
        found = go_type(item)
        if not first and isinstance(item, list):
            raise StrategicPatchError("lists of lists are not supported", 422)
        if first and found != first:
            raise StrategicPatchError(f"list element types are not identical: {go_map(list(lists))}")
        first = found
    return first


_MAP = "map[string]interface {}"


def go_type(value: object) -> str:
    """Return Go's name for the type of a decoded value."""
    if value is None:
        return "<nil>"
    for kind, name in ((bool, "bool"), (int, "int64"), (float, "float64"), (str, "string"), (dict, _MAP)):
        if isinstance(value, kind):
            return name
    return "[]interface {}"


def _merge_list(facts: FieldFacts, original: list[object], patch: list[object]) -> list[object]:
    kind = _check_types(original, patch)
    if kind != _MAP or not facts.merge_key:
        return list({_key(item): item for item in reversed([*original, *patch])}.values())[::-1]
    key, inner = facts.merge_key, _inner(facts)
    plain: list[Document] = []
    deleted: set[Key] = set()
    replace = False
    for item in cast("list[Document]", patch):
        directive = item.get(_PATCH)
        if _PATCH not in item:
            plain.append(item)
        elif directive == "replace":
            replace = True
        elif directive == "delete":
            deleted.add(_key(_keyed(item, key)))
        elif directive == "merge":
            raise StrategicPatchError("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(item)
    if replace:
        for item in plain:
            _keyed(item, key)
        return list(plain)
    out = [each for each in original if not (isinstance(each, dict) and key in each and _key(each[key]) in deleted)]
    places: dict[Key, int] = {}
    for place, each in enumerate(out):
        if isinstance(each, dict):
            places.setdefault(_key(each.get(key)), place)
    for item in plain:
        identity = _key(_keyed(item, key))
        at = places.get(identity)
        if at is None:
            places[identity] = len(out)
            # As in upstream, directives within a new item are not processed.
            out.append(item)
        else:
            out[at] = _merge_map(inner, cast("Document", out[at]), item)
    for each in out:
        _keyed(cast("Document", each), key)
    return out


def _keyed(item: Document, key: str) -> object:
    """Return the merge key of an item.

    Raises:
        StrategicPatchError: the item lacks it.
    """
    if key not in item:
        raise StrategicPatchError(f"map: {go_map(item)} does not contain declared merge key: {key}")
    return item[key]


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
    """Merge a list whose order the patch specifies.

    Raises:
        StrategicPatchError: the order is not a list, or the patch's own items have a different order.
    """
    field = facts.fields.get(name, FieldFacts("any"))
    order = patch[_ORDER + name]
    for found in (order, *((out[name],) if name in out else ()), *((patch[name],) if name in patch else ())):
        if not isinstance(found, list):
            shown = "%!s(<nil>)" if found is None else go_type(found)
            raise StrategicPatchError(f"expected a []interface {{}}, but received a {shown}")
    if name not in facts.fields and facts is not _NO_FACTS:
        struct = next((full.rpartition(".")[2] for full, each in schema().types.items() if each is facts), "")
        raise _no_field(struct, name)
    changes, wanted = cast("list[object]", patch.get(name) or []), cast("list[object]", order)
    _check_order(field, changes, wanted)
    if name not in out:
        if name in patch:
            merged = cast("list[object]", _added(changes))
            out[name] = _in_order(field, merged, wanted, [])
        return
    server = cast("list[object]", out[name])
    merged = _merge_list(field, server, changes) if name in patch else server
    _check_maps(field, merged, wanted)
    out[name] = _in_order(field, merged, wanted, server)


def _check_maps(facts: FieldFacts, merged: list[object], order: list[object]) -> None:
    """Raise if the search for an item of a merged list meets an item of the order that is not a map."""
    first = next((index for index, each in enumerate(order) if not isinstance(each, dict)), None)
    if not facts.merge_key or first is None:
        return
    before = {_identity(facts, each) for each in order[:first]}
    if any(_identity(facts, item) not in before for item in merged):
        raise StrategicPatchError(f"value for key {first} is not a map")


def _check_order(facts: FieldFacts, changes: list[object], order: list[object]) -> None:
    """Check that the items of a patch, except those with a directive, come in the order that it specifies."""
    if not order or not changes:
        return
    kept = [item for item in changes if not (facts.merge_key and isinstance(item, dict) and _PATCH in item)]
    at = 0
    for each in order:
        if at == len(kept):
            return
        item = kept[at]
        if facts.merge_key:
            for side in (item, each):
                if not isinstance(side, dict):
                    text = f"expected a {_MAP}, but received a {go_type(side)}"
                    raise StrategicPatchError(text.replace("<nil>", "%!s(<nil>)"))
                _keyed(side, facts.merge_key)
        at += _identity(facts, item) == _identity(facts, each)
    if at < len(kept):
        text = f"The order in patch list:\n{go_map(changes)}\n doesn't match {_ORDER[:-1]} list:\n{go_map(order)}\n"
        raise StrategicPatchError(text)
