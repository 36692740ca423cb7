"""Fast creation of pods from one template: decode, validate and encode their common part once.

Pods of a template have the same spec and status. Only the order of their fields and the resources of containers may
differ, because a trace or an autoscaler can size each pod differently. The first pods of a template take the regular
path. Later pods reuse the stored bytes of spec, status and owned fields, with their own resources inserted. Unusual
pods take the regular path, which also reports all errors, so this module raises none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import msgspec

from bayplan.apiserver.admission.pod_security import is_policed
from bayplan.apiserver.codec.decode_error import DecodeError
from bayplan.apiserver.codec.shape import Unknown, shape_of
from bayplan.apiserver.fields import managed
from bayplan.apiserver.kinds.default_functions import default_pod
from bayplan.apiserver.kinds.pod_warnings import resource_warnings
from bayplan.apiserver.kinds.spec_cache import DEPENDENT
from bayplan.apiserver.model.object_meta import check_metadata, drop_repeated_owners, outline_of
from bayplan.apiserver.model.requests import RequestInfo, WriteOptions
from bayplan.apiserver.rest.backend import Backend, ordered_metadata
from bayplan.apiserver.rest.messages import Request
from bayplan.apiserver.rest.negotiation import JSON
from bayplan.apiserver.rest.writing import Written, is_terminating
from bayplan.apiserver.schema.emptied import Emptied
from bayplan.apiserver.store.item import Item
from bayplan.apiserver.validation.engine import Causes
from bayplan.apiserver.validation.pod_resources import quality_of_service
from bayplan.apiserver.validation.resources import container_resources
from bayplan.base.bounded_cache import BoundedCache, SeenKeys
from bayplan.base.plain_data import Document, part, parts
from bayplan.objects.names import check_dns1123_label

_MAX_TEMPLATES = 512
_MAX_AMOUNTS = 1024
_MAX_SENT_ONCE = 4096
_MAX_SPECS = 512
_MAX_SPEC_BYTES = 16_384
_MAX_OUTLINES = 64
_CORE = "io.k8s.api.core.v1."
_METADATA = shape_of("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
_RESOURCES = shape_of(_CORE + "ResourceRequirements")
_POD_SPEC, _POD_STATUS = shape_of(_CORE + "PodSpec"), shape_of(_CORE + "PodStatus")
_ORDINARY = frozenset(
    ("annotations", "creationTimestamp", "finalizers", "labels", "name", "namespace", "ownerReferences")
)
_MEANINGFUL = (
    "alpha.kubernetes.io/",
    "beta.kubernetes.io/",
    "kubernetes.io/config.mirror",
    "kubernetes.io/pod-deletion-cost",
)
"""Substrings of the keys of annotations that validation, admission or warnings read."""
# Tables that admission reads: templates are discarded when one of them changes.
_ADMISSION = ("scheduling.k8s.io/priorityclasses", "node.k8s.io/runtimeclasses")
_UNSUITABLE = (*DEPENDENT, b'"nodeName":')
"""Encoded field names that exclude a spec, because their rules depend on the pod's labels or node."""
_AMOUNTS = frozenset(("limits", "requests"))
_BURSTABLE = "Burstable"
_NOTHING = msgspec.Raw(b"")
_OMITTED = msgspec.Raw(b"0")
_PLACEHOLDER = "\x00resources\x00"
"""Stands for the resources and the QoS class when an encoded pod is split into the pieces that its template shares."""
_encode = msgspec.json.encode
_decode = msgspec.json.decode


def _raw_struct(type_name: str, **read: object) -> type[msgspec.Struct]:
    """Return a struct with the fields of an API type. Keyword arguments set the types of fields; other fields stay raw JSON."""
    fields = [(name, read.get(name, msgspec.Raw), _NOTHING) for name in shape_of(_CORE + type_name).fields]
    return msgspec.defstruct(type_name, fields, forbid_unknown_fields=True, omit_defaults=True)


if TYPE_CHECKING:
    _Container: TypeAlias = Any
    _Spec: TypeAlias = Any
else:
    _Container = _raw_struct("Container")
    _Spec = _raw_struct("PodSpec", containers=list[_Container])


