"""Allocation for Services: cluster IPs, IP families and node ports. The cluster has a single range of IPv4 addresses.

A write first keeps earlier allocations, then allocates what is missing. If it requests an address or port that is in
use or out of range, it is rejected. A dry run allocates nothing: it shows the first address of the range, and
consecutive ports.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from bayplan.apiserver.kinds.strategy import Context, copy_part
from bayplan.apiserver.model.errors import Cause, internal, invalid, invalid_value
from bayplan.apiserver.model.object_meta import shown
from bayplan.apiserver.validation.services import cluster_ips
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.selectors import quote

SERVICE_NETWORK = ipaddress.IPv4Network("10.96.0.0/16")
FIRST_NODE_PORT, LAST_NODE_PORT = 30000, 32767
_DRY_RUN_PORT = 32768
_WITH_PORTS = ("NodePort", "LoadBalancer")
_NAMELESS = 'IPAddress.networking.k8s.io "{}" is invalid: spec.parentRef.name: Required value'
"""The error about the IPAddress of a Service without a name."""
_ALLOCATED = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def allocate(context: Context, service: Document, before: Document | None) -> None:
    """Allocate the missing addresses and node ports of a Service, in place.

    Args:
        context: the context of the write.
        service: the admitted Service.
        before: the current Service, None for a create.

    Raises:
        ApiError: a requested address, IP family or port is not available.
    """
    spec = part(service, "spec")
    old = part(before, "spec") if before is not None else {}
    if before is not None:
        _keep_allocated(spec, old)
    _normalize_addresses(spec, old)
    name = str(part(service, "metadata").get("name") or "")
    if spec.get("type") != "ExternalName":
        loose: list[Cause] = []
        cluster_ips(spec, "spec", loose)
        _reject(name, loose)
        _reject(name, _set_families(spec, old))
        _reject(name, _allocate_address(context, spec, old, name))
    if spec.get("type") in _WITH_PORTS:
        _reject(name, _allocate_ports(context, spec, old))


def drop_unused(spec: Document, old: Document) -> None:
    """Drop fields that the new type of a Service does not use, unless the client changed them."""
    if old.get("type") != "ExternalName" and spec.get("type") == "ExternalName":
        same = all(spec.get(name) == old.get(name) for name in ("clusterIP", "clusterIPs"))
        for name in _ALLOCATED:
            if same if name in ("clusterIP", "clusterIPs") else spec.get(name) == old.get(name):
                spec.pop(name, None)
    had, has = (each.get("type") in _WITH_PORTS for each in (old, spec))
    if had and not has and _node_ports(spec) <= _node_ports(old):
        for port in parts(spec, "ports"):
            port.pop("nodePort", None)
    if _needs_health_check(old) and not _needs_health_check(spec):
        _drop_same(spec, old, "healthCheckNodePort")
    if old.get("type") == "LoadBalancer" and spec.get("type") != "LoadBalancer":
        _drop_same(spec, old, "allocateLoadBalancerNodePorts")
        _drop_same(spec, old, "loadBalancerClass")
    if _is_external(old) and not _is_external(spec):
        _drop_same(spec, old, "externalTrafficPolicy")


def _drop_same(spec: Document, old: Document, name: str) -> None:
    if spec.get(name) == old.get(name):
        spec.pop(name, None)


def _is_external(spec: Document) -> bool:
    return spec.get("type") in _WITH_PORTS or (spec.get("type") == "ClusterIP" and bool(texts(spec, "externalIPs")))


def _needs_health_check(spec: Document) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _node_ports(spec: Document) -> set[object]:
    return {port["nodePort"] for port in parts(spec, "ports") if port.get("nodePort")}


def _reject(name: str, causes: list[Cause]) -> None:
    if causes:
        raise invalid("Service", "", name, causes)


def _keep_allocated(spec: Document, old: Document) -> None:
    """Copy the addresses and ports that the client omitted from the current Service."""
    if "ExternalName" not in (spec.get("type"), old.get("type")):
        if not spec.get("clusterIP"):
            copy_part(spec, old, "clusterIP")
        if not texts(spec, "clusterIPs"):
            copy_part(spec, old, "clusterIPs")
    if _allocates_ports(old) and _allocates_ports(spec):
        used = _node_ports(old) & _node_ports(spec)
        known = {port.get("name"): port.get("nodePort") for port in parts(old, "ports")}
        for port in parts(spec, "ports"):
            given = known.get(port.get("name"))
            if not port.get("nodePort") and given and given not in used:
                port["nodePort"] = given
    if _needs_health_check(old) and _needs_health_check(spec) and not spec.get("healthCheckNodePort"):
        copy_part(spec, old, "healthCheckNodePort")


def _normalize_addresses(spec: Document, old: Document) -> None:
    """Make `clusterIP` and the first of `clusterIPs` agree; the field that the client changed wins."""
    address, addresses = spec.get("clusterIP") or "", texts(spec, "clusterIPs")
    if not old:
        if address and not addresses:
            spec["clusterIPs"] = [address]
        return
    if address == (old.get("clusterIP") or ""):
        if not addresses:
            copy_part(spec, old, "clusterIPs")
    elif addresses == texts(old, "clusterIPs"):
        if address:
            spec["clusterIPs"] = [address]
        else:
            spec.pop("clusterIPs", None)


def _set_families(spec: Document, old: Document) -> list[Cause]:
    """Set the family policy and the IP families, and return the errors: the cluster has only IPv4."""
    headless = spec.get("clusterIP") == "None" and not part(spec, "selector")
    if not spec.get("ipFamilyPolicy"):
        spec["ipFamilyPolicy"] = old.get("ipFamilyPolicy") or ("RequireDualStack" if headless else "SingleStack")
    policy, addresses = spec["ipFamilyPolicy"], texts(spec, "clusterIPs")
    if old and policy == "SingleStack":
        for name in ("clusterIPs", "ipFamilies"):
            if spec.get(name) and spec.get(name) == old.get(name):
                spec[name] = texts(spec, name)[:1]
    families = spec["ipFamilies"] = list(texts(spec, "ipFamilies"))
    causes = []
    if policy == "SingleStack":
        text = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"
        for name, what in (("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")):
            if len(texts(spec, name)) == 2:
                causes.append(invalid_value("spec.ipFamilyPolicy", quote(str(policy)), text.format(what)))
    for index, address in enumerate(addresses):
        if address == "None":
            break
        if index >= len(families):
            if ":" in address:
                text = "IPv6 is not configured on this cluster"
                causes.append(invalid_value(f"spec.clusterIPs[{index}]", shown(addresses), text))
            else:
                families.append("IPv4")
    if causes:
        return causes
    if headless:
        families[:] = families or ["IPv4"]
        if len(families) < 2 and policy != "SingleStack":
            families.append("IPv6" if families[0] == "IPv4" else "IPv4")
        return []
    if policy == "RequireDualStack":
        text = "this cluster is not configured for dual-stack services"
        causes.append(invalid_value("spec.ipFamilyPolicy", quote(str(policy)), text))
    for index, family in enumerate(families):
        if family != "IPv4":
            where = f"spec.ipFamilies[{index}]"
            causes.append(invalid_value(where, quote(family), "not configured on this cluster"))
    families[:] = families or ["IPv4"]
    return causes


def _allocate_address(context: Context, spec: Document, old: Document, name: str) -> list[Cause]:
    addresses = texts(spec, "clusterIPs")
    if addresses and addresses[0] == "None":
        return []
    wanted = addresses[0] if addresses else ""
    if (old and old.get("type") != "ExternalName") or (wanted and context.imported):
        return []
    if not wanted:
        free = str(SERVICE_NETWORK[0]) if context.dry_run else context.cluster.allocate_address()
        if not name and not context.dry_run:
            return [invalid_value("spec.clusterIPs", '[""]', f"failed to allocate IP: {_NAMELESS.format(free)}")]
        spec["clusterIP"], spec["clusterIPs"] = free, [free]
        return []
    problem = _address_problem(context, wanted, name)
    return [invalid_value("spec.clusterIPs", shown(addresses), f"failed to allocate IP {problem}")] if problem else []


def _address_problem(context: Context, wanted: str, name: str) -> str:
    try:
        address = ipaddress.ip_address(wanted)
    except ValueError:
        return ""  # Validation rejects the malformed address.
    if address in SERVICE_NETWORK and address not in (SERVICE_NETWORK[0], SERVICE_NETWORK[-1]):
        if not name and not context.dry_run:
            return f"{wanted}: {_NAMELESS.format(wanted)}"
        taken = not context.dry_run and wanted in context.cluster.addresses_in_use()
        return f"{wanted}: provided IP is already allocated" if taken else ""
    if not context.dry_run:
        return f"{wanted}: the provided network does not match the current range"
    return (
        f"{wanted}: the provided IP ({wanted}) is not in the valid range. The range of valid IPs is {SERVICE_NETWORK}"
    )


def _allocates_ports(spec: Document) -> bool:
    return spec.get("type") == "NodePort" or (
        spec.get("type") == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False
    )


def _allocate_ports(context: Context, spec: Document, old: Document) -> list[Cause]:
    """Allocate node ports, and return the errors.

    In a new Service, ports with the same number and different protocols share a node port.
    """
    operation = _PortOperation(context)
    kept = _node_ports(old) if old.get("type") in _WITH_PORTS else set()
    by_port: dict[object, int] = {}
    pairs: set[tuple[object, int]] = set()
    ports = parts(spec, "ports")
    for index, port in enumerate(ports):
        wanted = port.get("nodePort") or 0
        if not wanted and not _allocates_ports(spec):
            continue
        if not old:
            shared = by_port.get(port.get("port"), 0)
            if not wanted and not shared:
                wanted = _requested(ports, port.get("port"))
            elif not wanted:
                wanted = shared
            if wanted and wanted == shared:
                port["nodePort"] = wanted
                continue
        assert isinstance(wanted, int)
        if not wanted:
            wanted = operation.allocate_next()
        elif wanted not in kept and not (old and wanted in operation.allocated):
            problem = operation.allocate(wanted)
            if problem:
                return [invalid_value(f"spec.ports[{index}].nodePort", str(wanted), problem)]
        if old:
            pair = (port.get("protocol"), wanted)
            if pair in pairs:
                raise internal(f"duplicate nodePort: {{{pair[0]} {pair[1]}}}")
            pairs.add(pair)
        port["nodePort"] = by_port[port.get("port")] = wanted
    if _needs_health_check(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = operation.allocate_next()
    return []


def _requested(ports: Iterable[Document], number: object) -> int:
    """Return the node port that is requested for a port number of the Service; 0 if there is none."""
    for port in ports:
        wanted = port.get("nodePort")
        if port.get("port") == number and isinstance(wanted, int) and wanted:
            return wanted
    return 0


class _PortOperation:
    """The node ports that one write allocates.

    Attributes:
        allocated: the ports so far.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self.allocated: list[int] = []

    def allocate(self, port: int) -> str:
        """Allocate the requested port. Return the error, or an empty string."""
        if not self._context.imported:
            if not self._context.dry_run and not FIRST_NODE_PORT <= port <= LAST_NODE_PORT:
                valid = f"{FIRST_NODE_PORT}-{LAST_NODE_PORT}"
                return f"provided port is not in the valid range. The range of valid ports is {valid}"
            if port in self.allocated or port in self._context.cluster.node_ports_in_use():
                return "provided port is already allocated"
        self.allocated.append(port)
        return ""

    def allocate_next(self) -> int:
        """Allocate and return a free port."""
        if self._context.dry_run:
            port = max((*self.allocated, 0)) + 1 if self.allocated else _DRY_RUN_PORT + 1
        else:
            port = self._context.cluster.allocate_node_port(self.allocated)
        self.allocated.append(port)
        return port
