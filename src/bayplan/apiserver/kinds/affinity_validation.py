"""What is wrong with node and pod affinity."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.apiserver.kinds.strategy import part, parts, texts
from bayplan.apiserver.rest.errors import Cause, forbidden_value, invalid_value, required
from bayplan.base.plain_data import Document
from bayplan.objects.names import check_label_value, check_qualified_name
from bayplan.objects.selectors import quote

_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def check_affinity(affinity: Document, field: str) -> list[Cause]:
    """Return what is wrong with an affinity."""
    causes: list[Cause] = []
    if "nodeAffinity" in affinity:
        causes += _check_node_affinity(part(affinity, "nodeAffinity"), f"{field}.nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        causes += _check_pod_affinity(part(affinity, name), f"{field}.{name}")
    return causes


def _check_node_affinity(affinity: Document, field: str) -> list[Cause]:
    causes: list[Cause] = []
    if affinity.get(_REQUIRED) is not None:
        causes += check_node_selector(part(affinity, _REQUIRED), f"{field}.{_REQUIRED}")
    for index, preferred in enumerate(parts(affinity, _PREFERRED)):
        here = f"{field}.{_PREFERRED}[{index}]"
        causes += _check_weight(preferred, here)
        causes += _check_node_term(part(preferred, "preference"), f"{here}.preference")
    return causes


def _check_weight(preferred: Document, field: str) -> list[Cause]:
    weight = preferred.get("weight", 0)
    if isinstance(weight, int) and 1 <= weight <= 100:
        return []
    return [invalid_value(f"{field}.weight", str(weight), "must be in the range 1-100")]


def check_node_selector(selector: Document, field: str) -> list[Cause]:
    """Return what is wrong with a node selector."""
    terms = parts(selector, "nodeSelectorTerms")
    if not terms:
        return [required(f"{field}.nodeSelectorTerms", "must have at least one node selector term")]
    causes: list[Cause] = []
    for index, term in enumerate(terms):
        causes += _check_node_term(term, f"{field}.nodeSelectorTerms[{index}]")
    return causes


def _check_node_term(term: Document, field: str) -> list[Cause]:
    causes: list[Cause] = []
    for index, expression in enumerate(parts(term, "matchExpressions")):
        causes += _check_node_expression(expression, f"{field}.matchExpressions[{index}]")
    for index, expression in enumerate(parts(term, "matchFields")):
        here = f"{field}.matchFields[{index}]"
        key, operator, values = (
            str(expression.get("key") or ""),
            expression.get("operator"),
            texts(expression, "values"),
        )
        if operator not in ("In", "NotIn"):
            causes.append(
                invalid_value(f"{here}.operator", quote(str(operator or "")), "not a valid selector operator")
            )
        elif len(values) != 1:
            causes.append(
                required(here, "must be only one value when `operator` is 'In' or 'NotIn' for node field selector")
            )
        if key != "metadata.name":
            causes.append(invalid_value(f"{here}.key", quote(key), "not a valid field selector key"))
    return causes


def _check_node_expression(expression: Document, field: str) -> list[Cause]:
    operator, values = str(expression.get("operator") or ""), texts(expression, "values")
    if operator not in ("Gt", "Lt"):
        return _check_operator_and_key(expression, field)
    causes: list[Cause] = []
    if len(values) != 1:
        causes.append(required(f"{field}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"))
    return causes + _check_key(expression, field)


def _check_pod_affinity(affinity: Document, field: str) -> list[Cause]:
    causes: list[Cause] = []
    for index, term in enumerate(parts(affinity, _REQUIRED)):
        causes += _check_pod_term(term, f"{field}.{_REQUIRED}[{index}]")
    for index, preferred in enumerate(parts(affinity, _PREFERRED)):
        here = f"{field}.{_PREFERRED}[{index}]"
        causes += _check_weight(preferred, here)
        causes += _check_pod_term(part(preferred, "podAffinityTerm"), f"{here}.podAffinityTerm")
    return causes


def _check_pod_term(term: Document, field: str) -> list[Cause]:
    causes = check_label_selector(part(term, "labelSelector"), f"{field}.labelSelector")
    causes += check_label_selector(part(term, "namespaceSelector"), f"{field}.namespaceSelector")
    key = str(term.get("topologyKey") or "")
    if not key:
        causes.append(required(f"{field}.topologyKey", "can not be empty"))
    return causes + [invalid_value(f"{field}.topologyKey", quote(key), each) for each in check_qualified_name(key)]


def check_label_selector(selector: Document, field: str) -> list[Cause]:
    """Return what is wrong with a label selector."""
    causes: list[Cause] = []
    for key, value in sorted(part(selector, "matchLabels").items()):
        here = f"{field}.matchLabels"
        causes += [invalid_value(here, quote(key), each) for each in check_qualified_name(key)]
        causes += [invalid_value(here, quote(str(value)), each) for each in check_label_value(str(value))]
    for index, expression in enumerate(parts(selector, "matchExpressions")):
        causes += _check_label_expression(expression, f"{field}.matchExpressions[{index}]")
    return causes


def _check_label_expression(expression: Document, field: str) -> list[Cause]:
    return _check_operator_and_key(expression, field) + _check_values(texts(expression, "values"), f"{field}.values")


def _check_operator_and_key(expression: Document, field: str) -> list[Cause]:
    """Check what selectors of labels and of nodes have in common."""
    causes: list[Cause] = []
    operator, values = str(expression.get("operator") or ""), texts(expression, "values")
    if operator in ("In", "NotIn"):
        if not values:
            causes.append(required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            causes.append(forbidden_value(f"{field}.values", text))
    else:
        causes.append(invalid_value(f"{field}.operator", quote(operator), "not a valid selector operator"))
    return causes + _check_key(expression, field)


def _check_key(expression: Document, field: str) -> list[Cause]:
    key = str(expression.get("key") or "")
    return [invalid_value(f"{field}.key", quote(key), each) for each in check_qualified_name(key)]


def _check_values(values: Sequence[str], field: str) -> list[Cause]:
    causes: list[Cause] = []
    for index, value in enumerate(values):
        causes += [invalid_value(f"{field}[{index}]", quote(value), each) for each in check_label_value(value)]
    return causes
