"""Redaction of recorded objects: removes fields that scheduling does not read, such as environment, commands, most annotations."""

from __future__ import annotations

from bayplan.base.errors import InputError
from bayplan.base.plain_data import Document
from bayplan.objects.kinds import decode, encode
from bayplan.sync.document import items, part
from bayplan.sync.followed_kinds import SPREAD_OWNERS, FollowedKind
from bayplan.sync.translation import workload_spec

_COPIED_ANNOTATIONS = ("pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/", "bayplan.io/")
_LEFT_OUT_OF_CONTAINERS = ("command", "args", "env", "envFrom")


def redacted(kind: FollowedKind, document: Document) -> Document:
    """Return an object with only names, labels, uids, times, and the fields that the scheduler reads.

    Of an object that can't be decoded, only the metadata is kept.
    """
    metadata = part(document, "metadata")
    kept: Document = {
        name: metadata[name]
        for name in ("name", "generateName", "namespace", "uid", "resourceVersion", "creationTimestamp", "labels")
        if name in metadata
    }
    for name in ("deletionTimestamp", "ownerReferences"):
        if name in metadata:
            kept[name] = metadata[name]
    annotations = {
        name: value for name, value in part(metadata, "annotations").items() if name.startswith(_COPIED_ANNOTATIONS)
    }
    if annotations:
        kept["annotations"] = annotations
    if kind.kind == "RuntimeClass":
        read: Document = {name: document[name] for name in ("handler", "overhead", "scheduling") if name in document}
    else:
        try:
            read = encode(decode({**document, "apiVersion": kind.api_version, "kind": kind.kind}))
        except InputError:
            read = {}
    if (kind.api_version, kind.kind) in SPREAD_OWNERS:
        read["spec"] = workload_spec(part(read, "spec"))
        part(part(part(read, "spec"), "template"), "metadata").pop("annotations", None)
    pod_specs = (part(read, "spec"), part(part(part(read, "spec"), "template"), "spec"))
    for pod_spec in pod_specs:
        for container in items(pod_spec, "containers") + items(pod_spec, "initContainers"):
            for name in _LEFT_OUT_OF_CONTAINERS:
                container.pop(name, None)
    return {**read, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": kept}
