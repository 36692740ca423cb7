"""OpenAPI documents, built from the recorded facts on the first request: version 2, and version 3 by group version.

They contain the types with their fields, list types and merge keys, and the operations of every resource: all that
clients need to validate, explain and generate. They omit upstream's descriptions.
"""

from __future__ import annotations

import hashlib

import msgspec

from bayplan.apiserver.api_documents.openapi_endpoints import Endpoint, endpoints
from bayplan.apiserver.api_documents.openapi_protobuf import encode_openapi
from bayplan.apiserver.model.resources import ResourceRegistry
from bayplan.apiserver.schema.facts import ResourceFacts
from bayplan.base.plain_data import Document
from bayplan.formats.schema import FieldFacts, TypeFacts, schema

_JSON = "application/json"
PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_METHODS = {
    "get": "get", "list": "get", "create": "post", "update": "put", "patch": "patch", "delete": "delete",
    "deletecollection": "delete",
}  # fmt: skip
_ACTIONS = {"create": "post", "update": "put"}
_PATCHES = (
    "application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)  # fmt: skip


class OpenApi:
    """The OpenAPI documents of the served resources, cached.

    Args:
        registry: the served resources.
    """

    def __init__(self, registry: ResourceRegistry) -> None:
        self._registry = registry
        self._made: dict[tuple[object, ...], tuple[bytes, str]] = {}

    def version_2(self, *, protobuf: bool) -> tuple[bytes, str]:
        """Return the version 2 document of all types and paths, and its ETag."""
        return self._document((PROTOBUF,) if protobuf else ("v2",))

    def version_3(self, path: str) -> tuple[bytes, str] | None:
        """Return a version 3 document and its ETag, or None if the path has none.

        Args:
            path: the path of the endpoints that the document describes, such as ``apis/apps/v1``, ``apis/apps`` or ``version``.
        """
        match path.split("/"):
            case ["api", version]:
                group = ""
            case ["apis", group, version]:
                pass
            case _:
                endpoint = endpoints(self._registry).get(path)
                return None if endpoint is None else self._endpoint_document(path, endpoint)
        return self._document(("v3", group, version)) if (group, version) in self._registry.versions else None

    def index(self) -> bytes:
        """Return the index of the version 3 documents."""
        names = [f"apis/{group}/{version}" if group else f"api/{version}" for group, version in self._registry.versions]
        paths: Document = {}
        for name in sorted([*names, *endpoints(self._registry)]):
            found = self.version_3(name)
            assert found is not None
            paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={found[1]}"}
        return msgspec.json.encode({"paths": paths})

    def _endpoint_document(self, path: str, endpoint: Endpoint) -> tuple[bytes, str]:
        key = ("v3", path)
        made = self._made.get(key)
        if made is None:
            schemas: Document = {
                name: _schema(name, facts, "#/components/schemas/")
                for name, facts in _reachable([endpoint.type] if endpoint.type else []).items()
            }
            document = {"openapi": "3.0.0", "info": _info(), **endpoint.document(path, schemas)}
            body = msgspec.json.encode(document)
            made = self._made[key] = (body, _hash(body))
        return made

    def _document(self, what: tuple[str, ...]) -> tuple[bytes, str]:
        # Definitions change at runtime, so the cache key includes the entries of the version.
        version = what[1:]
        two = what[0] in ("v2", PROTOBUF)
        entries = self._registry.versions.get((version[0], version[1])) if version else None
        key = (*what, len(entries or ()), len(self._registry.versions))
        made = self._made.get(key)
        if made is None:
            document = _version_2(self._registry) if two else _version_3(self._registry, *version)
            body = encode_openapi(document) if what[0] == PROTOBUF else msgspec.json.encode(document)
            made = self._made[key] = (body, _hash(body))
        return made


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:32].upper()


def _info() -> Document:
    return {"title": "Kubernetes", "version": schema().release.removeprefix("v").rpartition(".")[0]}


# --- types ------------------------------------------------------------------------------------------------------------


