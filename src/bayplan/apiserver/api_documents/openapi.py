"""OpenAPI documents, built from the recorded facts on the first request: version 2, and version 3 by group version.

They contain the types with their fields, list types, merge keys and defaults, and the operations of every resource: all
that clients need to validate, explain and generate. They omit upstream's descriptions; those of custom resources are in
their definitions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import cast

import msgspec

from bayplan.apiserver.api_documents.openapi_custom import custom_schemas
from bayplan.apiserver.api_documents.openapi_endpoints import SECURITY, Endpoint, endpoints
from bayplan.apiserver.api_documents.openapi_operations import Operations, referenced_types, version_2_paths
from bayplan.apiserver.api_documents.openapi_protobuf import encode_openapi
from bayplan.apiserver.api_documents.openapi_types import DEFINITIONS, META, SCHEMAS, type_schemas
from bayplan.apiserver.model.resources import Resource, ResourceRegistry
from bayplan.base.plain_data import Document, part
from bayplan.formats.schema import schema

PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


class OpenApi:
    """The OpenAPI documents of the served resources, cached.

    Args:
        registry: the served resources.
    """

    def __init__(self, registry: ResourceRegistry) -> None:
        self._registry = registry
        self._made: dict[str, tuple[int, bytes, str]] = {}

    def version_2(self, *, protobuf: bool) -> tuple[bytes, str]:
        """Return the version 2 document of all types and paths, and its ETag."""
        return self._document(PROTOBUF if protobuf else "v2", self._registry.changes, self._whole)

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
        if (group, version) not in self._registry.versions:
            return None
        changes = self._registry.changes if (group, version) in self._registry.custom_versions else 0
        return self._document(path, changes, lambda: self._of_version(group, version))

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
        schemas = type_schemas([endpoint.type] if endpoint.type else [], SCHEMAS)
        return self._document(path, 0, lambda: _version_3(endpoint.document(path, schemas)))

    def _document(self, name: str, changes: int, make: Callable[[], Document]) -> tuple[bytes, str]:
        """Return a document, made at the first request and after changes of the resources in it, and its ETag."""
        cached = self._made.get(name)
        if cached is None or cached[0] != changes:
            document = make()
            body = encode_openapi(document) if name == PROTOBUF else msgspec.json.encode(document)
            cached = self._made[name] = (changes, body, hashlib.sha256(body).hexdigest()[:32].upper())
        return cached[1:]

    def _of_version(self, group: str, version: str) -> Document:
        paths, custom = self._paths(group, version), self._custom(group, version)
        schemas = type_schemas(referenced_types(paths), SCHEMAS)
        for resource in custom:
            schemas |= type_schemas([f"{META}ObjectMeta", f"{META}ListMeta"], SCHEMAS) | custom_schemas(
                resource, SCHEMAS
            )
        _add_common_kinds(schemas, self._built_in() if custom else [(group, version)])
        components: Document = {"schemas": dict(sorted(schemas.items()))}
        return _version_3(
            {"paths": paths, "components": components | ({} if custom else {"securitySchemes": SECURITY})}
        )

    def _whole(self) -> Document:
        paths: dict[str, Document] = {}
        definitions = type_schemas(schema().types, DEFINITIONS)
        for group, version in self._registry.versions:
            paths |= version_2_paths(self._paths(group, version))
            for resource in self._custom(group, version):
                definitions |= custom_schemas(resource, DEFINITIONS)
        for path, endpoint in endpoints(self._registry).items():
            found = endpoint.document(path, {})["paths"]
            paths |= version_2_paths(cast("dict[str, Document]", found))
        _add_common_kinds(definitions, self._built_in())
        return {
            "swagger": "2.0",
            "info": _info(),
            "paths": dict(sorted(paths.items())),
            "definitions": dict(sorted(definitions.items())),
            "securityDefinitions": SECURITY,
            "security": [{"BearerToken": []}],
        }

    def _paths(self, group: str, version: str) -> dict[str, Document]:
        operations = Operations(group, version, self._custom(group, version))
        return operations.paths(self._registry.versions[(group, version)])

    def _built_in(self) -> list[tuple[str, str]]:
        return [each for each in self._registry.versions if each not in self._registry.custom_versions]

    def _custom(self, group: str, version: str) -> list[Resource]:
        if (group, version) not in self._registry.custom_versions:
            return []
        return [
            each
            for each in self._registry.all()
            if each.custom is not None and (each.group, each.version) == (group, version)
        ]


def _add_common_kinds(schemas: Document, versions: Iterable[tuple[str, str]]) -> None:
    """Add to the schemas of types that all groups share the group versions in which they are kinds."""
    for kind in ("DeleteOptions", "WatchEvent"):
        if f"{META}{kind}" in schemas:
            kinds = [
                {"group": group, "kind": kind, "version": version} for group, version in sorted({("", "v1"), *versions})
            ]
            schemas[f"{META}{kind}"] = {**part(schemas, f"{META}{kind}"), "x-kubernetes-group-version-kind": kinds}


def _version_3(rest: Document) -> Document:
    return {"openapi": "3.0.0", "info": _info(), **rest}


def _info() -> Document:
    return {"title": "Kubernetes", "version": schema().release.removeprefix("v").rpartition(".")[0]}
