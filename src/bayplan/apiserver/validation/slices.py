"""Validation rules of ResourceSlices and their devices."""

from __future__ import annotations

import re

from bayplan.apiserver.model.errors import duplicate, forbidden_value, invalid_value, required, too_long
from bayplan.apiserver.validation.claim_status import pool_name
from bayplan.apiserver.validation.devices import list_of, qualified
from bayplan.apiserver.validation.engine import (
    Causes,
    at_least,
    go_value,
    immutable,
    inside,
    kind,
    need,
    number,
    one_of,
    sent,
    table,
    too_many,
    value,
)
from bayplan.apiserver.validation.formats import amount_of, dns_label, dns_subdomain, label_value, qualified_name
from bayplan.apiserver.validation.internal_json import internal, shown_as
from bayplan.apiserver.validation.selectors import NODE_SELECTOR
from bayplan.apiserver.validation.volumes import driver_name
from bayplan.base.go_text.json import json_text
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.selectors import quote

_MAX_ITEMS, _MAX_DEVICES, _MAX_SPECIAL_DEVICES, _MAX_VALID_VALUES = 32, 128, 64, 10
_MAX_BINDING_CONDITIONS = 4
_MAX_ATTRIBUTES, _MAX_VALUE, _MAX_POOL, _MAX_TAINTS, _MAX_COUNTER_SETS = 32, 64, 253, 16, 8
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
    r"(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?"
)


_POOL = table(
    need("name", pool_name),
    number("resourceSliceCount", at_least(1, "must be greater than zero")),
    number("generation", at_least(0, "must be greater than or equal to zero")),
)


def _where(document: Document, path: str, names: tuple[str, ...], empty_detail: str, out: Causes) -> list[str]:
    """Check the fields that select the nodes of devices, and return the names of the set fields, as in messages."""
    found: list[str] = []
    name = document.get("nodeName")
    if name:
        found.append("`nodeName`")
        dns_subdomain(name, f"{path}.nodeName", out)
    elif name is not None:
        out.append(invalid_value(f"{path}.nodeName", '""', empty_detail))
    selector = document.get("nodeSelector")
    if isinstance(selector, dict):
        found.append("`nodeSelector`")
        NODE_SELECTOR(selector, f"{path}.nodeSelector", out)
        terms = selector.get("nodeSelectorTerms")
        if "perDeviceNodeSelection" in names and len(parts(selector, "nodeSelectorTerms")) != 1:
            shown = shown_as("[]core.NodeSelectorTerm")(terms)
            here = f"{path}.nodeSelector.nodeSelectorTerms"
            out.append(invalid_value(here, shown, "must have exactly one node selector term"))
    for flag in names:
        if document.get(flag):
            found.append(f"`{flag}`")
        elif document.get(flag) is not None:
            out.append(invalid_value(f"{path}.{flag}", "false", "must be either unset or set to true"))
    return found


def _attribute(attribute: Document, path: str, out: Causes) -> None:
    names = ("bool", "int", "string", "version", "bools", "ints", "strings", "versions")
    found = [name for name in names if attribute.get(name) is not None]
    for name in ("string", "version"):
        if attribute.get(name) is not None:
            _attribute_text(attribute[name], f"{path}.{name}", name, out)
    for name in ("strings", "versions"):
        for index, text in enumerate(texts(attribute, name)):
            _attribute_text(text, f"{path}.{name}[{index}]", name[:-1], out)
    if not found:
        out.append(invalid_value(path, '""', "exactly one value must be specified"))
    elif len(found) > 1:
        shown = json_text(internal("resource.DeviceAttribute", attribute))
        out.append(invalid_value(path, shown, "exactly one value must be specified"))


def _attribute_text(found: object, path: str, name: str, out: Causes) -> None:
    if name == "version" and not _SEMVER.fullmatch(str(found)):
        detail = "must be a string compatible with semver.org spec 2.0.0"
        out.append(invalid_value(path, quote(str(found)), detail))
    if len(str(found).encode()) > _MAX_VALUE:
        out.append(too_long(path, _MAX_VALUE))