def _schema(name: str, facts: TypeFacts, prefix: str) -> Document:
    if not facts.fields:
        made: Document = {} if facts.scalar == "any" else {"type": facts.scalar or "object"}
        if facts.format == "int-or-string" and prefix.startswith("#/components"):
            return {"format": facts.format, "oneOf": [{"type": "integer"}, {"type": "string"}]}
        if facts.format:
            made["format"] = facts.format
        return made
    made = {
        "type": "object",
        "properties": {field: _field(each, prefix) for field, each in facts.fields.items()},
    }
    required = [field for field, each in facts.fields.items() if each.required]
    if required:
        made["required"] = required
    if facts.map_type:
        made["x-kubernetes-map-type"] = facts.map_type
    kinds = _kinds_of().get(name)
    if kinds:
        made["x-kubernetes-group-version-kind"] = kinds
    return made


def _kinds_of() -> dict[str, list[Document]]:
    found: dict[str, list[Document]] = {}
    for key, facts in schema().kinds.items():
        *group, version, kind = key.split("/")
        found.setdefault(facts.type, []).append({"group": group[0] if group else "", "kind": kind, "version": version})
    return found


def _field(facts: FieldFacts, prefix: str) -> Document:
    if facts.type in schema().types:
        made: Document = {"$ref": prefix + facts.type}
        if prefix.startswith("#/components"):
            made = {"allOf": [made]}
    else:
        made = {} if facts.type == "any" else {"type": facts.type}
        if facts.format:
            made["format"] = facts.format
        if facts.enum:
            made["enum"] = list(facts.enum)
    for container in reversed(facts.containers):
        made = {"type": "array", "items": made} if container == "list" else {
            "type": "object", "additionalProperties": made,
        }  # fmt: skip
    if facts.default is not msgspec.UNSET and prefix.startswith("#/components"):
        made["default"] = facts.default
    for name, value in (
        ("x-kubernetes-list-type", facts.list_type),
        ("x-kubernetes-list-map-keys", list(facts.list_map_keys)),
        ("x-kubernetes-map-type", facts.map_type),
        ("x-kubernetes-patch-merge-key", facts.merge_key),
        ("x-kubernetes-patch-strategy", facts.strategy),
    ):
        if value:
            made[name] = value
    return made


