"""Write the table of upstream's internal structs: names and types of their fields, in Go's order.

Messages of field errors print internal structs as JSON. Usage: `python scripts/make_internal_facts.py KUBERNETES EXTENSIONS`,
the folders of the Go modules `k8s.io/kubernetes` and `k8s.io/apiextensions-apiserver` (in Go's module cache).
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path

_TARGET = Path(__file__).parent.parent / "src/bayplan/apiserver/schema/internal_types.json.gz"
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"^type (\w+) (string|int32|int64|bool|map\[[^\n]*|\[\][^\n{]*)$", re.MULTILINE)
_FIELD = re.compile(r"^\t(\w+)\s+([^\s/`]+)", re.MULTILINE)
_EMBEDDED = re.compile(r"^\t([\w.]+)\s*(?:`json:\"([^\"]*)\")?[^\n]*$")


def _fields(body: str) -> list[list[str]]:
    found: list[list[str]] = []
    for line in body.splitlines():
        bare = line.split("//")[0].rstrip()
        named = _FIELD.match(bare)
        if named:
            found.append([named[1], named[2]])
            continue
        embedded = _EMBEDDED.match(bare)
        if embedded:
            found.append(["", embedded[1]])
    return found


def main() -> None:
    """Write the table."""
    table: dict[str, dict[str, object]] = {}
    files = [path for folder in sys.argv[1:] for path in Path(folder, "pkg/apis").glob("*/types*.go")]
    for path in sorted(files, key=lambda path: (path.parent.name, path.name)):
        if path.name not in ("types.go", "types_jsonschema.go"):
            continue
        text = path.read_text()
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        package: dict[str, object] = {name: kind.split("//")[0].strip() for name, kind in _NAMED.findall(text)}
        package |= {name: _fields(body) for name, body in _STRUCT.findall(text)}
        table.setdefault(path.parent.name, {}).update(package)
    data = json.dumps(table, separators=(",", ":"), sort_keys=True).encode()
    _TARGET.write_bytes(gzip.compress(data, mtime=0))
    sys.stdout.write(f"{_TARGET}: {len(data)} bytes, {sum(len(each) for each in table.values())} types\n")


if __name__ == "__main__":
    main()
