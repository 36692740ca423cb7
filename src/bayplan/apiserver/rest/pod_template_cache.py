"""Fast creation of pods of one template: their common part is decoded, validated and encoded once.

The first pods of a template take the regular path. After that, a pod with the same spec, byte for byte, differs only in its
metadata: the stored bytes of spec, status and owned fields are reused. Any unusual pod takes the regular path, which also returns
the errors; so this module raises none.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import cast

import msgspec

from bayplan.apiserver.admission.pod_security import is_policed
from bayplan.apiserver.codec.decode_error import DecodeError
from bayplan.apiserver.codec.shape import Unknown, shape_of
from bayplan.apiserver.fields import managed
from bayplan.apiserver.kinds.spec_memory import RememberedSpec, SpecFacts
from bayplan.apiserver.model.object_meta import check_metadata, drop_repeated_owners
from bayplan.apiserver.model.requests import RequestInfo, WriteOptions
from bayplan.apiserver.rest.backend import Backend, ordered_metadata
from bayplan.apiserver.rest.messages import Request
from bayplan.apiserver.rest.negotiation import JSON
from bayplan.apiserver.rest.writing import Written, is_going, outline_of
from bayplan.apiserver.store.item import Item
from bayplan.base.plain_data import Document, part
from bayplan.objects.names import check_dns1123_label

_MOST = 512
_FORGOTTEN = 8
_METADATA = shape_of("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
_ORDINARY = frozenset(
    ("annotations", "creationTimestamp", "finalizers", "labels", "name", "namespace", "ownerReferences")
)
# Tables that admission reads; if one has changed, everything is computed again.
_ADMISSION = ("scheduling.k8s.io/priorityclasses", "node.k8s.io/runtimeclasses")
_NOTHING = msgspec.Raw(b"")
_encode = msgspec.json.encode


class _Body(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    """The pod of a create request."""

    metadata: Document
    spec: msgspec.Raw
    status: msgspec.Raw = _NOTHING
    kind: str = ""
    api_version: str = ""


_read = msgspec.json.Decoder(_Body).decode


class _Mould(msgspec.Struct, frozen=True):
    """The common parts of the pods of one template.

    Attributes:
        rest: the part after the metadata of a stored pod.
        fields: the selectable fields.
        facts: the facts of the spec.
        owned: the encoded fields that a client owns, by the outline of the metadata.
        versions: the versions of the tables that admission reads.
    """

    rest: bytes
    fields: Mapping[str, str]
    facts: SpecFacts
    owned: dict[bytes, msgspec.Raw]
    versions: tuple[int, ...]


class PodTemplateCache:
    """Creates pods of known templates.

    Args:
        backend: the backend of the API.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        table = backend.store.table
        self._admission = [table(name) for name in _ADMISSION]
        self._limits = [table("limitranges"), table("resourcequotas")]
        self._moulds: dict[tuple[bytes, bytes], _Mould] = {}

    def create(self, info: RequestInfo, request: Request, options: WriteOptions) -> Item | None:
        """Store a pod of a known template.

        Args:
            info: a create of a pod.
            request: the request, with its body.
            options: the options of the write.

        Returns:
            The stored pod; None, without any effect, unless the regular path is certain to store the same.
        """
        if not self._moulds or options.dry_run or request.headers.get("content-type") != JSON:
            return None
        try:
            body = _read(request.body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        mould = self._mould(body)
        if mould is None or not _has_no_duplicates(_encode(body), request.body):
            return None
        metadata = self._metadata(info, body.metadata)
        return None if metadata is None else self._store(mould, metadata, options)

    def _mould(self, body: _Body) -> _Mould | None:
        """Return the cached parts of a template if they are still valid."""
        if (body.kind or body.api_version) and (body.kind or "Pod", body.api_version or "v1") != ("Pod", "v1"):
            return None
        key = (bytes(body.spec), bytes(body.status))
        mould = self._moulds.get(key)
        if mould is not None and mould.versions != self._versions():
            del self._moulds[key]
            return None
        return mould

    def _versions(self) -> tuple[int, ...]:
        # Limit ranges differ by namespace: if there are any, nothing can be cached.
        return (sum([len(table) for table in self._limits]), *[table.version for table in self._admission])

    def _metadata(self, info: RequestInfo, sent: Document) -> Document | None:
        """Return the metadata of a pod that can be created, or None if anything is unusual or invalid."""
        store = self._backend.store
        if not sent.keys() <= _ORDINARY:
            return None
        unknown = Unknown()
        try:
            metadata = cast("Document", _METADATA.read(sent, unknown))
        except DecodeError:
            return None
        if unknown.found or (metadata.get("namespace") or info.namespace) != info.namespace:
            return None
        metadata["namespace"] = info.namespace
        name, namespace = str(metadata.get("name") or ""), store.get("namespaces", ("", info.namespace))
        if namespace is None or is_going(namespace) or store.get("pods", (info.namespace, name)) is not None:
            return None
        if is_policed(namespace.labels):
            return None
        wrong = check_metadata(metadata, True, "subdomain", standard=True) or check_dns1123_label(name)
        if wrong or drop_repeated_owners(metadata):
            return None
        return metadata

    def _store(self, mould: _Mould, metadata: Document, options: WriteOptions) -> Item | None:
        outline = outline_of(metadata)
        fields = mould.owned.get(outline)
        if fields is None:
            if outline not in mould.facts.objects:
                return None
            fields = mould.owned[outline] = msgspec.Raw(_encode(mould.facts.objects[outline]))
        backend, now = self._backend, self._backend.now()
        revision = backend.store.revision + 1
        metadata["uid"] = uid = backend.new_uid()
        metadata["resourceVersion"] = str(revision)
        metadata["generation"] = 1
        metadata["creationTimestamp"] = now
        metadata["managedFields"] = [
            {
                "manager": options.manager,
                "operation": managed.UPDATE,
                "apiVersion": "v1",
                "time": now,
                "fieldsType": "FieldsV1",
                "fieldsV1": fields,
            }
        ]
        item = Item(
            raw=b'{"metadata":%b%b' % (_encode(ordered_metadata(metadata)), mould.rest),
            revision=revision,
            namespace=cast("str", metadata["namespace"]),
            name=cast("str", metadata["name"]),
            uid=uid,
            labels=cast("dict[str, str]", metadata.get("labels") or {}),
            fields=mould.fields,
        )
        backend.store.put("pods", item)
        return item

    def learn(self, request: Request, written: Written) -> None:
        """Cache the common parts of a pod that took the regular path, for later pods.

        Args:
            request: the request that created the pod.
            written: the result.
        """
        spec, item = written.document.get("spec"), written.item
        if item is None or written.warnings or not isinstance(spec, RememberedSpec) or not spec.repeats:
            return
        versions = self._versions()
        # A pod with gates has a condition that contains the time.
        if versions[0] or "conditions" in part(written.document, "status"):
            return
        try:
            body = _read(request.body)
            plain = _encode(msgspec.json.decode(request.body))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return
        head = b'{"metadata":' + _encode(part(written.document, "metadata"))
        if not item.raw.startswith(head) or not _has_no_duplicates(plain, request.body):
            return
        if len(self._moulds) >= _MOST:
            for oldest in list(islice(self._moulds, _FORGOTTEN)):
                del self._moulds[oldest]
        key = (bytes(body.spec), bytes(body.status))
        self._moulds[key] = _Mould(item.raw[len(head) :], item.fields, spec.facts, {}, versions)


def _has_no_duplicates(written_again: bytes, sent: bytes) -> bool:
    """Return whether the body is certain to have no duplicate key; see `bayplan.apiserver.codec.bodies`."""
    return sent.count(b":") == written_again.count(b":") and b"\\u003a" not in sent and b"\\u003A" not in sent
