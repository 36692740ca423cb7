"""Validation rules of the core group: nodes, namespaces, config maps, secrets, quotas, limit ranges, endpoints."""

from __future__ import annotations

import base64
import json
import re

from bayplan.apiserver.model.errors import Cause, duplicate, forbidden_value, invalid_value, required, too_long
from bayplan.apiserver.model.object_meta import check_finalizer, check_metadata
from bayplan.apiserver.validation.engine import (
    Causes,
    Change,
    choice,
    each,
    field,
    for_update,
    go_value,
    if_filled,
    immutable,
    inside,
    kind,
    sent,
    table,
    value,
)
from bayplan.apiserver.validation.formats import (
    amount_of,
    check_config_key,
    dns_label,
    dns_subdomain,
    endpoint_ip,
    ip_address,
    port,
    qualified_name,
)
from bayplan.apiserver.validation.internal_json import shown_as
from bayplan.apiserver.validation.nodes import NODE
from bayplan.apiserver.validation.resources import (
    allows_overcommit,
    container_resource_name,
    is_standard_quota,
    quota_resource_name,
    resource_amount,
    resource_name,
)
from bayplan.base.go_text.json import json_problem
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.names import check_qualified_name
from bayplan.objects.quantity import Quantity
from bayplan.objects.selectors import quote

_MAX_DATA_BYTES = 1024 * 1024
_WHEN_IMMUTABLE = "field is immutable when `immutable` is set"

# --- Namespace --------------------------------------------------------------------------------------------------------


def _finalizers(namespace: Document, path: str, out: Causes) -> None:
    for name in texts(part(namespace, "spec"), "finalizers"):
        check_finalizer(name, "spec.finalizers", out)


SECURITY_LEVELS = ("privileged", "baseline", "restricted")
"""The levels of the pod security standards, from least to most strict."""
_SECURITY_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)|latest")


def is_security_version(text: str) -> bool:
    """Return whether a text is a version of the pod security standards: ``latest`` or ``v1.N``."""
    found = _SECURITY_VERSION.fullmatch(text)
    return found is not None and int(found[1] or 0) < 2**63


def security_label_causes(namespace: Document) -> Causes:
    """Return the errors of the pod security labels of a namespace."""
    found, out = part(namespace, "metadata", "labels"), list[Cause]()
    for mode in ("enforce", "audit", "warn"):
        label = f"pod-security.kubernetes.io/{mode}"
        for name, fits, detail in (
            (label, SECURITY_LEVELS.__contains__, f"must be one of {', '.join(SECURITY_LEVELS)}"),
            (f"{label}-version", is_security_version, 'must be "latest" or "v1.x"'),
        ):
            if name in found and not fits(str(found[name])):
                out.append(invalid_value(f"metadata.labels[{name}]", quote(str(found[name])), detail))
    return out


def _phase(new: Document, _old: Document, out: Causes) -> None:
    phase = part(new, "status").get("phase") or ""
    going = bool(part(new, "metadata").get("deletionTimestamp"))
    wanted, detail = ("Terminating", "is not empty") if going else ("Active", "is empty")
    if phase != wanted:
        text = f"may only be '{wanted}' if `deletionTimestamp` {detail}"
        out.append(invalid_value("status.Phase", go_value(phase), text))


NAMESPACE = kind(
    _finalizers,
    update=(),
    status=[_phase],
    metadata=("object", "change"),
)

# --- ConfigMap and Secret ---------------------------------------------------------------------------------------------


def _data_keys(document: Document, name: str, out: Causes) -> None:
    twice = part(document, "binaryData") if name == "data" else {}
    for key in sorted(part(document, name)):
        problems = check_config_key(key)
        if problems or key in twice:
            here = f"{name}[{key}]"
            out.extend(invalid_value(here, quote(key), problem) for problem in problems)
            if key in twice:
                out.append(invalid_value(here, quote(key), "duplicate of key present in binaryData"))


