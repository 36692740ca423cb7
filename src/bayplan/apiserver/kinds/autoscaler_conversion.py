"""HorizontalPodAutoscalers in autoscaling/v1: stored as v2; annotations hold the fields that v1 lacks.

The only metric with a field in v1 is CPU utilization. Other metrics, the behavior, conditions and current metrics are
JSON in annotations, in upstream's format. The stored object does not have these annotations.
"""

from __future__ import annotations

import json

from bayplan.apiserver.codec.decode_error import DecodeError
from bayplan.apiserver.codec.scalars import canonical_quantity
from bayplan.base.go_text.json import json_text
from bayplan.base.plain_data import Document

_PREFIX = "autoscaling.alpha.kubernetes.io/"
_METRICS, _CURRENT, _CONDITIONS, _BEHAVIOR = (
    _PREFIX + name for name in ("metrics", "current-metrics", "conditions", "behavior")
)
V1_ANNOTATIONS = (
    _METRICS,
    _CURRENT,
    _CONDITIONS,
    _BEHAVIOR,
    _PREFIX + "scale-down-tolerance",
    _PREFIX + "scale-up-tolerance",
)
_SPEC = ("scaleTargetRef", "minReplicas", "maxReplicas")
_STATUS = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
_SOURCES = {
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "External": "external",
}
_CPU = "cpu"
_DEFAULT_UTILIZATION = 80
_INTERNAL_RULES = ("StabilizationWindowSeconds", "SelectPolicy", "Policies", "Tolerance")


def autoscaler_to_v2(autoscaler: Document) -> Document:
    """Return the v2 form of a v1 autoscaler. Without any metrics, add the default metric."""
    spec, status = _part(autoscaler, "spec"), _part(autoscaler, "status")
    annotations = _part(_part(autoscaler, "metadata"), "annotations")
    stored = {name: spec[name] for name in _SPEC if name in spec}
    metrics: list[object] = [_metric_to_v2(each) for each in _read_list(annotations.get(_METRICS))]
    if spec.get("targetCPUUtilizationPercentage") is not None:
        metrics.append(_cpu_metric("target", spec["targetCPUUtilizationPercentage"]))
    stored["metrics"] = metrics or [_cpu_metric("target", _DEFAULT_UTILIZATION)]
    behavior = _read(annotations.get(_BEHAVIOR))
    if isinstance(behavior, dict) and any(rules is not None for rules in behavior.values()):
        stored["behavior"] = {_lower(name): _rules_to_v2(each) for name, each in behavior.items() if each is not None}
    # v2 omits the current replicas when there are none.
    state = {name: status[name] for name in _STATUS if name in status and (status[name] or name != "currentReplicas")}
    current: list[object] = [_metric_to_v2(each, current=True) for each in _read_list(annotations.get(_CURRENT))]
    if not current and status.get("currentCPUUtilizationPercentage") is not None:
        current = [_cpu_metric("current", status["currentCPUUtilizationPercentage"])]
    state["currentMetrics"] = current or None
    conditions = _read_list(annotations.get(_CONDITIONS))
    if conditions:
        state["conditions"] = conditions
    state.setdefault("desiredReplicas", 0)
    return {**autoscaler, "metadata": _without(autoscaler), "spec": stored, "status": state}


def autoscaler_from_v2(autoscaler: Document) -> Document:
    """Return the v1 form of a stored autoscaler."""
    spec, status = _part(autoscaler, "spec"), _part(autoscaler, "status")
    shown = {name: spec[name] for name in _SPEC if name in spec}
    state = {name: status[name] for name in _STATUS if name in status}
    others, annotations = [], {}
    for metric in _parts(spec, "metrics"):
        target = _part(_part(metric, "resource"), "target")
        if metric.get("type") == "Resource" and _is_cpu(metric) and "averageUtilization" in target:
            shown.setdefault("targetCPUUtilizationPercentage", target["averageUtilization"])
        else:
            others.append(_metric_from_v2(metric))
    for metric in _parts(status, "currentMetrics"):
        value = _part(_part(metric, "resource"), "current").get("averageUtilization")
        if metric.get("type") == "Resource" and _is_cpu(metric) and value is not None:
            state["currentCPUUtilizationPercentage"] = value
    if others:
        annotations[_METRICS] = _metric_text(others)
    current = [_metric_from_v2(each, current=True) for each in _parts(status, "currentMetrics")]
    if current:
        annotations[_CURRENT] = _metric_text(current, current=True)
    behavior = spec.get("behavior")
    if isinstance(behavior, dict):
        rules = {name: _rules_from_v2(behavior.get(_lower(name))) for name in ("ScaleUp", "ScaleDown")}
        annotations[_BEHAVIOR] = _compact(rules)
    conditions = _parts(status, "conditions")
    if conditions:
        annotations[_CONDITIONS] = _text(_CONDITION, conditions)
    state = {"currentReplicas": 0, "desiredReplicas": 0} | state
    metadata = _without(autoscaler)
    if annotations:
        metadata["annotations"] = {**_part(metadata, "annotations"), **annotations}
    return {**autoscaler, "metadata": metadata, "spec": shown, "status": state}


