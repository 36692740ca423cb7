"""Write `docs/openapi.json` and `src/bayplan/ui/contract.d.ts` (the page's types) from the HTTP API's structs.

    python scripts/make_page_types.py [--check]

The page's modules are JavaScript; TypeScript's compiler checks them against the declarations (`make lint`). The same
structs give the same bytes. `--check` writes nothing, and fails if a file is out of date.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from bayplan.http_api.openapi import STREAM_TOPICS, openapi_document
from bayplan.http_api.operations import ROOT

FOLDER = Path(__file__).resolve().parents[1]
DOCUMENT = FOLDER / "docs" / "openapi.json"
DECLARATIONS = FOLDER / "src" / "bayplan" / "ui" / "contract.d.ts"

HEAD = """\
// The types of our HTTP API, generated from the structs of bayplan.http_api by scripts/make_page_types.py: don't edit.
declare namespace Api {
"""
TAIL = """\
  /** The operations that read: parameters and responses by path. */
  type Gets = { [K in keyof Operations as K extends `GET ${infer P}` ? P : never]: Operations[K] };

  /** The operations that write. */
  type Writes = Exclude<keyof Operations, `GET ${string}`>;
}
"""
_SCALARS = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_PARAMETERS = {"string": "string | null", "integer": "number | string | null", "boolean": "boolean"}
_NAME = re.compile(r"[A-Za-z_]\w*")


def document_text(document: dict[str, Any]) -> str:
    """Return the OpenAPI document in its checked-in form: without the version, which changes independently of the contract."""
    return json.dumps({**document, "info": {**document["info"], "version": "0"}}, indent=1, ensure_ascii=False) + "\n"


def declarations_text(document: dict[str, Any]) -> str:
    """Return the TypeScript declarations of a document's schemas and operations."""
    parts = [_interface(name, schema) for name, schema in sorted(document["components"]["schemas"].items())]
    operations = [
        _operation(method, path.removeprefix(ROOT), operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if STREAM_TOPICS not in operation
    ]
    parts.append(
        "  /** All operations by method and path. */\n  interface Operations {\n" + "".join(operations) + "  }\n"
    )
    topics = document["paths"][f"{ROOT}/stream"]["get"][STREAM_TOPICS]
    lines = [f"    {_topic(topic)}: {_type(schema)};\n" for topic, schema in topics.items()]
    parts.append(
        "  /** The data of the stream's frames by topic. */\n  interface Topics {\n" + "".join(lines) + "  }\n"
    )
    return HEAD + "\n".join([*parts, TAIL])


def _interface(name: str, schema: dict[str, Any]) -> str:
    lines = "".join(
        f"    {_key(field)}{'' if field in schema['required'] else '?'}: {_type(each)};\n"
        for field, each in schema["properties"].items()
    )
    summary = " ".join(schema["description"].partition("\n\n")[0].split())
    return f"  /** {summary} */\n  interface {name} {{\n{lines}  }}\n"


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    answer = next(each for status, each in operation["responses"].items() if status < "300")
    body = operation.get("requestBody")
    parameters = "".join(
        f"{_key(each['name'])}: string; "
        if each["in"] == "path"
        else f"{_key(each['name'])}?: {_parameter(each['schema'])}; "
        for each in operation["parameters"]
    )
    return (
        f"    {json.dumps(f'{method.upper()} {path}')}: {{\n"
        f"      parameters: {f'{{ {parameters}}}' if parameters else '{ [name: string]: never }'};\n"
        f"      body: {'undefined' if body is None else _body(body)};\n"
        f"      answer: {_type(answer['content']['application/json']['schema'])};\n"
        "    };\n"
    )


def _parameter(schema: dict[str, Any]) -> str:
    return "boolean" if "enum" in schema else _PARAMETERS[schema["type"]]


def _body(body: dict[str, Any]) -> str:
    """Return the type of a request body; text is a further type if the operation accepts another media type."""
    kinds = [_type(each["schema"]) for each in body["content"].values()]
    return " | ".join(kinds if body["required"] else [*kinds, "undefined"])


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(_type(each) for each in schema["anyOf"])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(each) for each in schema["enum"])
    kind = schema.get("type")
    if kind == "array":
        inner = _type(schema["items"])
        return f"({inner})[]" if "|" in inner else f"{inner}[]"
    if kind == "object":
        if "properties" in schema:
            return (
                "{ " + "; ".join(f"{_key(name)}?: {_type(each)}" for name, each in schema["properties"].items()) + " }"
            )
        values = schema.get("additionalProperties")
        return f"Record<string, {_type(values) if isinstance(values, dict) else 'unknown'}>"
    return "unknown" if kind is None else _SCALARS[kind]


def _key(name: str) -> str:
    return name if _NAME.fullmatch(name) else json.dumps(name)


def _topic(topic: str) -> str:
    pattern = re.sub(r"{\w+}", "${string}", topic)
    return f"[topic: `{pattern}`]" if "{" in topic else topic


def main() -> int:
    """Write the files, or check them; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is out of date")
    check = parser.parse_args().check
    document: dict[str, Any] = openapi_document()
    stale = False
    for path, text in ((DOCUMENT, document_text(document)), (DECLARATIONS, declarations_text(document))):
        if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            print(f"{path.name} is out of date: run python {Path(__file__).name}", file=sys.stderr)
            stale = True
        if not check:
            path.write_text(text, encoding="utf-8")
    return int(stale)


if __name__ == "__main__":
    sys.exit(main())
