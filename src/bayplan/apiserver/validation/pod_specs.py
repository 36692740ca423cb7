"""Validation rules of pod specs, for pods and the templates of all workloads."""

from __future__ import annotations

import re

from bayplan.apiserver.model.errors import Cause, duplicate, forbidden_value, invalid_value, required, too_long
from bayplan.apiserver.model.object_meta import check_annotations, check_labels
from bayplan.apiserver.schema.emptied import Emptied
from bayplan.apiserver.validation.affinity import AFFINITY, spread_constraints
from bayplan.apiserver.validation.containers import (
    PodContext,
    common_container,
    containers,
    image_padding,
    init_containers,
)
from bayplan.apiserver.validation.engine import (
    Causes,
    between,
    choice,
    each,
    field,
    go_value,
    if_filled,
    items,
    optional,
    table,
    value,
)
from bayplan.apiserver.validation.formats import amount_of, dns_label, dns_subdomain, ip_address, labels, qualified_name
from bayplan.apiserver.validation.internal_json import shown_as
from bayplan.apiserver.validation.operating_systems import operating_system
from bayplan.apiserver.validation.pod_annotations import pod_annotations, profile_annotations
from bayplan.apiserver.validation.pod_resources import pod_amounts
from bayplan.apiserver.validation.resources import container_resources, is_huge_page, pod_resources
from bayplan.apiserver.validation.security import host_users, pod_security, windows_host_process
from bayplan.apiserver.validation.tolerations import tolerations
from bayplan.apiserver.validation.volumes import pod_volumes
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.names import check_dns1123_subdomain
from bayplan.objects.selectors import quote

_INT32_MAX = 2**31 - 1
RESTART_POLICIES = ("Always", "OnFailure", "Never")
_SEARCH_FORMAT = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*"
_SEARCH = re.compile(_SEARCH_FORMAT)
_SEARCH_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start "
    f"and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SEARCH_FORMAT}')"
)


def _resource_claims(spec: Document, path: str, out: Causes) -> frozenset[str]:
    names: set[str] = set()
    for index, claim in enumerate(parts(spec, "resourceClaims")):
        here, name = f"{path}.resourceClaims[{index}]", str(claim.get("name") or "")
        if not name:
            out.append(required(f"{here}.name"))
        elif name in names:
            out.append(duplicate(f"{here}.name", quote(name)))
        else:
            dns_label(name, f"{here}.name", out)
            names.add(name)
        by_name, by_template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        shown = shown_as("core.PodResourceClaim")
        if by_name is not None and by_template is not None:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            out.append(invalid_value(here, shown(claim), detail))
        if by_name is None and by_template is None:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            out.append(invalid_value(here, shown(claim), detail))
        _CLAIM_NAMES(claim, here, out)
    return frozenset(names)


_CLAIM_NAMES = table(field("resourceClaimName", dns_subdomain), field("resourceClaimTemplateName", dns_subdomain))


def _pod_level_resources(spec: Document, path: str, claims: frozenset[str], out: Causes) -> None:
    found = spec.get("resources")
    if not isinstance(found, dict):
        return
    here = f"{path}.resources"
    if part(spec, "os").get("name") == "windows":
        out.append(forbidden_value(here, "may not be set for a windows pod"))
        return
    pod_resources(found, here, out, claims)
    limits = part(found, "limits")
    containers = pod_amounts({"spec": {name: spec.get(name) for name in ("containers", "initContainers")}})
    for kind in ("requests", "limits"):
        totals = containers.total(kind, overhead=False)
        for name, amount in sorted(part(found, kind).items()):
            total = totals.get(name)
            if total is not None and (kind == "requests" or is_huge_page(name)) and total > amount_of(str(amount)):
                detail = f"must be greater than or equal to aggregate container {kind} of {total}"
                out.append(invalid_value(f"{here}.{kind}[{name}]", quote(str(amount)), detail))
    for index, container in enumerate(parts(spec, "containers")):
        for name, amount in sorted(part(container, "resources", "limits").items()):
            if name in limits and amount_of(str(amount)) > amount_of(str(limits[name])):
                at = f"{here}.containers[{index}][{name}].limits"
                detail = f"must be less than or equal to pod limits of {limits[name]}"
                out.append(invalid_value(at, quote(str(amount)), detail))


