"""Field managers of an object: decode and encode ``metadata.managedFields``, track updates, and apply configurations.

Times follow kube-apiserver's rules: an entry gets a new time when its manager acquired or set a field. For entries of another
API version, the documents are compared in that version.

Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import cast

import msgspec
from msgspec.structs import replace

from bayplan.apiserver.fields.compare import Comparison, KeylessItemError, compare, fields_of, lists_with_empties
from bayplan.apiserver.fields.elements import checked_node
from bayplan.apiserver.fields.field_declarations import object_problem
from bayplan.apiserver.fields.field_set import (
    Node,
    difference,
    intersection,
    paths,
    union,
    without,
)
from bayplan.apiserver.fields.field_type import FieldType
from bayplan.apiserver.fields.merging import merge, with_whole_values
from bayplan.apiserver.fields.pruning import ConversionError, Converter, prune
from bayplan.base.plain_data import Document

APPLY = "Apply"
UPDATE = "Update"
MAX_UPDATE_MANAGERS = 10
_OLD_UPDATES = "ancient-changes"
BEFORE_FIRST_APPLY = "before-first-apply"
"""The manager of everything in an object that is applied for the first time and has no managers yet."""

_HEAD = ("apiVersion", "kind")
"""Fields of a configuration that stored objects lack, so they do not count as a change."""
_NEVER_OWNED: Node = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {
        ".": {},
        **{
            f"f:{name}": {}
            for name in (
                "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation",
                "managedFields", "resourceVersion",
            )
        },
    },
}  # fmt: skip


class Manager(msgspec.Struct, frozen=True):
    """The key of an entry in managedFields.

    Attributes:
        name: the name of the manager.
        operation: ``Apply`` or ``Update``.
        api_version: the API version of an update; empty for an apply.
        subresource: the subresource of the write, or empty.
        is_split: whether this is a second entry of the manager, which upstream's scale endpoint writes.
    """

    name: str
    operation: str
    api_version: str = ""
    subresource: str = ""
    is_split: bool = False

    def __str__(self) -> str:
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


class Owned(msgspec.Struct, frozen=True):
    """The fields that one manager owns.

    Attributes:
        fields: the field set.
        api_version: the API version that names the fields.
        time: the timestamp of the manager's last change, or empty.
    """

    fields: Node
    api_version: str
    time: str = ""


class WriteContext(msgspec.Struct):
    """The properties of a write that field management needs.

    Attributes:
        manager: the name of the manager.
        api_version: the API version of the objects.
        kind: the merge type of the objects.
        time: the timestamp of the write.
        subresource: the subresource of the request, or empty.
        reset_fields: fields that no writer can own through the endpoint.
        in_version: converts documents between versions.
        resets: returns whether the endpoint ignores these fields in another API version, too; None if it does in all versions.
        serves: returns whether any resource has an API version; entries of other versions are dropped.
    """

    manager: str
    api_version: str
    kind: FieldType
    time: str
    subresource: str = ""
    reset_fields: Node = msgspec.field(default_factory=dict)
    in_version: Converter | None = None
    resets: Callable[[str], bool] | None = None
    serves: Callable[[str], bool] | None = None

    def convert(self, source: str, target: str, document: Document) -> tuple[FieldType, Document] | None:
        """Return a document converted between API versions, and its type in the second one; None if it can't be converted.

        Raises:
            ConversionError: the second version does not declare all fields of the document.
        """
        if source == target == self.api_version:
            return self.kind, document
        return None if self.in_version is None else self.in_version(source, target, document)


class ApplyConflict(Exception):
    """Other managers own fields that an apply configuration sets to different values.

    Attributes:
        conflicts: pairs of the other manager and the path of the field.
    """

    def __init__(self, conflicts: list[tuple[Manager, str]]) -> None:
        self.conflicts = conflicts
        super().__init__(self._text())

    def _text(self) -> str:
        if len(self.conflicts) == 1:
            manager, path = self.conflicts[0]
            return f"Apply failed with 1 conflict: conflict with {manager}: {path}"
        lines = []
        for manager in dict.fromkeys(each for each, _ in self.conflicts):
            lines.append(f"conflicts with {manager}:")
            lines += [f"- {path}" for each, path in self.conflicts if each == manager]
        return f"Apply failed with {len(self.conflicts)} conflicts: " + "\n".join(lines)


Managers = dict[Manager, Owned]


def decode(entries: object) -> Managers:
    """Return the managers in a list of entries; an empty dict if any entry has an invalid operation."""
    managers: Managers = {}
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict) or entry.get("operation") not in (APPLY, UPDATE):
            return {}
        version = str(entry.get("apiVersion", ""))
        applied = entry["operation"] == APPLY
        who = Manager(
            str(entry.get("manager", "")),
            str(entry["operation"]),
            "" if applied else version,
            str(entry.get("subresource", "")),
        )
        fields = entry.get("fieldsV1")
        managers[who] = Owned(
            cast("Node", fields) if isinstance(fields, dict) else {}, version, str(entry.get("time") or "")
        )
    return managers


def decode_sent(entries: object, kind: FieldType, api_version: str) -> Managers | None:
    """Return the managers in a list of entries from a client; None if any entry or field set is invalid.

    Managers without fields remain: an object with them is tracked, although they are not stored.

    Args:
        entries: the entries.
        kind: the merge type of the object.
        api_version: the API version of the object; the sets in it are adjusted to `kind` by `with_whole_values`.
    """
    if not isinstance(entries, list):
        return None
    try:
        checked = [{**entry, "fieldsV1": checked_node(entry.get("fieldsV1"))} for entry in entries]
    except (TypeError, ValueError, RecursionError):
        return None
    for entry in checked:
        if entry.get("fieldsType") != "FieldsV1" or not entry.get("apiVersion"):
            return None
        if entry.get("operation") not in (APPLY, UPDATE):
            return None
    return {
        who: replace(owned, fields=with_whole_values(kind, owned.fields)) if owned.api_version == api_version else owned
        for who, owned in decode(checked).items()
    }


def encode(managers: Managers) -> list[object]:
    """Return the entries of managers in kube-apiserver's order: applies before updates, then by time."""
    order = sorted(
        managers.items(),
        key=lambda each: (each[0].operation, each[1].time, each[0].name, each[1].api_version, each[0].subresource),
    )
    return [_entry(who, owned) for who, owned in order]


