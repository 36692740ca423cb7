"""Validation rules of label selectors and node selectors."""

from __future__ import annotations

from bayplan.apiserver.model.errors import forbidden_value, invalid_value, required
from bayplan.apiserver.validation.engine import Causes, Rule, each, field, items, table, under, value
from bayplan.apiserver.validation.formats import label_value, labels, qualified_name
from bayplan.apiserver.validation.internal_json import ordered_selector
from bayplan.base.go_text.json import json_text
from bayplan.base.plain_data import Document, parts, texts
from bayplan.objects.names import check_dns1123_subdomain, check_label_value, check_qualified_name
from bayplan.objects.selectors import compile_selector_document, quote

_BAD_OPERATOR = "not a valid selector operator"


def _requirement_values(document: Document, path: str, out: Causes, *, known: bool = True) -> None:
    operator, values = document.get("operator"), document.get("values")
    if operator in ("In", "NotIn"):
        if not values:
            out.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            out.append(forbidden_value(f"{path}.values", detail))
    elif known:
        out.append(invalid_value(f"{path}.operator", quote(str(operator or "")), _BAD_OPERATOR))


LABEL_SELECTOR = table(
    field("matchLabels", labels),
    each("matchExpressions", _requirement_values, value("key", qualified_name), field("values", items(label_value))),
)


def review_selector(selector: object, path: str, out: Causes) -> None:
    """Check a label or field selector of an access review. Unknown operators are allowed, because clients may be newer."""
    if not isinstance(selector, dict):
        return
    raw, found = str(selector.get("rawSelector") or ""), parts(selector, "requirements")
    if raw and found:
        out.append(
            invalid_value(f"{path}.rawSelector", quote(raw), "may not specified at the same time as requirements")
        )
    if not raw and not found:
        detail = f"when {path} is specified, requirements or rawSelector is required"
        out.append(required(f"{path}.requirements", detail))
    is_label = path.endswith("labelSelector")
    for index, requirement in enumerate(found):
        here = f"{path}.requirements[{index}]"
        if not is_label and not requirement.get("key"):
            out.append(required(f"{here}.key", "must be specified"))
        _requirement_values(requirement, here, out, known=False)
        if is_label:
            qualified_name(requirement.get("key") or "", f"{here}.key", out)
            field("values", items(label_value))(requirement, here, out)


def selector_is_valid(selector: Document) -> bool:
    """Return whether a label selector is valid, so that upstream can convert it."""
    pairs = selector.get("matchLabels")
    for key, item in (pairs if isinstance(pairs, dict) else {}).items():
        if check_qualified_name(key) or check_label_value(str(item)):
            return False
    for expression in parts(selector, "matchExpressions"):
        operator, values = expression.get("operator"), texts(expression, "values")
        if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            return False
        if bool(values) != (operator in ("In", "NotIn")) or any(check_label_value(each) for each in values):
            return False
        if check_qualified_name(str(expression.get("key") or "")):
            return False
    return True


def selects(selector: object, found: object) -> bool:
    """Return whether a valid label selector matches these labels. A missing selector matches nothing."""
    if not isinstance(selector, dict):
        return False
    pairs = found if isinstance(found, dict) else {}
    return compile_selector_document(selector).matches({key: str(item) for key, item in pairs.items()})


def is_empty(selector: Document) -> bool:
    """Return whether a label selector has no requirements."""
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


# --- node selectors ---------------------------------------------------------------------------------------------------


def _node_values(document: Document, path: str, out: Causes) -> None:
    if document.get("operator") in ("Gt", "Lt"):
        if len(texts(document, "values")) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            out.append(required(f"{path}.values", detail))
        return
    _requirement_values(document, path, out)


def _field_requirement(document: Document, path: str, out: Causes) -> None:
    key, values = str(document.get("key") or ""), texts(document, "values")
    operator = str(document.get("operator") or "")
    if operator not in ("In", "NotIn"):
        out.append(invalid_value(f"{path}.operator", quote(operator), _BAD_OPERATOR))
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        out.append(required(f"{path}.values", detail))
    if key != "metadata.name":
        out.append(invalid_value(f"{path}.key", quote(key), "not a valid field selector key"))
        return
    for index, each_value in enumerate(values):
        for problem in check_dns1123_subdomain(each_value):
            out.append(invalid_value(f"{path}.values[{index}]", quote(each_value), problem))


NODE_TERM = table(
    each("matchExpressions", _node_values, value("key", qualified_name), field("values", items(label_value))),
    each("matchFields", _field_requirement),
)
PREFERRED_NODE_TERM = table(
    each("matchExpressions", _node_values, value("key", qualified_name)),
    each("matchFields", _field_requirement),
)


def node_selector(term: Rule = NODE_TERM) -> Rule:
    """Return a rule for a node selector, which needs at least one term; `term` checks each term."""

    def some(document: Document, path: str, out: Causes) -> None:
        if not document.get("nodeSelectorTerms"):
            name = under(path, "nodeSelectorTerms")
            out.append(required(name, "must have at least one node selector term"))

    return table(some, each("nodeSelectorTerms", term))


NODE_SELECTOR = node_selector()


def shown_selector(selector: object) -> str:
    """Return a label selector as Go encodes it in JSON: labels first, sorted."""
    return json_text(ordered_selector(selector) if isinstance(selector, dict) else selector)