def _host_network_ports(spec: Document, path: str, out: Causes, *, is_pod: bool) -> None:
    if not spec.get("hostNetwork"):
        return
    for index, container in enumerate(parts(spec, "containers")):
        for position, each_port in enumerate(parts(container, "ports")):
            of_host, own = each_port.get("hostPort") or 0, each_port.get("containerPort") or 0
            if (is_pod or of_host) and of_host != own:
                at = f"{path}.containers[{index}].ports[{position}].hostPort"
                detail = "must match `containerPort` when `hostNetwork` is true"
                out.append(invalid_value(at, go_value(of_host), detail))


def _search(found: object, path: str, out: Causes) -> None:
    text = str(found)
    if text == ".":
        return
    text = text.removesuffix(".")
    if len(text) > 253:
        out.append(invalid_value(path, quote(text), "must be no more than 253 characters"))
    if not _SEARCH.fullmatch(text):
        out.append(invalid_value(path, quote(text), _SEARCH_TEXT))


def _dns(spec: Document, path: str, out: Causes) -> None:
    config, here = spec.get("dnsConfig"), f"{path}.dnsConfig"
    servers = texts(part(spec, "dnsConfig"), "nameservers")
    if spec.get("dnsPolicy") == "None":
        if not isinstance(config, dict):
            out.append(required(here, "must provide `dnsConfig` when `dnsPolicy` is None"))
            return
        if not servers:
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            out.append(required(f"{here}.nameservers", detail))
            return
    if not isinstance(config, dict):
        return
    if len(servers) > 3:
        out.append(invalid_value(f"{here}.nameservers", go_value(servers), "must not have more than 3 nameservers"))
    items(ip_address)(servers, f"{here}.nameservers", out)
    searches, at = texts(config, "searches"), f"{here}.searches"
    if len(searches) > 32:
        out.append(invalid_value(at, go_value(searches), "must not have more than 32 search paths"))
    if len(" ".join(searches)) > 2048:
        detail = "must not have more than 2048 characters (including spaces) in the search list"
        out.append(invalid_value(at, go_value(searches), detail))
    items(_search)(searches, at, out)
    for index, option in enumerate(parts(config, "options")):
        if not option.get("name"):
            out.append(required(f"{here}.options[{index}]", "must not be empty"))


def _scheduling_gates(spec: Document, path: str, out: Causes) -> None:
    seen: set[str] = set()
    for index, gate in enumerate(parts(spec, "schedulingGates")):
        here, name = f"{path}.schedulingGates[{index}]", str(gate.get("name") or "")
        qualified_name(name, here, out)
        if name in seen:
            out.append(duplicate(here, quote(name)))
        seen.add(name)


def _host_name(spec: Document, path: str, out: Causes) -> None:
    found, here = spec.get("hostnameOverride"), f"{path}.hostnameOverride"
    if found is None:
        return
    for name in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(name):
            out.append(forbidden_value(here, f"may not be specified when {name} is true"))
    if len(str(found).encode()) > 64:
        out.append(too_long(here, 64))
    dns_subdomain(found, here, out)


def _scheduling_group(document: Document, path: str, out: Causes) -> None:
    if document.get("podGroupName") is None:
        out.append(invalid_value(f"{path}.podGroupName", "null", "must specify one of: `podGroupName`"))
    else:
        dns_subdomain(document["podGroupName"], f"{path}.podGroupName", out)


def _file_keys(spec: Document, path: str, out: Causes) -> None:
    sources = {each.get("name"): each for each in parts(spec, "volumes")}
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(parts(spec, kind)):
            for position, variable in enumerate(parts(container, "env")):
                reference = part(variable, "valueFrom").get("fileKeyRef")
                if not isinstance(reference, dict):
                    continue
                name = str(reference.get("volumeName") or "")
                at = f"{path}.{kind}[{index}].env[{position}].valueFrom.fileKeyRef.volumeName"
                if name not in sources:
                    out.append(Cause("FieldValueNotFound", f"Not found: {quote(name)}", at))
                elif "emptyDir" not in sources[name]:
                    out.append(invalid_value(at, quote(name), "referenced volume must be of type emptyDir"))


_POLICIES = table(
    value("restartPolicy", choice(*RESTART_POLICIES)),
    value("dnsPolicy", choice("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")),
    field("nodeSelector", labels),
)
_SCHEDULING = table(
    optional("affinity", AFFINITY), _dns, each("readinessGates", value("conditionType", qualified_name))
)
_NAMES = table(
    _host_name,
    field("serviceAccountName", if_filled(dns_subdomain)),
    field("nodeName", if_filled(dns_subdomain)),
    field("activeDeadlineSeconds", between(1, _INT32_MAX)),
    field("hostname", if_filled(dns_label)),
    field("subdomain", if_filled(dns_label)),
    tolerations,
    each("hostAliases", value("ip", ip_address), field("hostnames", items(dns_subdomain))),
    field("priorityClassName", if_filled(dns_subdomain)),
    field("runtimeClassName", dns_subdomain),
    field("preemptionPolicy", choice("PreemptLowerPriority", "Never")),
    lambda spec, path, out: (
        container_resources({"limits": spec["overhead"]}, f"{path}.overhead", out) if "overhead" in spec else None
    ),
    operating_system,
    optional("schedulingGroup", _scheduling_group),
    _file_keys,
)


