"""Validation rules of Services."""

from __future__ import annotations

from bayplan.apiserver.model.errors import duplicate, forbidden_value, invalid_value, required
from bayplan.apiserver.validation.engine import (
    Causes,
    choice,
    field,
    go_value,
    inside,
    kind,
    number,
    one_of,
    table,
    value,
)
from bayplan.apiserver.validation.formats import (
    cidr,
    dns_label,
    dns_subdomain,
    endpoint_ip,
    ip_address,
    labels,
    parse_ip,
    port,
    port_or_name,
    qualified_name,
)
from bayplan.apiserver.validation.internal_json import shown_as
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.selectors import quote

_MAX_AFFINITY_S = 86400
_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_BALANCED_ONLY = "may only be used when `type` is 'LoadBalancer'"


def _is_headless(spec: Document) -> bool:
    return texts(spec, "clusterIPs") == ["None"]


def _kind_of_address(spec: Document, path: str, out: Causes) -> None:
    kind_of_service = spec.get("type")
    if not parts(spec, "ports") and not _is_headless(spec) and kind_of_service != "ExternalName":
        out.append(required("spec.ports"))
    if kind_of_service in ("LoadBalancer", "NodePort") and _is_headless(spec):
        detail = f"may not be set to 'None' for {kind_of_service} services"
        out.append(invalid_value("spec.clusterIPs[0]", '"None"', detail))
    if kind_of_service == "ExternalName":
        for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if spec.get(name):
                out.append(forbidden_value(f"spec.{name}", "may not be set for ExternalName services"))
        name = str(spec.get("externalName") or "").removesuffix(".")
        if name:
            dns_subdomain(name, "spec.externalName", out)
        else:
            out.append(required("spec.externalName"))


_PORT = table(
    number("port", port),
    value("protocol", choice("SCTP", "TCP", "UDP")),
    value("targetPort", port_or_name, zero=0),
    field("appProtocol", qualified_name),
)


def _ports(spec: Document, path: str, out: Causes) -> None:
    names: set[object] = set()
    ports = parts(spec, "ports")
    for index, each in enumerate(ports):
        here, name = f"spec.ports[{index}]", each.get("name")
        if not name and len(ports) > 1:
            out.append(required(f"{here}.name"))
        if name:
            dns_label(name, f"{here}.name", out)
            if name in names:
                out.append(duplicate(f"{here}.name", go_value(name)))
            names.add(name)
        _PORT(each, here, out)


def _affinity(spec: Document, path: str, out: Causes) -> None:
    affinity, config, here = (
        spec.get("sessionAffinity"),
        spec.get("sessionAffinityConfig"),
        "spec.sessionAffinityConfig",
    )
    choice("ClientIP", "None")(affinity or "", "spec.sessionAffinity", out)
    detail = "when session affinity type is ClientIP"
    if affinity == "None" and config is not None:
        out.append(forbidden_value(here, "must not be set when session affinity is None"))
    if affinity != "ClientIP":
        return
    client = part(spec, "sessionAffinityConfig").get("clientIP")
    seconds = client.get("timeoutSeconds") if isinstance(client, dict) else None
    if config is None:
        out.append(required(here, detail))
    elif client is None:
        out.append(required(f"{here}.clientIP", detail))
    elif seconds is None:
        out.append(required(f"{here}.clientIP.timeoutSeconds", detail))
    elif isinstance(seconds, int) and not 0 < seconds <= _MAX_AFFINITY_S:
        text = f"must be greater than 0 and less than {_MAX_AFFINITY_S}"
        out.append(invalid_value(f"{here}.clientIP.timeoutSeconds", str(seconds), text))


def _families(spec: Document, out: Causes) -> None:
    seen: set[str] = set()
    for index, family in enumerate(texts(spec, "ipFamilies")):
        here = f"spec.ipFamilies[{index}]"
        one_of("IPv4", "IPv6")(family, here, out)
        if family in seen:
            out.append(duplicate(here, quote(family)))
        seen.add(family)
    policies = ("PreferDualStack", "RequireDualStack", "SingleStack")
    field("ipFamilyPolicy", one_of(*policies))(spec, "spec", out)


def cluster_ips(spec: Document, path: str, out: Causes) -> None:
    """Check cluster IPs and IP families. Upstream does this before allocation, and again with the other rules."""
    if spec.get("type") == "ExternalName":
        return
    first, found, here = spec.get("clusterIP"), texts(spec, "clusterIPs"), "spec.clusterIPs"
    shown = go_value(found)
    if first and not found:
        out.append(required(here))
    elif first and found[0] != first:
        out.append(invalid_value(here, shown, "first value must match `clusterIP`"))
    elif not first and found:
        out.append(invalid_value(here, shown, "must be empty when `clusterIP` is not specified"))
    _families(spec, out)
    problems: Causes = []
    for index, text in enumerate(found):
        if index == 0 and text == "None":
            if len(found) > 1:
                problems.append(invalid_value(here, shown, "'None' must be the first and only value"))
            continue
        ip_address(text, f"{here}[{index}]", problems)
    out.extend(problems)
    if len(found) > 2:
        out.append(invalid_value(here, shown, "may only hold up to 2 values"))
    if problems:
        return
    versions = [address.version for address in map(parse_ip, found) if address is not None]
    if len(found) > 1 and set(versions) != {4, 6}:
        out.append(invalid_value(here, shown, "may specify no more than one IP for each IP family"))
    if not _is_headless(spec):
        for index, (version, family) in enumerate(zip(versions, texts(spec, "ipFamilies"), strict=False)):
            if family in ("IPv4", "IPv6") and family != f"IPv{version}":
                detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
                out.append(invalid_value(f"{here}[{index}]", quote(found[index]), detail))


