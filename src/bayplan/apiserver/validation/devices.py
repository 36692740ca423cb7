"""Validation rules of ResourceClaims, their templates, and DeviceClasses."""

from __future__ import annotations

import re
from collections.abc import Callable

from bayplan.apiserver.model.errors import duplicate, invalid_value, required, too_long
from bayplan.apiserver.validation.claim_status import (
    MAX_CONFIG,
    MAX_RESULTS,
    allocated_result,
    claim_status,
    config_source,
)
from bayplan.apiserver.validation.engine import (
    Causes,
    Change,
    Rule,
    at_least,
    changed_metadata,
    each,
    go_value,
    immutable,
    inside,
    kind,
    need,
    one_of,
    too_many,
    value,
)
from bayplan.apiserver.validation.expressions import ExpressionBudget, check_device_expression
from bayplan.apiserver.validation.formats import dns_label, dns_subdomain, label_value, qualified_name
from bayplan.apiserver.validation.internal_json import shown_as
from bayplan.apiserver.validation.resources import is_extended
from bayplan.apiserver.validation.selectors import NODE_SELECTOR
from bayplan.apiserver.validation.volumes import driver_name, template_metadata
from bayplan.base.go_text.json import json_text
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.selectors import quote

MAX_SELECTORS = 32
_MAX_ITEMS, _MAX_ALTERNATIVES, _MAX_ID, _MAX_VALUE = 32, 8, 32, 64
_MAX_PARAMETERS = 10 * 1024
_IDENTIFIER_FORMAT = "[A-Za-z_][A-Za-z0-9_]*"
_IDENTIFIER_TEXT = (
    "a valid C identifier must start with alphabetic character or '_', "
    "followed by a string of alphanumeric characters or '_'"
)

_Item = Callable[[Document, str, Causes], None]


def list_of(name: str, limit: int, rule: _Item, key: str = "") -> Rule:
    """Return a rule for a list: at most `limit` items, `rule` for each item, and distinct values of the field `key` if given."""

    def run(document: Document, path: str, out: Causes) -> None:
        found, here = parts(document, name), f"{path}.{name}"
        if len(found) > limit:
            out.append(too_many(here, len(found), limit))
            return
        for index, item in enumerate(found):
            rule(item, f"{here}[{index}]", out)
        if not key:
            return
        seen: set[object] = set()
        for index, item in enumerate(found):
            name_of_item = item.get(key) or ""
            if name_of_item in seen:
                out.append(duplicate(f"{here}[{index}]", go_value(name_of_item)))
            seen.add(name_of_item)

    return run


# --- requests ---------------------------------------------------------------------------------------------------------


class _Selectors:
    """Checks the selectors of one write, which share a budget for the compilation of their expressions."""

    def __init__(self) -> None:
        self._budget = ExpressionBudget()

    def check(self, document: Document, path: str, out: Causes) -> None:
        """Check the selectors of a request or class."""
        list_of("selectors", MAX_SELECTORS, self._selector)(document, path, out)

    def _selector(self, selector: Document, path: str, out: Causes) -> None:
        cel = selector.get("cel")
        if not isinstance(cel, dict):
            out.append(required(f"{path}.cel"))
            return
        text = str(cel.get("expression") or "")
        check_device_expression(text, f"{path}.cel.expression", out, compiles=self._budget.spend(len(text)))


def _toleration(toleration: Document, path: str, out: Causes) -> None:
    key, operator = toleration.get("key"), toleration.get("operator") or ""
    if key:
        qualified_name(key, f"{path}.key", out)
    if operator == "Exists":
        if toleration.get("value"):
            out.append(
                invalid_value(f"{path}.value", go_value(toleration["value"]), "must be empty for operator `Exists`")
            )
    elif operator == "Equal":
        value("value", label_value)(toleration, path, out)
    elif not operator:
        out.append(required(f"{path}.operator"))
    else:
        one_of("Equal", "Exists")(operator, f"{path}.operator", out)
    if toleration.get("effect"):
        one_of("NoExecute", "NoSchedule", "None")(toleration["effect"], f"{path}.effect", out)


