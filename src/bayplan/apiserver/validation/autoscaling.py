"""Validation rules of HorizontalPodAutoscalers, in version v2, in which they are stored."""

from __future__ import annotations

from bayplan.apiserver.model.errors import invalid_value, not_supported, required
from bayplan.apiserver.validation.engine import (
    Causes,
    Rule,
    at_least,
    at_most,
    each,
    field,
    forbidden_if,
    go_value,
    inside,
    kind,
    must,
    need,
    need_set,
    number,
    one_of,
    optional,
    required_if,
    table,
    under,
    value,
)
from bayplan.apiserver.validation.formats import (
    dns_label,
    nonnegative,
    nonnegative_quantity,
    path_segment,
    positive_quantity,
)
from bayplan.apiserver.validation.resources import container_resource_name
from bayplan.base.plain_data import Document, part
from bayplan.objects.selectors import quote

_SOURCES = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
_TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")
_TARGETS = ("Utilization", "Value", "AverageValue")
_NO_UTILIZATION = "must set either a target raw value or a target utilization"
_BOTH = "may not set both a target raw value and a target utilization"


def _api_version(document: Document, path: str, out: Causes, *, may_be_core: bool) -> None:
    text = str(document.get("apiVersion") or "")
    detail = ""
    if text.count("/") > 1:
        detail = f"unexpected GroupVersion string: {text}"
    elif not may_be_core and "/" not in text:
        detail = "apiVersion must specify API group"
    if detail:
        out.append(invalid_value(f"{path}.apiVersion", quote(text), detail))


_NAMES = table(need("kind", path_segment), need("name", path_segment))
_DESCRIBED = table(_NAMES, lambda ref, path, out: _api_version(ref, path, out, may_be_core=True))


def _target_reference(document: Document, path: str, out: Causes) -> None:
    _NAMES(document, path, out)
    _api_version(document, path, out, may_be_core=document.get("kind") == "ReplicationController")


_METRIC = need("name", path_segment, detail="must specify a metric name")
_TARGET = table(
    need("type", detail="must specify a metric target type"),
    value("type", must(lambda found: found in _TARGETS, "must be either Utilization, Value, or AverageValue")),
    field("value", positive_quantity("must be positive")),
    field("averageValue", positive_quantity("must be positive")),
    field("averageUtilization", at_least(1, "must be greater than 0")),
)


def _neither(first: str, second: str, named_field: str, detail: str) -> Rule:
    return required_if(lambda target: target.get(first) is None and target.get(second) is None, named_field, detail)


def _both(first: str, second: str, named_field: str, detail: str) -> Rule:
    return forbidden_if(
        lambda target: target.get(first) is not None and target.get(second) is not None, named_field, detail
    )


def _target(*rules: Rule) -> Rule:
    return inside("target", _TARGET, *rules)


_UTILIZATION = _target(
    _neither("averageUtilization", "averageValue", "averageUtilization", _NO_UTILIZATION),
    _both("averageUtilization", "averageValue", "averageValue", _BOTH),
)
_SOURCE_RULES: dict[str, Rule] = {
    "object": table(
        inside("describedObject", _DESCRIBED),
        inside("metric", _METRIC),
        _target(_neither("value", "averageValue", "averageValue", "must set either a target value or averageValue")),
    ),
    "external": table(
        inside("metric", _METRIC),
        _target(
            _neither(
                "value", "averageValue", "averageValue", "must set either a target value for metric or a per-pod target"
            ),
            _both("value", "averageValue", "value", "may not set both a target value for metric and a per-pod target"),
        ),
    ),
    "pods": table(
        inside("metric", _METRIC),
        _target(need_set("averageValue", "must specify a positive target averageValue")),
    ),
    "resource": table(need("name", detail="must specify a resource name"), _UTILIZATION),
    "containerResource": table(
        need("name", container_resource_name, detail="must specify a resource name"),
        need("container", dns_label, detail="must specify a container"),
        _UTILIZATION,
    ),
}


