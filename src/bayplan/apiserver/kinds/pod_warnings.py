"""Warnings for clients about pods and pod templates: deprecated fields, duplicates and unusual amounts.

Source: pkg/api/pod/warnings.go v1.36.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bayplan.apiserver.kinds import app_armor
from bayplan.apiserver.kinds.address_warnings import address_warnings
from bayplan.apiserver.validation.formats import amount_of
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.names import check_label_value
from bayplan.objects.selectors import quote

DEPRECATED_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
"""Deprecated node labels, each with the text of its warning."""
_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
VOLUME_FIELDS = {"storageos": "storageOS"}
"""Types of volumes that warnings spell differently than the API."""
_CRITICAL = "scheduler.alpha.kubernetes.io/critical-pod"
_SYSCTLS = "security.alpha.kubernetes.io/sysctls"
_UNSAFE_SYSCTLS = "security.alpha.kubernetes.io/unsafe-sysctls"
_ANNOTATIONS = {
    _CRITICAL: 'non-functional in v1.16+; use the "priorityClassName" field instead',
    _SYSCTLS: 'non-functional in v1.11+; use the "sysctls" field instead',
    _UNSAFE_SYSCTLS: 'non-functional in v1.11+; use the "sysctls" field instead',
}
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_BYTES = ("memory", "ephemeral-storage")
_REQUIRED, _PREFERRED = (f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred"))
_POD_ANNOTATIONS = "metadata.annotations"
_NO_SELECTOR = "a null labelSelector results in matching no pod"


def template_warnings(template: Document, field: str) -> list[str]:
    """Return the warnings about a pod or pod template.

    Args:
        template: the pod or pod template, with metadata and spec.
        field: the path of the template, ending with a dot; empty for a pod.
    """
    spec, annotations = part(template, "spec"), part(template, "metadata", "annotations")
    found = list(_selector_warnings(spec, f"{field}spec"))
    noted = f"{field}metadata.annotations"
    found += [f"{noted}[{key}]: {text}" for key, text in _ANNOTATIONS.items() if key in annotations]
    found += _list_warnings(spec, f"{field}spec")
    if _SECCOMP_POD in annotations and not part(spec, "securityContext").get("seccompProfile"):
        found.append(f"{noted}[{_SECCOMP_POD}]: {_SECCOMP}")
    for container, here in _containers(spec, f"{field}spec"):
        if annotations:
            found += _profile_warnings(container, spec, annotations, noted)
        found += _container_warnings(container, here)
    found += _port_warnings(spec, f"{field}spec")
    seconds = spec.get("terminationGracePeriodSeconds")
    if isinstance(seconds, int) and seconds < 0:
        text = "must be >= 0; negative values are invalid and will be treated as 1"
        found.append(f"{field}spec.terminationGracePeriodSeconds: {text}")
    for name in ("podAffinity", "podAntiAffinity") if "affinity" in spec else ():
        affinity, here = part(spec, "affinity", name), f"{field}spec.affinity.{name}"
        for index, term in enumerate(parts(affinity, _REQUIRED)):
            if term.get("labelSelector") is None:
                found.append(f"{here}.{_REQUIRED}[{index}].labelSelector: {_NO_SELECTOR}")
        for index, term in enumerate(parts(affinity, _PREFERRED)):
            if part(term, "podAffinityTerm").get("labelSelector") is None:
                found.append(f"{here}.{_PREFERRED}[{index}].podAffinityTerm.labelSelector: {_NO_SELECTOR}")
    return found + list(_address_warnings(spec, f"{field}spec"))


def selector_term_warnings(term: Document, field: str, *, values: bool = False) -> Iterator[str]:
    """Yield warnings about deprecated labels in a node selector term and, if `values`, about invalid label values."""
    for index, expression in enumerate(parts(term, "matchExpressions")):
        here, key = f"{field}.matchExpressions[{index}]", str(expression.get("key"))
        if key in DEPRECATED_LABELS:
            yield f"{here}.key: {key} is {DEPRECATED_LABELS[key]}"
        if values:
            for at, value in enumerate(texts(expression, "values")):
                yield from (f"{here}.values[{at}]: {value} is invalid, {each}" for each in check_label_value(value))


def _selector_warnings(spec: Document, field: str) -> Iterator[str]:
    for key in sorted(part(spec, "nodeSelector")):
        if key in DEPRECATED_LABELS:
            yield f"{field}.nodeSelector[{key}]: {DEPRECATED_LABELS[key]}"
    if "affinity" in spec:
        affinity, here = part(spec, "affinity", "nodeAffinity"), f"{field}.affinity.nodeAffinity"
        for index, term in enumerate(parts(part(affinity, _REQUIRED), "nodeSelectorTerms")):
            yield from selector_term_warnings(term, f"{here}.{_REQUIRED}.nodeSelectorTerms[{index}]")
        for index, term in enumerate(parts(affinity, _PREFERRED)):
            place = f"{here}.{_PREFERRED}[{index}].preference"
            yield from selector_term_warnings(part(term, "preference"), place, values=True)
    for index, constraint in enumerate(parts(spec, "topologySpreadConstraints")):
        place, key = f"{field}.topologySpreadConstraints[{index}]", str(constraint.get("topologyKey"))
        if key in DEPRECATED_LABELS:
            yield f"{place}.topologyKey: {key} is {DEPRECATED_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{place}.labelSelector: {_NO_SELECTOR}"


def _address_warnings(spec: Document, field: str) -> Iterator[str]:
    if "dnsConfig" in spec:
        for index, address in enumerate(texts(part(spec, "dnsConfig"), "nameservers")):
            yield from address_warnings(address, f"{field}.dnsConfig.nameservers[{index}]")
    for index, alias in enumerate(parts(spec, "hostAliases")):
        yield from address_warnings(alias.get("ip"), f"{field}.hostAliases[{index}].ip")


def _profile_warnings(container: Document, spec: Document, annotations: Document, field: str) -> Iterator[str]:
    """Yield warnings about annotations for which a container's security context has a field."""
    key = f"{_SECCOMP_CONTAINER}{container.get('name')}"
    if key in annotations and not part(container, "securityContext").get("seccompProfile"):
        yield f"{field}[{key}]: {_SECCOMP}"
    if field != _POD_ANNOTATIONS:  # For pods, `app_armor_warnings` comes first.
        yield from _app_armor_warnings(container, spec, annotations, field)


