"""Write `src/bayplan/formats/schema.msgpack.gz`, the table of API types, from a kube-apiserver's OpenAPI documents.

    python scripts/make_schema.py FOLDER [-o OUTPUT]

FOLDER contains `openapi-v2.json.gz` (`/openapi/v2`: every type and operation), `openapi-v3/*.json.gz`
(`/openapi/v3/...`: the defaults, for the groups that were recorded) and `version.json` (`/version`). Only facts are
stored: names, types, list and map semantics, merge keys, enums, defaults, required fields, resources. No descriptions.
The same input gives the same bytes. `bayplan.formats.schema` describes and reads the table.
"""

import argparse
import gzip
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

OUTPUT = Path(__file__).resolve().parents[1] / "src" / "bayplan" / "formats" / "schema.msgpack.gz"

_RESOURCE_PATH = re.compile(r"/(?:api/v1|apis/[^/]+/[^/]+)(/namespaces/\{namespace\})?/([^/{]+)(?:/\{name\})?")


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file, gzipped or plain."""
    data = path.read_bytes()
    document: dict[str, Any] = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    return document


def reference(schema: dict[str, Any]) -> str:
    """Return the name of the type that a schema refers to (v2: `$ref`, v3: `allOf` of one `$ref`), or ''."""
    pointer = schema.get("$ref") or next((part["$ref"] for part in schema.get("allOf", ()) if "$ref" in part), "")
    return str(pointer).rsplit("/", 1)[-1]


def field_facts(schema: dict[str, Any], required: bool) -> dict[str, Any]:
    """Return the facts of one field: its containers from the outside in, then the innermost type."""
    containers: list[str] = []
    core = schema
    while True:
        if core.get("type") == "array":
            containers.append("list")
            core = core["items"]
        elif core.get("type") == "object" and "additionalProperties" in core:
            containers.append("map")
            core = core["additionalProperties"]
        else:
            break
    name = reference(core) or core.get("type") or "any"
    facts: dict[str, Any] = {"type": name}
    optional = {
        "containers": containers,
        "format": core.get("format"),
        "list_type": schema.get("x-kubernetes-list-type"),
        "list_map_keys": schema.get("x-kubernetes-list-map-keys"),
        "map_type": schema.get("x-kubernetes-map-type"),
        "merge_key": schema.get("x-kubernetes-patch-merge-key"),
        "strategy": schema.get("x-kubernetes-patch-strategy"),
        "enum": core.get("enum"),
        "required": required,
    }
    facts.update({key: value for key, value in optional.items() if value})
    return facts


def type_facts(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of one type: its fields, or its scalar type if it has none."""
    required = set(schema.get("required", ()))
    facts: dict[str, Any] = {
        "fields": {
            name: field_facts(field, name in required) for name, field in sorted(schema.get("properties", {}).items())
        }
    }
    if "properties" not in schema:
        facts["scalar"] = schema.get("type") or "any"
        if "format" in schema:
            facts["format"] = schema["format"]
    if "x-kubernetes-map-type" in schema:
        facts["map_type"] = schema["x-kubernetes-map-type"]
    if "x-kubernetes-unions" in schema:
        facts["unions"] = [
            {"discriminator": union.get("discriminator", ""), "fields": sorted(union["fields-to-discriminateBy"])}
            for union in schema["x-kubernetes-unions"]
        ]
    return facts


def overlay_v3(types: dict[str, Any], documents: Iterator[dict[str, Any]]) -> None:
    """Add the facts that only OpenAPI v3 has: defaults and enums of fields."""
    for document in documents:
        for type_name, schema in document.get("components", {}).get("schemas", {}).items():
            fields = types[type_name]["fields"]
            for field_name, field in schema.get("properties", {}).items():
                if "default" in field:
                    fields[field_name]["default"] = field["default"]
                if "enum" in field:
                    fields[field_name]["enum"] = field["enum"]


def kind_facts(document: dict[str, Any]) -> dict[str, Any]:
    """Return type, resource and scope by `apiVersion/kind`. Types of several kinds (DeleteOptions) are omitted."""
    kinds: dict[str, Any] = {}
    for type_name, schema in document["definitions"].items():
        names = schema.get("x-kubernetes-group-version-kind", ())
        if len(names) == 1:
            kinds[kind_key(names[0])] = {"type": type_name}
    for path, item in document["paths"].items():
        match = _RESOURCE_PATH.fullmatch(path)
        if match is None:
            continue
        for operation in item.values():
            name = isinstance(operation, dict) and operation.get("x-kubernetes-group-version-kind")
            if name and kind_key(name) in kinds:
                facts = kinds[kind_key(name)]
                facts["resource"] = match[2]
                facts["namespaced"] = facts.get("namespaced", False) or bool(match[1])
    return dict(sorted(kinds.items()))


def kind_key(name: dict[str, str]) -> str:
    """Return `apps/v1/Deployment`, or `v1/Pod` for the core group."""
    return "/".join(part for part in (name["group"], name["version"], name["kind"]) if part)


def make_table(folder: Path) -> dict[str, Any]:
    """Return the whole table for the documents in a folder, as plain data."""
    document = read_json(folder / "openapi-v2.json.gz")
    types = {name: type_facts(schema) for name, schema in sorted(document["definitions"].items())}
    overlay_v3(types, (read_json(path) for path in sorted((folder / "openapi-v3").glob("*.json.gz"))))
    release = read_json(folder / "version.json")["gitVersion"]
    return {"release": release, "kinds": kind_facts(document), "types": types}


def main() -> int:
    """Write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    table = make_table(options.folder)
    packed = gzip.compress(msgspec.msgpack.encode(table), compresslevel=9, mtime=0)
    options.output.write_bytes(packed)
    fields = sum(len(facts["fields"]) for facts in table["types"].values())
    print(
        f"{options.output.name}: {table['release']}, {len(table['kinds'])} kinds, {len(table['types'])} types, ", end=""
    )
    print(f"{fields} fields, {len(packed)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
