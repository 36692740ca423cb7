"""One-field changes of documents, derived from their schema: remove, empty, mistype, set and add fields."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator

Document = dict[str, object]
_LONG = "x" * 300
_TEXTS = ["", "Bad Value!", _LONG, "zz", None, 5, "a.b/c-d_e"]
_NUMBERS = [-1, 0, 1, 2, 100, 70000, 3_000_000_000, "3", 1.5, None]
_QUANTITIES = ["-1", "0", "1500m", "1.5", "abc", "", 5, "10Ei", None]
_MIXED = [0, -1, 70000, "50%", "150%", "abc", "-5%", "", None]
_TIMES = ["2026-01-02T03:04:05Z", "yesterday", None, ""]
_ADDRESSES = [
    "10.0.0.300",
    "010.0.0.1",
    "::1",
    "127.0.0.1",
    "::ffff:1.2.3.4",
    "10.0.0.0/33",
    "10.1.2.3/8",
    "2001:db8::/32",
]
_PATHS = ["../x", "/abs", "a/../b", "a b", "a:b"]
_KEYS = ["Bad Key!", "a/b/c", "x" * 70, "", "kubernetes.io/x"]
_ADD_TEXTS = ["abc", "A b"]


class Schema:
    """The types of an OpenAPI v2 document."""

    def __init__(self, document: Document) -> None:
        self._types: dict[str, Document] = document["definitions"]  # type: ignore[assignment]
        self._kinds: dict[tuple[str, str], str] = {}
        for name, found in self._types.items():
            for each in found.get("x-kubernetes-group-version-kind", []):  # type: ignore[attr-defined]
                version = f"{each['group']}/{each['version']}" if each["group"] else each["version"]
                self._kinds.setdefault((version, each["kind"]), name)

    def of_kind(self, version: str, kind: str) -> Document:
        """Return a reference to the type of a kind."""
        return {"$ref": f"#/definitions/{self._kinds[version, kind]}"}

    def resolved(self, found: Document) -> tuple[str, Document]:
        """Return the name of a type ("" for a type without a name), and the type."""
        name = str(found.get("$ref", "")).rpartition("/")[2]
        return (name, self._types[name]) if name else ("", found)


def changed_objects(
    schema: Schema, body: Document, seed: str, most: int, seen: set[tuple[str, str]] | None, *, prefix: str = ""
) -> Iterator[tuple[str, Document]]:
    """Yield at most `most` one-field mutants, each with a description of the change, such as `spec.replicas set -1`.

    Args:
        schema: the types.
        body: a valid object.
        seed: chooses among the mutants, by a hash.
        most: the maximum number of mutants.
        seen: the fields (type and name) that were added before. A field that is not among them is always included, and
            recorded here.
        prefix: the path that all mutations must start with.
    """
    root = schema.of_kind(str(body["apiVersion"]), str(body["kind"]))
    found = list(_mutations(schema, root, body, ""))
    if prefix:
        found = [each for each in found if each[0].startswith(prefix)]
    first = []
    if seen is not None:
        for each in found:
            if each[3] and each[3] not in seen:
                seen.add(each[3])
                first.append(each)
    rest = sorted((each for each in found if each not in first), key=lambda each: _rank(seed, each))
    for path, action, value, _ in [*first, *rest[: max(0, most - len(first) // 2)]]:
        yield (
            f"{path} {action}" + ("" if action == "del" else f" {json.dumps(value)}"),
            _mutant(body, path, action, value),
        )


Mutation = tuple[str, str, object, tuple[str, str] | None]
"""Path, ``set`` or ``del``, the value, and for an added field its type and name."""


def _rank(seed: str, each: Mutation) -> str:
    return hashlib.sha256(f"{seed} {each[0]} {each[1]} {json.dumps(each[2])}".encode()).hexdigest()


def _mutant(body: Document, path: str, action: str, value: object) -> Document:
    changed = copy.deepcopy(body)
    *above, name = path.split("\x1f") if "\x1f" in path else path.split(".")
    at: object = changed
    for each in above:
        at = at[int(each)] if isinstance(at, list) else at[each]  # type: ignore[index]
    if isinstance(at, list):
        if action == "del":
            del at[int(name)]
        else:
            at[int(name)] = value
    elif action == "del":
        del at[name]  # type: ignore[attr-defined]
    else:
        at[name] = value  # type: ignore[index]
    return changed


def _under(path: str, name: str) -> str:
    if "\x1f" in path or "." in name:
        return "\x1f".join([*(path.split("\x1f") if "\x1f" in path else path.split(".")), name])
    return f"{path}.{name}" if path else name


def _mutations(schema: Schema, found: Document, value: object, path: str) -> Iterator[Mutation]:
    type_name, kind = schema.resolved(found)
    if isinstance(value, dict):
        properties: dict[str, Document] = kind.get("properties") or {}  # type: ignore[assignment]
        extra: Document = kind.get("additionalProperties") or {}  # type: ignore[assignment]
        for name, item in value.items():
            here = _under(path, name)
            inner = properties.get(name, extra if isinstance(extra, dict) else {})
            yield here, "del", None, None
            for candidate in values_for(schema, inner, name, item):
                yield here, "set", candidate, None
            yield from _mutations(schema, inner, item, here)
        for name, inner in properties.items():
            if name not in value and name not in ("apiVersion", "kind", "status"):
                for candidate in additions(schema, inner, name):
                    yield _under(path, name), "set", candidate, (type_name, name)
        if extra and value:
            example = next(iter(value.values()))
            for key in _KEYS:
                yield "\x1f".join([*path.split("."), key]) if path else key, "set", example, None
    elif isinstance(value, list):
        for index, item in enumerate(value):
            here = f"{path}\x1f{index}" if "\x1f" in path else f"{path}.{index}"
            inner_type: Document = kind.get("items") or {}  # type: ignore[assignment]
            if not isinstance(item, dict | list):
                for candidate in values_for(schema, inner_type, path.rpartition(".")[2], item):
                    yield here, "set", candidate, None
            yield from _mutations(schema, inner_type, item, here)


def values_for(schema: Schema, found: Document, name: str, value: object) -> list[object]:
    """Return replacements for a field that has a value."""
    type_name, kind = schema.resolved(found)
    if isinstance(value, dict):
        return [{}, None, "x", []]
    if isinstance(value, list):
        doubled = [[*value, value[-1]]] if value else [["zz"]]
        return [[], *doubled, value[1:], {}, [None], None]
    if isinstance(value, bool):
        return [not value, "true", None]
    candidates: list[object]
    if type_name.endswith("Quantity"):
        candidates = list(_QUANTITIES)
    elif type_name.endswith("IntOrString"):
        candidates = list(_MIXED)
    elif type_name.endswith(("Time", "MicroTime")):
        candidates = list(_TIMES)
    elif isinstance(value, int):
        candidates = [*_NUMBERS, value + 1]
    else:
        candidates = [*_TEXTS, *kind.get("enum", [])]  # type: ignore[misc]
        lowered = name.lower()
        if any(each in lowered for each in ("ip", "cidr", "address", "except", "range")):
            candidates += _ADDRESSES
        if "path" in lowered or "url" in lowered:
            candidates += _PATHS
        if name == "schedule":
            candidates += [
                "@daily",
                "* * *",
                "60 * * * *",
                "*/0 * * * *",
                "TZ=UTC 1 2 3 4 5",
                "1-70 * * * *",
                "@every 5m",
                "0 0 31 2 *",
            ]
    return [each for each in candidates if each != value or type(each) is not type(value)]


def additions(schema: Schema, found: Document, name: str, depth: int = 0) -> list[object]:
    """Return values for a missing field."""
    type_name, kind = schema.resolved(found)
    if type_name.endswith("Quantity"):
        return ["1", "-1"]
    if type_name.endswith("IntOrString"):
        return [1, "50%", "abc"]
    if type_name.endswith(("Time", "MicroTime")):
        return ["2026-01-02T03:04:05.000000Z" if type_name.endswith("MicroTime") else "2026-01-02T03:04:05Z"]
    if type_name.endswith(("RawExtension", "JSON", "JSONSchemaPropsOrBool")):
        return [{"a": 1}]
    what = kind.get("type")
    if what == "integer":
        return [1, -1]
    if what == "number":
        return [1.5]
    if what == "boolean":
        return [True, False]
    if what == "string":
        if kind.get("format") == "byte":
            return ["YQ=="]
        extra = ["10.1.2.3"] if name.lower().endswith(("ip", "ips", "cidr")) else []
        return [*list(kind.get("enum", []))[:3], *_ADD_TEXTS, *extra]  # type: ignore[call-overload]
    if what == "array":
        if depth > 3:
            return [[]]
        items = additions(schema, kind.get("items") or {}, name, depth + 1)  # type: ignore[arg-type]
        return [[items[0]], [items[-1]], []] if items else [[]]
    if kind.get("properties"):
        return [{}, *_filled(schema, kind, depth)] if depth <= 3 else [{}]
    if kind.get("additionalProperties"):
        items = additions(schema, kind["additionalProperties"], name, depth + 1)  # type: ignore[arg-type]
        return [{"a": items[0]}, {"Bad Key!": items[0]}]
    return [{"a": 1}]


def _filled(schema: Schema, kind: Document, depth: int) -> list[object]:
    """Return a struct with its required fields, and one with all simple fields in addition."""
    properties: dict[str, Document] = kind["properties"]  # type: ignore[assignment]
    required: list[str] = kind.get("required") or []  # type: ignore[assignment]
    least = {name: additions(schema, properties[name], name, depth + 1)[0] for name in required}
    simple = {
        name: additions(schema, inner, name, depth + 2)[0]
        for name, inner in properties.items()
        if name in required or schema.resolved(inner)[1].get("type") in ("string", "integer", "boolean")
    }
    return [each for each in (least, simple) if each]
