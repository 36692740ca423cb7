"""Parse the first document of a YAML text like kube-scheduler: YAML 1.1 scalars, merge keys, duplicate keys reported.

kube-scheduler first converts YAML to JSON with sorted keys (sigs.k8s.io/yaml over go-yaml 2). libyaml has the messages of
go-yaml. In flow style, newer libyaml is stricter in two places: a plain scalar can't end in a colon (``{name: a:}``), and
a tag can't contain brackets.
"""

import math
import re
from typing import TypeAlias

import msgspec
import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from bayplan.base.go_text.base64 import decode_base64
from bayplan.base.go_text.json import json_float
from bayplan.base.go_text.quoting import GoTextError, quote
from bayplan.formats.yaml_scalars import key_text, resolve
from bayplan.formats.yaml_text import AliasError, compose_events, events
from bayplan.framework.configuration.json_tree import JsonNode, JsonNumber, JsonObject

_TAG_PREFIX = "tag:yaml.org,2002:"
_STR, _BOOL, _INT, _FLOAT, _NULL, _TIMESTAMP, _BINARY, _MERGE = (
    _TAG_PREFIX + name for name in ("str", "bool", "int", "float", "null", "timestamp", "binary", "merge")
)
_TAG_OF: dict[type[object], str] = {str: _STR, bool: _BOOL, int: _INT, float: _FLOAT, type(None): _NULL}
_RESOLVABLE = frozenset({"", _STR, _BOOL, _INT, _FLOAT, _NULL, _TIMESTAMP})

_Scalar: TypeAlias = "str | int | float | bool | None"
_Map: TypeAlias = "dict[tuple[str, str], tuple[_Scalar, _Value]]"
"""Typed keys and their values, by type and text of the key: ``1`` and ``"1"`` differ."""
_Value: TypeAlias = "_Scalar | list[_Value] | _Map"

_DATE_SYNTAX = re.compile(
    r"[0-9]{4}-(?:0?[1-9]|1[0-2])-(?:0?[1-9]|[12][0-9]|3[01])"
    r"(?:(?:[Tt](?:[01]?[0-9]|2[0-3]):[0-5]?[0-9]:[0-5]?[0-9](?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2}))"
    r"|(?: (?:[01]?[0-9]|2[0-3]):[0-5]?[0-9]:[0-5]?[0-9](?:\.[0-9]+)?))?",
    re.ASCII,
)

_NIL = "interface {}(nil)"
_ALIAS_LIMIT_LOW = 400_000
_ALIAS_LIMIT_HIGH = 4_000_000


class YamlError(ValueError):
    """A text that can't be parsed; the message is go-yaml's."""


class YamlDocument(msgspec.Struct, frozen=True):
    """The JSON form of a document, and go-yaml's message about its duplicate keys; None if it has none."""

    tree: JsonNode
    complaint: str | None


def read_yaml(text: bytes) -> YamlDocument:
    """Parse the first document of a YAML text.

    Raises:
        YamlError: the text is not YAML, or has no JSON form.
    """
    try:
        root = _first_document(text)
        reader = _Reader()
        value = reader.value(root) if root is not None else None
        tree = _json_tree(value)
    except RecursionError:
        raise YamlError("yaml: exceeded max depth of 10000") from None
    complaint = None
    if reader.complaints:
        complaint = "yaml: unmarshal errors:\n  " + "\n  ".join(reader.complaints)
    return YamlDocument(tree, complaint)


def _first_document(text: bytes) -> Node | None:
    """Return the node tree of the first document, None if there is none. The rest of the text is not parsed."""
    source = events(text or b"\n")
    try:
        root = next(compose_events(source), None)
        # Parse the end of the document, too.
        next(source, None)
    except AliasError as error:
        raise YamlError(f"yaml: {error.go_problem}") from None
    except yaml.MarkedYAMLError as error:
        raise YamlError(f"yaml: {_place(error)}{error.problem}") from None
    except yaml.reader.ReaderError as error:
        raise YamlError(f"yaml: {error.reason}") from None
    return root


def _place(error: yaml.MarkedYAMLError) -> str:
    """Return the line prefix of go-yaml's message: marks are 0-based, and only scanner errors are shown 1-based."""
    line = 0
    if error.problem_mark is not None and error.problem_mark.line:
        line = error.problem_mark.line + (1 if isinstance(error, yaml.scanner.ScannerError) else 0)
    elif error.context_mark is not None:
        line = error.context_mark.line
    return f"line {line}: " if line else ""


