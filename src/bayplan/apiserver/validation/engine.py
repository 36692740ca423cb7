"""The validation engine: combines rules about fields into tables that run in upstream's order.

A `Rule` checks a struct, a `Check` one value, and a `Change` an update. Each appends its errors (causes) to a list.
Most functions of this module return a rule, check or change: ``at_least(1)``, for example, returns a check that reports
a number below 1. The other modules of this package define the tables of the kinds, which are built once, on import.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from bayplan.apiserver.codec.raw_values import RawObject
from bayplan.apiserver.model.errors import Cause, duplicate, forbidden_value, invalid_value, not_supported, required
from bayplan.apiserver.model.object_meta import check_metadata_update, check_standard_finalizers, shown
from bayplan.apiserver.schema.emptied import Emptied
from bayplan.base.counted_nouns import plural
from bayplan.base.plain_data import Document, part
from bayplan.objects.selectors import quote

Causes: TypeAlias = list[Cause]
Rule: TypeAlias = Callable[[Document, str, Causes], None]
Check: TypeAlias = Callable[[object, str, Causes], None]
Change: TypeAlias = Callable[[Document, Document, Causes], None]
Condition: TypeAlias = Callable[[Document], bool]
Problems: TypeAlias = Callable[[str], Sequence[str]]

FIELD_IS_IMMUTABLE = "field is immutable"


@dataclass(frozen=True)
class KindRules:
    """The validation rules of a kind.

    Attributes:
        create: checks a new object, except its metadata.
        update: checks an update, except the metadata.
        status: checks a status update.
        metadata: the additional metadata checks of an update: ``object`` as for a create, ``change`` as for every
            update.
        status_metadata: the same for a status update.
    """

    create: Rule
    update: Change
    status: Change
    metadata: tuple[str, ...] = ("change",)
    status_metadata: tuple[str, ...] = ("change",)


def kind(
    *rules: Rule,
    before: Sequence[Change] = (),
    after: Sequence[Change] = (),
    update: Sequence[Change] | None = None,
    status: Sequence[Change] = (),
    metadata: tuple[str, ...] = ("change",),
    status_metadata: tuple[str, ...] = ("change",),
) -> KindRules:
    """Return the validation rules of a kind.

    Args:
        rules: the rules for a create, and for an update unless `update` is given.
        before: the rules for an update that run before `rules`.
        after: the rules for an update that run after `rules`.
        update: all rules for an update.
        status: the rules for a status update.
        metadata, status_metadata: see `KindRules`.
    """
    create = table(*rules)
    changes = update if update is not None else (*before, lambda new, _old, out: create(new, "", out), *after)
    return KindRules(create, _all_changes(changes), _all_changes(status), metadata, status_metadata)


def _all_changes(changes: Sequence[Change]) -> Change:
    def run(new: Document, old: Document, out: Causes) -> None:
        for change in changes:
            change(new, old, out)

    return run


def under(path: str, name: str) -> str:
    """Return the path of a field below another path, which may be empty."""
    return f"{path}.{name}" if path else name


# --- structs ----------------------------------------------------------------------------------------------------------


def table(*rules: Rule) -> Rule:
    """Return a rule that runs several rules in order."""

    def run(document: Document, path: str, out: Causes) -> None:
        for rule in rules:
            rule(document, path, out)

    return run


def field(name: str, *checks: Check) -> Rule:
    """Return a rule that checks a field unless it is missing."""
    check = checks[0] if len(checks) == 1 else _in_order(checks)

    def run(document: Document, path: str, out: Causes) -> None:
        value = document.get(name)
        if value is not None:
            check(value, f"{path}.{name}" if path else name, out)

    return run


def _in_order(checks: Sequence[Check]) -> Check:
    def run(found: object, path: str, out: Causes) -> None:
        for check in checks:
            check(found, path, out)

    return run


def value(name: str, *checks: Check, zero: object = "") -> Rule:
    """Return a rule that checks a field; a missing field counts as `zero`."""
    check = checks[0] if len(checks) == 1 else _in_order(checks)

    def run(document: Document, path: str, out: Causes) -> None:
        found = document.get(name)
        check(zero if found is None else found, f"{path}.{name}" if path else name, out)

    return run


def number(name: str, *checks: Check) -> Rule:
    """Return a rule that checks a number; a missing number counts as 0."""
    return value(name, *checks, zero=0)


def need(name: str, *checks: Check, detail: str = "") -> Rule:
    """Return a rule that reports an empty or missing field, and checks any other value."""

    def run(document: Document, path: str, out: Causes) -> None:
        found = document.get(name)
        here = f"{path}.{name}" if path else name
        if found is None or found in ("", [], {}):
            out.append(required(here, detail))
            return
        for check in checks:
            check(found, here, out)

    return run


def need_set(name: str, detail: str = "") -> Rule:
    """Return a rule that reports a missing field. The field may be empty."""

    def run(document: Document, path: str, out: Causes) -> None:
        if document.get(name) is None:
            out.append(required(under(path, name), detail))

    return run


def inside(name: str, *rules: Rule) -> Rule:
    """Return a rule that checks a nested struct; a missing struct counts as empty."""

    def run(document: Document, path: str, out: Causes) -> None:
        found = document.get(name)
        inner = cast("Document", found) if isinstance(found, dict) else {}
        here = f"{path}.{name}" if path else name
        for rule in rules:
            rule(inner, here, out)

    return run


def optional(name: str, *rules: Rule) -> Rule:
    """Return a rule that checks a nested struct unless it is missing."""

    def run(document: Document, path: str, out: Causes) -> None:
        found = document.get(name)
        if isinstance(found, dict):
            here = f"{path}.{name}" if path else name
            for rule in rules:
                rule(cast("Document", found), here, out)

    return run


def each(name: str, *rules: Rule) -> Rule:
    """Return a rule that checks every struct in a list."""

    def run(document: Document, path: str, out: Causes) -> None:
        found = document.get(name)
        if not isinstance(found, list):
            return
        here = f"{path}.{name}" if path else name
        for index, item in enumerate(cast("list[Document]", found)):
            inner = f"{here}[{index}]"
            for rule in rules:
                rule(item, inner, out)

    return run


def items(*checks: Check) -> Check:
    """Return a check that applies `checks` to every item of a list."""

    def run(found: object, path: str, out: Causes) -> None:
        for index, item in enumerate(cast("list[object]", found)):
            for check in checks:
                check(item, f"{path}[{index}]", out)

    return run


def items_here(*checks: Check) -> Check:
    """Return a check of every value in a list; errors have the path of the list, without an index."""

    def run(found: object, path: str, out: Causes) -> None:
        for item in cast("list[object]", found):
            for check in checks:
                check(item, path, out)

    return run


def when(condition: Condition, *rules: Rule, otherwise: Sequence[Rule] = ()) -> Rule:
    """Return a rule that runs `rules` if a struct meets a condition, else the rules in `otherwise`."""

    def run(document: Document, path: str, out: Causes) -> None:
        for rule in rules if condition(document) else otherwise:
            rule(document, path, out)

    return run


def fail(make: Callable[..., Cause], name: str, *arguments: object, condition: Condition) -> Rule:
    """Return a rule that reports an error about a field if the struct meets a condition.

    Args:
        make: creates the error from the path of the field and the arguments.
        name: the name of the field; empty for the struct itself.
        arguments: the further arguments of `make`.
        condition: the condition on the struct.
    """

    def run(document: Document, path: str, out: Causes) -> None:
        if condition(document):
            out.append(make(under(path, name) if name else path, *arguments))

    return run


def invalid_if(condition: Condition, name: str, detail: str, *, show: str | None = None) -> Rule:
    """Return a rule that reports an invalid value if the struct meets a condition.

    Args:
        condition: the condition on the struct.
        name: the name of the field; empty for the struct itself.
        detail: the detail of the message.
        show: the field whose value the message shows [default: `name`].
    """

    def run(document: Document, path: str, out: Causes) -> None:
        if condition(document):
            found = sent(document, name if show is None else show) if name or show else document
            out.append(invalid_value(under(path, name) if name else path, go_value(found), detail))

    return run


def required_if(condition: Condition, name: str, detail: str = "") -> Rule:
    """Return a rule that reports a missing field if the struct meets a condition."""
    return fail(required, name, detail, condition=condition)


def forbidden_if(condition: Condition, name: str, detail: str) -> Rule:
    """Return a rule that reports a forbidden field if the struct meets a condition."""
    return fail(forbidden_value, name, detail, condition=condition)


def forbid(name: str, detail: str) -> Rule:
    """Return a rule that reports a forbidden field if it is present."""
    return forbidden_if(lambda document: document.get(name) is not None, name, detail)


def unique(name: str, *fields: str, at: str = "") -> Rule:
    """Return a rule that reports each struct in a list whose key fields equal the key fields of an earlier struct.

    Args:
        name: the name of the list.
        fields: the key fields.
        at: the field that the error names [default: the struct].
    """

    def run(document: Document, path: str, out: Causes) -> None:
        seen: set[tuple[object, ...]] = set()
        found = document.get(name)
        for index, item in enumerate(cast("list[Document]", found) if isinstance(found, list) else ()):
            key = tuple(item.get(each_name) or "" for each_name in fields)
            here = f"{under(path, name)}[{index}]"
            if key in seen:
                out.append(duplicate(under(here, at) if at else here, go_value(key[0]) if at else shown(item)))
            seen.add(key)

    return run


# --- values -----------------------------------------------------------------------------------------------------------


def go_value(found: object) -> str:
    """Return a value as Go's field errors print it: strings quoted, everything else as JSON."""
    return quote(found) if isinstance(found, str) else shown(found)


