"""Validation rules of networking.k8s.io: Ingress, IngressClass, NetworkPolicy, IPAddress and ServiceCIDR."""

from __future__ import annotations

from bayplan.apiserver.model.errors import invalid_value, not_supported, required
from bayplan.apiserver.validation.engine import (
    Causes,
    changed_metadata,
    each,
    field,
    forbidden_if,
    go_value,
    if_filled,
    immutable,
    inside,
    invalid_if,
    items,
    kind,
    max_bytes,
    named,
    need,
    need_set,
    one_of,
    optional,
    required_if,
    sent,
    table,
    value,
    when,
)
from bayplan.apiserver.validation.formats import (
    check_wildcard_subdomain,
    cidr,
    dns_label,
    dns_subdomain,
    domain_prefixed_path,
    parse_cidr,
    parse_ip,
    path_segment,
    port,
    port_name,
    port_or_name,
    strict_cidr,
)
from bayplan.apiserver.validation.internal_json import shown_as
from bayplan.apiserver.validation.selectors import LABEL_SELECTOR
from bayplan.apiserver.validation.services import balancer_status
from bayplan.base.plain_data import Document, part, texts
from bayplan.objects.selectors import quote

_CLASS_ANNOTATION = "kubernetes.io/ingress.class"

# --- Ingress ----------------------------------------------------------------------------------------------------------

_wildcard_subdomain = named(check_wildcard_subdomain)


def _host(found: object, path: str, out: Causes) -> None:
    (_wildcard_subdomain if "*" in str(found) else dns_subdomain)(found, path, out)


def _rule_host(found: object, path: str, out: Causes) -> None:
    if parse_ip(str(found)) is not None:
        out.append(invalid_value(path, quote(str(found)), "must be a DNS name, not an IP address"))
    _host(found, path, out)


def _path(document: Document, path: str, out: Causes) -> None:
    kind_of_path, text = document.get("pathType"), str(document.get("path") or "")
    here = f"{path}.path"
    if kind_of_path in ("Exact", "Prefix"):
        if not text.startswith("/"):
            out.append(invalid_value(here, quote(text), "must be an absolute path"))
        for sequence in ("//", "/./", "/../", "%2f", "%2F"):
            if sequence in text:
                out.append(invalid_value(here, quote(text), f"must not contain '{sequence}'"))
        for suffix in ("/..", "/."):
            if text.endswith(suffix):
                out.append(invalid_value(here, quote(text), f"cannot end with '{suffix}'"))
    elif kind_of_path == "ImplementationSpecific":
        if text and not text.startswith("/"):
            out.append(invalid_value(here, quote(text), "must be an absolute path"))
    else:
        supported = ("Exact", "ImplementationSpecific", "Prefix")
        out.append(not_supported(f"{path}.pathType", quote(str(kind_of_path)), supported))


REFERENCE = table(
    field("apiGroup", dns_subdomain),
    need("kind", path_segment),
    need("name", path_segment),
)


def _service_port(document: Document, path: str, out: Causes) -> None:
    found = part(document, "service", "port")
    name, number = found.get("name"), found.get("number")
    if name and number:
        out.append(invalid_value(path, '""', "cannot set both port name & port number"))
    elif name:
        port_name(name, f"{path}.service.port.name", out)
    elif number:
        port(number, f"{path}.service.port.number", out)
    else:
        out.append(required(path, "port name or number is required"))


def _backend(document: Document, path: str, out: Causes) -> None:
    resource, service = document.get("resource") is not None, document.get("service") is not None
    if resource and service:
        out.append(invalid_value(path, '""', "cannot set both resource and service backends"))
    elif resource:
        optional("resource", REFERENCE)(document, path, out)
    elif service:
        _SERVICE_BACKEND(document, path, out)
    else:
        out.append(invalid_value(path, '""', "resource or service backend is required"))