def app_armor_warnings(spec: Document, annotations: Document) -> Iterator[str]:
    """Yield the warnings about the AppArmor annotations of a pod whose profiles have not been set from them yet."""
    if part(spec, "os").get("name") == "windows":
        return
    for container, _ in _containers(spec, ""):
        yield from _app_armor_warnings(container, spec, annotations, _POD_ANNOTATIONS)


def _app_armor_warnings(container: Document, spec: Document, annotations: Document, field: str) -> Iterator[str]:
    profile = part(container, "securityContext").get("appArmorProfile")
    key = f"{app_armor.ANNOTATION}{container.get('name')}"
    if key in annotations and not profile and not app_armor.repeats_pod(spec, str(annotations[key])):
        yield f'{field}[{key}]: deprecated since v1.30; use the "appArmorProfile" field instead'


def _list_warnings(spec: Document, field: str) -> Iterator[str]:
    if "volumes" in spec:
        for index, volume in enumerate(parts(spec, "volumes")):
            for name in _VOLUMES:
                if volume.get(name) is not None:
                    yield f"{field}.volumes[{index}].{VOLUME_FIELDS.get(name, name)}: {_VOLUMES[name]}"
            if "ephemeral" in volume:
                claim = part(volume, "ephemeral", "volumeClaimTemplate", "spec")
                yield from claim_spec_warnings(claim, f"{field}.volumes[{index}].ephemeral.volumeClaimTemplate.spec")
        yield from _overlaps(spec)
    if "hostAliases" in spec:
        yield from _repeated(parts(spec, "hostAliases"), "ip", f"{field}.hostAliases")
    if "imagePullSecrets" in spec:
        secrets = parts(spec, "imagePullSecrets")
        yield from _repeated(secrets, "name", f"{field}.imagePullSecrets")
        for index, secret in enumerate(secrets):
            if not secret.get("name"):
                yield f'{field}.imagePullSecrets[{index}].name: invalid empty name ""'
    if "overhead" in spec:
        yield from byte_warnings(part(spec, "overhead"), f"{field}.overhead")