def _entry(who: Manager, owned: Owned) -> Document:
    entry: Document = {"manager": who.name} if who.name else {}
    entry |= {"operation": who.operation, "apiVersion": owned.api_version}
    if owned.time:
        entry["time"] = owned.time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = owned.fields
    if who.subresource:
        entry["subresource"] = who.subresource
    return entry


def after_create(
    request: WriteContext, zero: Document, new: Document, managers: Managers, *, known: Mapping[str, Node] | None = None
) -> Managers:
    """Return the managers of a new object.

    Args:
        request: the write.
        zero: the zero object of the kind.
        new: the object to store.
        managers: the managers that the client sent.
        known: the known field sets of some top-level fields, by field name. These fields are not compared.
    """
    if known:
        zero, new = ({name: part for name, part in each.items() if name not in known} for each in (zero, new))
    found = _compared(request, zero, new)
    if found is None:
        return {}
    if known:
        found = found._replace(added={**found.added, **{f"f:{name}": node for name, node in known.items()}})
    return _after_changes(request, zero, new, managers, found)


def after_update(
    request: WriteContext, live: Document, new: Document, managers: Managers, *, is_tracked: bool = False
) -> Managers:
    """Return the managers after an update or a patch.

    Args:
        request: the write.
        live: the object before the write.
        new: the object to store.
        managers: the managers before the write. If there are none, upstream does not start to track the object.
        is_tracked: whether to track an object that has no managers.
    """
    if not managers and not is_tracked:
        return {}
    found = _compared(request, live, new)
    if found is None:
        return {}
    emptied = lists_with_empties(request.kind, bare(new))
    if emptied:
        found = found._replace(modified=union(found.modified, emptied))
    return _after_changes(request, live, new, managers, found)


