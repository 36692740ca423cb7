"""The operations of the served resources in OpenAPI, without upstream's descriptions.

Operations are built for version 3; `version_2_paths` converts them. Names, parameters, media types and responses are
those of kube-apiserver, from which client generators derive their methods.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from bayplan.apiserver.api_documents.openapi_custom import list_kind, type_name
from bayplan.apiserver.api_documents.openapi_types import DEFINITIONS, META, SCHEMAS
from bayplan.apiserver.kinds.registry import strategy_of
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.schema.facts import GoField, ResourceFacts, api_facts
from bayplan.base.plain_data import Document, part, parts
from bayplan.formats.schema import find_kind

_JSON, _YAML = "application/json", "application/yaml"
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_ANY = "*/*"
_PATCHES = (
    "application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)  # fmt: skip
_WRITE = {"dryRun": "string", "fieldManager": "string", "fieldValidation": "string"}
_LIST = {
    "allowWatchBookmarks": "boolean", "continue": "string", "fieldSelector": "string", "labelSelector": "string",
    "limit": "integer", "resourceVersion": "string", "resourceVersionMatch": "string", "sendInitialEvents": "boolean",
    "shardSelector": "string", "timeoutSeconds": "integer", "watch": "boolean",
}  # fmt: skip
_DELETE = {
    "dryRun": "string", "gracePeriodSeconds": "integer", "ignoreStoreReadErrorWithClusterBreakingPotential": "boolean",
    "orphanDependents": "boolean", "propagationPolicy": "string",
}  # fmt: skip
_DELETE_COLLECTION = {
    name: kind for name, kind in _LIST.items() if name not in ("allowWatchBookmarks", "watch")
} | _DELETE
_METHODS = {"get": "get", "create": "post", "update": "put", "patch": "patch", "delete": "delete"}
_NAMES = {"get": "read", "create": "create", "update": "replace", "patch": "patch", "delete": "delete"}
_PROXY_METHODS = ("get", "put", "post", "delete", "options", "head", "patch")


class Operations:
    """The operations of one group version.

    Args:
        group: the name of the group; empty for the core group.
        version: the name of the version.
        custom: the custom resources of the group version.
    """

    def __init__(self, group: str, version: str, custom: Iterable[Resource]) -> None:
        self._group = group
        self._version = version
        self._custom = {each.name: each for each in custom}
        self._base = f"/apis/{group}/{version}" if group else f"/api/{version}"
        name = camel_case(group) if group else "core"
        self._tags = [f"{name}_{version}"]
        self._id = f"{name[:1].upper()}{name[1:]}{version[:1].upper()}{version[1:]}"
        self._paths: dict[str, Document] = {}

    def paths(self, entries: Iterable[ResourceFacts]) -> dict[str, Document]:
        """Return the path items of the resources and subresources, by path."""
        entries = list(entries)
        if len(self._custom) < sum("/" not in each.name for each in entries):
            self._add_resource_list()
        kinds = {each.name: each.kind for each in entries}
        for entry in entries:
            name, _, subresource = entry.name.partition("/")
            if subresource:
                self._add_subresource(entry, kinds[name], subresource)
            else:
                self._add_resource(entry)
        return {path: _with_common_parameters(path, item) for path, item in sorted(self._paths.items())}

    def _add_resource_list(self) -> None:
        responses = _responses(_reference(f"{META}APIResourceList"), (_JSON, _PROTOBUF, _YAML), "200")
        self._paths[f"{self._base}/"] = {
            "get": {"tags": self._tags, "operationId": f"get{self._id}APIResources", "responses": responses}
        }

    def _add_resource(self, entry: ResourceFacts) -> None:
        name, kind = entry.name, entry.kind
        scope = "Namespaced" if entry.namespaced else ""
        collection = self._base + ("/namespaces/{namespace}" if entry.namespaced else "") + f"/{name}"
        for verb in entry.verbs:
            if verb in ("list", "deletecollection", "watch"):
                continue
            path = collection if verb == "create" else f"{collection}/{{name}}"
            self._add(path, verb, f"{_NAMES[verb]}{self._id}{scope}{kind}", entry)
        if "list" in entry.verbs:
            self._add_list(collection, f"list{self._id}{scope}{kind}", entry)
            if entry.namespaced:
                self._add_list(f"{self._base}/{name}", f"list{self._id}{kind}ForAllNamespaces", entry)
        if "deletecollection" in entry.verbs:
            operation = self._operation(f"delete{self._id}Collection{scope}{kind}", "deletecollection", entry)
            operation["responses"] = _responses(_reference(f"{META}Status"), self._formats(entry), "200")
            if name not in self._custom:
                self._add_body(operation, f"{META}DeleteOptions", entry, required=False)
            _put(self._paths, collection, "delete", operation, _LIST if name in self._custom else _DELETE_COLLECTION)
        if "watch" in entry.verbs and name not in self._custom:
            self._add_watches(collection.removeprefix(self._base), scope, entry)

    def _add(self, path: str, verb: str, operation_id: str, entry: ResourceFacts) -> None:
        """Add an operation on one object."""
        method = _METHODS[verb]
        operation = self._operation(operation_id, verb if verb == "get" else method, entry)
        result, codes, parameters = self._type_of(entry), ["200"], dict(_WRITE)
        match verb:
            case "get":
                parameters = {"resourceVersion": "string"} if self._is_custom(entry) else {}
            case "create":
                codes += ["201", "202"]
                self._add_body(operation, result, entry)
            case "update":
                codes += ["201"]
                self._add_body(operation, result, entry)
            case "patch":
                parameters["force"] = "boolean"
                self._add_patch(operation, entry)
                codes += [] if self._is_custom(entry) else ["201"]
            case "delete":
                codes += ["202"]
                parameters = _DELETE
                self._add_body(operation, f"{META}DeleteOptions", entry, required=False)
                table = f"{self._group}/{entry.name}" if self._group else entry.name
                returns_deleted = strategy_of(table, custom=self._is_custom(entry)).returns_deleted
                if not returns_deleted or table == "namespaces":  # upstream's documents omit that it returns them
                    result = f"{META}Status"
        operation["responses"] = _responses(_reference(result), self._formats(entry), *codes)
        _put(self._paths, path, method, operation, parameters)

    def _add_list(self, path: str, operation_id: str, entry: ResourceFacts) -> None:
        operation = self._operation(operation_id, "list", entry)
        formats = self._formats(entry)
        if entry.name in self._custom:
            custom = self._custom[entry.name]
            type_of_list = type_name(custom, list_kind(custom))
        else:
            formats = _streaming(formats)
            type_of_list = _built_in_type(*self._place(entry), f"{entry.kind}List")
        operation["responses"] = _responses(_reference(type_of_list), formats, "200")
        _put(self._paths, path, "get", operation, _LIST)

    def _add_watches(self, place: str, scope: str, entry: ResourceFacts) -> None:
        """Add the deprecated watches by path."""
        watches = [
            (place, "watchlist", f"{scope}{entry.kind}List"),
            (f"{place}/{{name}}", "watch", f"{scope}{entry.kind}"),
        ]
        if scope:
            watches.append((f"/{entry.name}", "watchlist", f"{entry.kind}ListForAllNamespaces"))
        for path, action, name in watches:
            operation = self._operation(f"watch{self._id}{name}", action, entry)
            formats = _streaming(self._formats(entry))
            operation["responses"] = _responses(_reference(f"{META}WatchEvent"), formats, "200")
            _put(self._paths, f"{self._base}/watch{path}", "get", operation, _LIST)

    def _add_subresource(self, entry: ResourceFacts, kind: str, subresource: str) -> None:
        scope = "Namespaced" if entry.namespaced else ""
        prefix = self._base + ("/namespaces/{namespace}" if entry.namespaced else "")
        path = f"{prefix}/{entry.name.replace('/', '/{name}/')}"
        name = f"{scope}{kind}{subresource[:1].upper()}{subresource[1:]}"
        if entry.kind.endswith("Options"):
            self._add_connections(path, name, entry, subresource)
        elif subresource == "log":
            operation = self._operation(f"read{self._id}{name}", "get", entry)
            operation["responses"] = _responses({"type": "string"}, ("text/plain", *self._formats(entry)), "200")
            _put(self._paths, path, "get", operation, _options("PodLogOptions"))
        else:
            for verb in entry.verbs:
                self._add(path, verb, f"{_NAMES[verb]}{self._id}{name}", entry)

    def _add_connections(self, path: str, name: str, entry: ResourceFacts, subresource: str) -> None:
        is_proxy = subresource == "proxy"
        methods = _PROXY_METHODS if is_proxy else ("get", "post")
        for place, suffix in ((path, ""), (f"{path}/{{path}}", "WithPath"))[: 2 if is_proxy else 1]:
            for method in methods:
                operation = self._operation(f"connect{self._id}{method.capitalize()}{name}{suffix}", "connect", entry)
                operation["responses"] = _responses({"type": "string"}, (_ANY,), "200")
                _put(self._paths, place, method, operation, _options(entry.kind), pretty=False)

    def _operation(self, operation_id: str, action: str, entry: ResourceFacts) -> Document:
        custom = self._custom.get(entry.name.partition("/")[0])
        group, version = self._place(entry) if custom is None else (self._group, self._version)
        kind = entry.kind if custom is None else custom.kind
        return {
            "tags": self._tags,
            "operationId": operation_id,
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": {"group": group, "kind": kind, "version": version},
        }

    def _add_body(self, operation: Document, type_name: str, entry: ResourceFacts, *, required: bool = True) -> None:
        formats = (_JSON, _YAML) if self._is_custom(entry) else (_ANY,)
        body: Document = {"content": {each: {"schema": _reference(type_name)} for each in formats}}
        operation["requestBody"] = body | ({"required": True} if required else {})

    def _add_patch(self, operation: Document, entry: ResourceFacts) -> None:
        formats = _PATCHES[:-1] if self._is_custom(entry) else _PATCHES
        content: Document = {each: {"schema": _reference(f"{META}Patch")} for each in formats}
        operation["requestBody"] = {"content": content, "required": True}

    def _place(self, entry: ResourceFacts) -> tuple[str, str]:
        return (entry.group, entry.version) if entry.version else (self._group, self._version)

    def _is_custom(self, entry: ResourceFacts) -> bool:
        return entry.name.partition("/")[0] in self._custom

    def _formats(self, entry: ResourceFacts) -> tuple[str, ...]:
        return (_JSON, _YAML) if self._is_custom(entry) else (_JSON, _PROTOBUF, _YAML)

    def _type_of(self, entry: ResourceFacts) -> str:
        custom = self._custom.get(entry.name.partition("/")[0])
        if custom is not None and not entry.version:
            return type_name(custom, custom.kind)
        return _built_in_type(*self._place(entry), entry.kind)


def camel_case(group: str) -> str:
    """Return the name of a group in operations: ``rbacAuthorization`` for ``rbac.authorization.k8s.io``."""
    first, *rest = group.removesuffix(".k8s.io").split(".")
    return first + "".join(each[:1].upper() + each[1:] for each in rest)


def parameter(name: str, kind: str, place: str = "query") -> Document:
    """Return a parameter: `kind` is its JSON type, and `place` is ``query`` or ``path``."""
    made: Document = {"name": name, "in": place} | ({"required": True} if place == "path" else {})
    return made | {"schema": {"type": kind, "uniqueItems": True}}


def referenced_types(paths: dict[str, Document]) -> list[str]:
    """Return the names of the types that bodies and responses of operations refer to."""
    found: dict[str, None] = {}
    for operation in (each for item in paths.values() for each in item.values() if isinstance(each, dict)):
        for holder in (operation.get("requestBody", {}), *part(operation, "responses").values()):
            for content in part(cast(Document, holder), "content").values():
                target = part(cast(Document, content), "schema").get("$ref")
                if isinstance(target, str):
                    found[target.removeprefix(SCHEMAS)] = None
    return list(found)


def version_2_paths(paths: dict[str, Document]) -> dict[str, Document]:
    """Return path items of version 3 in the form of version 2."""
    return {path: {name: _version_2(name, value) for name, value in item.items()} for path, item in paths.items()}


def _version_2(name: str, value: object) -> object:
    if name == "parameters":
        assert isinstance(value, list)
        return [_version_2_parameter(each) for each in value]
    assert isinstance(value, dict)
    operation = {key: each for key, each in value.items() if key != "requestBody"}
    body, responses = part(value, "requestBody"), part(value, "responses")
    formats = list(part(responses, "200", "content"))
    operation["produces"] = formats
    is_built_in = "x-kubernetes-action" in value and formats != [_JSON, _YAML]
    operation["consumes"] = list(part(body, "content")) or ([_ANY] if is_built_in else formats)
    operation["schemes"] = ["https"]
    parameters = [_version_2_parameter(each) for each in parts(value, "parameters")]
    if body:
        content = next(iter(part(body, "content").values()))
        made: Document = {"name": "body", "in": "body", "schema": _version_2_schema(content)}
        parameters.insert(0, made | ({"required": True} if body.get("required") else {}))
    if parameters:
        operation["parameters"] = parameters
    operation["responses"] = {code: _version_2_response(each) for code, each in responses.items()}
    return operation


def _version_2_parameter(value: Document) -> Document:
    return {key: each for key, each in value.items() if key != "schema"} | part(value, "schema")


def _version_2_response(response: object) -> Document:
    assert isinstance(response, dict)
    made: Document = {"description": response["description"]}
    content = next(iter(part(response, "content").values()), None)
    return made if content is None else {**made, "schema": _version_2_schema(content)}


def _version_2_schema(content: object) -> Document:
    made = part(cast(Document, content), "schema")
    reference = made.get("$ref")
    return {"$ref": reference.replace(SCHEMAS, DEFINITIONS)} if isinstance(reference, str) else made


def _reference(type_name: str) -> Document:
    return {"$ref": SCHEMAS + type_name} if type_name else {"type": "object"}


def _built_in_type(group: str, version: str, kind: str) -> str:
    """Return the name of a kind's type; empty if upstream's documents don't describe it."""
    found = find_kind(f"{group}/{version}" if group else version, kind)
    return "" if found is None else found.type


