"""Conversion webhooks: convert custom resources between the stored version and other served versions.

Conversions are cached by the content of the object. A list therefore converts all objects of a table in few calls, and
a watch reuses the conversions of the write that it reports. If calling the webhook of a definition is not allowed, its
objects are served as with the strategy `None`.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator

import msgspec

from bayplan.apiserver.admission.attributes import Server
from bayplan.apiserver.admission.outgoing import Answer, Call, CallProblem
from bayplan.apiserver.kinds.custom_pruning import PruningConverter
from bayplan.apiserver.model.errors import ApiError
from bayplan.apiserver.model.resources import Resource
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.selectors import quote

MAX_OBJECTS = 200
"""Maximum number of objects in one call."""
MAX_CONVERTED = 20_000
"""Maximum number of cached objects, each of which takes a few kB."""
_TIMEOUT_S = 30
_CHANGEABLE = ("labels", "annotations")
_IDENTITY = ("name", "namespace", "generateName")
_encode = msgspec.json.Encoder(order="deterministic").encode


class ConversionCache:
    """An LRU cache of objects that webhooks have converted."""

    def __init__(self) -> None:
        self._found: OrderedDict[bytes, Document] = OrderedDict()

    def get(self, key: bytes) -> Document | None:
        """Return a converted object, or None if it is not cached."""
        found = self._found.get(key)
        if found is not None:
            self._found.move_to_end(key)
        return found

    def put(self, key: bytes, document: Document) -> None:
        """Cache a converted object, and drop the least recently used one if the cache is full."""
        self._found[key] = document
        if len(self._found) > MAX_CONVERTED:
            self._found.popitem(last=False)


class WebhookConverter:
    """Converts objects between one served version and the stored version.

    Args:
        server: the server of the objects.
        resource: the resource in the served version.
        storage_version: the stored version.
        webhook: the definition's ``spec.conversion.webhook``.
        cache: the cache that all versions of the definition share.
    """

    def __init__(
        self, server: Server, resource: Resource, storage_version: str, webhook: Document, cache: ConversionCache
    ) -> None:
        self._server = server
        self._table, self._kind, self._group = resource.table, resource.kind, resource.group
        self._served, self._stored = resource.version, storage_version
        self._client = part(webhook, "clientConfig")
        self._versions = texts(webhook, "conversionReviewVersions")
        self._cache = cache

    def to_storage(self, document: Document) -> Document:
        """Return an object in the stored version.

        Raises:
            ApiError: the webhook fails.
            CallsNeededError: the webhook must be called first.
        """
        return self._converted(document, self._served, self._stored)

    def from_storage(self, document: Document) -> Document:
        """Return a stored object in the served version.

        Raises:
            ApiError: the webhook fails.
            CallsNeededError: the webhook must be called first.
        """
        return self._converted(document, self._stored, self._served)

    def _converted(self, document: Document, source: str, target: str) -> Document:
        if not self._server.outgoing.is_allowed(self._client):
            return document
        key = self._key(document, target)
        found = self._cache.get(key)
        if found is None:
            self._convert(document, source, target)
            found = self._cache.get(key)
            assert found is not None
        return _with_metadata(document, found)

    def _key(self, document: Document, target: str) -> bytes:
        return hashlib.sha256(target.encode() + _encode(_content(document))).digest()

    def _convert(self, document: Document, source: str, target: str) -> None:
        """Convert an object.

        If it is a stored object, convert all other unconverted objects of its table in the same calls.
        """
        wanted = [document]
        if source == self._stored:
            keys = {self._key(document, target)}
            for other in self._others(target):
                key = self._key(other, target)
                if key not in keys:
                    keys.add(key)
                    wanted.append(other)
        chunks = [wanted[at : at + MAX_OBJECTS] for at in range(0, len(wanted), MAX_OBJECTS)]
        calls = [self._call(chunk, source, target) for chunk in chunks]
        try:
            answers = self._server.outgoing.answers(calls)
        except CallProblem as problem:
            raise self._failed(source, str(problem)) from None
        for chunk, answer in zip(chunks, answers, strict=True):
            for each, converted in zip(chunk, self._checked(answer, chunk, source, target), strict=True):
                self._cache.put(self._key(each, target), converted)

    def _others(self, target: str) -> Iterator[Document]:
        for other in self._server.all(self._table):
            if self._cache.get(self._key(other, target)) is None:
                yield other

    def _call(self, documents: list[Document], source: str, target: str) -> Call:
        version = next((each for each in self._versions if each in ("v1", "v1beta1")), "v1")
        envelope: Document = {"apiVersion": f"{self._group}/{source}", "kind": self._kind}
        request: Document = {
            "desiredAPIVersion": f"{self._group}/{target}",
            "objects": [{**envelope, **{k: v for k, v in each.items() if k not in envelope}} for each in documents],
        }
        review: Document = {
            "kind": "ConversionReview",
            "apiVersion": f"apiextensions.k8s.io/{version}",
            "request": request,
        }
        return Call(f"conversion of {self._table}", self._client, review, ("request", "uid"), _TIMEOUT_S)

    def _failed(self, source: str, why: str) -> ApiError:
        where = f"{self._group}/{source}, Kind={self._kind}"
        return ApiError(500, f"conversion webhook for {where} failed: {why}", reason="")

    def _checked(self, answer: Answer, documents: list[Document], source: str, target: str) -> list[Document]:
        """Return the converted objects in a response.

        Raises:
            ApiError: the call failed, or the response is invalid.
        """
        if answer.problem:
            raise self._failed(source, answer.problem)
        response = part(answer.body, "response")
        if not response:
            raise self._failed(source, "no response provided")
        if response.get("uid") != answer.uid:
            got = quote(str(response.get("uid") or ""))
            raise self._failed(source, f"expected response.uid={quote(answer.uid)}, got {got}")
        result = part(response, "result")
        if result.get("status") != "Success":
            message = str(result.get("message") or "")
            status = f"response.result.status was '{result.get('status') or ''}', not 'Success'"
            raise self._failed(source, message or status)
        found = parts(response, "convertedObjects")
        where = f"conversion webhook for {self._group}/{source}, Kind={self._kind}"
        if len(found) != len(documents):
            raise ApiError(500, f"{where} returned {len(found)} objects, expected {len(documents)}", reason="")
        for index, (each, before) in enumerate(zip(found, documents, strict=True)):
            problem = _conversion_problem(each, before, f"{self._group}/{target}", self._kind)
            if problem:
                raise ApiError(500, f"{where} returned invalid {problem.replace('INDEX', str(index))}", reason="")
        return found


def _conversion_problem(found: Document, before: Document, api_version: str, kind: str) -> str:
    """Return upstream's message if a webhook returned a wrong type or changed the identity of an object, or an empty string.

    The message contains ``INDEX`` in place of the index of the object.
    """
    if found.get("apiVersion") != api_version:
        got = found.get("apiVersion") or ""
        return f"converted object at index INDEX: invalid groupVersion (expected {api_version}, received {got})"
    if found.get("kind") != kind:
        return f"converted object at index INDEX: invalid kind (expected {kind}, received {found.get('kind') or ''})"
    new, old = found.get("metadata"), part(before, "metadata")
    if not isinstance(new, dict):
        return "metadata in object at index INDEX: missing metadata in converted object"
    for name, shown in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        if (new.get(name) or "") != (old.get(name) or ""):
            values = f"{old.get(name) or ''} != {new.get(name) or ''}"
            return f"converted object at index INDEX: must have the same {shown}: {values}"
    return ""


def _content(document: Document) -> Document:
    """Return the parts of an object that a conversion depends on: everything except metadata that the server sets."""
    metadata = part(document, "metadata")
    kept = {name: metadata[name] for name in (*_IDENTITY, *_CHANGEABLE) if name in metadata}
    return {**{k: v for k, v in document.items() if k not in ("apiVersion", "kind")}, "metadata": kept}


def _with_metadata(document: Document, converted: Document) -> Document:
    """Return a converted object with the original's metadata, except for labels and annotations, which a webhook may change."""
    metadata = {name: value for name, value in part(document, "metadata").items() if name not in _CHANGEABLE}
    new = part(converted, "metadata")
    metadata |= {name: new[name] for name in _CHANGEABLE if new.get(name)}
    body = {name: value for name, value in converted.items() if name not in ("apiVersion", "kind", "metadata")}
    return {"metadata": metadata, **body}


def attach_converters(server: Server, definition: Document) -> None:
    """Set the converters between a definition's stored version and its other served versions: webhook calls, or pruning."""
    spec = part(definition, "spec")
    conversion, versions = part(spec, "conversion"), parts(spec, "versions")
    storage = next((each for each in versions if each.get("storage")), {})
    stored, schema = str(storage.get("name") or ""), part(storage, "schema", "openAPIV3Schema")
    cache, plural = ConversionCache(), str(part(spec, "names").get("plural"))
    for version in versions:
        name = str(version.get("name"))
        resource = server.registry.find(str(spec.get("group")), name, plural)
        if resource is None or name == stored:
            continue
        if conversion.get("strategy") != "Webhook":
            served = part(version, "schema", "openAPIV3Schema")
            if served != schema:
                resource.converter = PruningConverter(served, schema)
        else:
            resource.converter = WebhookConverter(server, resource, stored, part(conversion, "webhook"), cache)