_SERVICE_BACKEND = table(inside("service", need("name", dns_label)), _service_port)
_HTTP_PATH = when(
    lambda path: path.get("pathType") is None,
    need_set("pathType", "pathType must be specified"),
    otherwise=(_path, inside("backend", _backend)),
)
_INGRESS_SPEC = table(
    invalid_if(
        lambda spec: not spec.get("rules") and spec.get("defaultBackend") is None,
        "",
        "either `defaultBackend` or `rules` must be specified",
        show="rules",
    ),
    optional("defaultBackend", _backend),
    each(
        "rules",
        value("host", if_filled(_rule_host)),
        optional("http", need("paths"), each("paths", _HTTP_PATH)),
    ),
    each("tls", field("hosts", items(_host)), value("secretName", if_filled(dns_subdomain))),
    field("ingressClassName", dns_subdomain),
)


def _class_annotation(document: Document, path: str, out: Causes) -> None:
    annotation = part(document, "metadata", "annotations").get(_CLASS_ANNOTATION)
    name = part(document, "spec").get("ingressClassName")
    if annotation is not None and name is not None and annotation != name:
        where = f"annotations.{_CLASS_ANNOTATION}"
        detail = "must match `ingressClassName` when both are specified"
        out.append(invalid_value(where, go_value(annotation), detail))


def _ingress_update(new: Document, old: Document, out: Causes) -> None:
    inside("spec", _INGRESS_SPEC)(new, "", out)


INGRESS = kind(
    inside("spec", _INGRESS_SPEC),
    _class_annotation,
    update=[_ingress_update],
    status=[lambda new, old, out: balancer_status(new, old, out, with_modes=False)],
    metadata=("change", "object"),
)

# --- IngressClass -----------------------------------------------------------------------------------------------------

_SCOPES = ("Cluster", "Namespace")
_PARAMETERS = table(
    field("apiGroup", dns_subdomain),
    need("kind", path_segment),
    need("name", path_segment),
    when(
        lambda found: found.get("scope") is None,
        need_set("scope"),
        otherwise=(
            field("scope", one_of(*_SCOPES)),
            when(
                lambda found: found.get("scope") == "Namespace",
                need_set("namespace", "`parameters.scope` is set to 'Namespace'"),
                field("namespace", dns_label),
            ),
            forbidden_if(
                lambda found: found.get("scope") == "Cluster" and found.get("namespace") is not None,
                "namespace",
                "`parameters.scope` is set to 'Cluster'",
            ),
        ),
    ),
)
INGRESS_CLASS = kind(
    inside(
        "spec",
        value("controller", max_bytes(250), domain_prefixed_path),
        optional("parameters", _PARAMETERS),
    ),
    before=[immutable("spec.controller", zero="")],
    metadata=("change", "object"),
)

# --- NetworkPolicy ----------------------------------------------------------------------------------------------------

_POLICY_PORT = table(
    field("protocol", one_of("TCP", "UDP", "SCTP")),
    when(
        lambda found: isinstance(found.get("port"), int),
        field("port", port),
        invalid_if(
            lambda found: (
                isinstance(found.get("endPort"), int) and int(str(found["endPort"])) < int(str(found["port"]))
            ),
            "endPort",
            "must be greater than or equal to `port`",
            show="port",
        ),
        field("endPort", port),
        otherwise=(
            invalid_if(
                lambda found: found.get("endPort") is not None and found.get("port") is not None,
                "endPort",
                "may not be specified when `port` is non-numeric",
            ),
            field("port", port_or_name),
            invalid_if(
                lambda found: found.get("endPort") is not None and found.get("port") is None,
                "endPort",
                "may not be specified when `port` is not specified",
            ),
        ),
    ),
)


def _except(document: Document, path: str, out: Causes) -> None:
    outer = parse_cidr(str(document.get("cidr")))
    if outer is None:
        return
    for index, text in enumerate(texts(document, "except")):
        here = f"{path}.except[{index}]"
        cidr(text, here, out)
        inner = parse_cidr(text)
        if inner is None:
            continue
        inside_outer = inner.version == outer.version and inner.network_address in outer
        if not inside_outer or outer.prefixlen >= inner.prefixlen:
            out.append(invalid_value(here, quote(text), "must be a strict subset of `cidr`"))


