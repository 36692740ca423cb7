"""Validation rules of containers: ports, environment, mounts, probes, hooks, restart rules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from dataclasses import field as data_field

from bayplan.apiserver.model.errors import Cause, duplicate, forbidden_value, invalid_value, not_supported, required
from bayplan.apiserver.validation.downward import ENV_FIELDS, container_resource, object_field
from bayplan.apiserver.validation.engine import (
    Causes,
    Rule,
    at_least,
    choice,
    field,
    go_value,
    need,
    number,
    one_of,
    table,
    too_many,
    value,
)
from bayplan.apiserver.validation.formats import (
    check_port_name,
    config_key,
    dns_label,
    dns_subdomain,
    env_name,
    nonnegative,
    port,
    port_or_name,
)
from bayplan.apiserver.validation.paths import descending_path, no_backsteps
from bayplan.apiserver.validation.resources import container_resources
from bayplan.apiserver.validation.security import container_security
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.selectors import quote

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_ONE_SOURCE = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
_SEVERAL_SOURCES = "may not have more than one field specified at a time"
_HEADER = re.compile("[-A-Za-z0-9]+")
_SIGNALS = ("SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT", "SIGIO",
    "SIGIOT", "SIGKILL", "SIGPIPE", "SIGPOLL", "SIGPROF", "SIGPWR", "SIGQUIT", "SIGRTMAX",
    *sorted(f"SIGRTMAX-{number}" for number in range(1, 15)), "SIGRTMIN",
    *sorted(f"SIGRTMIN+{number}" for number in range(1, 16)), "SIGSEGV", "SIGSTKFLT", "SIGSTOP", "SIGSYS", "SIGTERM",
    "SIGTRAP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGWINCH", "SIGXCPU",
    "SIGXFSZ")  # fmt: skip


@dataclass(slots=True)
class PodContext:
    """The parts of a pod's spec on which rules about its containers depend.

    Attributes:
        volumes: the valid volumes by name.
        claims: the names of the resource claims.
        grace: the termination grace period in seconds; None if not set.
        restart_policy: the restart policy of the pod.
        host_users: whether the pod uses the host's user namespace.
        os_name: the operating system; None if not set.
        names: the names of the containers checked so far.
    """

    volumes: dict[str, Document]
    claims: frozenset[str]
    grace: int | None
    restart_policy: str
    host_users: bool
    os_name: str | None
    names: set[str] = data_field(default_factory=set)


# --- ports and environment --------------------------------------------------------------------------------------------


def _ports(container: Document, path: str, out: Causes) -> None:
    names: set[str] = set()
    for index, found in enumerate(parts(container, "ports")):
        here, name = f"{path}.ports[{index}]", str(found.get("name") or "")
        if name:
            problems = check_port_name(name)
            out.extend(invalid_value(f"{here}.name", quote(name), problem) for problem in problems)
            if not problems and name in names:
                out.append(duplicate(f"{here}.name", quote(name)))
            if not problems:
                names.add(name)
        if not found.get("containerPort"):
            out.append(required(f"{here}.containerPort"))
        _PORT_NUMBERS(found, here, out)


_PORT_NUMBERS = table(
    number("containerPort", lambda found, path, out: port(found, path, out) if found else None),
    number("hostPort", lambda found, path, out: port(found, path, out) if found else None),
    value("protocol", choice("SCTP", "TCP", "UDP")),
)
_KEY_SELECTOR = table(value("name", dns_subdomain), need("key", config_key))
_FILE_KEY = table(need("key", env_name), need("volumeName", dns_label), need("path", no_backsteps))
_VALUE_SOURCES: dict[str, Rule] = {
    "fieldRef": lambda source, path, out: object_field(source, path, out, ENV_FIELDS),
    "resourceFieldRef": lambda source, path, out: container_resource(source, path, out, volume=False),
    "configMapKeyRef": _KEY_SELECTOR,
    "secretKeyRef": _KEY_SELECTOR,
    "fileKeyRef": _FILE_KEY,
}


def _env(container: Document, path: str, out: Causes) -> None:
    for index, variable in enumerate(parts(container, "env")):
        name = variable.get("name")
        if not name:
            out.append(required(f"{path}.env[{index}].name"))
        else:
            env_name(name, f"{path}.env[{index}].name", out)
        source = variable.get("valueFrom")
        if isinstance(source, dict):
            _value_from(source, bool(variable.get("value")), f"{path}.env[{index}].valueFrom", out)


def _value_from(source: Document, has_value: bool, path: str, out: Causes) -> None:
    count = 0
    for name, rule in _VALUE_SOURCES.items():
        found = source.get(name)
        if isinstance(found, dict):
            count += 1
            rule(found, f"{path}.{name}", out)
    detail = ""
    if not count:
        detail = _ONE_SOURCE
    elif has_value:
        detail = "may not be specified when `value` is not empty"
    elif count > 1:
        detail = _SEVERAL_SOURCES
    if detail:
        out.append(invalid_value(path, '""', detail))


_ENV_SOURCE = need("name", dns_subdomain)


def _env_from(container: Document, path: str, out: Causes) -> None:
    for index, source in enumerate(parts(container, "envFrom")):
        here = f"{path}.envFrom[{index}]"
        if source.get("prefix"):
            env_name(source["prefix"], f"{here}.prefix", out)
        found = [name for name in ("configMapRef", "secretRef") if isinstance(source.get(name), dict)]
        for name in found:
            _ENV_SOURCE(part(source, name), f"{here}.{name}", out)
        if len(found) != 1:
            detail = _SEVERAL_SOURCES if found else "must specify one of: `configMapRef` or `secretRef`"
            out.append(invalid_value(f"{path}.envFrom", '""', detail))


# --- mounts -----------------------------------------------------------------------------------------------------------


def _not_found(path: str, name: str) -> Cause:
    return Cause("FieldValueNotFound", f"Not found: {quote(name)}", path)


def _mounts(container: Document, path: str, volumes: dict[str, Document], out: Causes) -> None:
    devices = {
        str(each.get("name") or ""): str(each.get("devicePath") or "") for each in parts(container, "volumeDevices")
    }
    points: set[str] = set()
    whole = f"{path}.volumeMounts"
    for index, mount in enumerate(parts(container, "volumeMounts")):
        here = f"{whole}[{index}]"
        name, point = str(mount.get("name") or ""), str(mount.get("mountPath") or "")
        if not name:
            out.append(required(f"{here}.name"))
        if name not in volumes:
            out.append(_not_found(f"{here}.name", name))
        if not point:
            out.append(required(f"{here}.mountPath"))
        if point in points:
            out.append(invalid_value(f"{here}.mountPath", quote(point), "must be unique"))
        points.add(point)
        if name in devices:
            out.append(invalid_value(f"{here}.name", quote(name), "must not already exist in volumeDevices"))
        if point in devices.values():
            detail = "must not already exist as a path in volumeDevices"
            out.append(invalid_value(f"{here}.mountPath", quote(point), detail))
        if len(mount) > 2:
            _mount_options(mount, container, whole, here, out)


def _mount_options(mount: Document, container: Document, whole: str, here: str, out: Causes) -> None:
    """Check the optional fields of a mount. Most problems are reported at the list of mounts (`whole`), as upstream."""
    sub_path, expression = mount.get("subPath"), mount.get("subPathExpr")
    if sub_path:
        descending_path(sub_path, f"{whole}.subPath", out)
    if expression:
        if sub_path:
            detail = "subPathExpr and subPath are mutually exclusive"
            out.append(invalid_value(f"{here}.subPathExpr", go_value(expression), detail))
        descending_path(expression, f"{whole}.subPathExpr", out)
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        one_of("Bidirectional", "HostToContainer", "None")(propagation, f"{whole}.mountPropagation", out)
        if propagation == "Bidirectional" and not part(container, "securityContext").get("privileged"):
            detail = "Bidirectional mount propagation is available only to privileged containers"
            out.append(forbidden_value(f"{whole}.mountPropagation", detail))
    recursive, at = mount.get("recursiveReadOnly"), f"{whole}.recursiveReadOnly"
    if recursive in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            out.append(forbidden_value(at, "may only be specified when readOnly is true"))
        if propagation not in (None, "None"):
            out.append(forbidden_value(at, "may only be specified when mountPropagation is None or not specified"))
    elif recursive not in (None, "Disabled"):
        out.append(not_supported(at, go_value(recursive), ("Disabled", "Enabled", "IfPossible")))


def _devices(container: Document, path: str, volumes: dict[str, Document], out: Causes) -> None:
    mounts = {
        str(each.get("name") or ""): str(each.get("mountPath") or "") for each in parts(container, "volumeMounts")
    }
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(parts(container, "volumeDevices")):
        here = f"{path}.volumeDevices[{index}]"
        name, point = str(device.get("name") or ""), str(device.get("devicePath") or "")
        source = volumes.get(name)
        block = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        wrong_source = source is not None and "persistentVolumeClaim" not in source and "ephemeral" not in source
        for wrong, cause in (
            (not name, required(f"{here}.name")),
            (name in names, invalid_value(f"{here}.name", quote(name), "must be unique")),
            (wrong_source, invalid_value(f"{here}.name", quote(name), block)),
            (source is None, _not_found(f"{here}.name", name)),
            (not point, required(f"{here}.devicePath")),
            (point in paths, invalid_value(f"{here}.devicePath", quote(point), "must be unique")),
        ):
            if wrong:
                out.append(cause)
        if ".." in point.split("/"):
            out.append(invalid_value(f"{here}.devicePath", quote(point), "can not contain backsteps ('..')"))
        else:
            paths.add(point)
        if name in mounts:
            out.append(invalid_value(f"{here}.name", quote(name), "must not already exist in volumeMounts"))
        if point in mounts.values():
            detail = "must not already exist as a path in volumeMounts"
            out.append(invalid_value(f"{here}.devicePath", quote(point), detail))
        if name:
            names.add(name)


# --- probes and hooks -------------------------------------------------------------------------------------------------


def _headers(document: Document, path: str, out: Causes) -> None:
    for header in parts(document, "httpHeaders"):
        name = str(header.get("name") or "")
        if not _HEADER.fullmatch(name):
            detail = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', "
            detail += "regex used for validation is '[-A-Za-z0-9]+')"
            out.append(invalid_value(f"{path}.httpHeaders", quote(name), detail))


_HANDLERS: dict[str, Rule] = {
    "exec": need("command"),
    "httpGet": table(
        need("path"), value("port", port_or_name, zero=0), value("scheme", one_of("HTTP", "HTTPS")), _headers
    ),
    "tcpSocket": value("port", port_or_name, zero=0),
    "grpc": number("port", port),
}


def _handler(document: Document, path: str, grace: int | None, out: Causes) -> None:
    count = 0
    for name in ("exec", "httpGet", "tcpSocket", "grpc", "sleep"):
        found = document.get(name)
        if not isinstance(found, dict):
            continue
        count += 1
        if count > 1:
            out.append(forbidden_value(f"{path}.{name}", "may not specify more than 1 handler type"))
        elif name != "sleep":
            _HANDLERS[name](found, f"{path}.{name}", out)
        else:
            seconds = found.get("seconds", 0)
            if grace is not None and isinstance(seconds, int) and not 0 <= seconds <= grace:
                detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                out.append(invalid_value(f"{path}.sleep", str(seconds), detail))
    if not count:
        out.append(required(path, "must specify a handler type"))


_PROBE = table(
    *(
        number(name, nonnegative)
        for name in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
    ),
    field("terminationGracePeriodSeconds", at_least(1, "must be greater than 0")),
)


def _probes(container: Document, path: str, grace: int | None, out: Causes) -> None:
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if not isinstance(probe, dict):
            continue
        here = f"{path}.{name}"
        _handler(probe, here, grace, out)
        _PROBE(probe, here, out)
        if name == "readinessProbe":
            seconds = probe.get("terminationGracePeriodSeconds")
            if seconds is not None:
                detail = "must not be set for readinessProbes"
                out.append(invalid_value(f"{here}.terminationGracePeriodSeconds", go_value(seconds), detail))
        elif probe.get("successThreshold", 0) != 1:
            threshold = go_value(probe.get("successThreshold", 0))
            out.append(invalid_value(f"{here}.successThreshold", threshold, "must be 1"))


def _lifecycle(container: Document, path: str, pod: PodContext, out: Causes) -> None:
    lifecycle = container.get("lifecycle")
    if not isinstance(lifecycle, dict):
        return
    for name in ("postStart", "preStop"):
        hook = lifecycle.get(name)
        if isinstance(hook, dict):
            _handler(hook, f"{path}.lifecycle.{name}", pod.grace, out)
    signal, here = lifecycle.get("stopSignal"), f"{path}.lifecycle.stopSignal"
    if signal is None:
        return
    if pod.os_name is None:
        out.append(forbidden_value(here, "may not be set for containers with empty `spec.os.name`"))
    elif pod.os_name == "windows":
        one_of("SIGKILL", "SIGTERM")(signal, here, out)
    elif pod.os_name == "linux":
        one_of(*_SIGNALS)(signal, here, out)


# --- restarts ---------------------------------------------------------------------------------------------------------

_RULES_WITHOUT_POLICY = "must specify restartPolicy when restart rules are used"


def _restart_rules(container: Document, path: str, out: Causes) -> None:
    policy, rules = container.get("restartPolicy"), parts(container, "restartPolicyRules")
    if policy is None:
        if rules:
            out.append(required(f"{path}.restartPolicy", _RULES_WITHOUT_POLICY))
    else:
        one_of("Always", "Never", "OnFailure")(policy, f"{path}.restartPolicy", out)
    if len(rules) > 20:
        out.append(too_many(f"{path}.restartPolicyRules", len(rules), 20))
    for index, rule in enumerate(rules):
        here = f"{path}.restartPolicyRules[{index}]"
        one_of("Restart", "RestartAllContainers")(rule.get("action") or "", f"{here}.action", out)
        codes = rule.get("exitCodes")
        if not isinstance(codes, dict):
            out.append(required(f"{here}.exitCodes", "must be specified"))
            continue
        one_of("In", "NotIn")(codes.get("operator") or "", f"{here}.exitCodes.operator", out)
        if len(texts(codes, "values")) > 255:
            out.append(too_many(f"{here}.exitCodes.values", len(texts(codes, "values")), 255))


def _resize_policy(container: Document, path: str, restart_policy: str, out: Causes) -> None:
    seen: set[object] = set()
    here = f"{path}.resizePolicy"
    for index, policy in enumerate(parts(container, "resizePolicy")):
        name, restart = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if name in seen:
            out.append(duplicate(f"{here}[{index}]", go_value(name)))
        seen.add(name)
        choice("cpu", "memory")(name, here, out)
        choice("NotRequired", "RestartContainer")(restart, here, out)
        if restart_policy == "Never" and restart != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            out.append(invalid_value(here, go_value(restart), detail))


# --- containers -------------------------------------------------------------------------------------------------------

_MESSAGE_POLICY = value("terminationMessagePolicy", choice("File", "FallbackToLogsOnError"))
_PULL_POLICY = value("imagePullPolicy", choice(*_PULL_POLICIES))


def common_container(container: Document, path: str, pod: PodContext, out: Causes) -> None:
    """Check the fields that all types of containers have."""
    get = container.get
    if not get("name"):
        out.append(required(f"{path}.name"))
    else:
        dns_label(get("name"), f"{path}.name", out)
    if not get("image"):
        out.append(required(f"{path}.image"))
    _MESSAGE_POLICY(container, path, out)
    if "ports" in container:
        _ports(container, path, out)
    if "env" in container:
        _env(container, path, out)
    if "envFrom" in container:
        _env_from(container, path, out)
    if "volumeMounts" in container:
        _mounts(container, path, pod.volumes, out)
    if "volumeDevices" in container:
        _devices(container, path, pod.volumes, out)
    _PULL_POLICY(container, path, out)
    resources = get("resources")
    if resources and isinstance(resources, dict):
        container_resources(resources, f"{path}.resources", out, pod.claims)
    if "resizePolicy" in container:
        _resize_policy(container, path, pod.restart_policy, out)
    context = get("securityContext")
    if context and isinstance(context, dict):
        container_security(context, f"{path}.securityContext", out, host_users=pod.host_users)


def image_padding(container: Document, path: str, out: Causes) -> None:
    """Check that the image of a container in a pod, not a template, has no spaces around it."""
    image = str(container.get("image") or "")
    if image != image.strip():
        out.append(invalid_value(f"{path}.image", quote(image), "must not have leading or trailing whitespace"))


def containers(spec: Document, path: str, pod: PodContext, out: Causes) -> None:
    """Check the regular containers in a pod's spec."""
    here = f"{path}.containers"
    found = parts(spec, "containers")
    if not found:
        out.append(required(here))
        return
    for index, container in enumerate(found):
        inner, name = f"{here}[{index}]", str(container.get("name") or "")
        common_container(container, inner, pod, out)
        if name in pod.names:
            out.append(duplicate(f"{inner}.name", quote(name)))
        pod.names.add(name)
        _lifecycle(container, inner, pod, out)
        _probes(container, inner, pod.grace, out)
        if "restartPolicy" in container or "restartPolicyRules" in container:
            _restart_rules(container, inner, out)
    _host_ports(found, here, out)