def _allocation(request: Document, path: str, out: Causes) -> None:
    mode, count = request.get("allocationMode") or "", request.get("count") or 0
    if mode == "All":
        if count:
            detail = "must not be specified when allocationMode is 'All'"
            out.append(invalid_value(f"{path}.count", go_value(count), detail))
    elif mode == "ExactCount":
        at_least(1, "must be greater than zero")(count, f"{path}.count", out)
    else:
        one_of("All", "ExactCount")(mode, f"{path}.allocationMode", out)


def _request_body(request: Document, path: str, selectors: _Selectors, out: Causes) -> None:
    need("deviceClassName", dns_subdomain)(request, path, out)
    selectors.check(request, path, out)
    _allocation(request, path, out)
    each("tolerations", _toleration)(request, path, out)


def _request_name(request: Document, path: str, out: Causes) -> None:
    dns_label(request.get("name") or "", f"{path}.name", out)


def _request(request: Document, path: str, selectors: _Selectors, out: Causes) -> None:
    _request_name(request, path, out)
    exactly, alternatives = request.get("exactly"), parts(request, "firstAvailable")
    if isinstance(exactly, dict) and alternatives:
        detail = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"
        out.append(invalid_value(path, "null", detail))
    elif alternatives:

        def alternative(inner: Document, here: str, causes: Causes) -> None:
            _request_name(inner, here, causes)
            _request_body(inner, here, selectors, causes)

        list_of("firstAvailable", _MAX_ALTERNATIVES, alternative, "name")(request, path, out)
    elif isinstance(exactly, dict):
        _request_body(exactly, f"{path}.exactly", selectors, out)
    else:
        out.append(required(path, "exactly one of `exactly` or `firstAvailable` is required"))


def _reference(name: str, path: str, known: dict[str, set[str]], out: Causes) -> None:
    segments = name.split("/")
    detail = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
    if len(segments) > 2:
        out.append(invalid_value(path, quote(name), detail))
        return
    for segment in segments:
        dns_label(segment, path, out)
    if segments[0] not in known or (len(segments) == 2 and segments[1] not in known[segments[0]]):
        out.append(invalid_value(path, quote(name), detail))


def _references(document: Document, path: str, known: dict[str, set[str]], out: Causes) -> None:
    names, here = texts(document, "requests"), f"{path}.requests"
    if len(names) > _MAX_ITEMS:
        out.append(too_many(here, len(names), _MAX_ITEMS))
        return
    for index, name in enumerate(names):
        _reference(name, f"{here}[{index}]", known, out)
    for index, name in enumerate(names):
        if name in names[:index]:
            out.append(duplicate(f"{here}[{index}]", quote(name)))


def qualified(text: str, path: str, out: Causes) -> None:
    """Check the name of an attribute or capacity: a C identifier, optionally with a domain."""
    pieces = text.split("/")
    if len(pieces) == 2:
        if not pieces[0]:
            out.append(invalid_value(path, '""', "the domain must not be empty"))
        else:
            driver_name(pieces[0], path, out)
        if not pieces[1]:
            out.append(invalid_value(path, '""', "the name must not be empty"))
        else:
            _identifier(pieces[1], path, out)
    elif len(pieces) == 1:
        _identifier(text, path, out)


def _identifier(text: str, path: str, out: Causes) -> None:
    if len(text) > _MAX_ID:
        out.append(too_long(path, _MAX_ID))
    if not re.fullmatch(_IDENTIFIER_FORMAT, text):
        examples = "(e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is"
        out.append(invalid_value(path, quote(text), f"{_IDENTIFIER_TEXT} {examples} '{_IDENTIFIER_FORMAT}')"))


def _fully_qualified(found: object, path: str, out: Causes) -> None:
    qualified(str(found), path, out)
    if "/" not in str(found):
        detail = "a fully qualified name must be a domain and a name separated by a slash"
        out.append(invalid_value(path, quote(str(found)), detail))


def _constraint(constraint: Document, path: str, known: dict[str, set[str]], out: Causes) -> None:
    _references(constraint, path, known, out)
    for name in ("matchAttribute", "distinctAttribute"):
        if constraint.get(name) is not None:
            _fully_qualified(constraint[name], f"{path}.{name}", out)
            return
    detail = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
    out.append(required(path, detail))


def _parameters(opaque: Document, path: str, out: Causes) -> None:
    found, here = opaque.get("parameters"), f"{path}.parameters"
    if found is None:
        out.append(required(here))
    elif len(json_text(found).encode()) > _MAX_PARAMETERS:
        out.append(too_long(here, _MAX_PARAMETERS))
    elif not isinstance(found, dict):
        shown = "<value omitted>"
        out.append(invalid_value(here, quote(shown), "must be a valid JSON object"))