def _has_peer(peer: Document) -> bool:
    return any(peer.get(name) is not None for name in ("podSelector", "namespaceSelector", "ipBlock"))


_PEER = table(
    optional("podSelector", LABEL_SELECTOR),
    optional("namespaceSelector", LABEL_SELECTOR),
    optional("ipBlock", need("cidr", cidr), when(lambda block: bool(block.get("cidr")), _except)),
    required_if(lambda peer: not _has_peer(peer), "", "must specify a peer"),
    forbidden_if(
        lambda peer: (
            peer.get("ipBlock") is not None
            and (peer.get("podSelector") is not None or peer.get("namespaceSelector") is not None)
        ),
        "",
        "may not specify both ipBlock and another peer",
    ),
)


def _policy_types(found: object, path: str, out: Causes) -> None:
    types = found if isinstance(found, list) else []
    if len(types) > 2:
        out.append(invalid_value(path, go_value(types), "may not specify more than two policyTypes"))
        return
    items(one_of("Ingress", "Egress"))(found, path, out)


NETWORK_POLICY = kind(
    inside(
        "spec",
        inside("podSelector", LABEL_SELECTOR),
        each("ingress", each("ports", _POLICY_PORT), each("from", _PEER)),
        each("egress", each("ports", _POLICY_PORT), each("to", _PEER)),
        field("policyTypes", _policy_types),
    )
)

# --- IPAddress and ServiceCIDR ----------------------------------------------------------------------------------------

_PARENT = table(
    value("group", if_filled(dns_subdomain)),
    need("resource", path_segment),
    need("name", path_segment),
    value("namespace", if_filled(path_segment)),
)
IP_ADDRESS = kind(
    inside("spec", need_set("parentRef"), optional("parentRef", _PARENT)),
    after=[changed_metadata(), immutable("spec.parentRef", show=shown_as("*networking.ParentReference"))],
    metadata=("object",),
)


def _cidrs(document: Document, path: str, out: Causes) -> None:
    found = texts(document, "cidrs")
    here = f"{path}.cidrs"
    if not found:
        out.append(required(here, "at least one CIDR required"))
    elif len(found) > 2:
        out.append(invalid_value(here, go_value({"CIDRs": found}), "may only hold up to 2 values"))
    else:
        items(strict_cidr)(found, here, out)
        families = [network.version for network in map(parse_cidr, found) if network is not None]
        if len(families) == 2 and families[0] == families[1]:
            detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
            out.append(invalid_value(here, go_value(found), detail))


def _cidr_update(new: Document, old: Document, out: Causes) -> None:
    after, before = texts(part(new, "spec"), "cidrs"), texts(part(old, "spec"), "cidrs")
    immutable_text = "field is immutable"
    if len(after) == len(before) or (len(before), len(after)) == (1, 2):
        for index, (text, was) in enumerate(zip(after, before, strict=False)):
            if text != was:
                out.append(invalid_value(f"spec.cidrs[{index}]", quote(text), immutable_text))
        if len(after) != len(before):
            _cidrs(part(new, "spec"), "spec", out)
    else:
        out.append(invalid_value("spec.cidrs", go_value(sent(part(new, "spec"), "cidrs")), immutable_text))


SERVICE_CIDR = kind(inside("spec", _cidrs), update=[_cidr_update])
KINDS = {
    "networking.k8s.io/ingresses": INGRESS,
    "networking.k8s.io/ingressclasses": INGRESS_CLASS,
    "networking.k8s.io/networkpolicies": NETWORK_POLICY,
    "networking.k8s.io/ipaddresses": IP_ADDRESS,
    "networking.k8s.io/servicecidrs": SERVICE_CIDR,
}