def _bytes(document: Document, name: str) -> int:
    """Return the number of bytes that the base64 values of a map encode."""
    return sum(len(str(text or "")) * 3 // 4 - str(text or "").count("=") for text in part(document, name).values())


def _config_map(document: Document, path: str, out: Causes) -> None:
    _data_keys(document, "data", out)
    _data_keys(document, "binaryData", out)
    plain = sum(len(str(text).encode()) for text in part(document, "data").values())
    if plain + _bytes(document, "binaryData") > _MAX_DATA_BYTES:
        out.append(too_long("[]", _MAX_DATA_BYTES))


def _immutable(*names: str) -> Change:
    def run(new: Document, old: Document, out: Causes) -> None:
        if not old.get("immutable"):
            return
        if not new.get("immutable"):
            out.append(forbidden_value("immutable", _WHEN_IMMUTABLE))
        for name in names:
            if (new.get(name) or None) != (old.get(name) or None):
                out.append(forbidden_value(name, _WHEN_IMMUTABLE))

    return run


def _metadata(document: Document, path: str, out: Causes) -> None:
    """Check metadata as for a create, for kinds whose updates check something else first."""
    out += check_metadata(part(document, "metadata"), True, "subdomain", standard=True)


CONFIG_MAP = kind(_config_map, before=[_immutable("data", "binaryData"), for_update(_metadata)])


def _object_problem(data: bytes) -> str:
    """Return Go's error if bytes are not a JSON object, else an empty string."""
    problem = json_problem(data.decode("utf-8", "surrogateescape"))
    if problem:
        return problem
    found = json.loads(data)
    if found is None or isinstance(found, dict):
        return ""
    kind_of_value = {str: "string", list: "array", bool: "bool"}.get(type(found), "number")
    return f"json: cannot unmarshal {kind_of_value} into Go value of type map[string]interface {{}}"


_REDACTED = '"<secret contents redacted>"'
_NEEDED: dict[str, tuple[str, ...]] = {"kubernetes.io/tls": ("tls.crt", "tls.key")}


def _secret(document: Document, path: str, out: Causes) -> None:
    data, kind_of_secret = part(document, "data"), str(document.get("type") or "")
    _data_keys(document, "data", out)
    if _bytes(document, "data") > _MAX_DATA_BYTES:
        out.append(too_long("data", _MAX_DATA_BYTES))
    if kind_of_secret == "kubernetes.io/service-account-token":
        name = "kubernetes.io/service-account.name"
        if not part(document, "metadata", "annotations").get(name):
            out.append(required(f"metadata.annotations[{name}]"))
    for wanted, key in (
        ("kubernetes.io/dockercfg", ".dockercfg"),
        ("kubernetes.io/dockerconfigjson", ".dockerconfigjson"),
    ):
        if kind_of_secret != wanted:
            continue
        if key not in data:
            out.append(required(f"data[{key}]"))
        else:
            problem = _object_problem(base64.b64decode(str(data[key] or "")))
            if problem:
                out.append(invalid_value(f"data[{key}]", _REDACTED, problem))
    if kind_of_secret == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
        out.extend((required("data[username]"), required("data[password]")))
    if kind_of_secret == "kubernetes.io/ssh-auth" and not data.get("ssh-privatekey"):
        out.append(required("data[ssh-privatekey]"))
    for key in _NEEDED.get(kind_of_secret, ()):
        if key not in data:
            out.append(required(f"data[{key}]"))


SECRET = kind(_secret, before=[immutable("type", zero=""), _immutable("data"), for_update(_metadata)])
SERVICE_ACCOUNT = kind(metadata=("change", "object"))

# --- ResourceQuota ----------------------------------------------------------------------------------------------------

_SCOPES = (
    "Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
)  # fmt: skip
_POD_QUOTA = frozenset(("cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory", "pods"))
_EXISTS_ONLY = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


def _hard(document: Document, path: str, out: Causes) -> None:
    for name, amount in sorted(part(document, "hard").items()):
        here = f"{path}.hard[{name}]"
        quota_resource_name(name, here, out)
        resource_amount(name, str(amount), here, out)


def _scope_fits(scope: str, resource: str) -> bool:
    if scope in ("Terminating", "NotTerminating", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity"):
        return resource in _POD_QUOTA
    if scope == "BestEffort":
        return resource == "pods"
    if scope == "VolumeAttributesClass":
        return resource in ("persistentvolumeclaims", "requests.storage")
    return True


def _conflicting(scopes: list[str]) -> int:
    pairs = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
    return sum(all(each_scope in scopes for each_scope in pair) for pair in pairs)


def _scopes(document: Document, path: str, out: Causes) -> None:
    scopes, here = texts(document, "scopes"), f"{path}.scopes"
    limits = [name for name in sorted(part(document, "hard")) if is_standard_quota(name)]
    for scope in scopes:
        if scope not in _SCOPES:
            out.append(invalid_value(here, go_value(scopes), "unsupported scope"))
        for name in limits:
            if not _scope_fits(scope, name):
                out.append(invalid_value(here, go_value(scopes), "unsupported scope applied to resource"))
    out.extend([invalid_value(here, go_value(scopes), "conflicting scopes")] * _conflicting(scopes))


def _scope_selector(document: Document, path: str, out: Causes) -> None:
    selector = document.get("scopeSelector")
    if not isinstance(selector, dict):
        return
    here = f"{path}.scopeSelector.matchExpressions"
    limits = [name for name in sorted(part(document, "hard")) if is_standard_quota(name)]
    scopes: list[str] = []
    for expression in parts(selector, "matchExpressions"):
        scope, operator = str(expression.get("scopeName") or ""), str(expression.get("operator") or "")
        values = texts(expression, "values")
        if scope not in _SCOPES:
            out.append(invalid_value(f"{here}.scopeName", quote(scope), "unsupported scope"))
        for name in limits:
            if not _scope_fits(scope, name):
                shown = shown_as("core.ScopeSelector")(selector)
                out.append(invalid_value(here, shown, "unsupported scope applied to resource"))
        if scope in _SCOPES and scope not in ("PriorityClass", "VolumeAttributesClass") and operator != "Exists":
            out.append(invalid_value(f"{here}.operator", quote(operator), _EXISTS_ONLY))
        if operator in ("In", "NotIn"):
            if not values:
                detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                out.append(required(f"{here}.values", detail))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                out.append(invalid_value(f"{here}.values", go_value(values), detail))
        else:
            out.append(invalid_value(f"{here}.operator", quote(operator), "not a valid selector operator"))
        scopes.append(scope)
    shown_scopes = go_value(texts(document, "scopes") or None)
    out.extend([invalid_value(here, shown_scopes, "conflicting scopes")] * _conflicting(scopes))


def _scopes_stay(new: Document, old: Document, out: Causes) -> None:
    after, before = (texts(part(each_object, "spec"), "scopes") for each_object in (new, old))
    if set(after) != set(before):
        found = sent(part(new, "spec"), "scopes")
        out.append(invalid_value("spec.scopes", go_value(found), "field is immutable"))


_QUOTA_SPEC = inside("spec", _hard, _scopes, _scope_selector)


def _quota_status(new: Document, _old: Document, out: Causes) -> None:
    for name in ("hard", "used"):
        for resource, amount in sorted(part(new, "status", name).items()):
            here = f"status.{name}[{resource}]"
            quota_resource_name(resource, here, out)
            resource_amount(resource, str(amount), here, out)


QUOTA = kind(_QUOTA_SPEC, after=[_scopes_stay], status=[_quota_status])

# --- LimitRange -------------------------------------------------------------------------------------------------------

_LIMIT_TYPES = ("Pod", "Container", "PersistentVolumeClaim")


def _limit_type(name: str, path: str, out: Causes) -> None:
    problems = check_qualified_name(name)
    out.extend(invalid_value(path, quote(name), problem) for problem in problems)
    if not problems and "/" not in name and name not in _LIMIT_TYPES:
        out.append(invalid_value(path, quote(name), "must be a standard limit type or fully qualified"))


def _limit_names(limit: Document, kind_of_limit: str, path: str, names: tuple[str, ...], out: Causes) -> None:
    for name in names:
        for resource in sorted(part(limit, name)):
            here = f"{path}.{name}[{resource}]"
            if kind_of_limit in ("Pod", "Container"):
                container_resource_name(resource, here, out)
            else:
                resource_name(resource, here, out)


def _limits(document: Document, path: str, out: Causes) -> None:
    seen: set[str] = set()
    for index, limit in enumerate(parts(document, "limits")):
        here, kind_of_limit = f"{path}.limits[{index}]", str(limit.get("type") or "")
        _limit_type(kind_of_limit, f"{here}.type", out)
        if kind_of_limit in seen:
            out.append(duplicate(f"{here}.type", quote(kind_of_limit)))
        seen.add(kind_of_limit)
        _limit_names(limit, kind_of_limit, here, ("max", "min"), out)
        defaults = ("default", "defaultRequest")
        if kind_of_limit == "Pod":
            for name in defaults:
                if part(limit, name):
                    out.append(forbidden_value(f"{here}.{name}", "may not be specified when `type` is 'Pod'"))
        else:
            _limit_names(limit, kind_of_limit, here, defaults, out)
        if kind_of_limit == "PersistentVolumeClaim" and all(
            "storage" not in part(limit, name) for name in ("min", "max")
        ):
            detail = "either minimum or maximum storage value is required, but neither was provided"
            out.append(required(f"{here}.limits", detail))
        _limit_names(limit, kind_of_limit, here, ("maxLimitRequestRatio",), out)
        _limit_amounts(limit, kind_of_limit, here, out)


_ORDERS = (
    ("min", "max", "min", "min value {} is greater than max value {}"),
    ("min", "defaultRequest", "defaultRequest", "min value {} is greater than default request value {}"),
    ("defaultRequest", "max", "defaultRequest", "default request value {} is greater than max value {}"),
    ("defaultRequest", "default", "defaultRequest", "default request value {} is greater than default limit value {}"),
    ("min", "default", "default", "min value {} is greater than default value {}"),
    ("default", "max", "default", "default value {} is greater than max value {}"),
)


def _limit_amounts(limit: Document, kind_of_limit: str, path: str, out: Causes) -> None:
    kinds = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
    found = {name: {} if kind_of_limit == "Pod" and "default" in name else part(limit, name) for name in kinds}
    for resource in sorted({each_name for amounts in found.values() for each_name in amounts}):
        amount: dict[str, Quantity] = {
            name: amount_of(str(amounts[resource])) for name, amounts in found.items() if resource in amounts
        }
        for low, high, named, detail in _ORDERS:
            if low in amount and high in amount and amount[low] > amount[high]:
                shown = {"default": low if low == "min" else high}.get(named, named)
                text = quote(str(amount[shown]))
                out.append(invalid_value(f"{path}.{named}[{resource}]", text, detail.format(amount[low], amount[high])))
        _limit_ratio(amount, f"{path}.maxLimitRequestRatio[{resource}]", out)
        default, request = amount.get("default"), amount.get("defaultRequest")
        if default is not None and request is not None and default != request and not allows_overcommit(resource):
            detail = f"default value {default} must equal to defaultRequest value {request} in {resource}"
            out.append(invalid_value(f"{path}.defaultRequest[{resource}]", quote(str(request)), detail))


def _limit_ratio(amount: dict[str, Quantity], path: str, out: Causes) -> None:
    ratio, low, high = (amount.get(name) for name in ("maxLimitRequestRatio", "min", "max"))
    if ratio is None:
        return
    shown = quote(str(ratio))
    if ratio < Quantity.parse("1"):
        out.append(invalid_value(path, shown, f"ratio {ratio} is less than 1"))
    if low is not None and high is not None and low.milli_value():
        most = high.milli_value() / low.milli_value()
        if ratio.milli_value() / 1000 > most:
            out.append(invalid_value(path, shown, f"ratio {ratio} is greater than max/min = {most:f}"))


LIMIT_RANGE = kind(inside("spec", _limits), metadata=("object",))

# --- Endpoints --------------------------------------------------------------------------------------------------------


def _address(document: Document, path: str, out: Causes) -> None:
    value("ip", ip_address)(document, path, out)
    value("hostname", if_filled(dns_label))(document, path, out)
    field("nodeName", dns_subdomain)(document, path, out)
    value("ip", endpoint_ip)(document, path, out)


def _endpoint_ports(document: Document, path: str, out: Causes) -> None:
    ports = parts(document, "ports")
    for index, each_port in enumerate(ports):
        here, name = f"{path}.ports[{index}]", each_port.get("name")
        if not name and len(ports) > 1:
            out.append(required(f"{here}.name"))
        if name:
            dns_label(name, f"{here}.name", out)
        _ENDPOINT_PORT(each_port, here, out)


def _has_addresses(document: Document, path: str, out: Causes) -> None:
    if not parts(document, "addresses") and not parts(document, "notReadyAddresses"):
        out.append(required(path, "must specify `addresses` or `notReadyAddresses`"))


_ENDPOINT_PORT = table(
    value("port", port, zero=0), value("protocol", choice("SCTP", "TCP", "UDP")), field("appProtocol", qualified_name)
)
_SUBSETS = each(
    "subsets", _has_addresses, each("addresses", _address), each("notReadyAddresses", _address), _endpoint_ports
)


def _subsets_update(new: Document, old: Document, out: Causes) -> None:
    if new.get("subsets") != old.get("subsets"):
        _SUBSETS(new, "", out)


ENDPOINTS = kind(_SUBSETS, update=[_subsets_update], metadata=("change", "object"))
KINDS = {
    "nodes": NODE,
    "namespaces": NAMESPACE,
    "configmaps": CONFIG_MAP,
    "secrets": SECRET,
    "serviceaccounts": SERVICE_ACCOUNT,
    "resourcequotas": QUOTA,
    "limitranges": LIMIT_RANGE,
    "endpoints": ENDPOINTS,
}
