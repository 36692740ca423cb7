"""Generate the OpenAPI document from the table of operations and the structs of bodies and responses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from inspect import cleandoc
from types import UnionType
from typing import Any, cast, get_args

import msgspec

from bayplan.base.plain_data import Plain
from bayplan.base.version import __version__
from bayplan.http_api.contract.answer import Error
from bayplan.http_api.operations import ANY_LIST, LINES, OPERATIONS, PARAMETERS, ROOT, TEXT, TOPICS, Operation

_IN_PATH = re.compile(r"\{(\w+)\}")
_SCHEMAS = "#/components/schemas/{name}"

STREAM_TOPICS = "x-topics"
"""Extension of the operation ``stream``: the schema of a frame's data, by topic."""


@cache
def openapi_document() -> Plain:
    """Return the OpenAPI document with all operations, parameters, bodies and responses."""
    bodies = [each.body for each in OPERATIONS if isinstance(each.body, type)]
    answers = [kind for each in OPERATIONS for kind in alternatives(each.answer)] + [*TOPICS.values(), Error]
    _, schemas = msgspec.json.schema_components([*bodies, *answers], schema_hook=_any_value, ref_template=_SCHEMAS)
    for struct in _structs(answers):
        _require_all(struct, schemas[struct.__name__])
    for schema in schemas.values():
        schema["description"] = cleandoc(schema["description"])
    paths: dict[str, Plain] = {}
    for operation in OPERATIONS:
        paths.setdefault(f"{ROOT}{operation.path}", {})[operation.method.lower()] = _operation(operation)
    paths[f"{ROOT}/stream"] = {"get": _stream()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Bayplan",
            "version": __version__,
            "description": "Read the state of a running server, and control it. docs/bayplan-api.md has examples.",
        },
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _any_value(kind: type) -> Plain:
    """Return the schema of values inside Kubernetes documents, which this API does not define.

    Raises:
        TypeError: a field has a type without a JSON equivalent.
    """
    if kind is object:
        return {"description": "any JSON value"}
    raise TypeError(f"{kind} has no JSON type")


# --- responses --------------------------------------------------------------------------------------------------------


def alternatives(answer: type | UnionType) -> list[type]:
    """Return the possible types of a response."""
    return [cast("type", each) for each in get_args(answer)] if isinstance(answer, UnionType) else [answer]


def _structs(kinds: Iterable[type]) -> Iterator[type[msgspec.Struct]]:
    """Yield all structs that responses contain, each once."""
    waiting, seen = list(msgspec.inspect.multi_type_info(kinds)), set[type]()
    while waiting:
        found = waiting.pop()
        if isinstance(found, msgspec.inspect.StructType):
            if found.cls in seen:
                continue
            seen.add(found.cls)
            yield found.cls
            waiting += [each.type for each in found.fields]
        elif isinstance(found, msgspec.inspect.UnionType):
            waiting += found.types
        elif isinstance(found, msgspec.inspect.CollectionType):
            waiting.append(found.item_type)
        elif isinstance(found, msgspec.inspect.DictType):
            waiting.append(found.value_type)
        elif isinstance(found, msgspec.inspect.Metadata):
            waiting.append(found.type)


def _require_all(struct: type[msgspec.Struct], schema: dict[str, Any]) -> None:
    """Mark the fields that responses always contain as required: all but those that the struct may omit.

    Default values are removed, because they only apply to request bodies. Additional properties are not allowed.
    """
    info = msgspec.inspect.type_info(struct)
    assert isinstance(info, msgspec.inspect.StructType)
    for each in info.fields:
        schema["properties"][each.encode_name].pop("default", None)
    tag = [info.tag_field] if info.tag_field else []
    schema["required"] = [*tag, *(each.encode_name for each in info.fields if not _may_be_missing(struct, each))]
    schema["additionalProperties"] = False


def _may_be_missing(struct: type[msgspec.Struct], field: msgspec.inspect.Field) -> bool:
    has_default = not (field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT)
    # A field whose default is UNSET looks like one without a default.
    return not field.required and (struct.__struct_config__.omit_defaults or not has_default)


# --- operations -------------------------------------------------------------------------------------------------------


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
    return {"application/json": {"schema": _reference(operation.body)}}


def _reference(kind: type) -> Plain:
    return {"type": "null"} if kind is type(None) else {"$ref": _SCHEMAS.format(name=kind.__name__)}


def _answer(answer: type | UnionType) -> Plain:
    kinds = [_reference(kind) for kind in alternatives(answer)]
    return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


def _responses(operation: Operation) -> Plain:
    refusals = ["400", "403", "503"]
    name = operation.handler.__name__
    reads_forks = "run" in operation.query or name == "compare"
    asks = operation.handler.__module__.endswith(".question_routes")
    if _IN_PATH.search(operation.path) or reads_forks or name in ("begin_fork", "explain"):
        refusals.append("404")
    if operation.body is not None:
        refusals += ["413", "422"]
    elif asks:
        refusals.append("422")
    if reads_forks or name in ("take_snapshot", "begin_fork", "what_if"):
        refusals.append("409")
    if operation.path.startswith("/compare"):
        refusals.append("502")
    content = {"application/json": {"schema": _answer(operation.answer)}}
    responses: Plain = {str(operation.status): {"description": "done", "content": content}}
    responses |= {status: {"description": "refused", "content": _REFUSED} for status in sorted(refusals)}
    return responses


def _stream() -> Plain:
    return {
        "operationId": "stream",
        "summary": "Stream changes as server-sent events; a WebSocket at the same address takes topics as messages.",
        "parameters": [{**_parameter("topics"), "required": True}],
        "responses": {
            "200": {"description": "frames", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
            "400": {"description": "refused", "content": _REFUSED},
            "403": {"description": "refused", "content": _REFUSED},
        },
        STREAM_TOPICS: {topic: _reference(kind) for topic, kind in TOPICS.items()},
    }


_REFUSED: Mapping[str, Plain] = {"application/json": {"schema": _reference(Error)}}
