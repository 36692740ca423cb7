"""AppArmor profiles of containers: the field, and the older annotation, from which the field of a pod is set."""

from __future__ import annotations

from bayplan.base.plain_data import Document, part, parts

ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
"""The annotation of a container's profile, without the container's name."""
_LOCALHOST = "localhost/"
_MAX_PATH_BYTES = 4095


def profile_of(annotation: str) -> Document | None:
    """Return the profile for an annotation, or None if the annotation is invalid."""
    if annotation == "unconfined":
        return {"type": "Unconfined"}
    if annotation == "runtime/default":
        return {"type": "RuntimeDefault"}
    path = annotation.removeprefix(_LOCALHOST)
    if path == annotation or not path or path.strip() != path or len(path.encode()) > _MAX_PATH_BYTES:
        return None
    return {"type": "Localhost", "localhostProfile": path}


def repeats_pod(spec: Document, annotation: str) -> bool:
    """Return whether an annotation means the pod's own profile, so that the container needs none."""
    return part(spec, "securityContext").get("appArmorProfile") == (profile_of(annotation) or {})


def set_app_armor_profiles(pod: Document) -> None:
    """Set the AppArmor profiles of containers that have one only in an annotation."""
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