def _compared(request: WriteContext, live: Document, new: Document) -> Comparison | None:
    """Return the changes of a write, or None if upstream gives up tracking the object."""
    if request.kind.json_type and (object_problem(request.kind, new) or object_problem(request.kind, live)):
        return None
    try:
        return compare(request.kind, bare(live), bare(new))
    except KeylessItemError:
        return None


def _after_changes(
    request: WriteContext, live: Document, new: Document, managers: Managers, found: Comparison
) -> Managers:
    """Return the managers after a write with these changes."""
    found = _filtered(found, request.reset_fields)
    took = union(found.added, found.modified)
    try:
        left = _taken(managers, _Changes(request, live, new, found), spare=None)
    except ConversionError:
        # Upstream gives up tracking the object.
        return {}
    mine = difference(took, _NEVER_OWNED)
    if mine:
        who = Manager(request.manager, UPDATE, request.api_version, request.subresource)
        before = left.get(who)
        left[who] = Owned(union(before.fields, mine) if before else mine, request.api_version, request.time)
    return _capped(left)


def bare(document: Document) -> Document:
    """Return the object without managedFields, which no manager owns."""
    metadata = document.get("metadata")
    if isinstance(metadata, dict) and "managedFields" in metadata:
        return {**document, "metadata": {name: item for name, item in metadata.items() if name != "managedFields"}}
    return document


def _without_head(document: Document) -> Document:
    return {name: item for name, item in document.items() if name not in _HEAD}


def _filtered(found: Comparison, reset_fields: Node) -> Comparison:
    if not reset_fields:
        return found
    return Comparison(*(without(each, reset_fields) for each in found))


class _Changes:
    """The changes of a write, in the versions of all managers.

    Args:
        request: the write.
        live, new: the documents before and after, in the version of the request.
        found: their comparison.
    """

    def __init__(self, request: WriteContext, live: Document, new: Document, found: Comparison) -> None:
        self.request = request
        self._documents = live, new
        self._found: dict[str, Comparison | None] = {request.api_version: found}

    def of(self, api_version: str) -> Comparison | None:
        """Return the changes in a version, or None if the documents cannot be converted to it."""
        if api_version not in self._found:
            self._found[api_version] = self._compare(api_version)
        return self._found[api_version]

    def _compare(self, api_version: str) -> Comparison | None:
        request = self.request
        pair = [request.convert(request.api_version, api_version, self._documents[0])]
        try:
            pair.append(request.convert(request.api_version, api_version, self._documents[1]))
        except ConversionError as problem:
            raise ConversionError(f"failed to convert new object: {problem}") from problem
        if pair[0] is None or pair[1] is None:
            return None
        found = compare(pair[0][0], bare(pair[0][1]), bare(pair[1][1]))
        is_reset = request.resets is None or request.resets(api_version)
        return _filtered(found, request.reset_fields) if is_reset else found


def _taken(managers: Managers, changes: _Changes, *, spare: Manager | None) -> Managers:
    """Return the managers without the fields that the request changed or removed; the manager `spare` keeps all its fields."""
    request = changes.request
    left: Managers = {}
    for who, owned in managers.items():
        if who == spare:
            left[who] = owned
            continue
        found = changes.of(owned.api_version)
        if found is None:
            # The core group and the named groups know only their own types, so entries of the other kind are dropped.
            is_known = request.serves is None or request.serves(owned.api_version)
            if is_known and ("/" in owned.api_version) == ("/" in request.api_version):
                left[who] = owned
            continue
        fields = difference(difference(owned.fields, union(found.added, found.modified)), found.removed)
        if fields:
            left[who] = replace(owned, fields=fields)
    return left


def _capped(managers: Managers) -> Managers:
    """Return the managers; if there are more than `MAX_UPDATE_MANAGERS` updaters, merge the oldest into one entry."""
    if len(managers) <= MAX_UPDATE_MANAGERS:
        return managers
    updaters = sorted(
        (who for who in managers if who.operation == UPDATE), key=lambda who: (managers[who].time, who.name)
    )
    excess = len(updaters) - MAX_UPDATE_MANAGERS
    if excess <= 0:
        return managers
    merged = dict(managers)
    for who in updaters[: excess + 1]:
        owned = merged.pop(who)
        bucket = Manager(_OLD_UPDATES, UPDATE, owned.api_version)
        before = merged.get(bucket)
        merged[bucket] = Owned(
            union(before.fields, owned.fields) if before else owned.fields, owned.api_version, owned.time
        )
    return merged