def named(problems: Problems, *, intro: str = "") -> Check:
    """Return a check of a string by a function that returns its errors; each error gets the prefix `intro`."""

    def run(found: object, path: str, out: Causes) -> None:
        for problem in problems(str(found)):
            out.append(invalid_value(path, quote(str(found)), intro + problem))

    return run


def must(condition: Callable[[object], bool], detail: str) -> Check:
    """Return a check that reports a value that does not meet a condition."""

    def run(found: object, path: str, out: Causes) -> None:
        if not condition(found):
            out.append(invalid_value(path, go_value(found), detail))

    return run


def at_least(low: int, detail: str = "") -> Check:
    """Return a check that reports a number below a minimum."""
    text = detail or f"must be greater than or equal to {low}"
    return must(lambda found: not isinstance(found, int) or found >= low, text)


def at_most(high: int, detail: str) -> Check:
    """Return a check that reports a number above a maximum."""
    return must(lambda found: not isinstance(found, int) or found <= high, detail)


def between(low: int, high: int) -> Check:
    """Return a check that reports a number outside a range."""
    text = f"must be between {low} and {high}, inclusive"
    return must(lambda found: not isinstance(found, int) or low <= found <= high, text)


def one_of(*choices: str) -> Check:
    """Return a check that reports a value that is not one of the choices."""

    def run(found: object, path: str, out: Causes) -> None:
        if found not in choices:
            out.append(not_supported(path, go_value(found), choices))

    return run


