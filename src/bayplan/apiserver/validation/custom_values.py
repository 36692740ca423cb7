"""Validation of custom resources against the structural schema of their definition, with upstream's messages.

An update does not check unchanged values again, because the schema may have become stricter since they were stored.
"""

from __future__ import annotations

import json
import math
from math import isfinite
from typing import cast

from bayplan.apiserver.model.errors import (
    Cause,
    forbidden_value,
    invalid_value,
    not_supported,
    required,
    too_long,
)
from bayplan.apiserver.model.object_meta import check_metadata
from bayplan.apiserver.validation.correlation import ABSENT, is_unchanged, items_before
from bayplan.apiserver.validation.engine import too_many
from bayplan.apiserver.validation.list_types import check_list_types, inner_path, shown_value
from bayplan.apiserver.validation.value_formats import fits_format
from bayplan.base.go_regexp import RegexpError, WorkBudget, WorkBudgetExceeded
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.names import check_dns1035_label
from bayplan.objects.selectors import quote

_BOUNDS = {"int32": 2**31, "int64": 2**63, "float": 2**128 - 2**103}
"""The smallest number that exceeds each format; floats are rounded to the nearest float32."""
EMBEDDED = "x-kubernetes-embedded-resource"
"""The extension that marks an embedded, complete object."""
_INT_OR_STRING = "x-kubernetes-int-or-string"


def validate_custom(schema: Document, value: object, old: object = None) -> list[Cause]:
    """Return the errors of an object against its schema, without errors of CEL rules.

    Args:
        schema: the schema of the complete object.
        value: the object without kind, apiVersion and metadata.
        old: the current object if this is an update, in the same form.
    """
    return [*value_causes(schema, value, old), *structure_causes(schema, value, old)]


def value_causes(schema: Document, value: object, old: object = None) -> list[Cause]:
    """Return the errors of single values; see `validate_custom`."""
    try:
        return _check(schema, value, ABSENT if old is None else old, "", _Work())
    except WorkBudgetExceeded:
        return [forbidden_value("<nil>", "checking the object against its schema takes more work than a request may")]


def structure_causes(schema: Document, value: object, old: object = None) -> list[Cause]:
    """Return the errors of embedded objects, and of repeated items of lists; see `validate_custom`."""
    return _check_embedded(schema, value, "") + _repeated_items(schema, value, old)


def _repeated_items(schema: Document, value: object, old: object) -> list[Cause]:
    # An object that already has repeated items may keep them.
    is_kept = old is not None and check_list_types(schema, old, "")
    return [] if is_kept else check_list_types(schema, value, "")


def validate_default(schema: Document, value: object) -> list[Cause]:
    """Return the errors of a default against its schema, without errors about repeated items and of CEL rules.

    For upstream, a default of an int-or-string may have any type that the rest of the schema allows.
    """
    work = _Work(int_or_string=False)
    try:
        return _check_embedded(schema, value, "") or _check(schema, value, ABSENT, "", work)
    except WorkBudgetExceeded:
        return [forbidden_value("<nil>", "checking the default against its schema takes more work than a request may")]


def validate_custom_status(schema: Document, new: Document, old: Document) -> list[Cause]:
    """Return the errors of a status update, which checks only the status; messages name fields relative to it.

    Upstream does not check embedded objects here.

    Args:
        schema: the schema of the complete object.
        new: the changed object.
        old: the current object.
    """
    if "status" not in new:
        return []
    status = part(schema, "properties", "status")
    # The complete values, not only objects: a status of another type is an error of its type.
    causes = value_causes(status, new["status"], old.get("status"))
    causes += _repeated_items(status, new["status"], old.get("status"))
    return [cause._replace(field=f"status.{cause.field}" if cause.field else "status") for cause in causes]


class _Work(WorkBudget):
    """The work budget of one validation.

    The first visit of a value costs nothing; patterns, enums and alternatives do.

    Attributes:
        visit_steps: the steps for each visit of a value: 0, except while an alternative visits it again.
        int_or_string: whether ``x-kubernetes-int-or-string`` has an effect.
    """

    __slots__ = ("int_or_string", "visit_steps")

    def __init__(self, *, int_or_string: bool = True) -> None:
        super().__init__()
        self.visit_steps = 0
        self.int_or_string = int_or_string

    def is_int_or_string(self, schema: Document) -> bool:
        """Return whether a schema allows integers and strings, whatever its type."""
        return self.int_or_string and bool(schema.get(_INT_OR_STRING))


