"""The checks of the pod security standards, by level and version.

Rules and messages are those of k8s.io/pod-security-admission v0.36.3.
Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from bayplan.base.counted_nouns import plural
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.selectors import quote

PRIVILEGED, BASELINE, RESTRICTED = "privileged", "baseline", "restricted"
LATEST = "latest"


class Violation(NamedTuple):
    """A violation that a check found in a pod.

    Attributes:
        reason: the problem in a few words, without names from the pod.
        detail: the containers, volumes or values with the problem.
    """

    reason: str
    detail: str


CheckPod = Callable[[Document], Violation | None]
"""A rule: returns the violation of a pod or pod template (an object with ``metadata`` and ``spec``), or None."""


class Check(NamedTuple):
    """One check in all its versions.

    Attributes:
        name: the name; each level's checks run in order of their names.
        level: ``baseline`` or ``restricted``.
        versions: pairs of a Kubernetes minor version and the rule that applies from it on, ascending.
        replaces: the name of the baseline check that this restricted check replaces, or empty.
    """

    name: str
    level: str
    versions: tuple[tuple[int, CheckPod], ...]
    replaces: str = ""

    def rule(self, minor: int) -> CheckPod | None:
        """Return the rule that applies in a minor version, or None if the check was added later."""
        return next((rule for since, rule in reversed(self.versions) if since <= minor), None)


def violations(level: str, version: str, pod: Document) -> list[Violation]:
    """Return the violations of a level by a pod, in the order of the checks.

    Args:
        level: the level.
        version: ``latest`` or ``v1.N``; for a version after the newest rule, the newest rules apply.
        pod: a pod or pod template with defaults; only ``metadata`` and ``spec`` are read.
    """
    if level == PRIVILEGED:
        return []
    minor = _NEWEST if version == LATEST else int(version.removeprefix("v1."))
    rules = {each.name: (each, rule) for each in CHECKS if (rule := each.rule(minor)) is not None}
    if level == BASELINE:
        wanted = [rule for each, rule in rules.values() if each.level == BASELINE]
    else:
        replaced = {each.replaces for each, _ in rules.values()}
        wanted = [rule for name, (_, rule) in rules.items() if name not in replaced]
    return [found for rule in wanted if (found := rule(pod)) is not None]


# --- texts ------------------------------------------------------------------------------------------------------------


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _count(noun: str, names: Sequence[str] | set[str]) -> str:
    return plural(noun, len(names))


def _use(names: Sequence[str]) -> str:
    return "uses" if len(names) == 1 else "use"


def _named(noun: str, names: Sequence[str]) -> str:
    """Return ``container "a"``, or ``containers "a", "b"``."""
    return f"{_count(noun, names)} {_listed(names)}"


def _setters(pod: bool, containers: Sequence[str]) -> str:
    """Return the parts of a pod that set a field: ``pod``, ``container "a"``, or ``pod and container "a"``."""
    return " and ".join([*(["pod"] if pod else []), *([_named("container", containers)] if containers else [])])


# --- the parts of a pod -----------------------------------------------------------------------------------------------


def _containers(pod: Document) -> Iterator[tuple[str, Document, Document]]:
    """Yield the name, the container and its security context, for all containers of a pod."""
    spec = part(pod, "spec")
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in parts(spec, kind):
            yield str(container.get("name") or ""), container, part(container, "securityContext")


def _context(pod: Document) -> Document:
    return part(pod, "spec", "securityContext")


def _annotations(pod: Document) -> dict[str, str]:
    return {name: str(value) for name, value in part(pod, "metadata", "annotations").items()}


def _of_windows(pod: Document) -> bool:
    return part(pod, "spec", "os").get("name") == "windows"


def _in_user_namespace(pod: Document) -> bool:
    return part(pod, "spec").get("hostUsers") is False


def _unless(relaxed: Callable[[Document], bool], rule: CheckPod) -> CheckPod:
    """Return a rule that ignores the pods for which `relaxed` is true."""
    return lambda pod: None if relaxed(pod) else rule(pod)


# --- baseline ---------------------------------------------------------------------------------------------------------

_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_PROFILE_TYPES = ("RuntimeDefault", "Localhost")


def _forbidden_profiles(pod: Document, field: str) -> tuple[list[str], str]:
    """Return the types of the forbidden profiles in a field of the security contexts, and the parts of the pod that set them."""

    def forbidden_type(context: Document) -> str | None:
        profile = context.get(field)
        kind = str(profile.get("type") or "") if isinstance(profile, dict) else None
        return None if kind in (None, *_PROFILE_TYPES) else kind

    of_pod = forbidden_type(_context(pod))
    found = [(name, kind) for name, _, each in _containers(pod) if (kind := forbidden_type(each)) is not None]
    kinds = sorted({kind for _, kind in found} | ({of_pod} if of_pod is not None else set()))
    return kinds, _setters(of_pod is not None, [name for name, _ in found])


def _app_armor_profile(pod: Document) -> Violation | None:
    kinds, profile_setters = _forbidden_profiles(pod, "appArmorProfile")
    annotations = sorted(
        f"{name}={quote(value)}"
        for name, value in _annotations(pod).items()
        if name.startswith(_APP_ARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    )
    values = kinds + annotations
    if not values:
        return None
    setters = [profile_setters] if kinds else []
    setters += [_count("annotation", annotations)] if annotations else []
    detail = f"{' and '.join(setters)} must not set AppArmor profile type to {_listed(values)}"
    return Violation(_count("forbidden AppArmor profile", values), detail)


_DEFAULT_CAPABILITIES = frozenset(
    ("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
     "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT")
)  # fmt: skip


def _added_capabilities(pod: Document, allowed: frozenset[str]) -> tuple[list[str], set[str]]:
    """Return the names of containers that add disallowed capabilities, and the set of these capabilities."""
    names, added = [], set[str]()
    for name, _, context in _containers(pod):
        found = set(texts(part(context, "capabilities"), "add")) - allowed
        added |= found
        if found:
            names.append(name)
    return names, added


def _adding(names: list[str], added: set[str]) -> str:
    return f"{_named('container', names)} must not include {_listed(sorted(added))} in securityContext.capabilities.add"


def _capabilities_baseline(pod: Document) -> Violation | None:
    names, added = _added_capabilities(pod, _DEFAULT_CAPABILITIES)
    return Violation("non-default capabilities", _adding(names, added)) if names else None


def _host_namespaces(pod: Document) -> Violation | None:
    spec = part(pod, "spec")
    found = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    return Violation("host namespaces", ", ".join(found)) if found else None


def _host_path_volumes(pod: Document) -> Violation | None:
    names = [str(each.get("name")) for each in parts(part(pod, "spec"), "volumes") if each.get("hostPath") is not None]
    return Violation("hostPath volumes", _named("volume", names)) if names else None


def _host_ports(pod: Document) -> Violation | None:
    names, ports = [], set[str]()
    for name, container, _ in _containers(pod):
        found = {str(each["hostPort"]) for each in parts(container, "ports") if each.get("hostPort")}
        ports |= found
        if found:
            names.append(name)
    if not names:
        return None
    # Upstream sorts ports as strings: 10, 100, 9.
    listed = ", ".join(sorted(ports))
    return Violation("hostPort", f"{_named('container', names)} {_use(names)} {_count('hostPort', ports)} {listed}")


_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("postStart", "preStop")


def _hosts_of_handlers(pod: Document) -> Violation | None:
    found: dict[str, set[str]] = {}
    for name, container, _ in _containers(pod):
        handlers = [part(container, probe) for probe in _PROBES]
        handlers += [part(container, "lifecycle", hook) for hook in _HOOKS]
        hosts = {part(each, action).get("host") for each in handlers for action in ("httpGet", "tcpSocket")}
        if hosts := hosts - {None, ""}:
            found.setdefault(name, set()).update(str(host) for host in hosts)
    if not found:
        return None
    names, hosts_used = sorted(found), set[str]().union(*found.values())
    what = f"{_count('probe or lifecycle host', hosts_used)} {_listed(sorted(hosts_used))}"
    return Violation("probe or lifecycle host", f"{_named('container', names)} {_use(names)} {what}")


def _privileged(pod: Document) -> Violation | None:
    names = [name for name, _, context in _containers(pod) if context.get("privileged")]
    detail = f"{_named('container', names)} must not set securityContext.privileged=true"
    return Violation("privileged", detail) if names else None


def _proc_mount(pod: Document) -> Violation | None:
    found = [(name, context.get("procMount")) for name, _, context in _containers(pod)]
    bad = [(name, str(kind)) for name, kind in found if kind not in (None, "Default")]
    names, kinds = [name for name, _ in bad], sorted({kind for _, kind in bad})
    detail = f"{_named('container', names)} must not set securityContext.procMount to {_listed(kinds)}"
    return Violation("procMount", detail) if bad else None


_SELINUX_TYPES = frozenset(("", "container_t", "container_init_t", "container_kvm_t"))
_SELINUX_TYPES_31 = _SELINUX_TYPES | {"container_engine_t"}


def _selinux_options(allowed: frozenset[str]) -> CheckPod:
    def check(pod: Document) -> Violation | None:
        types, fields = set[str](), set[str]()

        def is_bad(context: Document) -> bool:
            options = part(context, "seLinuxOptions")
            bad_types = {str(options.get("type") or "")} - allowed
            bad_fields = {name for name in ("user", "role") if options.get(name)}
            types.update(bad_types)
            fields.update(bad_fields)
            return bool(bad_types or bad_fields)

        of_pod = is_bad(_context(pod))
        names = [name for name, _, context in _containers(pod) if is_bad(context)]
        if not of_pod and not names:
            return None
        wrong = [_named("type", sorted(types))] if types else []
        wrong += [f"{name} may not be set" for name in ("user", "role") if name in fields]
        setters = _setters(of_pod, names)
        return Violation(
            "seLinuxOptions", f"{setters} set forbidden securityContext.seLinuxOptions: {'; '.join(wrong)}"
        )

    return check


_SECCOMP_OF_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_OF_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"


def _seccomp_annotations(pod: Document) -> Violation | None:
    annotations = _annotations(pod)
    names = {_SECCOMP_OF_POD, *(_SECCOMP_OF_CONTAINER + name for name, *_ in _containers(pod))}
    found = sorted(
        f"{name}={quote(annotations[name])}"
        for name in names & annotations.keys()
        if annotations[name] not in ("runtime/default", "docker/default")
        and not annotations[name].startswith("localhost/")
    )
    detail = f"forbidden {_count('annotation', found)} {', '.join(found)}"
    return Violation("seccompProfile", detail) if found else None


def _seccomp_profile(*, required: bool) -> CheckPod:
    def check(pod: Document) -> Violation | None:
        kinds, setters = _forbidden_profiles(pod, "seccompProfile")
        if kinds:
            detail = f"{setters} must not set securityContext.seccompProfile.type to {_listed(kinds)}"
            return Violation("seccompProfile", detail)
        if not required or isinstance(_context(pod).get("seccompProfile"), dict):
            return None
        missing = [name for name, _, each in _containers(pod) if not isinstance(each.get("seccompProfile"), dict)]
        wanted = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
        return Violation("seccompProfile", f"pod or {_named('container', missing)} {wanted}") if missing else None

    return check


_SYSCTLS = frozenset(
    ("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range",
     "net.ipv4.ip_unprivileged_port_start")
)  # fmt: skip
_SYSCTLS_27 = _SYSCTLS | {"net.ipv4.ip_local_reserved_ports"}
_SYSCTLS_29 = _SYSCTLS_27 | {
    f"net.ipv4.tcp_{name}" for name in ("keepalive_time", "fin_timeout", "keepalive_intvl", "keepalive_probes")
}
_SYSCTLS_32 = _SYSCTLS_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}


def _sysctls(allowed: frozenset[str]) -> CheckPod:
    def check(pod: Document) -> Violation | None:
        found = [name for each in parts(_context(pod), "sysctls") if (name := str(each.get("name"))) not in allowed]
        return Violation("forbidden sysctls", ", ".join(found)) if found else None

    return check


def _windows_host_process(pod: Document) -> Violation | None:
    of_pod = bool(part(_context(pod), "windowsOptions").get("hostProcess"))
    names = [name for name, _, context in _containers(pod) if part(context, "windowsOptions").get("hostProcess")]
    detail = f"{_setters(of_pod, names)} must not set securityContext.windowsOptions.hostProcess=true"
    return Violation("hostProcess", detail) if of_pod or names else None


# --- restricted -------------------------------------------------------------------------------------------------------


def _allow_privilege_escalation(pod: Document) -> Violation | None:
    names = [name for name, _, context in _containers(pod) if context.get("allowPrivilegeEscalation") is not False]
    detail = f"{_named('container', names)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail) if names else None


def _capabilities_restricted(pod: Document) -> Violation | None:
    keeping = [
        name for name, _, context in _containers(pod) if "ALL" not in texts(part(context, "capabilities"), "drop")
    ]
    names, added = _added_capabilities(pod, frozenset(("NET_BIND_SERVICE",)))
    wrong = [f'{_named("container", keeping)} must set securityContext.capabilities.drop=["ALL"]'] if keeping else []
    wrong += [_adding(names, added)] if names else []
    return Violation("unrestricted capabilities", "; ".join(wrong)) if wrong else None


_VOLUMES = frozenset(
    (
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    )
)
_RESTRICTED_VOLUMES = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "nfs", "iscsi", "glusterfs", "rbd",
    "flexVolume", "cinder", "cephfs", "flocker", "fc", "azureFile", "vsphereVolume", "quobyte", "azureDisk",
    "photonPersistentDisk", "portworxVolume", "scaleIO", "storageos",
)  # fmt: skip


def _restricted_volumes(pod: Document) -> Violation | None:
    names, types = [], set[str]()
    for volume in parts(part(pod, "spec"), "volumes"):
        sources = {name for name, value in volume.items() if value is not None}
        if sources.isdisjoint(_VOLUMES):
            names.append(str(volume.get("name")))
            types.add(next((name for name in _RESTRICTED_VOLUMES if name in sources), "unknown"))
    what = f"{_count('restricted volume type', types)} {_listed(sorted(types))}"
    return Violation("restricted volume types", f"{_named('volume', names)} {_use(names)} {what}") if names else None


def _run_as_non_root(pod: Document) -> Violation | None:
    of_pod = _context(pod).get("runAsNonRoot")
    set_by = [(name, context.get("runAsNonRoot")) for name, _, context in _containers(pod)]
    roots = [name for name, found in set_by if found is False]
    if of_pod is False or roots:
        detail = f"{_setters(of_pod is False, roots)} must not set securityContext.runAsNonRoot=false"
        return Violation("runAsNonRoot != true", detail)
    unset = [] if of_pod else [name for name, found in set_by if found is None]
    detail = f"pod or {_named('container', unset)} must set securityContext.runAsNonRoot=true"
    return Violation("runAsNonRoot != true", detail) if unset else None


def _run_as_user(pod: Document) -> Violation | None:
    of_pod = _context(pod).get("runAsUser") == 0
    names = [name for name, _, context in _containers(pod) if context.get("runAsUser") == 0]
    detail = f"{_setters(of_pod, names)} must not set runAsUser=0"
    return Violation("runAsUser=0", detail) if of_pod or names else None


# --- the table --------------------------------------------------------------------------------------------------------

CHECKS = (
    Check("appArmorProfile", BASELINE, ((0, _app_armor_profile),)),
    Check("capabilities_baseline", BASELINE, ((0, _capabilities_baseline),)),
    Check("hostNamespaces", BASELINE, ((0, _host_namespaces),)),
    Check("hostPathVolumes", BASELINE, ((0, _host_path_volumes),)),
    Check("hostPorts", BASELINE, ((0, _host_ports),)),
    Check("hostProbesAndHostLifecycle", BASELINE, ((34, _hosts_of_handlers),)),
    Check("privileged", BASELINE, ((0, _privileged),)),
    Check("procMount", BASELINE, ((0, _proc_mount), (35, _unless(_in_user_namespace, _proc_mount)))),
    Check("seLinuxOptions", BASELINE,
          ((0, _selinux_options(_SELINUX_TYPES)), (31, _selinux_options(_SELINUX_TYPES_31)))),
    Check("seccompProfile_baseline", BASELINE,
          ((0, _seccomp_annotations), (19, _seccomp_profile(required=False)))),
    Check("sysctls", BASELINE,
          ((0, _sysctls(_SYSCTLS)), (27, _sysctls(_SYSCTLS_27)), (29, _sysctls(_SYSCTLS_29)), (32, _sysctls(_SYSCTLS_32)))),
    Check("windowsHostProcess", BASELINE, ((0, _windows_host_process),)),
    Check("allowPrivilegeEscalation", RESTRICTED,
          ((8, _allow_privilege_escalation), (25, _unless(_of_windows, _allow_privilege_escalation)))),
    Check("capabilities_restricted", RESTRICTED,
          ((22, _capabilities_restricted), (25, _unless(_of_windows, _capabilities_restricted))),
          replaces="capabilities_baseline"),
    Check("procMount_restricted", RESTRICTED, ((35, _proc_mount),), replaces="procMount"),
    Check("restrictedVolumes", RESTRICTED, ((0, _restricted_volumes),), replaces="hostPathVolumes"),
    Check("runAsNonRoot", RESTRICTED, ((0, _run_as_non_root), (35, _unless(_in_user_namespace, _run_as_non_root)))),
    Check("runAsUser", RESTRICTED, ((23, _run_as_user), (35, _unless(_in_user_namespace, _run_as_user)))),
    Check("seccompProfile_restricted", RESTRICTED,
          ((19, _seccomp_profile(required=True)), (25, _unless(_of_windows, _seccomp_profile(required=True)))),
          replaces="seccompProfile_baseline"),
)  # fmt: skip
"""All checks in the order of messages: baseline before restricted, each sorted by name."""

_NEWEST = max(since for check in CHECKS for since, _ in check.versions)