class _Body(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """The body of a pod's create request, with spec and status as raw JSON."""

    metadata: Document
    spec: msgspec.Raw
    status: msgspec.Raw = _NOTHING
    kind: str = ""
    api_version: str = ""


_read = msgspec.json.Decoder(_Body).decode
_read_spec = msgspec.json.Decoder(_Spec).decode


class _Amounts(msgspec.Struct, frozen=True, gc=False):
    """The resources of a container.

    Attributes:
        stored: the resources as stored, in JSON.
        outline: the names of the limits and requests in JSON, which determine the fields that a client owns.
        qos_class: the QoS class of a pod that has only this container.
    """

    stored: bytes
    outline: bytes
    qos_class: str


class _CutSpec(msgspec.Struct, frozen=True, gc=False):
    """The spec and status of a create request, without the resources of containers.

    Attributes:
        key, amounts: see `PodCreate`.
        colons: the number of colons in spec and status if no key occurs twice.
    """

    key: tuple[bytes, ...]
    amounts: list[_Amounts]
    colons: int


class PodCreate(msgspec.Struct, frozen=True):
    """A create request of a pod that may belong to a template.

    Attributes:
        key: the template's key: spec without resources, status, and the outlines of the resources.
        metadata: the metadata as sent.
        amounts: the resources of those containers that have any, in order.
    """

    key: tuple[bytes, ...]
    metadata: Document
    amounts: list[_Amounts]


class _Template(msgspec.Struct, frozen=True):
    """The common parts of the pods of one template.

    Attributes:
        pieces: the stored JSON after the metadata, split at the resources of each container and at the QoS class.
        qos_class: the QoS class of the containers whose resources are the same in all pods; None if there are no such
            containers.
        fields: the values that field selectors can match.
        owned: the JSON of the fields that a client owns, by the outline of the metadata.
        versions: the versions of the tables that admission reads.
    """

    pieces: list[bytes]
    qos_class: str | None
    fields: Mapping[str, str]
    owned: dict[bytes, msgspec.Raw]
    versions: tuple[int, ...]


class PodTemplateCache:
    """Creates pods from known templates.

    Args:
        backend: the backend of the API.

    Attributes:
        created: the number of pods created from a known template.
        known_specs: the number of requests whose spec and status had been sent before, byte for byte.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        table = backend.store.table
        self._admission = [table(name) for name in _ADMISSION]
        self._limits = [table("limitranges"), table("resourcequotas")]
        self._templates: BoundedCache[tuple[bytes, ...], _Template] = BoundedCache(_MAX_TEMPLATES)
        self._sent = SeenKeys(_MAX_SENT_ONCE)
        # Keyed by the bytes of spec and status. A create takes 250,000 instructions in the API, and 289,000 without this cache
        # (callgrind).
        self._specs: BoundedCache[tuple[bytes, bytes], _CutSpec] = BoundedCache(_MAX_SPECS)
        self._amounts: BoundedCache[bytes, _Amounts | None] = BoundedCache(_MAX_AMOUNTS)
        self.created = self.known_specs = 0

    def read(self, request: Request) -> PodCreate | None:
        """Return the parts of a create request, or None if its pod cannot belong to a template."""
        body = request.body
        if request.headers.get("content-type") != JSON or b"\\u003a" in body or b"\\u003A" in body:
            return None
        try:
            found = _read(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        if (found.kind or found.api_version) and (found.kind or "Pod", found.api_version or "v1") != ("Pod", "v1"):
            return None
        sent = bytes(found.spec), bytes(found.status)
        spec = self._specs.get(sent)
        if spec is not None:
            self.known_specs += 1
        else:
            spec = self._cut_spec(*sent)
            if spec is None:
                return None
            if spec.key in self._templates and len(found.spec) <= _MAX_SPEC_BYTES:
                self._specs.put(sent, spec)
        # A parsed object has fewer colons than the body if a key was sent twice; see `bayplan.apiserver.codec.bodies`.
        colons = 2 + bool(sent[1]) + bool(found.kind) + bool(found.api_version)
        colons += spec.colons + _encode(found.metadata).count(b":")
        return PodCreate(spec.key, found.metadata, spec.amounts) if colons == body.count(b":") else None

    def _cut_spec(self, sent: bytes, status: bytes) -> _CutSpec | None:
        """Return the key and the resources in spec and status, or None if they cannot belong to a template."""
        try:
            spec = _read_spec(sent)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        if not spec.containers or spec.resources is not _NOTHING:
            return None
        colons = status.count(b":")
        amounts: list[_Amounts] = []
        for container in spec.containers:
            if container.resources is not _NOTHING:
                resources = bytes(container.resources)
                known = self._amounts_of(resources)
                if known is None:
                    return None
                amounts.append(known)
                container.resources = _OMITTED
                colons += resources.count(b":")
        rest = _encode(spec)
        key = (rest, status, *[each.outline for each in amounts])
        return _CutSpec(key, amounts, colons + rest.count(b":"))

    def _amounts_of(self, sent: bytes) -> _Amounts | None:
        """Return the cached resources of a container; None if `_read_amounts` does not accept them."""
        if sent in self._amounts:
            return self._amounts[sent]
        return self._amounts.put(sent, _read_amounts(sent))

    def create(self, info: RequestInfo, sent: PodCreate, options: WriteOptions) -> Item | None:
        """Store a pod of a known template.

        Args:
            info: the create request of a pod.
            sent: the parts of the request.
            options: the options of the write.

        Returns:
            The stored pod. None, without any effect, unless the regular path would certainly store the same.
        """
        template = self._templates.get(sent.key)
        if template is None or options.dry_run:
            return None
        if template.versions != self._versions():
            del self._templates[sent.key]
            return None
        metadata = _metadata(info, sent.metadata)
        if metadata is None or not self._admits(info, metadata):
            return None
        owned = template.owned.get(outline_of(metadata))
        return None if owned is None else self._store(template, sent, metadata, owned, options)

    def _versions(self) -> tuple[int, ...]:
        # The rules of limit ranges and quotas differ by namespace, so nothing is cached if there are any.
        return (sum([len(table) for table in self._limits]), *[table.version for table in self._admission])

    def _admits(self, info: RequestInfo, metadata: Document) -> bool:
        """Return whether a pod with this metadata can certainly be created without warnings."""
        store = self._backend.store
        name, namespace = str(metadata.get("name") or ""), store.get("namespaces", ("", info.namespace))
        if namespace is None or is_terminating(namespace) or store.get("pods", (info.namespace, name)) is not None:
            return False
        if is_policed(namespace.labels):
            return False
        wrong = check_metadata(metadata, True, "subdomain", standard=True) or check_dns1123_label(name)
        return not wrong and not drop_repeated_owners(metadata)

    def _store(
        self, template: _Template, sent: PodCreate, metadata: Document, owned: msgspec.Raw, options: WriteOptions
    ) -> Item:
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
                "fieldsV1": owned,
            }
        ]
        item = Item(
            raw=b'{"metadata":%b%b' % (_encode(ordered_metadata(metadata)), _encode_rest(template, sent.amounts)),
            revision=revision,
            namespace=cast("str", metadata["namespace"]),
            name=cast("str", metadata["name"]),
            uid=uid,
            labels=cast("dict[str, str]", metadata.get("labels") or {}),
            fields=template.fields,
        )
        backend.store.put("pods", item)
        self.created += 1
        return item

    def add(self, info: RequestInfo, sent: PodCreate, written: Written) -> None:
        """Cache the common parts of a pod that took the regular path, if later pods can reuse them.

        Args:
            info: the create request of the pod.
            sent: the parts of the request.
            written: the result of the write.
        """
        item, document, metadata = written.item, written.document, _metadata(info, sent.metadata)
        if item is None or written.warnings or metadata is None or self._sent.is_new(sent.key):
            return
        (entry, *others) = parts(part(document, "metadata"), "managedFields") or [{}]
        if others or "fieldsV1" not in entry:
            return
        template = self._templates.get(sent.key) or self._template_of(sent, item, document)
        if template is not None and len(template.owned) < _MAX_OUTLINES:
            template.owned[outline_of(metadata)] = msgspec.Raw(_encode(entry["fieldsV1"]))

    def _template_of(self, sent: PodCreate, item: Item, document: Document) -> _Template | None:
        """Return a new template from a stored pod; None if more than the resources of its pods can differ."""
        versions, status = self._versions(), part(document, "status")
        # Scheduling gates add a condition to the status that contains the time.
        encoded, spec = [_encode(_decode(each or b"null")) for each in sent.key[:2]], part(document, "spec")
        if versions[0] or "conditions" in status or any(each in encoded[0] for each in _UNSUITABLE):
            return None
        if any(each.count(b":") != other.count(b":") for each, other in zip(encoded, sent.key, strict=False)):
            return None  # A key was sent twice: strict validation rejects that.
        if _has_unknown_fields(sent):
            return None  # Strict validation rejects unknown fields, and other clients get warnings.
        containers = [
            {**each, "resources": _PLACEHOLDER} if each.get("resources") else each for each in parts(spec, "containers")
        ]
        alike = [each for each in containers if each.get("resources") is not _PLACEHOLDER] + parts(
            spec, "initContainers"
        )
        marked = {
            **document,
            "spec": {**spec, "containers": containers},
            "status": {**status, "qosClass": _PLACEHOLDER},
        }
        rest = _encode(
            {name: value for name, value in marked.items() if name not in ("kind", "apiVersion", "metadata")}
        )
        template = _Template(
            (b"," + rest[1:]).split(_encode(_PLACEHOLDER)),
            quality_of_service({"spec": {"containers": alike}}) if alike else None,
            item.fields,
            {},
            versions,
        )
        head = b'{"metadata":' + _encode(part(document, "metadata"))
        if len(template.pieces) != len(sent.amounts) + 2 or item.raw != head + _encode_rest(template, sent.amounts):
            return None
        return self._templates.put(sent.key, template)


def _has_unknown_fields(sent: PodCreate) -> bool:
    """Return whether spec or status have unknown fields at any depth, or cannot be decoded."""
    spec, status = (_decode(each or b"null") for each in sent.key[:2])
    for container in parts(spec, "containers"):
        if container.get("resources") == 0:
            del container["resources"]
    unknown = Unknown()
    try:
        _POD_SPEC.read(spec, unknown)
        _POD_STATUS.read(status or {}, unknown)
    except DecodeError:
        return True
    return bool(unknown.found)


def _metadata(info: RequestInfo, sent: Document) -> Document | None:
    """Return the decoded metadata of a pod to create, or None if the pod must take the regular path.

    None is returned for rare or unknown fields, invalid values, a namespace other than the request's, and annotations
    that affect validation or warnings.
    """
    if not sent.keys() <= _ORDINARY:
        return None
    unknown = Unknown()
    try:
        metadata = cast("Document", _METADATA.read(sent, unknown))
    except DecodeError:
        return None
    if unknown.found or (metadata.get("namespace") or info.namespace) != info.namespace:
        return None
    if any(each in key for key in part(metadata, "annotations") for each in _MEANINGFUL):
        return None
    metadata["namespace"] = info.namespace
    return metadata


def _encode_rest(template: _Template, amounts: list[_Amounts]) -> bytes:
    """Return the stored JSON of a pod after its metadata."""
    qos_classes = {each.qos_class for each in amounts}
    if template.qos_class is not None:
        qos_classes.add(template.qos_class)
    qos_class = qos_classes.pop() if len(qos_classes) == 1 else _BURSTABLE
    pieces = template.pieces
    found = [pieces[0]]
    for index, each in enumerate(amounts):
        found += (each.stored, pieces[index + 1])
    found += (b'"', qos_class.encode(), b'"', pieces[-1])
    return b"".join(found)


def _read_amounts(sent: bytes) -> _Amounts | None:
    """Return a container's resources after decoding and defaults, or None if its pod must take the regular path.

    None is returned for invalid resources, fields other than limits and requests, empty or null values, repeated keys,
    and amounts that cause a warning.
    """
    try:
        value = _decode(sent)
    except msgspec.ValidationError:  # A number that exceeds a float64.
        return None
    if type(value) is not dict or not value or not value.keys() <= _AMOUNTS:
        return None
    if _encode(value).count(b":") != sent.count(b":"):
        return None
    outline = []
    for name, amounts in value.items():
        if type(amounts) is not dict or not amounts or None in amounts.values():
            return None
        outline.append((name, list(amounts)))
    try:
        resources = cast("Document", _RESOURCES.read(value))
    except DecodeError:
        return None
    pod: Document = {"spec": {"containers": [{"resources": resources}]}}
    default_pod(pod)
    causes: Causes = []
    container_resources(resources, "", causes)
    if causes or isinstance(resources, Emptied) or resource_warnings(resources, ""):
        return None
    return _Amounts(_encode(resources), _encode(outline), quality_of_service(pod))