def _range(policy: Document, default: str, most: str, path: str, out: Causes) -> None:
    low, high, step = (policy.get(name) for name in ("min", "max", "step"))
    if low is None:
        out.append(required(f"{path}.min", "required when validRange is defined"))
        return

    def refuse(wrong: bool, name: str, found: object, detail: str) -> None:
        if wrong:
            out.append(invalid_value(f"{path}.{name}", quote(str(found)), detail))

    least, limit, usual = amount_of(str(low)), amount_of(most), amount_of(default)
    refuse(least > limit, "min", low, f"min is larger than capacity value: {most}")
    refuse(usual < least, "min", default, f"default is less than min: {low}")
    if high is not None:
        upper = amount_of(str(high))
        refuse(least > upper, "max", low, f"min is larger than max: {high}")
        refuse(upper > limit, "max", high, f"max is larger than capacity value: {most}")
        refuse(usual > upper, "max", default, f"default is more than max: {high}")
    if step is None or not amount_of(str(step)).value():
        return
    size = amount_of(str(step)).value()
    first = least + amount_of(str(step))
    refuse(first > limit, "step", step, f"one step {first} is larger than capacity value: {most}")
    for text in (default, high):
        if text is not None:
            detail = f"value is not a multiple of a given step ({step}) from ({low})"
            refuse((amount_of(str(text)).value() - least.value()) % size != 0, "step", text, detail)


def _capacity(capacity: Document, path: str, several: bool, out: Causes) -> None:
    policy, here = capacity.get("requestPolicy"), f"{path}.requestPolicy"
    if not isinstance(policy, dict):
        return
    if not several:
        out.append(forbidden_value(here, "allowMultipleAllocations must be true"))
        return
    values, limits, default = texts(policy, "validValues"), policy.get("validRange"), policy.get("default")
    most = str(capacity.get("value") or "0")
    if values and isinstance(limits, dict):
        detail = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        out.append(forbidden_value(here, detail))
    elif (values or isinstance(limits, dict)) and default is None:
        what = "validValues" if values else "validRange"
        out.append(required(f"{here}.default", f"required when {what} is defined"))
    elif values:
        _valid_values(values, str(default), most, f"{here}.validValues", out)
    elif isinstance(limits, dict):
        _range(limits, str(default), most, f"{here}.validRange", out)


def _valid_values(values: list[str], default: str, most: str, path: str, out: Causes) -> None:
    amounts = [amount_of(str(text)) for text in values]
    for index in range(1, len(amounts)):
        if amounts[index - 1] > amounts[index]:
            detail = "values must be sorted in ascending order"
            out.append(invalid_value(f"{path}[{index}]", quote(str(values[index])), detail))
    if len(values) > _MAX_VALID_VALUES:
        out.append(too_many(path, len(values), _MAX_VALID_VALUES))
        amounts = []  # Upstream then doesn't find the default among them.
    else:
        for index, amount in enumerate(amounts):
            if amount > amount_of(most):
                detail = f"option is larger than capacity value: {most}"
                out.append(invalid_value(f"{path}[{index}]", quote(str(values[index])), detail))
        wholes = [str(amount.value()) for amount in amounts]
        out += [duplicate(f"{path}[{i}]", quote(text)) for i, text in enumerate(wholes) if text in wholes[:i]]
    if amount_of(default) not in amounts:
        out.append(invalid_value(path, quote(default), "default value is not valid according to the requestPolicy"))


def _taint(taint: Document, path: str, out: Causes) -> None:
    value("key", qualified_name)(taint, path, out)
    if taint.get("value"):
        label_value(taint["value"], f"{path}.value", out)
    effect = taint.get("effect") or ""
    if not effect:
        out.append(required(f"{path}.effect"))
    else:
        one_of("NoExecute", "NoSchedule", "None")(effect, f"{path}.effect", out)


def _counters(document: Document, path: str, out: Causes) -> None:
    counters = part(document, "counters")
    if not counters:
        out.append(required(f"{path}.counters"))
    elif len(counters) > _MAX_ITEMS:
        out.append(too_many(f"{path}.counters", len(counters), _MAX_ITEMS))
    else:
        for name in sorted(counters):
            dns_label(name, f"{path}.counters", out)


