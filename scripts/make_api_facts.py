"""Write `src/bayplan/apiserver/schema/facts.msgpack.gz`: facts about the API that its OpenAPI schema lacks.

    go run ./scripts/api_facts > go.json        (in a Go module that requires k8s.io/kubernetes at the pinned release)
    python scripts/make_api_facts.py FOLDER go.json [-o OUTPUT]

FOLDER contains `discovery.json.gz` (path to body of the discovery documents) and `version.json`, recorded from a
kube-apiserver. The Go program extracts the fields of every type (JSON name, protobuf number, Go type, which empty
values are shown) and the columns of tables. Only facts are stored: names, numbers, types, verbs; no descriptions. The
same input gives the same bytes. `bayplan.apiserver.schema.facts` describes and reads the table.
"""

import argparse
import gzip
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

OUTPUT = Path(__file__).resolve().parents[1] / "src" / "bayplan" / "apiserver" / "schema" / "facts.msgpack.gz"


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file, gzipped or plain."""
    data = path.read_bytes()
    document: dict[str, Any] = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    return document


def openapi_name(go_name: str) -> str:
    """Return the OpenAPI name of a Go type: `k8s.io/api/core/v1.Pod` is `io.k8s.api.core.v1.Pod`."""
    if not go_name.startswith("k8s.io/"):
        return go_name
    return "io.k8s." + go_name.removeprefix("k8s.io/").replace("/", ".")


def field_facts(field: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of one field with short keys; false and empty facts are omitted."""
    facts = {
        "name": field["name"],
        "number": field.get("number", 0),
        "wire": field.get("wire", ""),
        "type": openapi_name(field["type"]),
        "go_type": field["goType"],
        "containers": field.get("containers", []),
        "omit_empty": field.get("omitEmpty", False),
        "omit_zero": field.get("omitZero", False),
        "inline": field.get("inline", False),
    }
    return {key: value for key, value in facts.items() if value}


def make_table(folder: Path, go: dict[str, Any]) -> dict[str, Any]:
    """Return the whole table as plain data."""
    discovery = read_json(folder / "discovery.json.gz")
    groups = {
        path: body["resources"]
        for path, body in discovery.items()
        if isinstance(body, dict) and body.get("kind") == "APIResourceList"
    }
    checks = {
        path: [line[3:-3] for line in discovery[f"/{path}?verbose"].splitlines() if line.startswith("[+]")]
        for path in ("livez", "readyz")
    }
    return {
        "version": read_json(folder / "version.json"),
        "types": {openapi_name(name): [field_facts(each) for each in fields] for name, fields in go["types"].items()},
        "kinds": {key: openapi_name(name) for key, name in sorted(go["kinds"].items())},
        "columns": dict(sorted(go["columns"].items())),
        "resources": groups,
        "groups": [each["name"] for each in discovery["/apis"]["groups"]],
        "paths": discovery["/"]["paths"],
        "checks": checks,
    }


def main() -> int:
    """Write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("go", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    table = make_table(options.folder, read_json(options.go))
    packed = gzip.compress(msgspec.msgpack.encode(table), compresslevel=9, mtime=0)
    options.output.write_bytes(packed)
    fields = sum(len(fields) for fields in table["types"].values())
    print(f"{options.output.name}: {len(table['types'])} types, {fields} fields, {len(packed)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