def _metric_spec(document: Document, path: str, out: Causes) -> None:
    kind_of_source, here = str(document.get("type") or ""), under(path, "type")
    if not kind_of_source:
        out.append(required(here, "must specify a metric source type"))
    if kind_of_source not in _TYPES:
        out.append(not_supported(here, quote(kind_of_source), _TYPES))
    present = [name for name in _SOURCE_RULES if document.get(name) is not None]
    for name in present[:1]:
        inside(name, _SOURCE_RULES[name])(document, path, out)
    expected = _SOURCES.get(kind_of_source)
    if expected is None:
        out.append(not_supported(here, quote(kind_of_source), _TYPES))
    elif expected not in present:
        out.append(required(f"{path}.{expected}", "must populate information for the given metric source"))
    if len(present) != 1:
        for name in sorted(present):
            if name != expected:
                forbidden_if(lambda _: True, name, "must populate the given metric source only")(document, path, out)


_MAX_WINDOW_S, _MAX_PERIOD_S = 3600, 1800
_POLICY = table(
    value("type", one_of("Percent", "Pods")),
    number("value", at_least(1, "must be greater than zero")),
    number(
        "periodSeconds",
        at_least(1, "must be greater than zero"),
        at_most(_MAX_PERIOD_S, f"must be less than or equal to {_MAX_PERIOD_S}"),
    ),
)
_RULES = table(
    field(
        "stabilizationWindowSeconds",
        at_least(0, "must be greater than or equal to zero"),
        at_most(_MAX_WINDOW_S, f"must be less than or equal to {_MAX_WINDOW_S}"),
    ),
    field("selectPolicy", one_of("Disabled", "Max", "Min")),
    need("policies", detail="must specify at least one Policy"),
    each("policies", _POLICY),
    field("tolerance", nonnegative_quantity),
)


def _scales_to_zero_without_metric(document: Document) -> bool:
    metrics = document.get("metrics")
    kinds = [each_metric.get("type") for each_metric in metrics] if isinstance(metrics, list) else []
    return document.get("minReplicas") == 0 and not {"Object", "External"} & set(kinds)


def _max_replicas(document: Document, path: str, out: Causes) -> None:
    most, least = document.get("maxReplicas") or 0, document.get("minReplicas")
    here = f"{path}.maxReplicas"
    assert isinstance(most, int)
    if most == 0:
        out.append(required(here, "must be set and greater than 0"))
    elif most < 0:
        out.append(invalid_value(here, str(most), "must be greater than or equal to 1"))
    if isinstance(least, int) and most < least:
        out.append(invalid_value(here, go_value(most), "must be greater than or equal to `minReplicas`"))


def _spec(reference: Rule) -> Rule:
    return inside(
        "spec",
        field("minReplicas", at_least(1)),
        _max_replicas,
        inside("scaleTargetRef", reference),
        each("metrics", _metric_spec),
        forbidden_if(
            _scales_to_zero_without_metric,
            "metrics",
            "must specify at least one Object or External metric to support scaling to zero replicas",
        ),
        optional("behavior", optional("scaleUp", _RULES), optional("scaleDown", _RULES)),
    )


_NEW_TARGET, _SAME_TARGET = _spec(_target_reference), _spec(_NAMES)


def _update(new: Document, old: Document, out: Causes) -> None:
    """Check an update. If apiVersion and kind of the target are unchanged, the apiVersion is not checked."""
    target, before = (part(each_object, "spec", "scaleTargetRef") for each_object in (new, old))
    same = all(target.get(name) == before.get(name) for name in ("apiVersion", "kind"))
    (_SAME_TARGET if same else _NEW_TARGET)(new, "", out)


_STATUS = inside("status", number("currentReplicas", nonnegative), number("desiredReplicas", nonnegative))
AUTOSCALER = kind(_NEW_TARGET, update=[_update], status=[lambda new, _old, out: _STATUS(new, "", out)])
KINDS = {"autoscaling/horizontalpodautoscalers": AUTOSCALER}
