"""Validation rules of the status of a pod: conditions, container states, resource claims, addresses.

Source: k8s.io/kubernetes v1.36.3, pkg/apis/core/validation.
"""

from __future__ import annotations

from bayplan.apiserver.model.errors import (
    Cause,
    duplicate,
    forbidden_value,
    invalid_value,
    not_supported,
    required,
    too_long,
)
from bayplan.apiserver.model.object_meta import shown
from bayplan.apiserver.validation.engine import Causes, go_value
from bayplan.apiserver.validation.formats import ip_address, parse_ip
from bayplan.apiserver.validation.pod_annotations import pod_annotation_changes
from bayplan.base.plain_data import Document, part, parts
from bayplan.objects.names import check_dns1123_label, check_dns1123_subdomain, check_qualified_name
from bayplan.objects.selectors import quote

_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_HEALTH = ("Healthy", "Unhealthy", "Unknown")
_MAX_HEALTH_MESSAGE_BYTES, _MAX_ID = 1024, 2147483647
_MAX_IMAGE_REFERENCE_BYTES = 256
_LISTS = (
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", "ephemeralContainers"),
)
_RESTART_ALL = "RestartAllContainers"


def pod_status(new: Document, old: Document, out: Causes) -> None:
    """Check a status update of a pod."""
    annotations, annotations_before = (part(each, "metadata", "annotations") for each in (new, old))
    pod_annotation_changes(annotations, annotations_before, "metadata.annotations", out)
    status, before = part(new, "status"), part(old, "status")
    spec = part(old, "spec")
    _conditions(status, out)
    _nominated(status, before, spec, out)
    generation = status.get("observedGeneration")
    if isinstance(generation, int) and generation < 0:
        out.append(invalid_value("status.observedGeneration", str(generation), "must be a non-negative integer"))
    if (status.get("qosClass") or "") != (before.get("qosClass") or ""):
        out.append(invalid_value("status.qosClass", go_value(status.get("qosClass") or ""), "field is immutable"))
    for statuses, containers in _LISTS:
        _states(status, before, spec, statuses, containers, out)
    _claims(status, part(new, "spec"), out)
    _extended_claim(status, part(new, "spec"), out)
    _addresses(status, before, "podIPs", out)
    if parts(status, "hostIPs"):
        first = str(parts(status, "hostIPs")[0].get("ip") or "")
        if first != (status.get("hostIP") or ""):
            out.append(invalid_value("status.hostIPs[0].ip", quote(first), "must be equal to `hostIP`"))
        _addresses(status, before, "hostIPs", out)
    for statuses, _ in _LISTS:
        _users(status, statuses, part(spec, "os").get("name") or "linux", out)
    for statuses, containers in _LISTS:
        _allocated(status, part(new, "spec"), statuses, containers, out)
    for statuses, _ in _LISTS:
        _volumes(status, statuses, out)


def _conditions(status: Document, out: Causes) -> None:
    for index, condition in enumerate(parts(status, "conditions")):
        path, generation = f"status.conditions[{index}]", condition.get("observedGeneration")
        if isinstance(generation, int) and generation < 0:
            out.append(invalid_value(f"{path}.observedGeneration", str(generation), "must be a non-negative integer"))
        name = str(condition.get("type") or "")
        if name not in _SYSTEM_CONDITIONS:
            out.extend(invalid_value(f"{path}.Type", quote(name), each) for each in check_qualified_name(name))


def _nominated(status: Document, before: Document, spec: Document, out: Causes) -> None:
    name = str(status.get("nominatedNodeName") or "")
    if not name or name == before.get("nominatedNodeName"):
        return
    path = "status.nominatedNodeName"
    out.extend(invalid_value(path, quote(name), each) for each in check_dns1123_subdomain(name))
    if spec.get("nodeName"):
        out.append(forbidden_value(path, "may not be set on pods that are already bound to a node"))


# --- states of containers ---------------------------------------------------------------------------------------------


