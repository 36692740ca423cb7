"""Check manifests as ``kubectl apply --dry-run=server`` does, in process.

Objects that other objects depend on (custom resource definitions, namespaces, classes, policies with their bindings and
parameters) are created first, in a temporary cluster. Then every other object is sent as a dry run, with strict
validation.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

import msgspec

from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.bootstrap import bootstrap
from bayplan.apiserver.rest.loading import load_documents
from bayplan.apiserver.rest.messages import Request, Response
from bayplan.apiserver.store.store import Store
from bayplan.base.plain_data import Document, part
from bayplan.formats.documents import MalformedDocument
from bayplan.formats.inputs import read_objects
from bayplan.formats.manifest import PlainObject

_MANAGER = "kubectl-client-side-apply"
_FIRST = (
    "CustomResourceDefinition", "Namespace", "PriorityClass", "RuntimeClass", "StorageClass", "IngressClass", "LimitRange",
    "ServiceAccount", "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicyBinding",
)  # fmt: skip
"""Kinds that are really created, in this order, because other objects depend on them. Parameters of policies follow."""
_CREATED = 201


class CheckedObject(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The API's response to one object.

    Attributes:
        where: the file and line.
        kind, namespace, name: the kind, namespace and name of the object.
        refused: why the API refuses the object; empty if it is accepted.
        warnings: the warnings in the response.
        document: the number of a malformed document in its file, counted from 1; 0 for objects.
        malformed: why the document is not an object, else empty. Then, it has no kind and name.
    """

    where: str
    kind: str
    name: str
    namespace: str = ""
    refused: str = ""
    warnings: tuple[str, ...] = ()
    document: int = 0
    malformed: str = ""

    def __str__(self) -> str:
        if self.malformed:
            return f"{self.where} document {self.document}"
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.where} {self.kind} {place}".rstrip()


def check_manifests(paths: Sequence[str], onto: Sequence[str] = ()) -> list[CheckedObject]:
    """Return the API's responses to the objects of files and the malformed documents, in the order of the files.

    Args:
        paths: the manifests, see `bayplan.formats.files.find_files`.
        onto: a dump or manifests of the target cluster.

    Raises:
        InputError: a file cannot be read, or a document of `onto` is malformed or rejected.
    """
    backend = Backend(Store())
    bootstrap(backend)
    if onto:
        load_documents(backend, read_objects(onto, stdin=sys.stdin.buffer))
    sources: list[PlainObject | MalformedDocument] = []
    for source in read_objects(paths, stdin=sys.stdin.buffer, report=sources.append):
        sources.append(source)
    checker = _Checker(Api(backend))
    return asyncio.run(checker.run(sources))


class _Checker:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._seen: dict[tuple[str, str, str, str], str] = {}

    async def run(self, sources: Sequence[PlainObject | MalformedDocument]) -> list[CheckedObject]:
        found = {
            at: CheckedObject(source.where, "", "", document=source.number, malformed=source.problem)
            for at, source in enumerate(sources)
            if isinstance(source, MalformedDocument)
        }
        objects = {at: source for at, source in enumerate(sources) if isinstance(source, PlainObject)}
        order = {kind: place for place, kind in enumerate(_FIRST)}
        first = [at for at, source in objects.items() if _kind(source) in order]
        for at in sorted(first, key=lambda at: order[_kind(objects[at])]):
            found[at] = await self._check(objects[at], dry_run=False)
        params = self._param_kinds()
        for at, source in objects.items():
            if at not in found and _type(source) in params:
                found[at] = await self._check(source, dry_run=False)
        for at, source in objects.items():
            if at not in found:
                found[at] = await self._check(source, dry_run=True)
        return [found[at] for at in range(len(sources))]

    def _param_kinds(self) -> set[tuple[str, str]]:
        """Return API version and kind of the parameters that the policies declare."""
        backend, group = self._api.backend, "admissionregistration.k8s.io/"
        tables = (f"{group}validatingadmissionpolicies", f"{group}mutatingadmissionpolicies")
        kinds = [part(each, "spec", "paramKind") for table in tables for each in backend.all(table)]
        return {(str(kind.get("apiVersion") or ""), str(kind.get("kind") or "")) for kind in kinds if kind}

    async def _check(self, source: PlainObject, *, dry_run: bool) -> CheckedObject:
        value = source.value
        metadata = part(value, "metadata")
        (api_version, kind), name = _type(source), str(metadata.get("name") or metadata.get("generateName") or "")
        resource = self._api.backend.registry.by_kind(api_version, kind)
        if resource is None:
            text = f'no matches for kind "{kind}" in version "{api_version}"; are the definitions of custom resources missing?'
            return CheckedObject(source.where, kind, name, refused=text)
        namespace = str(metadata.get("namespace") or "default") if resource.namespaced else ""
        checked = CheckedObject(source.where, kind, name, namespace)
        key = (resource.group, kind, namespace, name)
        if metadata.get("name") and self._seen.setdefault(key, source.where) != source.where:
            return msgspec.structs.replace(checked, refused=f"the same object as {self._seen[key]}")
        base = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
        path = f"{base}/namespaces/{namespace}/{resource.name}" if namespace else f"{base}/{resource.name}"
        query = {"fieldManager": _MANAGER, "fieldValidation": "Strict"} | ({"dryRun": "All"} if dry_run else {})
        exists = self._api.backend.store.get(resource.table, (namespace, str(metadata.get("name")))) is not None
        request = Request("POST", path, query, {"content-type": "application/json"})
        return await self._send(request, value, checked, exists=exists)

    async def _send(
        self, request: Request, value: Document, checked: CheckedObject, *, exists: bool = False
    ) -> CheckedObject:
        request.body = msgspec.json.encode(value)
        answer = await self._api.handle(request)
        assert isinstance(answer, Response)
        warnings = tuple(_warning(text) for name, text in answer.headers if name.lower() == "warning")
        refused = ""
        if answer.status != _CREATED:
            refused = str(msgspec.json.decode(answer.body).get("message") or answer.status)
            if answer.status == 409 and "already exists" in refused:
                refused = ""  # It exists already, in the target cluster or as a built-in object.
            elif answer.status == 403 and exists and "is already marked as default" in refused:
                refused = ""  # It is the default priority class of the target cluster.
        return msgspec.structs.replace(checked, refused=refused, warnings=warnings)


def _type(source: PlainObject) -> tuple[str, str]:
    value = source.value
    return str(value.get("apiVersion") or ""), str(value.get("kind") or "")


def _kind(source: PlainObject) -> str:
    return _type(source)[1]


def _warning(header: str) -> str:
    """Return the text in the value of a ``Warning`` header, without code, agent and quotes."""
    text = header.partition(" - ")[2].strip()
    return text[1:-1].replace('\\"', '"').replace("\\\\", "\\") if text.startswith('"') else text