_COMPARISON_STEPS = 5
"""Steps to compare with an enum value or look up a required name, which takes 0.1 us."""
_LISTING_STEPS = 15
"""Steps to list an enum value in a message, which takes 0.3 us."""
_CAUSE_STEPS = 1_500
"""Steps for each error: creating and encoding its message takes 30 us."""
_VISIT_STEPS = 250
"""Steps for each visit of a value by an alternative such as anyOf, which takes 5 us."""


def _check(schema: Document, value: object, old: object, path: str, work: _Work) -> list[Cause]:
    if work.visit_steps:
        work.spend(work.visit_steps)
    # The root is never unchanged for upstream: it contains the metadata, which has no schema.
    if not schema or (path and old is not ABSENT and is_unchanged(schema, value, old)):
        return []
    # In upstream's order: a value of a wrong type gets all other errors, too.
    causes = _check_type(schema, value, path, work)
    work.spend(len(causes) * _CAUSE_STEPS)
    if value is not None:
        causes += _check_alternatives(schema, value, path, work)
    own = _check_scalar(schema, value, path, work)
    work.spend(len(own) * _CAUSE_STEPS)
    causes += own
    if isinstance(value, list):
        causes += _check_list(schema, value, old, path, work)
    own = _check_enum(schema, value, path, work)
    work.spend(len(own) * _CAUSE_STEPS)
    causes += own
    if isinstance(value, dict):
        causes += _check_object(schema, value, old, path, work)
    return causes


def _check_scalar(schema: Document, value: object, path: str, work: _Work) -> list[Cause]:
    if isinstance(value, str):
        return _check_text(schema, value, path, work) + _check_format(schema, value, path, work)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return _check_number(schema, cast("float", value), path) if is_number else []


def _invalid(path: str, value: object, what: str, *, reason: str = "FieldValueInvalid") -> list[Cause]:
    return [Cause(reason, f"Invalid value: {shown_value(value)}: {path} in body {what}", path)]


def _without_path(text: str) -> Cause:
    """Return an error that does not name its field: upstream loses the path, but the message contains it."""
    return Cause("FieldValueInvalid", f'Invalid value: "": {text}', "<nil>")