def _external_ips(spec: Document, path: str, out: Causes) -> None:
    for index, text in enumerate(texts(spec, "externalIPs")):
        problems: Causes = []
        ip_address(text, f"spec.externalIPs[{index}]", problems)
        if not problems:
            endpoint_ip(text, f"spec.externalIPs[{index}]", problems)
        out.extend(problems)


def _unique_ports(spec: Document, path: str, out: Causes) -> None:
    ports = parts(spec, "ports")
    if spec.get("type") == "ClusterIP":
        for index, each in enumerate(ports):
            if each.get("nodePort"):
                detail = "may not be used when `type` is 'ClusterIP'"
                out.append(forbidden_value(f"spec.ports[{index}].nodePort", detail))
    for name in ("nodePort", "port"):
        seen: set[tuple[object, object]] = set()
        for index, each in enumerate(ports):
            key = (each.get("protocol"), each.get(name) or 0)
            if name == "nodePort" and not each.get(name):
                continue
            if key in seen:
                shown = shown_as("core.ServicePort")({"protocol": key[0], "port": key[1]})
                here = f"spec.ports[{index}]"
                out.append(duplicate(f"{here}.nodePort", str(key[1])) if name == "nodePort" else duplicate(here, shown))
            seen.add(key)


def _source_ranges(service: Document, path: str, out: Causes) -> None:
    spec = part(service, "spec")
    ranges = texts(spec, "loadBalancerSourceRanges")
    text = part(service, "metadata", "annotations").get(_RANGES)
    if ranges:
        here = "spec.LoadBalancerSourceRanges"
        if spec.get("type") != "LoadBalancer":
            out.append(forbidden_value(here, _BALANCED_ONLY))
        for index, each in enumerate(ranges):
            cidr(each.strip(), f"{here}[{index}]", out)
    elif text is not None:
        here = f"metadata.annotations[{_RANGES}]"
        if spec.get("type") != "LoadBalancer":
            out.append(forbidden_value(here, _BALANCED_ONLY))
        for each in str(text).strip().split(",") if str(text).strip() else ():
            cidr(each.strip(), here, out)


def _balancer(spec: Document, path: str, out: Causes) -> None:
    balanced, allocate = spec.get("type") == "LoadBalancer", spec.get("allocateLoadBalancerNodePorts")
    if allocate is not None and not balanced:
        out.append(forbidden_value("spec.allocateLoadBalancerNodePorts", _BALANCED_ONLY))
    if allocate is None and balanced:
        out.append(required("allocateLoadBalancerNodePorts"))
    _balancer_class(spec, out)


def _balancer_class(spec: Document, out: Causes) -> None:
    name, here = spec.get("loadBalancerClass"), "spec.loadBalancerClass"
    if name is None:
        return
    if spec.get("type") == "LoadBalancer":
        qualified_name(name, here, out)
    else:
        out.append(forbidden_value(here, _BALANCED_ONLY))


def _is_external(spec: Document) -> bool:
    kind_of_service = spec.get("type")
    return kind_of_service in ("LoadBalancer", "NodePort") or (
        kind_of_service == "ClusterIP" and bool(texts(spec, "externalIPs"))
    )


def _needs_health_check(spec: Document) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _traffic(spec: Document, path: str, out: Causes) -> None:
    external, here = spec.get("externalTrafficPolicy") or "", "spec.externalTrafficPolicy"
    if _is_external(spec):
        choice("Cluster", "Local")(external, here, out)
    elif external:
        out.append(invalid_value(here, go_value(external), "may only be set for externally-accessible services"))
    health, at = spec.get("healthCheckNodePort") or 0, "spec.healthCheckNodePort"
    if not _needs_health_check(spec):
        if health:
            detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            out.append(invalid_value(at, go_value(health), detail))
    elif not health:
        out.append(required(at))
    else:
        port(health, at, out)
    internal = spec.get("internalTrafficPolicy")
    if internal is None:
        if spec.get("type") in ("NodePort", "LoadBalancer", "ClusterIP"):
            out.append(required("spec.internalTrafficPolicy"))
    else:
        one_of("Cluster", "Local")(internal, "spec.internalTrafficPolicy", out)
    distributions = ("PreferClose", "PreferSameZone", "PreferSameNode")
    field("trafficDistribution", one_of(*distributions))(spec, "spec", out)


_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_SPEC = table(
    _kind_of_address,
    _ports,
    field("selector", labels),
    _affinity,
    cluster_ips,
    _external_ips,
    value("type", choice(*_TYPES)),
    _unique_ports,
)