def _overlaps(spec: Document) -> Iterator[str]:
    """Yield warnings about conflicting paths within one volume."""
    for volume in parts(spec, "volumes"):
        name = quote(str(volume.get("name")))
        for kind, label in (
            ("configMap", f"ConfigMap {quote(str(part(volume, 'configMap').get('name') or ''))}"),
            ("secret", f"Secret {quote(str(part(volume, 'secret').get('secretName') or ''))}"),
            ("downwardAPI", "DownwardAPI"),
        ):
            found = [(str(item.get("path") or ""), "") for item in parts(part(volume, kind), "items")]
            yield from (f"volume {name} ({label}): overlapping paths: {each}" for each in _clashing(found))
        placed: list[tuple[str, str]] = []
        for source in parts(part(volume, "projected"), "sources"):
            if not source:
                yield f"volume {name} (Projected) has no sources provided"
            placed += _projected_paths(source)
        yield from (f"volume {name} (Projected): overlapping paths: {each}" for each in _clashing(placed))


def _projected_paths(source: Document) -> list[tuple[str, str]]:
    """Return the paths that a source of a projected volume writes, each with the name of the source."""
    for kind, label in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if source.get(kind) is not None:
            named = f"{label} {quote(str(part(source, kind).get('name') or ''))}"
            return [(str(item.get("path") or ""), named) for item in parts(part(source, kind), "items")]
    if source.get("downwardAPI") is not None:
        return [(str(item.get("path") or ""), "DownwardAPI") for item in parts(part(source, "downwardAPI"), "items")]
    if source.get("serviceAccountToken") is not None:
        return [(str(part(source, "serviceAccountToken").get("path") or ""), "ServiceAccountToken")]
    return []


def _clashing(placed: list[tuple[str, str]]) -> Iterator[str]:
    """Yield a text for each pair of equal paths, and each pair in which one path contains the other."""

    def text(each: tuple[str, str]) -> str:
        return f"{quote(each[0])} ({each[1]})" if each[1] else quote(each[0])

    trimmed = [(path.rstrip("/"), source) for path, source in placed]
    for index, each in enumerate(trimmed):
        for other in trimmed[:index]:
            if (
                each[0]
                and other[0]
                and (f"{each[0]}/".startswith(f"{other[0]}/") or f"{other[0]}/".startswith(f"{each[0]}/"))
            ):
                yield f"{text(each)} with {text(other)}"


def _repeated(items: Iterable[Document], name: str, field: str) -> Iterator[str]:
    seen = set[str]()
    for index, item in enumerate(items):
        value = str(item.get(name) or "")
        if value in seen:
            yield f"{field}[{index}].{name}: duplicate {name} {quote(value)}"
        seen.add(value)


_WHOLE = ("Ki", "Mi", "Gi")
_MAX_LENGTH = 8
"""The usual suffixes of bytes, which upstream writes only for whole numbers, and the length up to which no number with
one of them overflows: 999,999 GiB are fewer than 2^63 thousandths of a byte."""


