"""Loading of objects from files into the store: manifests like new objects, dumps of clusters unchanged.

An object with a uid comes from a cluster and is stored with all its fields, except that it is not terminating. An
object without a uid is admitted and prepared like a new object, but keeps its status. Nodes skip admission, because no
kubelet would remove the taint that admission adds. The run time of another cluster's pods is unknown, so pods that
would end on their own get the annotation `bayplan.io/run-time: forever`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import msgspec

from bayplan.apiserver.codec.decode_error import DecodeError
from bayplan.apiserver.kinds.conversion import from_storage, to_storage
from bayplan.apiserver.model.errors import ApiError, invalid
from bayplan.apiserver.model.requests import RequestInfo, WriteOptions
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.rest import writing
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.body_types import target_of
from bayplan.apiserver.rest.decoding import read_value
from bayplan.base.errors import InputError
from bayplan.base.garbage_collector import rare_collections
from bayplan.base.plain_data import Document, part
from bayplan.cluster.run_time import run_forever
from bayplan.formats.manifest import PlainObject
from bayplan.formats.suggestions import suggest_field, suggest_kind

_MANAGER = "bayplan-load"
_FIRST = (
    "apiextensions.k8s.io/customresourcedefinitions", "namespaces", "scheduling.k8s.io/priorityclasses",
    "node.k8s.io/runtimeclasses", "storage.k8s.io/storageclasses", "nodes",
)  # fmt: skip
_UNKNOWN_FIELD = re.compile(r'unknown field "(.*)"')
_NOT_ADMITTED = frozenset(("nodes",))
_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(Document).decode


@dataclass(slots=True)
class Loaded:
    """The result of loading.

    Attributes:
        counts: the number of loaded objects by kind.
        replaced: the number of objects that replaced an existing object.
        unknown: messages about unknown fields, by ``file:line Kind/name``.
    """

    counts: dict[str, int] = field(default_factory=dict)
    replaced: int = 0
    unknown: dict[str, list[str]] = field(default_factory=dict)


def load_documents(backend: Backend, sources: Iterable[PlainObject]) -> Loaded:
    """Store objects; definitions, namespaces, classes and nodes come first, regardless of the given order.

    Raises:
        InputError: a document is not an object of a served kind, or the API rejects it.
    """
    loaded = Loaded()
    with rare_collections():
        for _ in load_one_by_one(backend, sources, loaded):
            pass
    return loaded


def load_one_by_one(backend: Backend, sources: Iterable[PlainObject], loaded: Loaded) -> Iterator[None]:
    """Store objects like `load_documents`, and yield after each object, so that a server can handle requests in between.

    Args:
        backend: the backend of the API.
        sources: the objects.
        loaded: receives the results.
    """
    # Encoded as JSON, documents take a fifth of the memory.
    by_rank: dict[int, deque[tuple[bytes, str]]] = {}
    for source in sources:
        by_rank.setdefault(_rank(backend, source), deque()).append((_encode(source.value), source.where))
    for rank in sorted(by_rank):
        waiting = by_rank.pop(rank)
        while waiting:
            raw, where = waiting.popleft()
            _load(backend, PlainObject(_decode(raw), where), loaded)
            yield


def _rank(backend: Backend, source: PlainObject) -> int:
    resource = _resource(backend, source, required=False)
    return _FIRST.index(resource.table) if resource is not None and resource.table in _FIRST else len(_FIRST)


def _resource(backend: Backend, source: PlainObject, *, required: bool = True) -> Resource | None:
    version, kind = str(source.value.get("apiVersion") or ""), str(source.value.get("kind") or "")
    found = backend.registry.by_kind(version, kind)
    if found is None and required:
        hint = suggest_kind(version, kind) if kind else ""
        if kind:
            got = f"{version} {kind}" if version else f"{kind} without an apiVersion"
        else:
            got = f"{version} without a kind" if version else "no apiVersion and no kind"
        raise InputError("kind", where=source.where, got=got, wanted="a kind that this API serves", hint=hint)
    return found


def _load(backend: Backend, source: PlainObject, loaded: Loaded) -> None:
    resource = _resource(backend, source)
    assert resource is not None
    try:
        document, problems = read_value(target_of(resource), source.value, [], "Warn")
    except DecodeError as problem:
        raise InputError(f"{resource.kind}: {problem}", where=source.where) from problem
    metadata = cast("Document", document.setdefault("metadata", {}))
    if resource.namespaced:
        metadata["namespace"] = metadata.get("namespace") or "default"
    else:
        metadata.pop("namespace", None)
    namespace = str(metadata.get("namespace") or "")
    if namespace and backend.store.get("namespaces", ("", namespace)) is None:
        _load(
            backend,
            PlainObject({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}, source.where),
            loaded,
        )
    try:
        replaced = _store(backend, resource, namespace, document)
    except ApiError as problem:
        raise InputError(problem.message, where=source.where) from problem
    loaded.counts[resource.kind] = loaded.counts.get(resource.kind, 0) + 1
    loaded.replaced += replaced
    if problems:
        loaded.unknown[f"{source.where} {resource.kind}/{metadata.get('name')}"] = [
            _with_suggestion(problem, source.value) for problem in problems
        ]


def _with_suggestion(problem: str, document: Document) -> str:
    """Return an error of strict decoding, with the most similar known field appended if there is one."""
    match = _UNKNOWN_FIELD.fullmatch(problem)
    hint = suggest_field(document, f"$.{match[1]}") if match is not None else ""
    return f"{problem}; try {hint}" if hint else problem


def _store(backend: Backend, resource: Resource, namespace: str, document: Document) -> bool:
    """Store one object, and return whether it replaced an existing object."""
    info = RequestInfo("create", resource, namespace)
    metadata = part(document, "metadata")
    if metadata.get("uid"):
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
            metadata.pop(name, None)
        metadata.setdefault("creationTimestamp", backend.now())
        if resource.table == "pods":
            run_forever(document)
        item_before = backend.store.get(resource.table, (namespace, str(metadata.get("name"))))
        backend.put(resource, document)
        return item_before is not None
    strategy = backend.strategy(resource)
    context = backend.context(resource, namespace, imported=True)
    owner = writing.ownership(backend, info, WriteOptions(manager=_MANAGER))
    managers = writing.first_managers(owner, resource, document, {})
    status = document.get("status")
    stored = to_storage(resource, document)
    if resource.table not in _NOT_ADMITTED:
        strategy.admit(context, stored)
    metadata = part(stored, "metadata")
    metadata["uid"], metadata["creationTimestamp"] = (
        backend.new_uid(),
        metadata.get("creationTimestamp") or backend.now(),
    )
    if metadata.get("generateName") and not metadata.get("name"):
        metadata["name"] = backend.generate_name(str(metadata["generateName"]))
    strategy.allocate(context, stored, None)
    strategy.prepare_create(context, stored)
    if isinstance(status, dict) and status:
        given = {name: value for name, value in status.items() if not _is_zero(value)}
        stored["status"] = {**part(stored, "status"), **given}
    causes = writing.create_causes(strategy, context, stored, metadata)
    if causes:
        raise invalid(resource.kind, resource.group, str(metadata.get("name") or ""), causes)
    before = backend.store.get(resource.table, (namespace, str(metadata["name"])))
    document = from_storage(resource, stored)
    writing.set_managers(document, managers)
    if before is not None:
        part(document, "metadata")["uid"] = before.uid
    backend.put(resource, document)
    return before is not None


def _is_zero(value: object) -> bool:
    """Return whether a value is null, empty, or an object of such values: decoding adds these for required fields."""
    return all(map(_is_zero, value.values())) if isinstance(value, dict) else value in (None, "", [])


def summary_of(loaded: Loaded) -> str:
    """Return the number of loaded objects of each kind in one line, the most frequent kinds first."""
    kinds: Sequence[tuple[str, int]] = sorted(loaded.counts.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(f"{count:,} {kind}" for kind, count in kinds) or "nothing"
