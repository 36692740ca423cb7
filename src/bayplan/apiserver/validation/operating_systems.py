"""Validation rules of pods that declare their operating system: fields that Windows or Linux do not support."""

from __future__ import annotations

from bayplan.apiserver.model.errors import forbidden_value, not_supported, required
from bayplan.apiserver.validation.engine import Causes, go_value
from bayplan.base.plain_data import Document, part, parts

_NOT_ON_LINUX = "windows options cannot be set for a linux pod"
_NOT_ON_WINDOWS = "cannot be set for a windows pod"
_POD_FIELDS = (
    ("securityContext", "appArmorProfile"), ("securityContext", "seLinuxOptions"), ("", "hostUsers"), ("", "hostPID"),
    ("", "hostIPC"), ("securityContext", "seccompProfile"), ("securityContext", "fsGroup"),
    ("securityContext", "fsGroupChangePolicy"), ("securityContext", "sysctls"), ("", "shareProcessNamespace"),
    ("securityContext", "runAsUser"), ("securityContext", "runAsGroup"), ("securityContext", "supplementalGroups"),
    ("securityContext", "supplementalGroupsPolicy"), ("securityContext", "seLinuxChangePolicy"),
)  # fmt: skip
_CONTAINER_FIELDS = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged",
    "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
)  # fmt: skip


def operating_system(spec: Document, path: str, out: Causes) -> None:
    """Check the operating system of a pod's spec, and report the fields that it does not support."""
    if spec.get("os") is None:
        return
    name = part(spec, "os").get("name") or ""
    if not name:
        out.append(required(f"{path}.os.name"))
    elif name not in ("linux", "windows"):
        out.append(not_supported(f"{path}.os", go_value(name), ("linux", "windows")))
    elif name == "linux":
        _check(spec, path, out, (("securityContext", "windowsOptions"),), ("windowsOptions",), _NOT_ON_LINUX)
    else:
        _check(spec, path, out, _POD_FIELDS, _CONTAINER_FIELDS, _NOT_ON_WINDOWS)


def _check(
    spec: Document,
    path: str,
    out: Causes,
    pod_fields: tuple[tuple[str, str], ...],
    container_fields: tuple[str, ...],
    detail: str,
) -> None:
    for group, name in pod_fields:
        found = (part(spec, group) if group else spec).get(name)
        if found is not None and not (found is False and name in ("hostPID", "hostIPC")):
            out.append(forbidden_value(f"{path}.{group}.{name}" if group else f"{path}.{name}", detail))
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(parts(spec, kind)):
            context = part(container, "securityContext")
            for name in container_fields:
                if context.get(name) is not None:
                    out.append(forbidden_value(f"{path}.{kind}[{index}].securityContext.{name}", detail))
