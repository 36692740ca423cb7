"""Validation rules of pod annotations with a meaning: mirror pods, deletion cost, seccomp and AppArmor profiles."""

from __future__ import annotations

import re

from bayplan.apiserver.model.errors import Cause, forbidden_value, invalid_value
from bayplan.apiserver.validation.engine import Causes, go_value
from bayplan.apiserver.validation.paths import descending_path
from bayplan.base.plain_data import Document, part, parts
from bayplan.objects.selectors import quote

MIRROR = "kubernetes.io/config.mirror"
_COST = "controller.kubernetes.io/pod-deletion-cost"
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_INT32 = 2**31
_MISMATCH = " in annotation and field must match"
_CONTAINER_KINDS = ("initContainers", "containers", "ephemeralContainers")


def pod_annotations(annotations: Document, spec: Document, path: str, out: Causes) -> None:
    """Check the annotations of a pod or pod template."""
    if not annotations:
        return
    if MIRROR in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        out.append(invalid_value(f"{path}[{MIRROR}]", go_value(annotations[MIRROR]), detail))
    cost = annotations.get(_COST)
    if cost is not None and not _is_cost(str(cost)):
        out.append(invalid_value(f"{path}[{_COST}]", quote(str(cost)), "must be a 32bit integer"))
    profiles = sorted(key for key in annotations if key.startswith(_SECCOMP_CONTAINER))
    for key in (_SECCOMP_POD, *profiles) if _SECCOMP_POD in annotations else profiles:
        _seccomp(str(annotations[key]), f"{path}.{key}", out)
    for key in sorted(annotations):
        if key.startswith(_APP_ARMOR):
            _app_armor(key, str(annotations[key]), spec, f"{path}[{key}]", out)


def _is_cost(text: str) -> bool:
    return re.fullmatch(r"-?(0|[1-9][0-9]*)", text) is not None and -_INT32 <= int(text[:20]) < _INT32 and text != "-0"


def _seccomp(text: str, path: str, out: Causes) -> None:
    if text in ("runtime/default", "docker/default", "unconfined"):
        return
    if text.startswith("localhost/"):
        descending_path(text.removeprefix("localhost/"), path, out)
    else:
        out.append(invalid_value(path, quote(text), "must be a valid seccomp profile"))


def _app_armor(key: str, text: str, spec: Document, path: str, out: Causes) -> None:
    name = key.removeprefix(_APP_ARMOR)
    if all(each.get("name") != name for kind in _CONTAINER_KINDS for each in parts(spec, kind)):
        out.append(invalid_value(path, quote(name), "container not found"))
    if text not in ("", "runtime/default", "unconfined") and not text.startswith("localhost/"):
        detail = f"invalid AppArmor profile name: {quote(text)}"
        out.append(invalid_value(path, quote(text), detail))


def profile_annotations(annotations: Document, spec: Document, path: str, out: Causes) -> None:
    """Report profiles in annotations that differ from those in fields."""
    if not any(key == _SECCOMP_POD or key.startswith((_SECCOMP_CONTAINER, _APP_ARMOR)) for key in annotations):
        return
    own = part(spec, "securityContext")
    if _SECCOMP_POD in annotations:
        at = f"{path}.securityContext.seccompProfile"
        out.extend(_compare(part(own, "seccompProfile"), str(annotations[_SECCOMP_POD]), at, "seccomp"))
    for prefix, field, what in (
        (_SECCOMP_CONTAINER, "seccompProfile", "seccomp"),
        (_APP_ARMOR, "appArmorProfile", "apparmor"),
    ):
        if what == "apparmor" and part(spec, "os").get("name") == "windows":
            continue
        for kind in _CONTAINER_KINDS:
            for index, container in enumerate(parts(spec, kind)):
                text = annotations.get(f"{prefix}{container.get('name')}")
                profile = part(container, "securityContext", field)
                if not profile and what == "apparmor":
                    profile = part(own, field)
                if text is not None:
                    at = f"{path}.{kind}[{index}].securityContext.{field}"
                    out.extend(_compare(profile, str(text), at, what))


def _compare(profile: Document, text: str, path: str, what: str) -> list[Cause]:
    fitting = {"Unconfined": ("unconfined",), "RuntimeDefault": ("runtime/default", "docker/default")}
    kind = str(profile.get("type") or "")
    if kind in fitting and text not in fitting[kind][: 1 if what == "apparmor" else 2]:
        return [forbidden_value(f"{path}.type", f"{what} type{_MISMATCH}")]
    if kind == "Localhost":
        if not text.startswith("localhost/"):
            return [forbidden_value(f"{path}.type", f"{what} type{_MISMATCH}")]
        if text.removeprefix("localhost/") != profile.get("localhostProfile"):
            return [forbidden_value(f"{path}.localhostProfile", f"{what} profile{_MISMATCH}")]
    return []


def pod_annotation_changes(new: Document, old: Document, path: str, out: Causes) -> None:
    """Report forbidden changes of a pod's annotations."""
    for keys, verb in ((sorted(old), "remove or update"), (sorted(new.keys() - old.keys()), "add")):
        for key in keys:
            if key in old and new.get(key) == old[key]:
                continue
            if key.startswith(_APP_ARMOR):
                out.append(forbidden_value(f"{path}[{key}]", f"may not {verb} AppArmor annotations"))
            if key == MIRROR:
                out.append(forbidden_value(f"{path}[{key}]", f"may not {verb} mirror pod annotation"))