def _responses(result: Document, formats: Iterable[str], *codes: str) -> Document:
    """Return the responses with these codes, all with the same result."""
    meaning = {"200": "OK", "201": "Created", "202": "Accepted"}
    made: Document = {
        code: {"description": meaning[code], "content": {each: {"schema": result} for each in formats}}
        for code in codes
    }
    return {**made, "401": {"description": "Unauthorized"}}


def _streaming(formats: tuple[str, ...]) -> tuple[str, ...]:
    """Return media types in which objects can be watched."""
    return tuple(sorted([*formats, *(f"{each};stream=watch" for each in formats if each != _YAML)]))


def _options(kind: str) -> dict[str, str]:
    """Return the query parameters of a connection by name: the fields of its options."""
    types = {"bool": "boolean", "int32": "integer", "int64": "integer", "string": "string"}
    fields: tuple[GoField, ...] = api_facts().types[f"io.k8s.api.core.v1.{kind}"]
    return {each.name: types[each.type] for each in fields if each.type in types}


def _put(
    paths: dict[str, Document], path: str, method: str, operation: Document, queries: dict[str, str],
    *, pretty: bool = True,
) -> None:  # fmt: skip
    """Add an operation with its query parameters; all operations but connections have ``pretty``."""
    found = queries | ({"pretty": "string"} if pretty else {})
    operation["parameters"] = [parameter(name, kind) for name, kind in sorted(found.items())]
    paths.setdefault(path, {})[method] = operation


def _with_common_parameters(path: str, item: Document) -> Document:
    """Move the parameters that all operations of a path share to the path, and add those in the path itself."""
    operations = [each for each in item.values() if isinstance(each, dict)]
    shared = [
        each
        for each in parts(operations[0], "parameters")
        if all(each in parts(operation, "parameters") for operation in operations)
    ]
    in_path = [parameter(name, "string", "path") for name in ("name", "namespace", "path") if f"{{{name}}}" in path]
    common = sorted(in_path + shared, key=lambda each: (str(each["name"]), each["in"]))
    made: Document = {}
    for method, operation in item.items():
        assert isinstance(operation, dict)
        own = [each for each in parts(operation, "parameters") if each not in shared]
        rest = {key: each for key, each in operation.items() if key != "parameters"}
        made[method] = rest | ({"parameters": own} if own else {})
    return made | ({"parameters": common} if common else {})
