"""Validation rules of the security contexts of pods and containers."""

from __future__ import annotations

import re

from bayplan.apiserver.model.errors import duplicate, forbidden_value, invalid_value, not_supported, required, too_long
from bayplan.apiserver.validation.engine import (
    Causes,
    Rule,
    field,
    go_value,
    invalid_if,
    items,
    named,
    one_of,
    optional,
    table,
)
from bayplan.apiserver.validation.formats import user_id
from bayplan.apiserver.validation.internal_json import shown_as
from bayplan.apiserver.validation.paths import descending_path
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.names import check_dns1123_subdomain
from bayplan.objects.selectors import quote

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
# kernel.shm and kernel.msg are what upstream keeps of the patterns kernel.shm* and kernel.msg*.
_IPC_SYSCTLS = frozenset(
    (
        "kernel.sem",
        "kernel.shm",
        "kernel.shmall",
        "kernel.shmmax",
        "kernel.shmmni",
        "kernel.shm_rmid_forced",
        "kernel.msg",
        "kernel.msgmax",
        "kernel.msgmnb",
        "kernel.msgmni",
    )
)
_SWAP_SEPARATORS = str.maketrans("./", "/.")
_SYSCTL_TEXT = (
    "must have at most 253 characters and match regex "
    "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
)
_MAX_PROFILE = 4095


def _seccomp(document: Document, path: str, out: Causes) -> None:
    kind, profile = document.get("type") or "", document.get("localhostProfile")
    here = f"{path}.localhostProfile"
    if not kind:
        out.append(required(f"{path}.type", "type is required when seccompProfile is set"))
    elif kind not in _PROFILES:
        out.append(not_supported(f"{path}.type", go_value(kind), _PROFILES))
    if kind == "Localhost":
        if profile is None:
            out.append(required(here, "must be set when seccomp type is Localhost"))
        else:
            descending_path(profile, here, out)
    elif profile is not None:
        shown = shown_as("core.SeccompProfile")(document)
        out.append(invalid_value(here, shown, "can only be set when seccomp type is Localhost"))


def _app_armor(document: Document, path: str, out: Causes) -> None:
    kind, profile = document.get("type") or "", document.get("localhostProfile")
    here = f"{path}.localhostProfile"
    if kind == "Localhost":
        text = str(profile or "")
        if profile is not None and text.strip() != text:
            out.append(invalid_value(here, quote(text), "must not be padded with whitespace"))
        elif not text:
            out.append(required(here, "must be set when AppArmor type is Localhost"))
        if len(text.encode()) > _MAX_PROFILE:
            out.append(too_long(here, _MAX_PROFILE))
    elif kind in _PROFILES:
        if profile is not None:
            out.append(invalid_value(here, go_value(profile), "can only be set when AppArmor type is Localhost"))
    elif not kind:
        out.append(required(f"{path}.type", "type is required when appArmorProfile is set"))
    else:
        out.append(not_supported(f"{path}.type", go_value(kind), _PROFILES))


# --- Windows ----------------------------------------------------------------------------------------------------------

_NETBIOS = re.compile(r"""[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}""")
_DOMAIN = re.compile(
    r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*"
)
_BAD_USER = re.compile(r"""["/\\:;|=,+*?<>@\[\]]""")


def _windows_user(found: object, path: str, out: Causes) -> None:
    text = str(found)
    domain, slash, user = text.partition("\\") if "\\" in text else ("", "", text)

    def refuse(wrong: bool, detail: str) -> bool:
        if wrong:
            out.append(invalid_value(path, quote(text), f"runAsUserName{detail}"))
        return wrong

    if (
        refuse(not text, " cannot be an empty string")
        or refuse(re.search(r"[\x00-\x1f\x7f]", text) is not None, " cannot contain control characters")
        or refuse(text.count("\\") > 1, " cannot contain more than one backslash")
    ):
        return
    refuse(len(domain) >= 256, "'s Domain length must be under 256 characters")
    fits = _NETBIOS.fullmatch(domain) or _DOMAIN.fullmatch(domain)
    refuse(bool(slash) and not fits, "'s Domain doesn't match the NetBios nor the DNS format")
    if not refuse(not user, "'s User cannot be empty"):
        refuse(len(user) > 104, "'s User length must not be longer than 104 characters")
    refuse(re.fullmatch(r"[. ]+", user) is not None, "'s User cannot contain only periods or spaces")
    bad = "'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"
    refuse(_BAD_USER.search(user) is not None, bad)


_WINDOWS = table(
    field("gmsaCredentialSpecName", named(check_dns1123_subdomain)),
    invalid_if(
        lambda options: options.get("gmsaCredentialSpec") == "",
        "gmsaCredentialSpec",
        "gmsaCredentialSpec cannot be an empty string",
    ),
    invalid_if(
        lambda options: len(str(options.get("gmsaCredentialSpec") or "").encode()) > 64 * 1024,
        "gmsaCredentialSpec",
        "gmsaCredentialSpec size must be under 64 KiB",
    ),
    field("runAsUserName", _windows_user),
)

