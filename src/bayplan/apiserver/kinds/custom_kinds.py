"""The strategy of custom resources: their objects are checked by the schema of their definition."""

from __future__ import annotations

from bayplan.apiserver.kinds.custom_validation import validate_custom
from bayplan.apiserver.kinds.strategy import Context, Strategy, part
from bayplan.apiserver.rest.errors import Cause, invalid_value
from bayplan.base.plain_data import Document

BLOCKING = frozenset(
    ("FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid")
)
"""Reasons for which rules are not run: expressions would fail on such values."""
_ENVELOPE = ("apiVersion", "kind", "metadata")


class CustomStrategy(Strategy):
    """Objects of custom resources."""

    counts_generations = True

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Check a new object."""
        return _with_rules(context, document, None, validate_custom(_schema(context), _body(document)))

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Check what has changed."""
        return _with_rules(context, new, old, validate_custom(_schema(context), _body(new), _body(old)))

    def validate_status(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Check what has changed: a status stands in the same schema."""
        return self.validate_update(context, new, old)

    def warnings(self, context: Context, document: Document, before: Document | None) -> list[str]:
        """Return the rules that an unchanged value breaks, in addition to what all kinds warn of."""
        found = super().warnings(context, document, before)
        rules = context.resource.rules
        return found if rules is None or before is None else [*found, *rules.check(document, before)[1]]


_NOT_CHECKED = "some validation rules were not checked because the object was invalid; "
_NOT_CHECKED += "correct the existing errors to complete validation"


def _with_rules(context: Context, new: Document, old: Document | None, causes: list[Cause]) -> list[Cause]:
    """Return the errors of an object with those of its schema's rules, unless they can't be run on it."""
    rules = context.resource.rules
    if rules is None:
        return causes
    if any(cause.reason in BLOCKING for cause in causes):
        return [*causes, invalid_value("<nil>", "null", _NOT_CHECKED)]
    return [*causes, *rules.check(new, old)[0]]


def _schema(context: Context) -> Document:
    return part(context.resource.custom or {}, "schema", "openAPIV3Schema")


def _body(document: Document) -> Document:
    return {name: value for name, value in document.items() if name not in _ENVELOPE}