def _config(config: Document, path: str, out: Causes) -> None:
    opaque = config.get("opaque")
    if not isinstance(opaque, dict):
        out.append(required(f"{path}.opaque"))
        return
    value("driver", driver_name)(opaque, f"{path}.opaque", out)
    _parameters(opaque, f"{path}.opaque", out)


def _request_names(devices: Document) -> dict[str, set[str]]:
    """Return the names of the alternatives of each request, by the name of the request."""
    return {
        str(request.get("name") or ""): {
            str(each_one.get("name") or "") for each_one in parts(request, "firstAvailable")
        }
        for request in parts(devices, "requests")
    }


def _claim(spec: Document, path: str, out: Causes) -> None:
    devices, here, selectors = part(spec, "devices"), f"{path}.devices", _Selectors()
    known = _request_names(devices)

    def config(item: Document, at: str, causes: Causes) -> None:
        _references(item, at, known, causes)
        _config(item, at, causes)

    request_rule = list_of("requests", _MAX_ITEMS, lambda item, at, to: _request(item, at, selectors, to), "name")
    request_rule(devices, here, out)
    list_of("constraints", _MAX_ITEMS, lambda item, at, to: _constraint(item, at, known, to))(devices, here, out)
    list_of("config", _MAX_ITEMS, config)(devices, here, out)


def _immutable_spec(type_name: str) -> Change:
    return immutable("spec", show=shown_as(type_name))


def _new_allocation(new: Document, old: Document, out: Causes) -> None:
    """Check an allocation that the update adds."""
    allocation, here = part(new, "status").get("allocation"), "status.allocation"
    if not isinstance(allocation, dict) or part(old, "status").get("allocation") is not None:
        return
    known = _request_names(part(new, "spec", "devices"))

    def result(item: Document, at: str, causes: Causes) -> None:
        _reference(str(item.get("request") or ""), f"{at}.request", known, causes)
        allocated_result(item, at, causes)

    def config(item: Document, at: str, causes: Causes) -> None:
        config_source(item, at, causes)
        _references(item, at, known, causes)
        _config(item, at, causes)

    devices = part(allocation, "devices")
    list_of("results", MAX_RESULTS, result)(devices, f"{here}.devices", out)
    list_of("config", MAX_CONFIG, config)(devices, f"{here}.devices", out)
    if isinstance(allocation.get("nodeSelector"), dict):
        NODE_SELECTOR(part(allocation, "nodeSelector"), f"{here}.nodeSelector", out)


CLAIM = kind(
    inside("spec", _claim),
    update=[_immutable_spec("resource.ResourceClaimSpec")],
    status=[claim_status, _new_allocation],
    metadata=("object", "change"),
)


def _template(template: Document, path: str, out: Causes) -> None:
    template_metadata(part(template, "spec"), "spec", out)
    _claim(part(template, "spec", "spec"), "spec.spec", out)


TEMPLATE = kind(
    _template, after=[changed_metadata(), _immutable_spec("resource.ResourceClaimTemplateSpec")], metadata=("object",)
)


def _class(document: Document, path: str, out: Causes) -> None:
    spec = part(document, "spec")
    _Selectors().check(spec, "spec", out)
    _class_rest(spec, out)


def _class_rest(spec: Document, out: Causes) -> None:
    list_of("config", _MAX_ITEMS, _config)(spec, "spec", out)
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended(str(name)):
        out.append(
            invalid_value("spec.extendedResourceName", quote(str(name)), "must be a valid extended resource name")
        )


def _class_update(new: Document, old: Document, out: Causes) -> None:
    """Check an update. Unchanged selectors are not compiled again."""
    if part(new, "spec").get("selectors") == part(old, "spec").get("selectors"):
        _class_rest(part(new, "spec"), out)
    else:
        _class(new, "", out)


CLASS = kind(_class, update=[_class_update], metadata=("object", "change"))
KINDS = {
    "resource.k8s.io/resourceclaims": CLAIM,
    "resource.k8s.io/resourceclaimtemplates": TEMPLATE,
    "resource.k8s.io/deviceclasses": CLASS,
}
