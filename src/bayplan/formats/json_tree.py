"""JSON as a lossless tree: it preserves duplicate keys, the order of keys and the digits of numbers.

Syntax errors have the words of Go's ``encoding/json``.
"""

import json
import re
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from bayplan.base.go_text.json import GoJsonError, json_problem

JsonNode: TypeAlias = "JsonObject | list[JsonNode] | str | JsonNumber | bool | None"
JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"

_MAX_DIGITS = 4000
_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\.")


class JsonNumber(msgspec.Struct, frozen=True):
    """A number as written; the type of its field decides how it is parsed."""

    literal: str

    def value(self) -> int | float:
        """Return the number as an int if it is written as one, else as a float.

        An integer with more digits than Python reads becomes infinite: no field is that large.
        """
        if len(self.literal) <= _MAX_DIGITS and not any(character in self.literal for character in ".eE"):
            return int(self.literal)
        return float(self.literal)


class JsonObject(msgspec.Struct, frozen=True):
    """An object: its keys and values in the order of the text, including duplicate keys."""

    pairs: Sequence[tuple[str, JsonNode]]


_KINDS = {bool: "bool", str: "string", list: "array", dict: "object", JsonObject: "object"}


def kind_of(value: object) -> str:
    """Return Go's word for the type of a JSON value, in a tree or in plain data."""
    return _KINDS.get(type(value), "number")


def plain_value(node: JsonNode) -> JsonValue:
    """Return a tree as dicts, lists and scalars; of duplicate keys, the last counts."""
    if isinstance(node, JsonObject):
        return {key: plain_value(item) for key, item in node.pairs}
    if isinstance(node, list):
        return [plain_value(item) for item in node]
    if isinstance(node, JsonNumber):
        return node.value()
    return node


def parse_json(text: str) -> JsonNode:
    """Parse one JSON text.

    Raises:
        GoJsonError: the text is not JSON; the message is that of Go's ``encoding/json``.
    """
    if problem := json_problem(text):
        raise GoJsonError(problem)
    text = _ESCAPES.sub(_with_whole_surrogates, text)
    node: JsonNode = json.loads(text, object_pairs_hook=JsonObject, parse_int=JsonNumber, parse_float=JsonNumber)
    return node


def _with_whole_surrogates(match: re.Match[str]) -> str:
    """Return escapes with the replacement character in place of each lone surrogate, as Go decodes them."""
    if not match[0].startswith("\\u"):
        return match[0]
    text: str = json.loads(f'"{match[0]}"')
    return json.dumps(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))[1:-1]