def choice(*choices: str) -> Check:
    """Return a check that reports a value that is empty or not one of the choices."""
    supported = one_of(*choices)

    def run(found: object, path: str, out: Causes) -> None:
        if not found:
            out.append(required(path))
        else:
            supported(found, path, out)

    return run


def max_bytes(limit: int) -> Check:
    """Return a check that reports a text of more than `limit` bytes."""

    def run(found: object, path: str, out: Causes) -> None:
        if len(str(found).encode()) > limit:
            out.append(Cause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", path))

    return run


def max_items(limit: int) -> Check:
    """Return a check that reports a list of more than `limit` items."""

    def run(found: object, path: str, out: Causes) -> None:
        if len(cast("list[object]", found)) > limit:
            out.append(too_many(path, len(cast("list[object]", found)), limit))

    return run


def too_many(path: str, count: int, limit: int) -> Cause:
    """Return the error for a list with too many items."""
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {limit} {plural('item', limit)}", path)


def if_filled(*checks: Check) -> Check:
    """Return a check that runs `checks` unless the value is empty."""

    def run(found: object, path: str, out: Causes) -> None:
        if found:
            for check in checks:
                check(found, path, out)

    return run


def distinct(*, at_item: bool = True) -> Check:
    """Return a check that reports duplicate values in a list."""

    def run(found: object, path: str, out: Causes) -> None:
        seen: list[object] = []
        for index, item in enumerate(cast("list[object]", found)):
            if item in seen:
                out.append(duplicate(f"{path}[{index}]" if at_item else path, go_value(item)))
            seen.append(item)

    return run


# --- changes ----------------------------------------------------------------------------------------------------------


def sent(document: Document, name: str) -> object:
    """Return a field as the client sent it: an empty list or map instead of None. Decoding drops these."""
    found = document.get(name)
    return document.empties.get(name) if found is None and isinstance(document, Emptied) else found


def copied(document: Document) -> Document:
    """Return a copy of a struct that preserves which fields were sent empty."""
    return Emptied(document, dict(document.empties)) if isinstance(document, Emptied) else dict(document)


def value_at(document: Document, path: str) -> object:
    """Return the value at a dotted path, or None if it is missing."""
    *above, name = path.split(".")
    return sent(part(document, *above), name)


def immutable(
    path: str, detail: str = FIELD_IS_IMMUTABLE, *, show: Callable[[object], str] = go_value, zero: object = None
) -> Change:
    """Return a check of updates that reports an invalid value if the value at a dotted path changes.

    Args:
        path: the path of the value.
        detail: the detail of the message.
        show: formats the new value for the message.
        zero: the value that stands for a missing one.
    """

    def run(new: Document, old: Document, out: Causes) -> None:
        found, before = value_at(new, path), value_at(old, path)
        if not _is_same(*(each if isinstance(each, RawObject) else each or zero for each in (found, before))):
            out.append(invalid_value(path, show(zero if found is None else found), detail))

    return run


def _is_same(new: object, old: object) -> bool:
    """Return whether Go considers two values equal: a null list equals an empty one."""
    is_equal = new == old
    if is_equal or isinstance(new, RawObject) or isinstance(old, RawObject):
        return is_equal
    if isinstance(new, dict) and isinstance(old, dict):
        return all(_is_same(new.get(name), old.get(name)) for name in new.keys() | old.keys())
    if isinstance(new, list) and isinstance(old, list):
        return len(new) == len(old) and all(_is_same(*pair) for pair in zip(new, old, strict=True))
    return new in (None, []) and old in (None, [])


def forbid_change(path: str, detail: str) -> Change:
    """Return a check of updates that reports a forbidden field if the value at a dotted path changes."""

    def run(new: Document, old: Document, out: Causes) -> None:
        if (value_at(new, path) or None) != (value_at(old, path) or None):
            out.append(forbidden_value(path, detail))

    return run


def changed_metadata(*, standard_finalizers: bool = True) -> Change:
    """Return a check of updates that reports changed metadata, for kinds that check it within their rules."""

    def run(new: Document, old: Document, out: Causes) -> None:
        out += check_metadata_update(part(new, "metadata"), part(old, "metadata"))
        out += check_standard_finalizers(part(new, "metadata")) if standard_finalizers else ()

    return run


def for_update(rule: Rule) -> Change:
    """Return a check of updates that runs a rule for the new object."""
    return lambda new, _old, out: rule(new, "", out)