def _states(status: Document, before: Document, spec: Document, statuses: str, containers: str, out: Causes) -> None:
    """Report a terminated container that runs again, unless its restart policy allows that."""
    is_ephemeral = containers == "ephemeralContainers"
    if not is_ephemeral and _restarts_all(spec):
        return
    known = {each.get("name"): each for each in parts(spec, containers)}
    for index, was in enumerate(parts(before, statuses)):
        ended = part(was, "state").get("terminated")
        now = next((each for each in parts(status, statuses) if each.get("name") == was.get("name")), None)
        if not isinstance(ended, dict) or now is None or part(now, "state").get("terminated") is not None:
            continue
        container = known.get(was.get("name"))
        if is_ephemeral or container is None or not _restarts(container, spec, int(str(ended.get("exitCode") or 0))):
            path = f"status.{statuses}[{index}].state"
            out.append(forbidden_value(path, "may not be transitioned to non-terminated state"))


def _restarts_all(spec: Document) -> bool:
    containers = (*parts(spec, "initContainers"), *parts(spec, "containers"))
    rules = (rule for container in containers for rule in parts(container, "restartPolicyRules"))
    return any(rule.get("action") == _RESTART_ALL for rule in rules)


def _restarts(container: Document, spec: Document, exit_code: int) -> bool:
    policy = container.get("restartPolicy")
    if policy is not None:
        for rule in parts(container, "restartPolicyRules"):
            wanted = part(rule, "exitCodes")
            values = wanted.get("values")
            matches = exit_code in (values if isinstance(values, list) else [])
            if matches == (wanted.get("operator") == "In"):
                if rule.get("action") in ("Restart", _RESTART_ALL):
                    return True
                break
    policy = policy or spec.get("restartPolicy") or "Always"
    return exit_code != 0 if policy == "OnFailure" else policy != "Never"


# --- claims and addresses ---------------------------------------------------------------------------------------------


def _claims(status: Document, spec: Document, out: Causes) -> None:
    known = [each.get("name") for each in parts(spec, "resourceClaims")]
    seen: set[object] = set()
    for index, claim in enumerate(parts(status, "resourceClaimStatuses")):
        path, name = f"status.resourceClaimStatuses[{index}]", str(claim.get("name") or "")
        if name not in known:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            out.append(invalid_value(f"{path}.name", quote(name), detail))
        if name in seen:
            out.append(duplicate(f"{path}.name", quote(name)))
        seen.add(name)
        given = claim.get("resourceClaimName")
        if given is not None:
            problems = check_dns1123_subdomain(str(given))
            out.extend(invalid_value(f"{path}.resourceClaimName", quote(str(given)), each) for each in problems)


def _extended_claim(status: Document, spec: Document, out: Causes) -> None:
    claim, path = status.get("extendedResourceClaimStatus"), "status.extendedResourceClaimStatus"
    if not isinstance(claim, dict):
        return
    if not parts(claim, "requestMappings"):
        out.append(required(f"{path}.requestMappings", "at least one request mapping is required"))
    known = {each.get("name"): each for each in (*parts(spec, "initContainers"), *parts(spec, "containers"))}
    fields = ("containerName", "resourceName", "requestName")
    seen: set[tuple[str, ...]] = set()
    for index, mapping in enumerate(parts(claim, "requestMappings")):
        here = f"{path}.requestMappings[{index}]"
        container, resource, request = key = tuple(str(mapping.get(name) or "") for name in fields)
        if container not in known:
            detail = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            out.append(invalid_value(f"{here}.containerName", quote(container), detail))
        elif resource not in part(known[container], "resources", "requests"):
            detail = "must match the extended resource name of an entry in spec.initContainers.resources.requests "
            detail += "or spec.containers.resources.requests"
            out.append(invalid_value(f"{here}.resourceName", quote(resource), detail))
        problems = check_dns1123_label(request)
        out.extend(invalid_value(f"{path}.requestName", quote(request), each) for each in problems)
        if key in seen:
            out.extend(duplicate(f"{here}.{name}", quote(text)) for name, text in zip(fields, key, strict=True))
        seen.add(key)
    name = str(claim.get("resourceClaimName") or "")
    if not name:
        out.append(required(f"{path}.resourceClaimName"))
    else:
        problems = check_dns1123_subdomain(name)
        out.extend(invalid_value(f"{path}.resourceClaimName", quote(name), each) for each in problems)