def _type_of(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    for kind, name in ((dict, "object"), (list, "array"), (str, "string"), (int, "integer"), (float, "number")):
        if isinstance(value, kind):
            return name
    return "null"


_FORMATS = {"integer": "int64", "number": "float64"}


def _check_type(schema: Document, value: object, path: str, work: _Work) -> list[Cause]:
    wanted = (
        ["integer", "string"] if work.is_int_or_string(schema) else [str(schema["type"])] if schema.get("type") else []
    )
    found = _type_of(value)
    if found == "null":
        fine = not wanted or schema.get("nullable")
    else:
        whole = isinstance(value, float) and _is_int64(value)
        fine = (
            not wanted
            or found in wanted
            or (found == "integer" and "number" in wanted)
            or (whole and "integer" in wanted)
        )
    if fine:
        return []
    kind = schema.get("format")
    if kind and not isinstance(value, str | list | None):
        # Upstream names the formats of numbers, and of all values that are neither texts nor lists.
        found, wanted = _FORMATS.get(found, ""), [str(kind)]
    elif kind and isinstance(value, str | list) and not {"integer", "number"} & set(wanted):
        return []
    what = f'must be of type {",".join(wanted)}: "{found}"'
    return _invalid(path, found, what, reason="FieldValueTypeInvalid")


def _is_int64(value: float) -> bool:
    return value.is_integer() and -(2**63) <= value < 2**63


def _check_enum(schema: Document, value: object, path: str, work: _Work) -> list[Cause]:
    allowed = schema.get("enum")
    if not isinstance(allowed, list) or not allowed:
        return []
    work.spend(len(allowed) * _COMPARISON_STEPS)
    if any(_same(each, value) for each in allowed):
        return []
    work.spend(len(allowed) * _LISTING_STEPS)
    # `not_supported` adds the quotation marks.
    names = [quote(each if isinstance(each, str) else shown_value(each))[1:-1] for each in allowed]
    return [not_supported(path, shown_value(value), names)]


def _same(allowed: object, value: object) -> bool:
    """Return whether a value equals an enum value. As upstream, convert numbers to its type; null equals nothing."""
    if allowed is None or value is None:
        return False
    if isinstance(allowed, bool) or isinstance(value, bool):
        return allowed is value
    if isinstance(allowed, int) and isinstance(value, float):
        return isfinite(value) and int(value) == allowed
    return _is_equal(allowed, value) if isinstance(allowed, dict | list) else allowed == value


def _is_equal(left: object, right: object) -> bool:
    """Return whether two values and their types are equal."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_is_equal(item, right[name]) for name, item in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(_is_equal(*pair) for pair in zip(left, right, strict=True))
    return left == right


def _check_object(schema: Document, value: Document, old: object, path: str, work: _Work) -> list[Cause]:
    causes: list[Cause] = []
    least, most, size = schema.get("minProperties"), schema.get("maxProperties"), len(value)
    if isinstance(least, int) and size < least:
        causes += _invalid(path, size, f"should have at least {least} properties")
    if isinstance(most, int) and size > most:
        causes.append(too_many(path, size, most))
    properties, more = part(schema, "properties"), schema.get("additionalProperties")
    before = old if isinstance(old, dict) else {}
    for name, item in value.items():
        inner = properties.get(name, more)
        if isinstance(inner, dict):
            # As in upstream, the path of a map's value starts with a dot even at the root.
            here = f"{path}.{name}" if path or name not in properties else name
            causes += _check(inner, item, before.get(name, ABSENT), here, work)
    names = texts(schema, "required")
    work.spend(len(names) * _COMPARISON_STEPS)
    for name in names:
        if name not in value:
            work.spend(_CAUSE_STEPS)
            causes.append(required(f"{path}.{name}" if path else name))
    return causes


def _check_list(schema: Document, value: list[object], old: object, path: str, work: _Work) -> list[Cause]:
    causes: list[Cause] = []
    inner = part(schema, "items")
    for index, (item, before) in enumerate(zip(value, items_before(schema, value, old), strict=True)):
        causes += _check(inner, item, before, f"{path}[{index}]", work)
    least, most = schema.get("minItems"), schema.get("maxItems")
    if isinstance(least, int) and len(value) < least:
        causes += _invalid(path, len(value), f"should have at least {least} items")
    if isinstance(most, int) and len(value) > most:
        causes.append(too_many(path, len(value), most))
    if schema.get("uniqueItems") and len({shown_value(each) for each in value}) < len(value):
        causes += _invalid(path, "", "shouldn't contain duplicates")
    return causes


def _check_embedded(schema: Document, value: object, path: str) -> list[Cause]:
    """Return the errors of all complete objects inside a value: of their apiVersion, kind and metadata."""
    causes: list[Cause] = []
    if isinstance(value, list):
        inner = part(schema, "items")
        for index, item in enumerate(value) if inner else ():
            causes += _check_embedded(inner, item, f"{path}[{index}]")
    elif isinstance(value, dict):
        if schema.get(EMBEDDED):
            causes += _check_object_type(value, path)
        properties, more = part(schema, "properties"), schema.get("additionalProperties")
        for name, item in value.items():
            inner_schema = properties.get(name, more)
            if isinstance(inner_schema, dict) and isinstance(item, dict | list):
                causes += _check_embedded(inner_schema, item, inner_path(path, name, is_key=name not in properties))
    return causes


def _check_object_type(value: Document, path: str) -> list[Cause]:
    causes = [required(f"{path}.{name}") for name in ("apiVersion", "kind") if name not in value]
    for name in ("apiVersion", "kind"):
        found = value.get(name, ABSENT)
        if found is ABSENT:
            continue
        if not isinstance(found, str):
            causes.append(invalid_value(f"{path}.{name}", json.dumps(found), "must be a string"))
        elif not found:
            causes.append(invalid_value(f"{path}.{name}", '""', "must not be empty"))
        elif name == "kind" and (problems := check_dns1035_label(found.lower())):
            text = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            causes.append(invalid_value(f"{path}.kind", quote(found), text))
        elif name == "apiVersion" and found.count("/") > 1:
            causes.append(invalid_value(f"{path}.apiVersion", quote(found), f"unexpected GroupVersion string: {found}"))
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        named = {**metadata, "name": metadata.get("name") or "fakename"}
        causes += check_metadata(named, bool(metadata.get("namespace")), "path", f"{path}.metadata")
    return causes


def _check_text(schema: Document, value: str, path: str, work: _Work) -> list[Cause]:
    most, least, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if isinstance(most, int) and len(value) > most:
        return [too_long(path, most)]
    if isinstance(least, int) and len(value) < least:
        return _invalid(path, value, f"should be at least {least} chars long")
    if isinstance(pattern, str) and pattern:
        try:
            if not work.matches(pattern, value):
                return _invalid(path, value, f"should match '{pattern}'")
        except RegexpError as problem:
            return _invalid(path, value, f"should match '{pattern}, but pattern is invalid: {problem}'")
    return []


def _check_format(schema: Document, value: str, path: str, work: _Work) -> list[Cause]:
    kind = schema.get("format")
    if isinstance(kind, str) and not work.is_int_or_string(schema) and not fits_format(kind, value):
        return _invalid(path, value, f"must be of type {kind}: {quote(value)}", reason="FieldValueTypeInvalid")
    return []


_MAX_EXACT = 2**53 - 1
"""The largest number up to which doubles hold all integers."""


def _check_number(schema: Document, value: float, path: str) -> list[Cause]:
    causes: list[Cause] = []
    if _is_outside(schema, value):
        kind = f"with format {schema.get('format')}" if schema.get("format") in _BOUNDS else "(default format)"
        causes.append(_without_path(f"Checked value must be of type {schema.get('type')} {kind} in {path}"))
    factor, most, least = (_number(schema.get(name)) for name in ("multipleOf", "maximum", "minimum"))
    if factor is not None:
        # Upstream converts the factor to the type of the value.
        causes += _check_multiple(value, int(factor) if isinstance(value, int) else factor, path)
    for limit, exclusive, breaks, above, at in (
        (most, "exclusiveMaximum", _exceeds, "less than", "less than or equal to"),
        (least, "exclusiveMinimum", _falls_below, "greater than", "greater than or equal to"),
    ):
        strict = bool(schema.get(exclusive))
        if limit is not None and isinstance(value, int):
            limit = int(limit)  # Upstream converts limits, too.
        if limit is not None and breaks(value, limit, strict):
            causes += _invalid(path, value, f"should be {above if strict else at} {_plain(limit)}")
    return causes


def _is_outside(schema: Document, value: float) -> bool:
    """Return whether a number exceeds the type and format of its schema."""
    bound = _BOUNDS.get(str(schema.get("format")))
    if schema.get("type") == "number" or isinstance(value, int):
        is_float = schema.get("format") == "float"
        return bound is not None and is_float == (schema.get("type") == "number") and not -bound <= value < bound
    return schema.get("type") == "integer" and not _is_int64(value)


def _check_multiple(value: float, factor: float, path: str) -> list[Cause]:
    if factor <= 0:
        shown = _plain(factor)
        text = f"Invalid value: {shown}: factor MultipleOf declared for {path} must be positive: {shown}"
        return [Cause("FieldValueInvalid", text, path)]
    if isinstance(value, int):
        fine = value % factor == 0
    else:
        # Like Go, multiply by the reciprocal of a small factor; the product can be infinite.
        ratio = 1 / factor * value if factor < 1 else value / factor
        fine = abs(ratio) <= _MAX_EXACT and math.isclose(ratio, round(ratio), rel_tol=1e-9)
    return [] if fine else _invalid(path, value, f"should be a multiple of {_plain(factor)}")


def _exceeds(value: float, limit: float, strict: bool) -> bool:
    return value > limit or (strict and value == limit)


def _falls_below(value: float, limit: float, strict: bool) -> bool:
    return value < limit or (strict and value == limit)


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _plain(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(value)


def _check_alternatives(schema: Document, value: object, path: str, work: _Work) -> list[Cause]:
    """Return the errors of anyOf, oneOf, allOf and not."""
    if work.is_int_or_string(schema):
        return []

    def problem(text: str) -> Cause:
        return _without_path(f'"{path}" {text}')

    def checked(name: str) -> list[list[Cause]]:
        return [_check_again(each, value, path, work) for each in parts(schema, name)]

    causes: list[Cause] = []
    some, one, every = checked("anyOf"), checked("oneOf"), checked("allOf")
    if some and all(some):
        causes += [problem("must validate at least one schema (anyOf)"), *some[0]]
    fitting = sum(not found for found in one)
    if one and fitting != 1:
        many = f"Found {fitting} valid alternatives" if fitting else "Found none valid"
        causes.append(problem(f"must validate one and only one schema (oneOf). {many}"))
        causes += [] if fitting else one[0]
    if any(every):
        causes += [cause for found in every for cause in found]
        causes.append(problem(f"must validate all the schemas (allOf){'. None validated' if all(every) else ''}"))
    refused = schema.get("not")
    if isinstance(refused, dict) and not _check_again(refused, value, path, work):
        causes.append(problem("must not validate the schema (not)"))
    return causes


def _check_again(schema: Document, value: object, path: str, work: _Work) -> list[Cause]:
    before = work.visit_steps
    work.visit_steps = _VISIT_STEPS
    try:
        return _check(schema, value, ABSENT, path, work)
    finally:
        work.visit_steps = before


def has_rules(schema: object) -> bool:
    """Return whether a schema or a schema nested in it has CEL rules."""
    if not isinstance(schema, dict):
        return False
    inner = [*part(schema, "properties").values(), schema.get("items"), schema.get("additionalProperties")]
    return bool(schema.get("x-kubernetes-validations")) or any(has_rules(each) for each in inner)
