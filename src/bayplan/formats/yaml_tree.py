"""Evaluate YAML nodes like sigs.k8s.io/yaml: aliases, merge keys, typed keys, duplicate keys, and go-yaml's messages.

`Evaluator` returns YAML values: the keys of its maps have types. JSON has strings only, so `plain` and `json_tree`
convert them.
"""

import math
from typing import TypeAlias

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from bayplan.base.go_text.json import json_float
from bayplan.base.go_text.quoting import quote
from bayplan.formats.json_tree import JsonNode, JsonNumber, JsonObject
from bayplan.formats.yaml_scalars import MERGE_TAG, Scalar, TagError, json_value, key_text, resolve, tagged_value

Map: TypeAlias = "dict[tuple[str, str], tuple[Scalar, Value]]"
"""Typed keys and their values, by type and text of the key: ``1`` and ``"1"`` differ."""
Value: TypeAlias = "Scalar | list[Value] | Map"

_NIL = "interface {}(nil)"
_ALIAS_LIMIT_LOW = 400_000
_ALIAS_LIMIT_HIGH = 4_000_000


class GoYamlError(ValueError):
    """A text that can't be parsed; the message is go-yaml's."""


class Evaluator:
    """Evaluates nodes.

    Attributes:
        problem: what makes the document invalid, in the words of Bayplan's errors, and the line; None if it is valid.
            It is set without an exception if only the conversion to JSON will fail.
        duplicates: (line, key) of keys that an object has twice, without those of merged objects.
    """

    def __init__(self) -> None:
        self.problem: tuple[str, int] | None = None
        self.duplicates: list[tuple[int, str]] = []
        self._complaints: list[str] = []
        self._seen: set[int] = set()
        self._reads = 0
        self._alias_reads = 0

    @property
    def complaint(self) -> str:
        """The error of go-yaml's strict decoding about keys that are set twice; "" if there is none."""
        return "yaml: unmarshal errors:\n  " + "\n  ".join(self._complaints) if self._complaints else ""

    def value(self, node: Node, *, aliased: bool = False) -> Value:
        """Return the value of a node.

        Raises:
            GoYamlError: go-yaml can't decode it.
        """
        aliased = self._enter(node, aliased)
        if isinstance(node, MappingNode):
            out: Map = {}
            self._fill(node, out, aliased)
            return out
        if isinstance(node, SequenceNode):
            return [self.value(child, aliased=aliased) for child in node.value]
        value = self._scalar(node)
        if isinstance(value, float) and not math.isfinite(value):
            self._note("an infinity or NaN, which JSON does not have", node)
        return value

    def _note(self, problem: str, node: Node) -> None:
        if self.problem is None:
            self.problem = problem, node.start_mark.line

    def _enter(self, node: Node, aliased: bool) -> bool:
        """Count the reading of a node; return whether it is reached through an alias.

        Documents with excessive alias expansion are rejected, by go-yaml's limit.
        """
        is_alias = id(node) in self._seen and not aliased
        self._seen.add(id(node))
        # An alias and its target both count.
        self._reads += 2 if is_alias else 1
        if aliased or is_alias:
            self._alias_reads += 1
            span = _ALIAS_LIMIT_HIGH - _ALIAS_LIMIT_LOW
            allowed = 0.99 - 0.89 * min(max((self._reads - _ALIAS_LIMIT_LOW) / span, 0.0), 1.0)
            if self._alias_reads > 100 and self._reads > 1000 and self._alias_reads / self._reads > allowed:
                self._note("a document that is mostly aliases of aliases", node)
                raise GoYamlError("yaml: document contains excessive aliasing")
        return aliased or is_alias

    def _fill(self, node: Node, out: Map, aliased: bool) -> None:
        own: set[str] = set()
        duplicates: list[tuple[int, str]] = []
        for key_node, value_node in node.value:
            if isinstance(key_node, ScalarNode) and key_node.value == "<<" and key_node.tag in ("", MERGE_TAG):
                self._merge(key_node, value_node, out, aliased)
                continue
            key, text = self._key(key_node, aliased)
            if text in own and not aliased:
                duplicates.append((key_node.start_mark.line, text))
            own.add(text)
            value = self.value(value_node, aliased=aliased)
            identity = (_key_type(key), repr(key))
            if identity in out:
                line = value_node.start_mark.line + 1
                self._complaints.append(f"line {line}: key {_go_syntax(key)} already set in map")
            out[identity] = (key, value)
        self.duplicates += duplicates

    def _key(self, node: Node, aliased: bool) -> tuple[Scalar, str]:
        """Return a key, and its text in JSON."""
        if not isinstance(node, ScalarNode):
            self._note("a list or an object as key", node)
            raise GoYamlError(f"yaml: invalid map key: {_go_syntax(self.value(node, aliased=aliased))}")
        self._enter(node, aliased)
        key = self._scalar(node)
        try:
            return key, key_text(key)
        except ValueError as problem:
            self._note(str(problem), node)
            return key, ""

    def _merge(self, key: Node, node: Node, out: Map, aliased: bool) -> None:
        """Merge an object, or a list of objects, into `out`. In a list, the first object takes precedence."""
        # An alias of a sequence can't be merged.
        is_list = isinstance(node, SequenceNode) and id(node) not in self._seen
        for source in reversed(node.value) if is_list else (node,):
            if not isinstance(source, MappingNode):
                self._note("'<<' before a value that is not an object", key)
                raise GoYamlError("yaml: map merge requires map or sequence of maps as the value")
            self._fill(source, out, self._enter(source, aliased))

    def _scalar(self, node: Node) -> Scalar:
        text: str = node.value
        try:
            return text if node.tag is None else resolve(text) if node.tag == "" else tagged_value(node.tag, text)
        except TagError as problem:
            self._note(str(problem), node)
            raise GoYamlError(f"yaml: {problem.go_problem}") from None