def _addresses(status: Document, before: Document, name: str, out: Causes) -> None:
    """Check that there is at most one address of each family, and that new addresses have the stricter format."""
    known = {each.get("ip") for each in parts(before, name)}
    found = [str(each.get("ip") or "") for each in parts(status, name)]
    for index, text in enumerate(found):
        if text not in known:
            ip_address(text, f"status.{name}[{index}]", out)
    if len(found) < 2:
        return
    parsed = [parse_ip(text) for text in found]
    bad = next((index for index, address in enumerate(parsed) if address is None), None)
    if bad is not None:
        why = f"failed to check for dual stack with error:invalid IP[{bad}]: {found[bad]}"
        out.append(Cause("InternalError", f"Internal error: {why}", f"status.{name}"))
    families = {address.version for address in parsed if address is not None}
    if bad is not None or len(families) < 2 or len(found) > 2:
        texts = shown([{"IP": text} for text in found])
        out.append(invalid_value(f"status.{name}", texts, "may specify no more than one IP for each IP family"))


# --- containers as kubelets report them -------------------------------------------------------------------------------


def _users(status: Document, statuses: str, system: object, out: Causes) -> None:
    for index, container in enumerate(parts(status, statuses)):
        user = part(container, "user").get("linux")
        path = f"status.{statuses}[{index}].user.linux"
        if not isinstance(user, dict):
            continue
        if system == "windows":
            out.append(forbidden_value(path, "cannot be set for a windows pod"))
            continue
        groups = user.get("supplementalGroups")
        ids = [("uid", user.get("uid") or 0), ("gid", user.get("gid") or 0)]
        ids += [
            (f"supplementalGroups[{at}]", each) for at, each in enumerate(groups if isinstance(groups, list) else [])
        ]
        for name, number in ids:
            if isinstance(number, int) and not 0 <= number <= _MAX_ID:
                out.append(invalid_value(f"{path}.{name}", str(number), f"must be between 0 and {_MAX_ID}, inclusive"))


def _allocated(status: Document, spec: Document, statuses: str, containers: str, out: Causes) -> None:
    known = {each.get("name"): each for each in parts(spec, containers)}
    for index, container in enumerate(parts(status, statuses)):
        path = f"status.{statuses}[{index}].allocatedResourcesStatus"
        if containers == "ephemeralContainers":
            if container.get("allocatedResourcesStatus"):
                out.append(forbidden_value(path, "must not be specified in container status"))
            continue
        for number, allocated in enumerate(parts(container, "allocatedResourcesStatus")):
            here, owner = f"{path}[{number}]", known.get(container.get("name"))
            if owner is not None:
                _allocated_name(str(allocated.get("name") or ""), owner, f"{here}.name", out)
            _health(allocated, here, out)


def _allocated_name(name: str, container: Document, path: str, out: Causes) -> None:
    if name.startswith("claim:"):
        claims = parts(part(container, "resources"), "claims")
        known = ["claim:" + "/".join(str(each[key]) for key in ("name", "request") if each.get(key)) for each in claims]
        detail = "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or "
        detail += "'claim:<claimName>' if request is empty"
    else:
        known = list(part(container, "resources", "requests"))
        detail = "must match one of the container's resource requests"
    if name not in known:
        out.append(invalid_value(path, quote(name), detail))


def _health(allocated: Document, path: str, out: Causes) -> None:
    seen: set[str] = set()
    for index, resource in enumerate(parts(allocated, "resources")):
        here = f"{path}.resources[{index}]"
        health, message = str(resource.get("health") or ""), resource.get("message")
        if health not in _HEALTH:
            out.append(not_supported(f"{here}.health", quote(health), _HEALTH))
        if message is not None and not message:
            out.append(required(f"{here}.message", "must be non-empty if specified"))
        elif message is not None and len(str(message).encode()) > _MAX_HEALTH_MESSAGE_BYTES:
            out.append(too_long(f"{here}.message", _MAX_HEALTH_MESSAGE_BYTES))
        name = str(resource.get("resourceID") or "")
        if name in seen:
            out.append(duplicate(f"{here}.resourceID", quote(name)))
        seen.add(name)


def _volumes(status: Document, statuses: str, out: Causes) -> None:
    for index, container in enumerate(parts(status, statuses)):
        for number, mount in enumerate(parts(container, "volumeMounts")):
            image = part(mount, "volumeStatus").get("image")
            if not isinstance(image, dict):
                continue
            path = f"status.{statuses}[{index}].volumeMounts[{number}].volumeStatus.imageVolumeStatus.imageRef"
            reference = str(image.get("imageRef") or "")
            if not reference:
                out.append(required(path, "imageRef must not be empty"))
            if len(reference.encode()) > _MAX_IMAGE_REFERENCE_BYTES:
                out.append(too_long(path, _MAX_IMAGE_REFERENCE_BYTES))
