"""The rows of autoscalers, quotas, role bindings, classes, endpoints, ingresses and similar kinds."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from bayplan.apiserver.tables.metadata_cells import age_of, name_of
from bayplan.base.plain_data import Document, part, parts, texts

_NONE, _UNSET, _UNKNOWN, _AUTO = "<none>", "<unset>", "<unknown>", "<auto>"
_MAX_METRICS, _MAX_LISTED = 2, 3
_DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"


def autoscaler(item: Document, now: float) -> list[object]:
    """Return the cells of a HorizontalPodAutoscaler."""
    spec, status = part(item, "spec"), part(item, "status")
    target, least = part(spec, "scaleTargetRef"), spec.get("minReplicas")
    metrics, current = parts(spec, "metrics"), parts(status, "currentMetrics")
    shown = [_metric(each, current[at] if at < len(current) else {}) for at, each in enumerate(metrics)]
    more = f" + {len(shown) - _MAX_METRICS} more..." if len(shown) > _MAX_METRICS else ""
    listed = ", ".join(shown[:_MAX_METRICS]) + more if shown else _NONE
    return [
        name_of(item), f"{target.get('kind')}/{target.get('name')}", listed, _UNSET if least is None else str(least),
        spec.get("maxReplicas"), status.get("currentReplicas") or 0, age_of(item, now),
    ]  # fmt: skip


def _metric(metric: Document, status: Document) -> str:
    kind = str(metric.get("type"))
    field = kind[:1].lower() + kind[1:]
    wanted, current = part(metric, field, "target"), part(status, field, "current")
    if kind in ("Resource", "ContainerResource"):
        name = part(metric, field).get("name")
        if "averageValue" in wanted:
            return f"{name}: {current.get('averageValue', _UNKNOWN)}/{wanted['averageValue']}"
        return f"{name}: {_percent(current, _UNKNOWN)}/{_percent(wanted, _AUTO)}"
    if kind == "Pods":
        return f"{current.get('averageValue', _UNKNOWN)}/{wanted.get('averageValue')}"
    if kind not in ("Object", "External"):
        return "<unknown type>"
    if "averageValue" in wanted:
        return f"{current.get('averageValue', _UNKNOWN)}/{wanted['averageValue']} (avg)"
    return f"{current.get('value', _UNKNOWN)}/{wanted.get('value')}"


def _percent(values: Document, otherwise: str) -> str:
    found = values.get("averageUtilization")
    return otherwise if found is None else f"{found}%"


def quota(item: Document, now: float) -> list[object]:
    """Return the cells of a ResourceQuota."""
    hard, used = part(item, "status", "hard"), part(item, "status", "used")
    requests: list[str] = []
    limits: list[str] = []
    for name, amount in sorted(hard.items()):
        (limits if name.startswith("limits.") else requests).append(f"{name}: {used.get(name, '0')}/{amount}")
    return [name_of(item), ", ".join(requests), ", ".join(limits), age_of(item, now)]


def role_binding(item: Document, now: float) -> list[object]:
    """Return the cells of a RoleBinding or ClusterRoleBinding."""
    role = part(item, "roleRef")
    by_kind: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in parts(item, "subjects"):
        kind, name = str(subject.get("kind")), str(subject.get("name"))
        if kind in by_kind:
            by_kind[kind].append(f"{subject.get('namespace') or ''}/{name}" if kind == "ServiceAccount" else name)
    subjects = [", ".join(found) for found in by_kind.values()]
    return [name_of(item), f"{role.get('kind')}/{role.get('name')}", age_of(item, now), *subjects]


def runtime_class(item: Document, now: float) -> list[object]:
    """Return the cells of a RuntimeClass."""
    return [name_of(item), item.get("handler"), age_of(item, now)]


def counted(field: str, item: Document, now: float) -> list[object]:
    """Return the cells of a kind that shows the number of items in a list."""
    return [name_of(item), len(parts(item, field)), age_of(item, now)]


webhooks = partial(counted, "webhooks")


def service_cidr(item: Document, now: float) -> list[object]:
    """Return the cells of a ServiceCIDR."""
    return [name_of(item), ",".join(texts(part(item, "spec"), "cidrs")), age_of(item, now)]


def ip_address(item: Document, now: float) -> list[object]:
    """Return the cells of an IPAddress."""
    parent = part(item, "spec", "parentRef")
    group, place = str(parent.get("group") or ""), str(parent.get("namespace") or "")
    resource = str(parent.get("resource") or "").lower() + (f".{group.lower()}" if group else "")
    shown = "/".join(each for each in (resource, place, str(parent.get("name") or "")) if each) if parent else _NONE
    return [name_of(item), shown, age_of(item, now)]


def ingress(item: Document, now: float) -> list[object]:
    """Return the cells of an Ingress."""
    spec = part(item, "spec")
    hosts = _listed((str(rule["host"]) for rule in parts(spec, "rules") if rule.get("host")), otherwise="*")
    addresses = parts(part(item, "status", "loadBalancer"), "ingress")
    shown = sorted({str(each.get("ip") or each.get("hostname")) for each in addresses})
    ports = "80, 443" if parts(spec, "tls") else "80"
    return [name_of(item), spec.get("ingressClassName") or _NONE, hosts, ",".join(shown), ports, age_of(item, now)]


def ingress_class(item: Document, now: float) -> list[object]:
    """Return the cells of an IngressClass."""
    spec, name = part(item, "spec"), str(name_of(item))
    if part(item, "metadata", "annotations").get(_DEFAULT_CLASS) == "true":
        name += " (default)"
    parameters = part(spec, "parameters")
    group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") is not None else ""
    shown = f"{parameters.get('kind')}{group}/{parameters.get('name')}" if parameters else _NONE
    return [name, spec.get("controller") or "", shown, age_of(item, now)]


def endpoints(item: Document, now: float) -> list[object]:
    """Return the cells of Endpoints."""
    subsets = parts(item, "subsets")
    found = [each for subset in subsets for each in _addresses(subset)]
    return [name_of(item), _listed(found, otherwise="") if subsets else _NONE, age_of(item, now)]


def _addresses(subset: Document) -> list[str]:
    hosts, ports = [str(each.get("ip")) for each in parts(subset, "addresses")], parts(subset, "ports")
    if not ports:
        return hosts
    return [
        f"[{host}]:{port.get('port')}" if ":" in host else f"{host}:{port.get('port')}"
        for port in ports
        for host in hosts
    ]


def endpoint_slice(item: Document, now: float) -> list[object]:
    """Return the cells of an EndpointSlice."""
    ports = [each.get("port", each.get("name", "*")) for each in parts(item, "ports")]
    addresses = [address for each in parts(item, "endpoints") for address in texts(each, "addresses")]
    listed_ports = _listed(str(each) for each in ports)
    return [name_of(item), item.get("addressType"), listed_ports, _listed(addresses), age_of(item, now)]


def _listed(values: Iterable[str], otherwise: str = _UNSET) -> str:
    """Return the first three values and the number of further values; `otherwise` if that is empty."""
    found = list(values)
    more = f" + {len(found) - _MAX_LISTED} more..." if len(found) > _MAX_LISTED else ""
    return ",".join(found[:_MAX_LISTED]) + more or otherwise


def component_status(item: Document, _now: float) -> list[object]:
    """Return the cells of a ComponentStatus."""
    conditions = [each for each in parts(item, "conditions") if each.get("type") == "Healthy"]
    found = conditions[0] if conditions else {}
    status = {"True": "Healthy", "False": "Unhealthy"}.get(str(found.get("status")), "Unknown")
    return [name_of(item), status, found.get("message") or "", found.get("error") or ""]


def api_service(item: Document, now: float) -> list[object]:
    """Return the cells of an APIService."""
    service = part(item, "spec", "service")
    condition = next(
        (each for each in parts(part(item, "status"), "conditions") if each.get("type") == "Available"), {}
    )
    status, reason = condition.get("status") or "Unknown", condition.get("reason")
    shown = f"{status} ({reason})" if reason and status != "True" else status
    return [
        name_of(item),
        f"{service['namespace']}/{service['name']}" if service else "Local",
        shown,
        age_of(item, now),
    ]