def owned_fields(kind: FieldType, config: Document) -> Node:
    """Return the fields of a configuration that its manager owns."""
    return difference(fields_of(kind, config), _NEVER_OWNED)


def _check_last_version(request: WriteContext, last: Owned, merged: Document) -> None:
    """Raise if the version that a manager applied before does not declare all fields of the merged object.

    Raises:
        ConversionError: it lacks a field.
    """
    if last.api_version == request.api_version:
        return
    try:
        request.convert(request.api_version, last.api_version, merged)
    except ConversionError as problem:
        what = "failed to prune fields: failed to convert merged object to last applied version"
        raise ConversionError(f"{what}: {problem}") from problem


def apply(
    request: WriteContext, zero: Document, live: Document, config: Document, managers: Managers, *, force: bool
) -> tuple[Document, Managers]:
    """Return the object with a configuration applied, and its managers.

    Args:
        request: the apply request.
        zero: the zero object of the kind.
        live: the current object; for a create, the zero object.
        config: the applied configuration; its lists must not contain an item twice.
        managers: the current managers.
        force: whether to take ownership of conflicting fields.

    Raises:
        ApplyConflict: other managers own fields that the configuration changes, and `force` is off.
        KeylessItemError: the object has no managers, and an item of a keyed list without a key.
        ConversionError: the version of a manager does not declare all fields of the object.
    """
    live = bare(live)
    if not managers and live != zero:
        fields_of(request.kind, live)  # Raises KeylessItemError if upstream cannot read the object.
        before = replace(request, manager=BEFORE_FIRST_APPLY)
        managers = after_create(before, zero, live, {})
    for version in dict.fromkeys(owned.api_version for owned in managers.values()):
        request.convert(request.api_version, version, live)
    kind = request.kind
    who = Manager(request.manager, APPLY, "", request.subresource)
    last = managers.get(who)
    mine = without(fields_of(kind, config), request.reset_fields)
    managers = {**managers, who: Owned(mine, request.api_version, last.time if last else "")}
    merged = cast("Document", merge(kind, live, config))
    if last is not None:
        _check_last_version(request, last, merged)
    # Usually the configuration still contains every field that it had before, and nothing has to be removed.
    if last is not None and last.fields != difference(mine, _NEVER_OWNED) and difference(last.fields, mine):
        owned_in: dict[str, Node] = {}
        for each in managers.values():
            owned_in[each.api_version] = union(owned_in.get(each.api_version, {}), each.fields)
        merged = prune(
            request.convert,
            merged,
            owned_in,
            last=last.fields,
            last_version=last.api_version,
            version=request.api_version,
        )
    found = _filtered(compare(kind, live, merged), request.reset_fields)
    changes = _Changes(request, live, merged, found)
    if not force:
        _raise_conflicts(managers, changes, who)
    left = _taken(managers, changes, spare=who)
    owned = left[who]
    fields = difference(owned.fields, _NEVER_OWNED)
    if fields:
        # Fields that the endpoint ignores count here, although no manager owns them, and so does a new order of items.
        changed = _without_head(merged) != _without_head(live)
        left[who] = replace(owned, fields=fields, time=request.time if changed else owned.time)
    else:
        del left[who]
    return merged, left


def _raise_conflicts(managers: Managers, changes: _Changes, who: Manager) -> None:
    conflicts = []
    for other in sorted(managers, key=_identifier):
        owned = managers[other]
        found = changes.of(owned.api_version) if other != who else None
        if found is not None:
            took = union(found.added, found.modified)
            conflicts += [(other, path) for path in paths(intersection(owned.fields, took))]
    if conflicts:
        raise ApplyConflict(conflicts)


def _identifier(who: Manager) -> str:
    """Return the JSON by which upstream identifies and sorts managers."""
    document = {
        "manager": who.name,
        "operation": who.operation,
        "apiVersion": who.api_version,
        "subresource": who.subresource,
    }
    return json.dumps({name: value for name, value in document.items() if value}, separators=(",", ":"))