def byte_warnings(amounts: Document, field: str, names: Iterable[str] = _BYTES) -> Iterator[str]:
    """Yield warnings about amounts that contain a fraction of a byte."""
    for name in names:
        amount = str(amounts.get(name) or "0")
        # Upstream's number of thousandths overflows for large amounts, which then get the warning, too.
        is_whole = amount.endswith(_WHOLE) and len(amount) <= _MAX_LENGTH
        if not is_whole and amount_of(amount).milli_value() % 1000:
            yield f"{field}[{name}]: fractional byte value {quote(amount)} is invalid, must be an integer"


def claim_spec_warnings(spec: Document, field: str) -> Iterator[str]:
    """Yield warnings about the storage that a volume claim requests."""
    for name in ("requests", "limits"):
        yield from byte_warnings(part(spec, "resources", name), f"{field}.resources.{name}", ("storage",))


def _containers(spec: Document, field: str) -> list[tuple[Document, str]]:
    """Return the containers of a pod in upstream's order, with their field paths."""
    kinds = ("initContainers", "containers", "ephemeralContainers")
    return [(each, f"{field}.{kind}[{index}]") for kind in kinds for index, each in enumerate(parts(spec, kind))]


def resource_warnings(resources: Document, field: str) -> list[str]:
    """Return the warnings about the resources of a container."""
    found: list[str] = []
    for name in _BYTES:
        for kind in ("limits", "requests"):
            amounts = part(resources, kind)
            if name in amounts:
                found += byte_warnings(amounts, f"{field}.{kind}", (name,))
    return found


def _container_warnings(container: Document, field: str) -> Iterator[str]:
    resources = part(container, "resources")
    if resources:
        yield from resource_warnings(resources, f"{field}.resources")
    seen = set[str]()
    for index, variable in enumerate(parts(container, "env")):
        name = str(variable.get("name"))
        if name in seen:
            value = str(variable.get("value") or "")
            builds_on = f"$({name})" in value and value != f"$({name})" and variable.get("valueFrom") is None
            if not builds_on:
                text = f"hides previous definition of {quote(name)}, which may be dropped when using apply"
                yield f"{field}.env[{index}]: {text}"
        seen.add(name)


_PORT = (("name", ""), ("hostPort", 0), ("containerPort", 0), ("protocol", ""), ("hostIP", ""))
"""The fields of a port in Go's order, with their zero values."""


def _port_warnings(spec: Document, field: str) -> Iterator[str]:
    known: dict[tuple[object, object], list[tuple[str, Document]]] = {}
    names: dict[str, str] = {}
    renamed: list[str] = []
    for container, here in _containers(spec, field):
        for index, port in enumerate(parts(container, "ports")):
            place = f"{here}.ports[{index}]"
            if port.get("hostIP") and not port.get("hostPort"):
                shown = " ".join(f"{key[:1].upper()}{key[1:]}:{port.get(key, zero)}" for key, zero in _PORT)
                yield f"{place}: hostIP set without hostPort: {{{shown}}}"
            others = known.setdefault((port.get("containerPort"), port.get("protocol")), [])
            for where, other in others:
                problem = _clash(port, other)
                if problem:
                    yield f"{place}: {problem} port definition with {where}"
            others.append((place, port))
            name = str(port.get("name") or "")
            if name in names:
                first = names[name]
                text = f"with {first}, services and probes that select ports by name will use {first}"
                renamed.append(f"{place}: duplicate port name {quote(name)} {text}")
            elif name:
                names[name] = place
    yield from renamed


def _clash(port: Document, other: Document) -> str:
    """Return how two ports with the same number and protocol conflict, or "" if they do not."""
    (address, number), (address2, number2) = (
        (each.get("hostIP") or "", each.get("hostPort") or 0) for each in (port, other)
    )
    if (address, number) == (address2, number2):
        return "duplicate"
    if not number or not number2:
        return "overlapping"
    return "dangerously ambiguous" if number == number2 and bool(address) != bool(address2) else ""
