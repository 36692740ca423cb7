"""Validation rules of the downward API: references to the pod's own fields and resources."""

from __future__ import annotations

import re

from bayplan.apiserver.model.errors import invalid_value, not_supported, required
from bayplan.apiserver.validation.engine import Causes, field, must, need, value
from bayplan.apiserver.validation.formats import amount_of, qualified_name
from bayplan.apiserver.validation.paths import unreserved_path
from bayplan.base.plain_data import Document, part
from bayplan.objects.selectors import quote

_MODE = must(
    lambda found: isinstance(found, int) and 0 <= found <= 0o777,
    "must be a number between 0 and 0777 (octal), both inclusive",
)
ENV_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
VOLUME_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_CONVERTIBLE = frozenset((
    *ENV_FIELDS, *VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase", "spec.hostNetwork",
    "status.nominatedNodeName",
))  # fmt: skip
_RESOURCES = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage",
    "requests.memory",
)  # fmt: skip
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_BYTES = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_BYTES_TEXT = "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the "


def object_field(document: Document, path: str, out: Causes, supported: tuple[str, ...]) -> None:
    """Check a reference to a field of the pod, which must be in `supported`."""
    version, name = str(document.get("apiVersion") or ""), str(document.get("fieldPath") or "")
    for text, field_name in ((version, "apiVersion"), (name, "fieldPath")):
        if not text:
            out.append(required(f"{path}.{field_name}"))
            return
    subscripted = re.fullmatch(r"(.+)\['(.*)'\]", name)
    bare = subscripted[1] if subscripted else name
    problem = ""
    if version != "v1":
        problem = f"unsupported pod version: {version}"
    elif subscripted and bare not in ("metadata.annotations", "metadata.labels"):
        problem = f"field label does not support subscript: {bare}"
    elif bare not in _CONVERTIBLE and bare != "spec.host":
        problem = f"field label not supported: {bare}"
    if problem:
        detail = f"error converting fieldPath: {problem}"
        out.append(invalid_value(f"{path}.fieldPath", quote(name), detail))
    elif subscripted:
        key = subscripted[2].lower() if bare == "metadata.annotations" else subscripted[2]
        qualified_name(key, path, out)
    else:
        bare = "spec.nodeName" if bare == "spec.host" else bare
        if bare not in supported:
            out.append(not_supported(f"{path}.fieldPath", quote(bare), supported))


def container_resource(document: Document, path: str, out: Causes, *, volume: bool) -> None:
    """Check a reference to a resource of a container; in a volume, it must name the container."""
    name = str(document.get("resource") or "")
    if volume and not document.get("containerName"):
        out.append(required(f"{path}.containerName"))
    elif not name:
        out.append(required(f"{path}.resource"))
    elif name not in _RESOURCES and not name.startswith(_HUGE_PAGES):
        out.append(not_supported(f"{path}.resource", quote(name), _RESOURCES))
    divisor = str(document.get("divisor") or "0")
    if amount_of(divisor).sign() == 0:
        return
    detail = ""
    if name.endswith(".cpu"):
        detail = "" if divisor in ("1m", "1") else "only divisor's values 1m and 1 are supported with the cpu resource"
    elif divisor not in _BYTES:
        for end, what in (("memory", "memory"), ("ephemeral-storage", "local ephemeral storage")):
            detail = f"{_BYTES_TEXT}{what} resource" if name.endswith(f".{end}") else detail
        if name.startswith(_HUGE_PAGES):
            detail = f"{_BYTES_TEXT}hugepages resource"
    if detail:
        out.append(invalid_value(f"{path}.divisor", quote(name), detail))


def downward_file(document: Document, path: str, out: Causes) -> None:
    """Check a file of a downward API volume."""
    need("path")(document, path, out)
    value("path", unreserved_path)(document, path, out)
    if document.get("fieldRef") is not None:
        object_field(part(document, "fieldRef"), f"{path}.fieldRef", out, VOLUME_FIELDS)
        if document.get("resourceFieldRef") is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            out.append(invalid_value(path, '"resource"', detail))
    elif document.get("resourceFieldRef") is not None:
        container_resource(part(document, "resourceFieldRef"), f"{path}.resourceFieldRef", out, volume=True)
    else:
        out.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    field("mode", _MODE)(document, path, out)