def check_pod_spec(spec: Document, path: str, out: Causes, *, pod_name: str = "", is_pod: bool = False) -> None:
    """Check the spec of a pod or pod template.

    Args:
        spec: the spec, with defaults.
        path: the path of the spec.
        out: receives the errors.
        pod_name: the name of the pod; empty for a template.
        is_pod: whether the spec belongs to a pod, not to a template.
    """
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is None:
        out.append(required(f"{path}.terminationGracePeriodSeconds"))
    volumes = pod_volumes(spec, path, pod_name, out)
    claims = _resource_claims(spec, path, out)
    pod = PodContext(
        volumes,
        claims,
        grace if isinstance(grace, int) else None,
        str(spec.get("restartPolicy") or ""),
        spec.get("hostUsers") is not False,
        str(part(spec, "os").get("name") or "") if "os" in spec else None,
    )
    containers(spec, path, pod, out)
    init_containers(spec, path, pod, out)
    _ephemeral_containers(spec, path, pod, out)
    _pod_level_resources(spec, path, claims, out)
    _host_network_ports(spec, path, out, is_pod=is_pod)
    _POLICIES(spec, path, out)
    pod_security(spec, path, out)
    _SCHEDULING(spec, path, out)
    _scheduling_gates(spec, path, out)
    spread_constraints(spec, path, out)
    windows_host_process(spec, path, out)
    host_users(spec, path, out)
    _NAMES(spec, path, out)


_NOT_EPHEMERAL = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe", "readinessProbe",
    "startupProbe", "lifecycle",
)  # fmt: skip
"""Fields that ephemeral containers must not have, in the order of Go's struct."""


def _is_set(container: Document, name: str) -> bool:
    """Return whether a field is not Go's zero value: pointers, lists and maps count as set even if they are empty."""
    if isinstance(container, Emptied) and name in container.empties:
        return True
    value = container.get(name)
    return bool(value) or isinstance(value, Emptied) or (name != "resources" and value is not None)


def _ephemeral_containers(spec: Document, path: str, pod: PodContext, out: Causes) -> None:
    others = {str(each.get("name")) for name in ("containers", "initContainers") for each in parts(spec, name)}
    names, detail = set(others), "cannot be set for an Ephemeral Container"
    for index, container in enumerate(parts(spec, "ephemeralContainers")):
        here, name = f"{path}.ephemeralContainers[{index}]", str(container.get("name") or "")
        common_container(container, here, pod, out)
        image_padding(container, here, out)
        if name in names:
            out.append(duplicate(f"{here}.name", quote(name)))
        names.add(name)
        target = container.get("targetContainerName")
        if target and target not in others:
            out.append(Cause("FieldValueNotFound", f"Not found: {quote(str(target))}", f"{here}.targetContainerName"))
        out.extend(forbidden_value(f"{here}.{name}", detail) for name in _NOT_EPHEMERAL if _is_set(container, name))
        for number, mount in enumerate(parts(container, "volumeMounts")):
            for field_name in ("subPath", "subPathExpr"):
                if mount.get(field_name):
                    out.append(forbidden_value(f"{here}.volumeMounts[{number}].{field_name}", detail))


def pod_template(template: Document, path: str, out: Causes) -> None:
    """Check the pod template of a workload."""
    metadata, spec = part(template, "metadata"), part(template, "spec")
    out.extend(check_labels(part(metadata, "labels"), f"{path}.labels"))
    annotations = part(metadata, "annotations")
    out.extend(check_annotations(annotations, f"{path}.annotations"))
    pod_annotations(annotations, spec, f"{path}.annotations", out)
    check_pod_spec(spec, f"{path}.spec", out)
    profile_annotations(annotations, spec, f"{path}.spec", out)
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        out.append(forbidden_value(f"{path}.spec.ephemeralContainers", detail))


def check_node_name(spec: Document, path: str) -> list[Cause]:
    """Return the errors of `nodeName`."""
    name = str(spec.get("nodeName") or "")
    problems = check_dns1123_subdomain(name) if name else ()
    return [invalid_value(f"{path}.nodeName", quote(name), problem) for problem in problems]
