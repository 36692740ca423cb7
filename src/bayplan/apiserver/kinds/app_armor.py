"""AppArmor profiles of containers: set the field from the older annotation."""

from __future__ import annotations

from bayplan.base.plain_data import Document, part, parts

ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
"""The prefix of the annotation key; the name of the container follows."""
_LOCALHOST = "localhost/"
_MAX_PATH_BYTES = 4095


def profile_of(annotation: str) -> Document | None:
    """Return the value of `appArmorProfile` that an annotation stands for, or None if the annotation is invalid."""
    if annotation == "unconfined":
        return {"type": "Unconfined"}
    if annotation == "runtime/default":
        return {"type": "RuntimeDefault"}
    path = annotation.removeprefix(_LOCALHOST)
    if path == annotation or not path or path.strip() != path or len(path.encode()) > _MAX_PATH_BYTES:
        return None
    return {"type": "Localhost", "localhostProfile": path}


def repeats_pod(spec: Document, annotation: str) -> bool:
    """Return whether an annotation stands for the pod's own profile, so that the container needs no field."""
    return part(spec, "securityContext").get("appArmorProfile") == (profile_of(annotation) or {})


def set_app_armor_profiles(pod: Document) -> None:
    """Set the AppArmor profile of those containers that declare it only in an annotation."""
    annotations = part(pod, "metadata", "annotations")
    spec = part(pod, "spec")
    if not any(name.startswith(ANNOTATION) for name in annotations) or part(spec, "os").get("name") == "windows":
        return
    for name in ("initContainers", "containers"):
        if name in spec:
            spec[name] = [_with_profile(each, spec, annotations) for each in parts(spec, name)]


def _with_profile(container: Document, spec: Document, annotations: Document) -> Document:
    security = part(container, "securityContext")
    annotation = str(annotations.get(f"{ANNOTATION}{container.get('name')}") or "")
    profile = profile_of(annotation)
    if security.get("appArmorProfile") or profile is None or repeats_pod(spec, annotation):
        return container
    return {**container, "securityContext": {**security, "appArmorProfile": profile}}