def _key_type(key: Scalar) -> str:
    if isinstance(key, int) and not isinstance(key, bool) and key >= 1 << 63:
        return "uint64"
    return {str: "string", bool: "bool", int: "int", float: "float64"}.get(type(key), "%!s(<nil>)")


def _go_syntax(value: Value, *, nil: str = "<nil>") -> str:
    """Format a value like Go's ``%#v``, for the types that keys can have. `nil`: the text of null, at the top level."""
    match value:
        case None:
            return nil
        case str():
            return quote(value)
        case bool():
            return "true" if value else "false"
        case int():
            return hex(value) if value >= 1 << 63 else str(value)
        case float():
            return _float_syntax(value)
        case list():
            return "[]interface {}{" + ", ".join(_go_syntax(item, nil=_NIL) for item in value) + "}"
    pairs = sorted(f"{_go_syntax(key, nil=_NIL)}:{_go_syntax(item, nil=_NIL)}" for key, item in value.values())
    return "map[interface {}]interface {}{" + ", ".join(pairs) + "}"


def _float_syntax(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value).removesuffix(".0")


def plain(value: Value) -> object:
    """Return a valid value as plain data, in new dicts and lists."""
    if isinstance(value, dict):
        return {key_text(key): plain(item) for key, item in value.values()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return json_value(value)


def json_tree(value: Value) -> JsonNode:
    """Convert a value to JSON: keys become strings and are sorted by their bytes.

    Raises:
        GoYamlError: it has no JSON form.
    """
    if isinstance(value, dict):
        pairs = {_json_key(key, item): item for key, item in value.values()}
        return JsonObject(tuple((key, json_tree(pairs[key])) for key in sorted(pairs)))
    if isinstance(value, list):
        return [json_tree(item) for item in value]
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return JsonNumber(str(value))
    if not math.isfinite(value):
        raise GoYamlError(f"json: unsupported value: {_float_syntax(value)}")
    return JsonNumber(json_float(value))


def _json_key(key: Scalar, item: Value) -> str:
    try:
        return key_text(key)
    except ValueError:
        shown = f"key: {_go_syntax(key)}, value: {_go_syntax(item)}"
        raise GoYamlError(f"unsupported map key of type: {_key_type(key)}, {shown}") from None
