"""Partial decoding of local objects: only the fields that the follower reads, because the watch reports every write."""

from __future__ import annotations

import msgspec

from bayplan.base.plain_data import Document

_whole = msgspec.json.Decoder(dict[str, object]).decode


class _Metadata(msgspec.Struct, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    annotations: dict[str, str] | None = None


class _Spec(msgspec.Struct, gc=False, rename="camel"):
    scheduling_gates: list[Document] | None = None


class _Status(msgspec.Struct, gc=False):
    phase: str = ""


class _Facts(msgspec.Struct, gc=False):
    metadata: _Metadata
    spec: _Spec | None = None
    status: _Status | None = None


_facts = msgspec.json.Decoder(_Facts).decode


def read_local_facts(raw: bytes) -> Document:
    """Return a document with only the fields that `bayplan.sync.follower.Follower.local_changed` reads.

    Args:
        raw: the object as JSON; if its structure is unexpected, all fields are returned.
    """
    try:
        facts = _facts(raw)
    except msgspec.ValidationError:
        return _whole(raw)
    metadata, spec, status = facts.metadata, facts.spec, facts.status
    document: Document = {
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "uid": metadata.uid,
            "annotations": metadata.annotations or {},
        }
    }
    if spec is not None and spec.scheduling_gates:
        document["spec"] = {"schedulingGates": spec.scheduling_gates}
    if status is not None and status.phase:
        document["status"] = {"phase": status.phase}
    return document
