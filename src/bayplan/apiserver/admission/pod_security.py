"""Pod security admission: labels of a namespace set the levels that its pods must meet and are warned about.

This is the plugin PodSecurity without exemptions and with its default configuration, so a namespace without labels is
privileged. The mode ``audit`` is not evaluated: it only writes to an audit log, and Bayplan has none.

Source: https://kubernetes.io/docs/concepts/security/pod-security-admission/
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from bayplan.apiserver.admission.attributes import Server
from bayplan.apiserver.admission.pod_security_checks import (
    BASELINE,
    LATEST,
    PRIVILEGED,
    RESTRICTED,
    Violation,
    violations,
)
from bayplan.apiserver.kinds.strategy import Context, Strategy
from bayplan.apiserver.model.errors import forbidden, invalid
from bayplan.apiserver.validation.core import SECURITY_LEVELS, is_security_version, security_label_causes
from bayplan.base.counted_nouns import plural
from bayplan.base.plain_data import Document, part, parts

_PREFIX = "pod-security.kubernetes.io/"
_ENFORCE, _WARN = f"{_PREFIX}enforce", f"{_PREFIX}warn"
# A version label alone has no effect, because the default level is privileged.
_DECIDING = frozenset((_ENFORCE, _WARN))
_MAX_PODS = 3000
_TEMPLATES = {
    "replicationcontrollers": ("spec", "template"),
    "podtemplates": ("template",),
    "apps/replicasets": ("spec", "template"),
    "apps/deployments": ("spec", "template"),
    "apps/statefulsets": ("spec", "template"),
    "apps/daemonsets": ("spec", "template"),
    "batch/jobs": ("spec", "template"),
    "batch/cronjobs": ("spec", "jobTemplate", "spec", "template"),
}
"""The path of the pod template, by table."""
_POD_SUBRESOURCES = ("", "ephemeralcontainers")


class LevelVersion(NamedTuple):
    """A level in a version of the standards, shown as ``restricted:v1.36``."""

    level: str
    version: str

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    def find(self, pod: Document) -> list[Violation]:
        """Return the violations of this level by a pod or pod template."""
        return violations(self.level, self.version, pod)


class Policy(NamedTuple):
    """The levels that a namespace enforces and warns about."""

    enforce: LevelVersion
    warn: LevelVersion


def is_policed(labels: Mapping[str, str]) -> bool:
    """Return whether the labels of a namespace set a level to enforce or to warn about."""
    return not _DECIDING.isdisjoint(labels)


def policy_of(labels: Mapping[str, str]) -> Policy:
    """Return the policy in the labels of a namespace.

    Warnings default to the enforced level. An invalid enforced level means restricted, an invalid version latest.
    """
    enforce, warn = labels.get(_ENFORCE, PRIVILEGED), labels.get(_WARN)
    enforce_version, warn_version = (_version(labels, f"{name}-version") for name in (_ENFORCE, _WARN))
    if warn is None and enforce in (BASELINE, RESTRICTED):
        warn = enforce
        warn_version = warn_version or enforce_version
    return Policy(
        LevelVersion(enforce if enforce in SECURITY_LEVELS else RESTRICTED, enforce_version or LATEST),
        LevelVersion(warn if warn in SECURITY_LEVELS else PRIVILEGED, warn_version or LATEST),
    )


def _version(labels: Mapping[str, str], name: str) -> str:
    found = labels.get(name, "")
    return found if not found or is_security_version(found) else LATEST


def admit_security(
    server: Server, context: Context, strategy: Strategy, new: Document, old: Document | None
) -> list[str]:
    """Check a valid write of a pod, of an object with a pod template, or of a namespace.

    Args:
        server: the server that handles the write.
        context: the context of the write.
        strategy: the strategy of the kind, whose warnings a denial includes.
        new: the complete object, in the stored version.
        old: the current object, None for a create.

    Returns:
        The warnings of the plugin.

    Raises:
        ApiError: a pod violates the level that its namespace enforces.
    """
    table, subresource = context.resource.table, context.subresource
    if table == "namespaces":
        return _admit_namespace(server, new, old) if not subresource else []
    if table == "pods":
        if subresource not in _POD_SUBRESOURCES:
            return []
    elif subresource or table not in _TEMPLATES:
        return []
    namespace = server.store.get("namespaces", ("", context.namespace))
    if namespace is None or not is_policed(namespace.labels):
        return []
    policy = policy_of(namespace.labels)
    if table != "pods":
        template = part(new, *_TEMPLATES[table])
        return _warnings(policy.warn, template) if template else []
    if old is not None and not _matters(part(new, "spec"), part(old, "spec")):
        return []
    if found := policy.enforce.find(new):
        name, why = (
            str(part(new, "metadata").get("name")),
            f'violates PodSecurity "{policy.enforce}": {_detailed(found)}',
        )
        problem = forbidden(context.resource.name, context.resource.group, name, why)
        # Upstream collects the strategy's warnings before validating admission.
        problem.warnings = [] if subresource else strategy.warnings(context, new, old)
        raise problem
    return [] if policy.warn == policy.enforce else _warnings(policy.warn, new)


def _warnings(demanded: LevelVersion, pod: Document) -> list[str]:
    found = demanded.find(pod)
    return [f'would violate PodSecurity "{demanded}": {_detailed(found)}'] if found else []


def _detailed(found: list[Violation]) -> str:
    return ", ".join(f"{each.reason} ({each.detail})" for each in found)


def _matters(new: Document, old: Document) -> bool:
    """Return whether an update of a pod must be checked: it changes the images or the number of containers."""
    for kind in ("containers", "initContainers"):
        if [each.get("image") for each in parts(new, kind)] != [each.get("image") for each in parts(old, kind)]:
            return True
    known = {each.get("name"): each.get("image") for each in parts(old, "ephemeralContainers")}
    ephemeral = [(each.get("name"), each.get("image")) for each in parts(new, "ephemeralContainers")]
    return any(name not in known or known[name] != image for name, image in ephemeral)


# --- namespaces -------------------------------------------------------------------------------------------------------


def _admit_namespace(server: Server, new: Document, old: Document | None) -> list[str]:
    """Check the labels of a namespace, unless an update leaves invalid ones unchanged, and return warnings.

    Raises:
        ApiError: a label is invalid.
    """
    causes = security_label_causes(new)
    if causes and (old is None or causes != security_label_causes(old)):
        raise invalid("Namespace", "", str(part(new, "metadata").get("name") or ""), causes)
    return [] if old is None else _namespace_warnings(server, new, old)


def _namespace_warnings(server: Server, new: Document, old: Document) -> list[str]:
    """Return warnings about existing pods that violate the level that a namespace newly enforces."""
    labels = part(new, "metadata", "labels")
    if _ENFORCE not in labels:
        return []
    enforce, before = (_enforced(each) for each in (new, old))
    eased = enforce.version == before.version and SECURITY_LEVELS.index(enforce.level) <= SECURITY_LEVELS.index(
        before.level
    )
    if enforce.level == PRIVILEGED or eased:
        return []
    name = str(part(new, "metadata").get("name"))
    pods = _first_of_controllers([msgspec.json.decode(each.raw) for each in server.store.between("pods", name)])
    violating: dict[str, list[str]] = {}
    for pod in pods[:_MAX_PODS]:
        if found := enforce.find(pod):
            reasons = ", ".join(each.reason for each in found)
            violating.setdefault(reasons, []).append(str(part(pod, "metadata").get("name")))
    warnings = []
    if len(pods) > _MAX_PODS:
        checked = f"the first {_MAX_PODS} of {len(pods)} existing pods"
        warnings.append(f"new PodSecurity enforce level only checked against {checked}")
    if violating:
        warnings.append(f'existing pods in namespace "{name}" violate the new PodSecurity enforce level "{enforce}"')
    return warnings + sorted(_counted(names, reasons) for reasons, names in violating.items())


def _enforced(namespace: Document) -> LevelVersion:
    return policy_of({name: str(value) for name, value in part(namespace, "metadata", "labels").items()}).enforce


def _counted(names: list[str], reasons: str) -> str:
    others = len(names) - 1
    more = f" (and {others} other {plural('pod', others)})" if others else ""
    return f"{min(names)}{more}: {reasons}"


def _first_of_controllers(pods: list[Document]) -> list[Document]:
    """Return the pods reordered: pods whose controller already has an earlier pod come last."""
    first, later, seen = list[Document](), list[Document](), set[object]()
    for pod in pods:
        owners = parts(part(pod, "metadata"), "ownerReferences")
        controller = next((each.get("uid") for each in owners if each.get("controller")), None)
        (later if controller in seen else first).append(pod)
        if controller is not None:
            seen.add(controller)
    return first + later