def _host_ports(found: list[Document], path: str, out: Causes) -> None:
    """Check that no two of these containers have the same host port."""
    seen: set[str] = set()
    for index, container in enumerate(found):
        for position, each in enumerate(parts(container, "ports")):
            host_port = each.get("hostPort")
            if host_port:
                text = f"{each.get('protocol') or ''}/{each.get('hostIP') or ''}/{host_port}"
                if text in seen:
                    out.append(duplicate(f"{path}[{index}].ports[{position}].hostPort", quote(text)))
                seen.add(text)


_NOT_FOR_INIT = "may not be set for init containers without restartPolicy=Always"


def init_containers(spec: Document, path: str, pod: PodContext, out: Causes) -> None:
    """Check the init containers in a pod's spec."""
    here = f"{path}.initContainers"
    for index, container in enumerate(parts(spec, "initContainers")):
        inner, name = f"{here}[{index}]", str(container.get("name") or "")
        common_container(container, inner, pod, out)
        if container.get("restartPolicy") is not None:
            _restart_rules(container, inner, out)
        elif parts(container, "restartPolicyRules"):
            out.append(required(f"{inner}.restartPolicy", _RULES_WITHOUT_POLICY))
        if name in pod.names:
            out.append(duplicate(f"{inner}.name", quote(name)))
        elif name:
            pod.names.add(name)
        _host_ports([container], here, out)
        if container.get("restartPolicy") == "Always":
            _lifecycle(container, inner, pod, out)
            _probes(container, inner, pod.grace, out)
        else:
            _only_for_sidecars(container, inner, out)


def _only_for_sidecars(container: Document, path: str, out: Causes) -> None:
    """Report fields of an init container that only sidecars may have."""
    for name in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(name) is not None:
            out.append(forbidden_value(f"{path}.{name}", _NOT_FOR_INIT))
    for index, policy in enumerate(parts(container, "resizePolicy")):
        if policy.get("restartPolicy") == "RestartContainer":
            detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
            out.append(invalid_value(f"{path}.resizePolicy[{index}].restartPolicy", '"RestartContainer"', detail))