class _Reader:
    """Evaluates nodes; `complaints` collects messages about keys that are set twice."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self.seen: set[int] = set()
        self.reads = 0
        self.alias_reads = 0

    def value(self, node: Node, *, aliased: bool = False) -> "_Value":
        aliased = self.enter(node, aliased)
        if isinstance(node, MappingNode):
            out: _Map = {}
            self.fill(node, out, aliased)
            return out
        if isinstance(node, SequenceNode):
            return [self.value(child, aliased=aliased) for child in node.value]
        return self.scalar(node)

    def enter(self, node: Node, aliased: bool) -> bool:
        """Count the reading of a node; return whether it is reached through an alias.

        Documents with excessive alias expansion are rejected, by go-yaml's limit.
        """
        is_alias = id(node) in self.seen and not aliased
        self.seen.add(id(node))
        # An alias and its target both count.
        self.reads += 2 if is_alias else 1
        if aliased or is_alias:
            self.alias_reads += 1
            span = _ALIAS_LIMIT_HIGH - _ALIAS_LIMIT_LOW
            allowed = 0.99 - 0.89 * min(max((self.reads - _ALIAS_LIMIT_LOW) / span, 0.0), 1.0)
            if self.alias_reads > 100 and self.reads > 1000 and self.alias_reads / self.reads > allowed:
                raise YamlError("yaml: document contains excessive aliasing")
        return aliased or is_alias

    def fill(self, node: Node, out: "_Map", aliased: bool) -> None:
        for key_node, value_node in node.value:
            if isinstance(key_node, ScalarNode) and key_node.value == "<<" and key_node.tag in ("", _MERGE):
                self.merge(value_node, out, aliased)
                continue
            key = self.value(key_node, aliased=aliased)
            if isinstance(key, dict | list):
                raise YamlError(f"yaml: invalid map key: {_go_syntax(key)}")
            value = self.value(value_node, aliased=aliased)
            identity = (_key_type(key), repr(key))
            if identity in out:
                line = value_node.start_mark.line + 1
                self.complaints.append(f"line {line}: key {_go_syntax(key)} already set in map")
            out[identity] = (key, value)

    def merge(self, node: Node, out: "_Map", aliased: bool) -> None:
        # An alias of a sequence can't be merged.
        is_list = isinstance(node, SequenceNode) and id(node) not in self.seen
        for source in reversed(node.value) if is_list else (node,):
            if not isinstance(source, MappingNode):
                raise YamlError("yaml: map merge requires map or sequence of maps as the value")
            self.fill(source, out, self.enter(source, aliased))

    def scalar(self, node: Node) -> _Scalar:
        text: str = node.value
        tag, value = (_STR, text) if node.tag is None else _resolve(node.tag, text)
        if tag == _BINARY:
            try:
                return decode_base64(text).decode("utf-8", "replace")
            except GoTextError:
                raise YamlError("yaml: !!binary value contains invalid base64 data") from None
        return text if tag == _TIMESTAMP else value


def _resolve(tag: str, text: str) -> tuple[str, _Scalar]:
    """Return the resolved tag and the value of a scalar. `tag`: its explicit tag, "" if it has none."""
    if tag not in _RESOLVABLE:
        return tag, text
    value = text if tag == _STR else resolve(text)
    found = _TIMESTAMP if tag == _TIMESTAMP and _DATE_SYNTAX.fullmatch(text) else _TAG_OF[type(value)]
    if tag in ("", found, _STR):
        return found, value
    if tag == _FLOAT and found == _INT and isinstance(value, int) and value < 1 << 63:
        return _FLOAT, float(value)
    raise YamlError(f"yaml: cannot decode {_short(found)} `{text}` as a {_short(tag)}")


def _short(tag: str) -> str:
    return "!!" + tag.removeprefix(_TAG_PREFIX) if tag.startswith(_TAG_PREFIX) else tag


def _key_type(key: _Scalar) -> str:
    if isinstance(key, int) and not isinstance(key, bool) and key >= 1 << 63:
        return "uint64"
    return {str: "string", bool: "bool", int: "int", float: "float64"}.get(type(key), "%!s(<nil>)")


def _go_syntax(value: "_Value", *, nil: str = "<nil>") -> str:
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
    text = repr(value)
    return text.removesuffix(".0")


def _json_tree(value: "_Value") -> JsonNode:
    """Convert a value to JSON: keys become strings and are sorted by their bytes."""
    if isinstance(value, dict):
        pairs = {_key_text(key, item): item for key, item in value.values()}
        return JsonObject(tuple((key, _json_tree(pairs[key])) for key in sorted(pairs)))
    if isinstance(value, list):
        return [_json_tree(item) for item in value]
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return JsonNumber(str(value))
    if math.isnan(value) or math.isinf(value):
        raise YamlError(f"json: unsupported value: {_float_syntax(value)}")
    return JsonNumber(json_float(value))


def _key_text(key: _Scalar, item: "_Value") -> str:
    kind = _key_type(key)
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if kind == "int":
        return str(key)
    if isinstance(key, float):
        shown = _float_syntax(key)
        return {"+Inf": ".inf", "-Inf": "-.inf", "NaN": ".nan"}.get(shown) or key_text(repr(key))
    raise YamlError(f"unsupported map key of type: {kind}, key: {_go_syntax(key)}, value: {_go_syntax(item)}")