def _bindings(device: Document, path: str, out: Causes) -> None:
    conditions, failures = texts(device, "bindingConditions"), texts(device, "bindingFailureConditions")
    both = (("bindingConditions", conditions), ("bindingFailureConditions", failures))
    for name, found in both:
        if len(found) > _MAX_BINDING_CONDITIONS:
            out.append(too_many(f"{path}.{name}", len(found), _MAX_BINDING_CONDITIONS))
            continue
        for index, text in enumerate(found):
            qualified_name(text, f"{path}.{name}[{index}]", out)
    known = frozenset(conditions)
    for name, found in both:
        seen: set[str] = set()
        for index, text in enumerate(found):
            if text in seen:
                out.append(duplicate(f"{path}.{name}[{index}]", quote(text)))
            seen.add(text)
            if found is failures and text in known:
                detail = "bindingFailureConditions must not overlap with bindingConditions"
                out.append(invalid_value(f"{path}.{name}[{index}]", quote(text), detail))
    if bool(conditions) != bool(failures):
        missing = "bindingFailureConditions" if conditions else "bindingConditions"
        given = "bindingConditions" if conditions else "bindingFailureConditions"
        shown = go_value(sent(device, missing))
        out.append(invalid_value(f"{path}.{missing}", shown, f"{missing} are required to use {given}"))


def _device(device: Document, path: str, per_device: bool, out: Causes) -> None:
    value("name", dns_label)(device, path, out)
    attributes, capacity = part(device, "attributes"), part(device, "capacity")
    if len(attributes) + len(capacity) > _MAX_ATTRIBUTES:
        detail = f"the total number of attributes and capacities must not exceed {_MAX_ATTRIBUTES}"
        out.append(invalid_value(path, str(len(attributes) + len(capacity)), detail))
    several = device.get("allowMultipleAllocations") is True
    for name in sorted(attributes):
        qualified(name, f"{path}.attributes", out)
        _attribute(part(attributes, name), f"{path}.attributes[{name}]", out)
    for name in sorted(capacity):
        qualified(name, f"{path}.capacity", out)
        _capacity(part(capacity, name), f"{path}.capacity[{name}]", several, out)
    list_of("taints", _MAX_TAINTS, _taint)(device, path, out)
    consumed = table(need("counterSet", dns_label), _counters)
    list_of("consumesCounters", _MAX_COUNTER_SETS, consumed, "counterSet")(device, path, out)
    fields = "`nodeName`, `nodeSelector`, or `allNodes`"
    end = "is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
    if per_device:
        found = _where(device, path, ("allNodes",), "must not be empty", out)
        if not found:
            out.append(required(path, f"exactly one of {fields} {end}"))
        elif len(found) > 1:
            shown = quote("{" + ", ".join(found) + "}")
            out.append(invalid_value(path, shown, f"exactly one of {fields} {end}"))
    elif any(device.get(name) is not None for name in ("nodeName", "nodeSelector", "allNodes")):
        detail = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true "
        out.append(invalid_value(path, "null", f"{detail}in the ResourceSlice spec"))
    _bindings(device, path, out)


_START = table(value("driver", driver_name), inside("pool", _POOL))
_COUNTER_SET = table(need("name", dns_label), _counters)
_PLACES = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"


def _slice_rest(spec: Document, out: Causes) -> None:
    empty = "must be either unset or set to a non-empty string"
    found = _where(spec, "spec", ("allNodes", "perDeviceNodeSelection"), empty, out)
    if not found:
        out.append(required("spec", _PLACES))
    elif len(found) > 1:
        shown = quote("{" + ", ".join(found) + "}")
        out.append(invalid_value("spec", shown, f"{_PLACES}, but multiple fields are set"))
    devices = parts(spec, "devices")
    if sent(spec, "sharedCounters") is not None and sent(spec, "devices") is not None:
        out.append(invalid_value("spec", '""', "only one of `sharedCounters` or `devices` is allowed"))
    special = any(device.get("taints") or device.get("consumesCounters") for device in devices)
    per_device = spec.get("perDeviceNodeSelection") is True
    limit = _MAX_SPECIAL_DEVICES if special else _MAX_DEVICES
    list_of("devices", limit, lambda item, at, to: _device(item, at, per_device, to), "name")(spec, "spec", out)
    list_of("sharedCounters", _MAX_COUNTER_SETS, _COUNTER_SET, "name")(spec, "spec", out)


def _slice(document: Document, path: str, out: Causes) -> None:
    spec = part(document, "spec")
    _START(spec, "spec", out)
    _slice_rest(spec, out)


_STAYS = (immutable("spec.pool.name", zero=""), immutable("spec.driver", zero=""), immutable("spec.nodeName"))


def _slice_update(new: Document, old: Document, out: Causes) -> None:
    _START(part(new, "spec"), "spec", out)
    for check in _STAYS:
        check(new, old, out)
    _slice_rest(part(new, "spec"), out)


KINDS = {"resource.k8s.io/resourceslices": kind(_slice, update=[_slice_update])}