# --- updates ----------------------------------------------------------------------------------------------------------


def _addresses_stay(new: Document, old: Document, out: Causes) -> None:
    spec, before = part(new, "spec"), part(old, "spec")
    if "ExternalName" in (spec.get("type"), before.get("type")) or (_is_headless(spec) and _is_headless(before)):
        return
    after, was = texts(spec, "clusterIPs"), texts(before, "clusterIPs")
    first, shown, changed = "spec.clusterIPs[0]", go_value(after or None), "may not change once set"
    if len(after) == len(was):
        for index, (text, old_text) in enumerate(zip(after, was, strict=True)):
            if text != old_text:
                out.append(invalid_value(f"spec.clusterIPs[{index}]", shown, changed))
        return
    if len(was) > len(after) and not after:
        out.append(invalid_value(first, shown, "primary clusterIP can not be unset"))
    if was and after and after[0] != was[0]:
        out.append(invalid_value(first, shown, changed))
    if len(was) > len(after) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        detail = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        out.append(invalid_value("spec.ipFamilyPolicy", go_value(spec.get("ipFamilyPolicy")), detail))


def _families_stay(new: Document, old: Document, out: Causes) -> None:
    spec, before = part(new, "spec"), part(old, "spec")
    if "ExternalName" in (spec.get("type"), before.get("type")) or _is_headless(spec) or _is_headless(before):
        return
    after, was = texts(spec, "ipFamilies"), texts(before, "ipFamilies")
    first, changed = "spec.ipFamilies[0]", "may not change once set"
    if len(after) == len(was):
        count = sum(family != old_family for family, old_family in zip(after, was, strict=True))
        out.extend([invalid_value(first, go_value(after), changed)] * count)
        return
    addresses = texts(spec, "clusterIPs")
    if len(was) > len(after) and not addresses:
        out.append(invalid_value(first, go_value(after or None), "primary ipFamily can not be unset"))
    if was and after and after[0] != was[0]:
        out.append(invalid_value(first, go_value(addresses), changed))
    if len(was) > len(after) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        detail = "must be set to 'SingleStack' when releasing the secondary ipFamily"
        out.append(invalid_value("spec.ipFamilyPolicy", go_value(spec.get("ipFamilyPolicy")), detail))


def _balancer_stays(new: Document, old: Document, out: Causes) -> None:
    spec, before = part(new, "spec"), part(old, "spec")
    name = spec.get("loadBalancerClass")
    if spec.get("type") == before.get("type") == "LoadBalancer" and name != before.get("loadBalancerClass"):
        out.append(invalid_value("spec.loadBalancerClass", go_value(name), "may not change once set"))
    _balancer_class(spec, out)
    ports = [each.get("healthCheckNodePort") or 0 for each in (spec, before)]
    if _needs_health_check(spec) and _needs_health_check(before) and ports[0] != ports[1]:
        out.append(forbidden_value("spec.healthCheckNodePort", "field is immutable"))


def balancer_status(new: Document, old: Document, out: Causes, *, with_modes: bool) -> None:
    """Check the addresses of a load balancer in a status, except unchanged IP addresses.

    Args:
        new, old: the objects.
        out: receives the errors.
        with_modes: whether the kind has IP modes, as Services do.
    """
    known = {str(each.get("ip")) for each in parts(part(old, "status", "loadBalancer"), "ingress")}
    for index, ingress in enumerate(parts(part(new, "status", "loadBalancer"), "ingress")):
        here, text = f"status.loadBalancer.ingress[{index}]", str(ingress.get("ip") or "")
        if text and text not in known:
            ip_address(text, f"{here}.ip", out)
        mode, name = ingress.get("ipMode"), str(ingress.get("hostname") or "")
        if with_modes:
            if mode is None and text:
                out.append(required(f"{here}.ipMode", "must be specified when `ip` is set"))
            elif mode is not None and not text:
                out.append(forbidden_value(f"{here}.ipMode", "may not be specified when `ip` is not set"))
            elif mode is not None:
                one_of("Proxy", "VIP")(mode, f"{here}.ipMode", out)
        if name:
            dns_subdomain(name, f"{here}.hostname", out)
            if parse_ip(name) is not None:
                out.append(invalid_value(f"{here}.hostname", quote(name), "must be a DNS name, not an IP address"))


def _service_status(new: Document, old: Document, out: Causes) -> None:
    ingress = parts(part(new, "status", "loadBalancer"), "ingress")
    if part(new, "spec").get("type") != "LoadBalancer" and ingress:
        detail = "may only be used when `spec.type` is 'LoadBalancer'"
        out.append(forbidden_value("status.loadBalancer.ingress", detail))
    else:
        balancer_status(new, old, out, with_modes=True)


SERVICE = kind(
    inside("spec", _SPEC),
    _source_ranges,
    inside("spec", _balancer, _traffic),
    before=[_addresses_stay, _families_stay, _balancer_stays],
    status=[_service_status],
)
KINDS = {"services": SERVICE}
