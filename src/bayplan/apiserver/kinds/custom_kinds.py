"""The strategy of custom resources: their objects are checked by the schema of their definition."""

from __future__ import annotations

from bayplan.apiserver.kinds.strategy import Context, Strategy, part
from bayplan.apiserver.model.errors import Cause
from bayplan.apiserver.validation.custom_values import validate_custom
from bayplan.base.plain_data import Document

_ENVELOPE = ("apiVersion", "kind", "metadata")


class CustomStrategy(Strategy):
    """Objects of custom resources."""

    counts_generations = True

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Check a new object."""
        return validate_custom(_schema(context), _body(document))

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Check what has changed."""
        return validate_custom(_schema(context), _body(new), _body(old))

    def validate_status(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Check what has changed: a status stands in the same schema."""
        return self.validate_update(context, new, old)


def _schema(context: Context) -> Document:
    return part(context.resource.custom or {}, "schema", "openAPIV3Schema")


def _body(document: Document) -> Document:
    return {name: value for name, value in document.items() if name not in _ENVELOPE}
