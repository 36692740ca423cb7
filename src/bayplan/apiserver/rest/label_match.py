"""Whether labels meet a LabelSelector of a document."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.apiserver.kinds.strategy import part, parts, texts
from bayplan.base.plain_data import Document


def matches_selector(selector: Document, labels: Mapping[str, str]) -> bool:
    """Say whether labels meet a selector; an empty one is met by all."""
    if any(labels.get(key) != value for key, value in part(selector, "matchLabels").items()):
        return False
    return all(_meets(each, labels) for each in parts(selector, "matchExpressions"))


def _meets(expression: Document, labels: Mapping[str, str]) -> bool:
    found, values = labels.get(str(expression.get("key"))), texts(expression, "values")
    operator = expression.get("operator")
    if operator == "Exists":
        return found is not None
    if operator == "DoesNotExist":
        return found is None
    return (found is not None and found in values) if operator == "In" else (found is None or found not in values)