def _without(autoscaler: Document) -> Document:
    """Return a copy of an autoscaler's metadata without the annotations that only v1 has."""
    metadata = dict(_part(autoscaler, "metadata"))
    annotations = _part(metadata, "annotations")
    if any(name in annotations for name in V1_ANNOTATIONS):
        left = {name: text for name, text in annotations.items() if name not in V1_ANNOTATIONS}
        metadata["annotations"] = left
        if not left:
            del metadata["annotations"]
    return metadata


def _is_cpu(metric: Document) -> bool:
    return _part(metric, "resource").get("name") == _CPU


def _cpu_metric(name: str, utilization: object) -> Document:
    value: Document = {"averageUtilization": utilization}
    if name == "target":
        value["type"] = "Utilization"
    return {"type": "Resource", "resource": {"name": _CPU, name: value}}


# Names of a metric's values in v1 and in v2. In v1 they are fields of the metric; in v2, fields of its target or
# current value.
_VALUES = {
    "pods": {"AverageValue": "averageValue"},
    "object": {"Value": "value", "averageValue": "averageValue"},
    "external": {"Value": "value", "AverageValue": "averageValue"},
    "resource": {"AverageUtilization": "averageUtilization", "AverageValue": "averageValue"},
    "containerResource": {"AverageUtilization": "averageUtilization", "AverageValue": "averageValue"},
}


def _fields(source: str, prefix: str) -> dict[str, str]:
    return {name if name[0].islower() else prefix + name: inner for name, inner in _VALUES[source].items()}


def _metric_to_v2(metric: Document, *, current: bool = False) -> Document:
    source = _SOURCES.get(str(metric.get("type")), "")
    old = metric.get(source)
    if not isinstance(old, dict):
        return metric
    fields = _fields(source, "current" if current else "target")
    shown = dict.fromkeys(_SHOWN.get((source, "current" if current else "target"), ()), "0")
    amounts: Document = {
        fields[name]: _canonical(fields[name], value)
        for name, value in {**shown, **{name: old[name] for name in fields if old.get(name) not in (None, "")}}.items()
    }
    if not current:
        if source == "object" and "averageValue" in amounts and amounts.get("value") == "0":
            del amounts["value"]
        amounts["type"] = _target_type(source, amounts)
    new: Document = {"current" if current else "target": amounts}
    if source in ("resource", "containerResource"):
        new |= {name: old[name] for name in ("name", "container") if name in old}
    else:
        selector = old.get("metricSelector" if source == "external" else "selector")
        new["metric"] = {"name": old.get("metricName", "")} | ({"selector": selector} if selector is not None else {})
        if source == "object":
            new["describedObject"] = old.get("target")
    return {"type": metric["type"], source: new}


def _canonical(name: str, amount: object) -> object:
    """Return a metric's quantity in canonical form.

    Text that is not a quantity is returned unchanged; validation rejects it later.
    """
    if name == "averageUtilization":
        return amount
    try:
        return canonical_quantity(str(amount))
    except DecodeError:
        return amount


def _target_type(source: str, amounts: Document) -> str:
    if source == "external":
        return "Value" if "value" in amounts else "AverageValue"
    if source == "object":
        return "AverageValue" if "averageValue" in amounts else "Value"
    return "Utilization" if "averageUtilization" in amounts else "AverageValue"


def _metric_from_v2(metric: Document, *, current: bool = False) -> Document:
    source = _SOURCES.get(str(metric.get("type")), "")
    new = metric.get(source)
    if not isinstance(new, dict):
        return metric
    amounts = _part(new, "current" if current else "target")
    fields = _fields(source, "current" if current else "target")
    old: Document = {name: amounts[inner] for name, inner in fields.items() if amounts.get(inner) is not None}
    if source in ("resource", "containerResource"):
        old |= {name: new[name] for name in ("name", "container") if name in new}
    else:
        identity = _part(new, "metric")
        old["metricName"] = identity.get("name", "")
        if identity.get("selector") is not None:
            old["metricSelector" if source == "external" else "selector"] = identity["selector"]
        if source == "object":
            old["target"] = _part(new, "describedObject")
    return {"type": metric["type"], source: old}