# --- contexts ---------------------------------------------------------------------------------------------------------

_PROFILE_FIELDS: tuple[Rule, ...] = (
    optional("seccompProfile", _seccomp),
    optional("windowsOptions", _WINDOWS),
    optional("appArmorProfile", _app_armor),
)


def _escalation(document: Document, path: str, out: Causes) -> None:
    if document.get("allowPrivilegeEscalation") is not False:
        return
    start = "cannot set `allowPrivilegeEscalation` to false and "
    show = shown_as("core.SecurityContext")
    if document.get("privileged"):
        out.append(invalid_value(path, show(document), f"{start}`privileged` to true"))
    for capability in texts(part(document, "capabilities"), "add"):
        if capability == "CAP_SYS_ADMIN":
            out.append(invalid_value(path, show(document), f"{start}`capabilities.Add` CAP_SYS_ADMIN"))


_CONTAINER = table(
    field("runAsUser", user_id),
    field("runAsGroup", user_id),
    field("procMount", one_of("Default", "Unmasked")),
)
_CONTAINER_END = table(_PROFILE_FIELDS[0], _escalation, *_PROFILE_FIELDS[1:])


def container_security(document: Document, path: str, out: Causes, *, host_users: bool) -> None:
    """Check the security context of a container."""
    _CONTAINER(document, path, out)
    if host_users and document.get("procMount") == "Unmasked":
        out.append(invalid_value(f"{path}.procMount", '"Unmasked"', "`hostUsers` must be false to use `Unmasked`"))
    _CONTAINER_END(document, path, out)


def _sysctls(spec: Document, context: Document, path: str, out: Causes) -> None:
    seen: set[str] = set()
    for index, sysctl in enumerate(parts(context, "sysctls")):
        here, name = f"{path}.sysctls[{index}].name", str(sysctl.get("name") or "")
        if not name:
            out.append(required(here))
        elif len(name) > 253 or not _SYSCTL.fullmatch(name):
            out.append(invalid_value(here, quote(name), _SYSCTL_TEXT))
        elif name in seen:
            out.append(duplicate(here, quote(name)))
        seen.add(name)
        kernel_name = (name.translate(_SWAP_SEPARATORS) if "/" in name.split(".")[0] else name).partition("*")[0]
        if spec.get("hostNetwork") and kernel_name.startswith("net."):
            out.append(invalid_value(here, quote(name), "may not be specified when 'hostNetwork' is true"))
        elif spec.get("hostIPC") and (kernel_name in _IPC_SYSCTLS or kernel_name.startswith("fs.mqueue.")):
            out.append(invalid_value(here, quote(name), "may not be specified when 'hostIPC' is true"))


_POD_IDS = table(
    field("fsGroup", user_id),
    field("runAsUser", user_id),
    field("runAsGroup", user_id),
    field("supplementalGroups", items(user_id)),
)
_POD_END = table(
    field("fsGroupChangePolicy", one_of("Always", "OnRootMismatch")),
    *_PROFILE_FIELDS,
    field("supplementalGroupsPolicy", one_of("Merge", "Strict")),
    field("seLinuxChangePolicy", one_of("Recursive")),
)


def pod_security(spec: Document, path: str, out: Causes) -> None:
    """Check the security context of a pod's spec."""
    here = f"{path}.securityContext"
    context = part(spec, "securityContext")
    if context:
        _POD_IDS(context, here, out)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        out.append(invalid_value(f"{here}.shareProcessNamespace", "true", detail))
    if context:
        _sysctls(spec, context, here, out)
        _POD_END(context, here, out)


def windows_host_process(spec: Document, path: str, out: Causes) -> None:
    """Check that all or none of the containers of a pod are Windows host process containers."""
    of_pod = part(spec, "securityContext", "windowsOptions").get("hostProcess")
    count = found = 0
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(parts(spec, name)):
            count += 1
            own = part(container, "securityContext", "windowsOptions").get("hostProcess")
            if own is not None and of_pod is not None and own != of_pod:
                here = f"{path}.{name}[{index}].securityContext.windowsOptions.hostProcess"
                detail = f"pod hostProcess value must be identical if both are specified, was {str(of_pod).lower()}"
                out.append(invalid_value(here, go_value(own), detail))
            found += bool(own) or (own is None and bool(of_pod))
    if found:
        if found != count:
            detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
            out.append(invalid_value(path, '""', detail))
        if not spec.get("hostNetwork"):
            detail = "hostNetwork must be true if pod contains any hostProcess containers"
            out.append(invalid_value(f"{path}.hostNetwork", "false", detail))


def host_users(spec: Document, path: str, out: Causes) -> None:
    """Report fields that are forbidden in a pod with a user namespace."""
    if spec.get("hostUsers") is not False:
        return
    for name, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(name):
            out.append(forbidden_value(f"{path}.{shown}", "when `hostUsers` is false"))
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(parts(spec, name)):
            if container.get("volumeDevices"):
                out.append(forbidden_value(f"{path}.{name}[{index}].volumeDevices", "when `hostUsers` is false"))
