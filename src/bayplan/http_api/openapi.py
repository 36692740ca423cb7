"""Our own API as an OpenAPI document, made from the table of operations."""

from __future__ import annotations

import re
from functools import cache

import msgspec

from bayplan.base.plain_data import Plain
from bayplan.base.version import __version__
from bayplan.http_api.operations import ANY_LIST, LINES, OPERATIONS, PARAMETERS, ROOT, TEXT, Operation

_IN_PATH = re.compile(r"\{(\w+)\}")
_SCHEMAS = "#/components/schemas/{name}"


@cache
def openapi_document() -> Plain:
    """Return the document. It says which operations there are and what they take; answers are described in words."""
    structs = [each.body for each in OPERATIONS if isinstance(each.body, type)]
    _, schemas = msgspec.json.schema_components(structs, schema_hook=lambda kind: _ANYTHING, ref_template=_SCHEMAS)
    paths: dict[str, Plain] = {}
    for operation in OPERATIONS:
        paths.setdefault(f"{ROOT}{operation.path}", {})[operation.method.lower()] = _operation(operation)
    paths[f"{ROOT}/stream"] = {"get": _stream()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Bayplan",
            "version": __version__,
            "description": "What a running simulator knows, and how to drive it. docs/bayplan-api.md describes the answers.",
        },
        "paths": paths,
        "components": {"schemas": {**schemas, "Error": _ERROR}},
    }


def _operation(operation: Operation) -> Plain:
    found: Plain = {
        "operationId": operation.handler.__name__,
        "summary": (operation.handler.__doc__ or "").strip().partition("\n")[0],
        "parameters": [*_path_parameters(operation), *(_parameter(name) for name in operation.query)],
        "responses": _responses(operation),
    }
    if operation.body is not None:
        found["requestBody"] = {"required": operation.body in (TEXT, ANY_LIST, LINES), "content": _content(operation)}
    return found


def _path_parameters(operation: Operation) -> list[Plain]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _IN_PATH.findall(operation.path)
    ]


def _parameter(name: str) -> Plain:
    parameter = PARAMETERS[name]
    schema: Plain = {"type": parameter.type}
    if parameter.type == "boolean":
        schema = {"type": "string", "enum": ["0", "1", "true", "false"]}
    return {"name": name, "in": "query", "required": False, "description": parameter.text, "schema": schema}


def _content(operation: Operation) -> Plain:
    if operation.body == TEXT:
        return {"application/yaml": {"schema": {"type": "string"}}, "application/json": {"schema": {"type": "object"}}}
    items: Plain = {"type": "array", "items": {"type": "object"}}
    if operation.body == LINES:
        whole: Plain = {"type": "object", "properties": {"items": items}}
        return {"application/jsonl": {"schema": {"type": "string"}}, "application/json": {"schema": whole}}
    if operation.body == ANY_LIST:
        properties: Plain = {"items": items, "configuration": {"type": "string"}}
        return {"application/json": {"schema": {"type": "object", "properties": properties}}}
    assert isinstance(operation.body, type)
    return {"application/json": {"schema": {"$ref": _SCHEMAS.format(name=operation.body.__name__)}}}


def _responses(operation: Operation) -> Plain:
    refusals = ["400", "403", "503"]
    name = operation.handler.__name__
    reads_forks = "run" in operation.query or name == "compare"
    if _IN_PATH.search(operation.path) or reads_forks or name == "begin_fork":
        refusals.append("404")
    if operation.body is not None:
        refusals += ["413", "422"]
    if reads_forks or name in ("take_snapshot", "begin_fork"):
        refusals.append("409")
    told: Plain = {str(operation.status): {"description": "done", "content": {"application/json": {"schema": {}}}}}
    told |= {status: {"description": "refused", "content": _REFUSED} for status in sorted(refusals)}
    return told


def _stream() -> Plain:
    return {
        "operationId": "stream",
        "summary": "Follow what changes, as server-sent events; a WebSocket at the same address takes topics as messages.",
        "parameters": [{**_parameter("topics"), "required": True}],
        "responses": {
            "200": {"description": "frames", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
            "400": {"description": "refused", "content": _REFUSED},
            "403": {"description": "refused", "content": _REFUSED},
        },
    }


_ANYTHING = {"description": "any JSON value"}
_TEXTS = ("what", "where", "got", "wanted", "hint", "request_id")
_ERROR: Plain = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": list(_TEXTS),
            "properties": {name: {"type": "string"} for name in _TEXTS},
        }
    },
}
_REFUSED: Plain = {"application/json": {"schema": {"$ref": _SCHEMAS.format(name="Error")}}}