def _reachable(names: list[str]) -> dict[str, TypeFacts]:
    """Return the types with these names and all types that they refer to, sorted by name."""
    types, found = schema().types, {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found or name not in types:
            continue
        found[name] = types[name]
        waiting += [each.type for each in types[name].fields.values()]
    return dict(sorted(found.items()))


# --- operations -------------------------------------------------------------------------------------------------------


def _base(group: str, version: str) -> str:
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def _operations(
    group: str, version: str, entries: list[ResourceFacts], *, third: bool
) -> tuple[dict[str, Document], list[str]]:
    """Return the path items of a group version by path, and the names of the types that they use.

    `third`: whether the document is for OpenAPI version 3.
    """
    paths: dict[str, Document] = {}
    types: list[str] = []
    for entry in entries:
        name, _, subresource = entry.name.partition("/")
        base = _base(group, version) + ("/namespaces/{namespace}" if entry.namespaced else "")
        for verb in entry.verbs:
            method = _METHODS.get(verb)
            if method is None:
                continue
            collection = verb in ("list", "deletecollection") or (verb == "create" and not subresource)
            path = (
                f"{base}/{name}"
                if collection
                else f"{base}/{name}/{{name}}" + (f"/{subresource}" if subresource else "")
            )
            operation, used = _operation(group, version, entry, verb, third=third)
            types += used
            paths.setdefault(path, {})[method] = operation
            if verb == "list" and entry.namespaced:
                paths.setdefault(f"{_base(group, version)}/{name}", {})["get"] = operation
    for path, item in paths.items():
        item["parameters"] = [
            _parameter(each, "path", third=third) for each in ("name", "namespace") if f"{{{each}}}" in path
        ]
    return dict(sorted(paths.items())), types


def _operation(group: str, version: str, entry: ResourceFacts, verb: str, *, third: bool) -> tuple[Document, list[str]]:
    kind_group, kind_version = (entry.group, entry.version) if entry.version else (group, version)
    gvk: Document = {"group": kind_group, "kind": entry.kind, "version": kind_version}
    key = "/".join(each for each in (kind_group, kind_version, entry.kind) if each)
    facts = schema().kinds.get(f"{key}List" if verb == "list" else key)
    type_name = facts.type if facts is not None else ""
    prefix = "#/components/schemas/" if third else "#/definitions/"
    result: Document = {"$ref": prefix + type_name} if type_name else {"type": "object"}
    operation: Document = {
        "operationId": f"{verb}{''.join(part.title() for part in group.split('.'))}{version.title()}{entry.kind}"
        + entry.name.title().replace("/", ""),
        "x-kubernetes-action": _ACTIONS.get(verb, verb),
        "x-kubernetes-group-version-kind": gvk,
        "responses": {"200": _response(result, third=third)},
    }
    if verb in ("create", "update", "patch"):
        _add_body(operation, result, verb, third=third)
    if verb in ("create", "update", "patch"):
        queries: tuple[str, ...] = ("dryRun", "fieldManager", "fieldValidation")
    elif verb in ("list", "deletecollection"):
        queries = ("labelSelector", "fieldSelector", "resourceVersion")
    else:
        queries = ()
    parameters = operation.setdefault("parameters", [])
    assert isinstance(parameters, list)
    parameters += [_parameter(each, "query", third=third) for each in queries]
    return operation, [type_name] if type_name else []


def _response(result: Document, *, third: bool) -> Document:
    return {"description": "OK"} | ({"content": {_JSON: {"schema": result}}} if third else {"schema": result})


def _add_body(operation: Document, body: Document, verb: str, *, third: bool) -> None:
    types = _PATCHES if verb == "patch" else (_JSON,)
    if verb == "patch":
        body = {"type": "object"}
    if third:
        operation["requestBody"] = {"required": True, "content": {each: {"schema": body} for each in types}}
    else:
        operation["consumes"] = list(types)
        operation["parameters"] = [{"name": "body", "in": "body", "required": True, "schema": body}]


def _parameter(name: str, place: str, *, third: bool) -> Document:
    made: Document = {"name": name, "in": place}
    if place == "path":
        made["required"] = True
    return made | ({"schema": {"type": "string"}} if third else {"type": "string"})


def _version_2(registry: ResourceRegistry) -> Document:
    paths: dict[str, Document] = {}
    for (group, version), entries in registry.versions.items():
        paths |= _operations(group, version, entries, third=False)[0]
    definitions = {name: _schema(name, facts, "#/definitions/") for name, facts in schema().types.items()}
    return {"swagger": "2.0", "info": _info(), "paths": paths, "definitions": definitions}


def _version_3(registry: ResourceRegistry, group: str, version: str) -> Document:
    entries = registry.versions[(group, version)]
    paths, types = _operations(group, version, entries, third=True)
    prefix = "#/components/schemas/"
    schemas = {name: _schema(name, facts, prefix) for name, facts in _reachable(types).items()}
    for resource in registry.all():
        if resource.custom is not None and (resource.group, resource.version) == (group, version):
            schemas[f"{group}.{version}.{resource.kind}"] = _custom_schema(
                resource.custom, group, version, resource.kind
            )
    document: Document = {"openapi": "3.0.0", "info": _info(), "paths": paths}
    return {**document, "components": {"schemas": schemas}}


def _custom_schema(definition: Document, group: str, version: str, kind: str) -> Document:
    found = definition.get("schema")
    inner = found.get("openAPIV3Schema") if isinstance(found, dict) else None
    made: Document = dict(inner) if isinstance(inner, dict) else {"type": "object"}
    made["x-kubernetes-group-version-kind"] = [{"group": group, "kind": kind, "version": version}]
    return made