def _rules_to_v2(rules: object) -> Document:
    if not isinstance(rules, dict):
        return {}
    found = {_lower(name): value for name, value in rules.items() if value is not None}
    if isinstance(found.get("policies"), list):
        found["policies"] = [{_lower(name): value for name, value in each.items()} for each in found["policies"]]
    return found


def _rules_from_v2(rules: object) -> Document | None:
    if not isinstance(rules, dict):
        return None
    found: Document = {name: rules.get(_lower(name)) for name in _INTERNAL_RULES}
    if isinstance(found["Policies"], list):
        names = ("Type", "Value", "PeriodSeconds")
        found["Policies"] = [{name: each.get(_lower(name)) for name in names} for each in found["Policies"]]
    return found


def _lower(name: str) -> str:
    return name[0].lower() + name[1:]


def _text(order: tuple[str, ...], values: list[Document]) -> str:
    """Return a list as Go encodes it in JSON: with fields in the order of the struct."""
    return _compact([{name: each[name] for name in order if name in each} for each in values])


def _metric_text(metrics: list[Document], *, current: bool = False) -> str:
    """Return metrics as Go encodes them in JSON, including the values that its structs never omit."""
    prefix, ordered = "current" if current else "target", []
    for metric in metrics:
        source = _SOURCES.get(str(metric.get("type")), "")
        inner: Document = dict.fromkeys(_SHOWN.get((source, prefix), ()), "0") | _part(metric, source)
        for name, order in _STRUCTS.items():
            if isinstance(inner.get(name), dict):
                inner[name] = _ordered(_part(inner, name), order)
        names = [prefix + name if name[0].isupper() else name for name in _ORDER.get(source, ())]
        ordered.append({"type": metric.get("type"), source: {name: inner[name] for name in names if name in inner}})
    return _compact(ordered)


# Fields of v1 metrics in Go's order. Capitalized names have the prefix "target" or "current".
_ORDER = {
    "object": ("target", "metricName", "Value", "selector", "averageValue"),
    "pods": ("metricName", "AverageValue", "selector"),
    "resource": ("name", "AverageUtilization", "AverageValue"),
    "containerResource": ("name", "AverageUtilization", "AverageValue", "container"),
    "external": ("metricName", "metricSelector", "Value", "AverageValue"),
}
_SHOWN = {
    ("object", "target"): ("targetValue",),
    ("object", "current"): ("currentValue",),
    ("pods", "target"): ("targetAverageValue",),
    ("pods", "current"): ("currentAverageValue",),
    ("resource", "current"): ("currentAverageValue",),
    ("containerResource", "current"): ("currentAverageValue",),
    ("external", "current"): ("currentValue",),
}
_STRUCTS = {
    "target": ("kind", "name", "apiVersion"),
    "selector": ("matchLabels", "matchExpressions"),
    "metricSelector": ("matchLabels", "matchExpressions"),
}
"""Fields of the structs within metrics, in Go's order."""
_OMITTED = ("apiVersion", "matchLabels", "matchExpressions", "values")
_EXPRESSION = ("key", "operator", "values")
_CONDITION = ("type", "status", "lastTransitionTime", "reason", "message")


def _ordered(struct: Document, order: tuple[str, ...]) -> Document:
    """Return a struct as Go encodes it: fields in Go's order, sorted map keys, no empty optional fields."""
    found: Document = {name: struct.get(name) or "" for name in order if name not in _OMITTED or struct.get(name)}
    labels = found.get("matchLabels")
    if isinstance(labels, dict):
        found["matchLabels"] = dict(sorted(labels.items()))
    if "matchExpressions" in found:
        found["matchExpressions"] = [_ordered(each, _EXPRESSION) for each in _parts(found, "matchExpressions")]
    return found


def _compact(value: object) -> str:
    return json_text(value)


def _read(text: object) -> object:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _read_list(text: object) -> list[Document]:
    found = _read(text)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _part(document: Document, name: str) -> Document:
    found = document.get(name)
    return found if isinstance(found, dict) else {}


def _parts(document: Document, name: str) -> list[Document]:
    found = document.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
