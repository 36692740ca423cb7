"""Label selectors as Kubernetes 1.16 evaluates them: which errors it reports, and which it ignores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bayplan.base.go_text.quoting import quote
from bayplan.objects.names import check_label_value, check_qualified_name
from bayplan.objects.selectors import EVERYTHING, Requirement, Selector, parse_int64

_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def selector_from_set(labels: Mapping[str, str] | None) -> Selector:
    """Compile a map of labels. As upstream, one invalid label makes the selector match everything."""
    requirements = []
    for key, value in (labels or {}).items():
        if requirement_error(key, "In", (value,)):
            return EVERYTHING
        requirements.append(Requirement(key, "In", (value,)))
    return Selector(requirements) if requirements else EVERYTHING


def requirement_error(key: str, operator: str, values: Sequence[str]) -> str:
    """Return upstream's error about a requirement, or ""."""
    if complaints := check_qualified_name(key):
        return f"invalid label key {quote(key)}: {'; '.join(complaints)}"
    if operator in ("In", "NotIn") and not values:
        return "for 'in', 'notin' operators, values set can't be empty"
    if operator in ("Exists", "DoesNotExist") and values:
        return "values set must be empty for exists and does not exist"
    if operator in ("Gt", "Lt"):
        if len(values) != 1:
            return "for 'Gt', 'Lt' operators, exactly one value is required"
        if parse_int64(values[0]) is None:
            return "for 'Gt', 'Lt' operators, the value must be an integer"
    for value in values:
        if complaints := check_label_value(value):
            return f"invalid label value: {quote(value)}: at key: {quote(key)}: {'; '.join(complaints)}"
    return ""


def node_requirement_error(key: str, operator: str, values: Sequence[str]) -> str:
    """Return upstream's error about a requirement of a node selector, or ""."""
    if operator not in _NODE_OPERATORS:
        return f"{quote(operator)} is not a valid node selector operator"
    return requirement_error(key, operator, values)
