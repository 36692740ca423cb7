"""Validation rules of EndpointSlices."""

from __future__ import annotations

from bayplan.apiserver.model.errors import duplicate, invalid_value, required
from bayplan.apiserver.validation.engine import (
    Causes,
    Check,
    Rule,
    choice,
    field,
    go_value,
    if_filled,
    immutable,
    kind,
    need_set,
    one_of,
    optional,
    table,
    too_many,
    value,
)
from bayplan.apiserver.validation.formats import (
    dns_label,
    dns_subdomain,
    domain_name,
    endpoint_ip,
    ip_address,
    label_value,
    labels,
    parse_ip,
    qualified_name,
    strict_ip_address,
)
from bayplan.base.plain_data import Document, parts, texts
from bayplan.objects.selectors import quote

_MAX_ENDPOINTS, _MAX_ADDRESSES, _MAX_PORTS, _MAX_TOPOLOGY, _MAX_HINTS = 1000, 100, 20000, 16, 8


def _ip_of(version: int, check: Check) -> Check:
    def run(found: object, path: str, out: Causes) -> None:
        problems: Causes = []
        check(found, path, problems)
        out.extend(problems)
        address = parse_ip(str(found))
        if problems or address is None:
            return
        if address.version != version:
            whole = path.rpartition("[")[0]
            out.append(invalid_value(whole, quote(str(found)), f"must be an IPv{version} address"))
        endpoint_ip(found, path, out)

    return run


_ADDRESS = {"IPv4": _ip_of(4, ip_address), "IPv6": _ip_of(6, strict_ip_address), "FQDN": domain_name}


def _hints(name: str, check: Check) -> Rule:
    def run(document: Document, path: str, out: Causes) -> None:
        found = parts(document, name)
        if len(found) > _MAX_HINTS:
            out.append(too_many(f"{path}.{name}", len(found), _MAX_HINTS))
            return
        known: set[object] = set()
        for index, hint in enumerate(found):
            here, text = f"{path}.{name}[{index}].name", hint.get("name") or ""
            if text in known:
                out.append(duplicate(here, go_value(text)))
            known.add(text)
            check(text, here, out)

    return run


_ENDPOINT = table(
    field("nodeName", dns_subdomain),
    field("deprecatedTopology", labels),
    field("hostname", dns_label),
    optional("hints", _hints("forZones", label_value), _hints("forNodes", dns_subdomain)),
)


def _endpoints(document: Document, path: str, out: Causes) -> None:
    found = parts(document, "endpoints")
    if len(found) > _MAX_ENDPOINTS:
        out.append(too_many("endpoints", len(found), _MAX_ENDPOINTS))
        return
    check = _ADDRESS.get(str(document.get("addressType")))
    for index, endpoint in enumerate(found):
        here, addresses = f"endpoints[{index}]", texts(endpoint, "addresses")
        if not addresses:
            out.append(required(f"{here}.addresses", "must contain at least 1 address"))
        elif len(addresses) > _MAX_ADDRESSES:
            out.append(too_many(f"{here}.addresses", len(addresses), _MAX_ADDRESSES))
        for position, address in enumerate(addresses if check is not None else ()):
            assert check is not None
            check(address, f"{here}.addresses[{position}]", out)
        _ENDPOINT(endpoint, here, out)


_PORT = table(
    need_set("protocol"),
    field("protocol", one_of("SCTP", "TCP", "UDP")),
    field("appProtocol", qualified_name),
)


def _ports(document: Document, path: str, out: Causes) -> None:
    found = parts(document, "ports")
    if len(found) > _MAX_PORTS:
        out.append(too_many("ports", len(found), _MAX_PORTS))
        return
    known: set[object] = set()
    for index, port in enumerate(found):
        here, name = f"ports[{index}]", port.get("name") or ""
        if_filled(dns_label)(name, f"{here}.name", out)
        if name in known:
            out.append(duplicate(f"{here}.name", go_value(name)))
        known.add(name)
        _PORT(port, here, out)


_BEFORE_ENDPOINTS = table(value("addressType", choice("FQDN", "IPv4", "IPv6")), _ports)


def _endpoints_update(new: Document, old: Document, out: Causes) -> None:
    _BEFORE_ENDPOINTS(new, "", out)
    if new.get("endpoints") != old.get("endpoints"):
        _endpoints(new, "", out)


ENDPOINT_SLICE = kind(
    _BEFORE_ENDPOINTS,
    _endpoints,
    update=[_endpoints_update, immutable("addressType", zero="")],
    metadata=("object",),
)
KINDS = {"discovery.k8s.io/endpointslices": ENDPOINT_SLICE}
