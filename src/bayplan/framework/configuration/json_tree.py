"""JSON as a lossless tree: it preserves duplicate keys, the order of keys and the digits of numbers.

Syntax errors have the words of Go's ``encoding/json``. ``decode.py`` decides which fields an object may have.
"""

import re
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from bayplan.base.go_text.quoting import quote

JsonNode: TypeAlias = "JsonObject | list[JsonNode] | str | JsonNumber | bool | None"
JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"

MAX_DEPTH = 10_000

_SPACE = " \t\r\n"
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "\\": "\\", "/": "/", '"': '"'}
_HEX = frozenset("0123456789abcdefABCDEF")


class JsonNumber(msgspec.Struct, frozen=True):
    """A number as written; the type of the field decides how it is parsed."""

    literal: str

    def value(self) -> int | float:
        """Parse the number without a given type: as an int if it is written as one, otherwise as a float."""
        if not any(character in self.literal for character in ".eE"):
            return int(self.literal)
        return float(self.literal)


class JsonObject(msgspec.Struct, frozen=True):
    """An object: its keys and values in the order of the text, including duplicate keys."""

    pairs: tuple[tuple[str, JsonNode], ...]


class JsonSyntaxError(ValueError):
    """A syntax error, in Go's words."""


def plain_value(node: JsonNode) -> JsonValue:
    """Convert a tree to dicts, lists and numbers; of duplicate keys, the last one counts."""
    if isinstance(node, JsonObject):
        return {key: plain_value(item) for key, item in node.pairs}
    if isinstance(node, list):
        return [plain_value(item) for item in node]
    if isinstance(node, JsonNumber):
        return node.value()
    return node


def tree_of(value: object) -> JsonNode:
    """Convert parsed plain data (mappings, lists, scalars) to a tree.

    Raises:
        TypeError: the value contains something that JSON can't represent.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return JsonNumber(str(value))
    if isinstance(value, float):
        return JsonNumber(repr(value))
    if isinstance(value, dict):
        return JsonObject(tuple((str(key), tree_of(item)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return [tree_of(item) for item in value]
    raise TypeError(f"no JSON form for {type(value).__name__}")


def parse_json(text: str) -> JsonNode:
    """Parse one JSON text.

    Raises:
        JsonSyntaxError: the text is not JSON; the message is that of Go's ``encoding/json``.
    """
    return _Parser(text).document()


class _Parser:
    """A recursive descent over the text; ``position`` is the next character to read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.depth = 0

    def document(self) -> JsonNode:
        node = self.value()
        self.skip_space()
        if self.position < len(self.text):
            raise self.unexpected("after top-level value")
        return node

    def skip_space(self) -> None:
        while self.position < len(self.text) and self.text[self.position] in _SPACE:
            self.position += 1

    def next_character(self) -> str:
        """Return the next character that is not a space; the end of the text is an error."""
        self.skip_space()
        return self.current()

    def current(self) -> str:
        if self.position >= len(self.text):
            raise JsonSyntaxError("unexpected end of JSON input")
        return self.text[self.position]

    def inner(self) -> str:
        """Return the next character inside a number, a word or an escape, where Go's scanner treats the end as a space."""
        return self.text[self.position : self.position + 1] or " "

    def unexpected(self, context: str) -> JsonSyntaxError:
        # Go's scanner works on bytes: for a multi-byte character it reports the first byte.
        byte = self.inner().encode("utf-8", "replace")[0]
        if byte == 0x27:
            shown = r"'\''"
        elif byte == 0x22:
            shown = "'\"'"
        else:
            shown = f"'{quote(chr(byte))[1:-1]}'"
        return JsonSyntaxError(f"invalid character {shown} {context}")

    def value(self) -> JsonNode:
        character = self.next_character()
        if character == "{":
            return self.nested(self.object)
        if character == "[":
            return self.nested(self.array)
        if character == '"':
            return self.string()
        if character == "-" or "0" <= character <= "9":
            return self.number()
        if character in "tfn":
            return self.literal()
        raise self.unexpected("looking for beginning of value")

    def nested(self, parse: Callable[[], JsonNode]) -> JsonNode:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise JsonSyntaxError("exceeded max depth")
        self.position += 1
        node = parse()
        self.depth -= 1
        return node

    def object(self) -> JsonNode:
        pairs: list[tuple[str, JsonNode]] = []
        if self.next_character() == "}":
            self.position += 1
            return JsonObject(())
        while True:
            if self.next_character() != '"':
                raise self.unexpected("looking for beginning of object key string")
            key = self.string()
            if self.next_character() != ":":
                raise self.unexpected("after object key")
            self.position += 1
            pairs.append((key, self.value()))
            if self.next_character() not in ",}":
                raise self.unexpected("after object key:value pair")
            self.position += 1
            if self.text[self.position - 1] == "}":
                return JsonObject(tuple(pairs))

    def array(self) -> JsonNode:
        items: list[JsonNode] = []
        if self.next_character() == "]":
            self.position += 1
            return items
        while True:
            items.append(self.value())
            if self.next_character() not in ",]":
                raise self.unexpected("after array element")
            self.position += 1
            if self.text[self.position - 1] == "]":
                return items

    def literal(self) -> bool | None:
        word = {"t": "true", "f": "false", "n": "null"}[self.text[self.position]]
        for expected in word:
            if self.inner() != expected:
                raise self.unexpected(f"in literal {word} (expecting '{expected}')")
            self.position += 1
        return {"true": True, "false": False, "null": None}[word]

    def number(self) -> JsonNumber:
        match = _NUMBER.match(self.text, self.position)
        if match is None:
            self.position += 1
            raise self.unexpected("in numeric literal")
        start, self.position = self.position, match.end()
        rest = self.text[self.position : self.position + 1]
        if rest == "." and match[2] is None and match[3] is None:
            self.position += 1
            raise self.unexpected("after decimal point in numeric literal")
        if rest in ("e", "E") and match[3] is None:
            self.position += 1
            if self.inner() in "+-":
                self.position += 1
            raise self.unexpected("in exponent of numeric literal")
        return JsonNumber(self.text[start : self.position])

    def string(self) -> str:
        self.position += 1
        parts: list[str] = []
        while True:
            match = _PLAIN.match(self.text, self.position)
            assert match is not None
            parts.append(match[0])
            self.position = match.end()
            character = self.current()
            if character == '"':
                self.position += 1
                return _joined_surrogates("".join(parts))
            if character != "\\":
                raise self.unexpected("in string literal")
            self.position += 1
            parts.append(self.escape())

    def escape(self) -> str:
        character = self.inner()
        if plain := _ESCAPES.get(character):
            self.position += 1
            return plain
        if character != "u":
            raise self.unexpected("in string escape code")
        for _ in range(4):
            self.position += 1
            if self.inner() not in _HEX:
                raise self.unexpected("in \\u hexadecimal character escape")
        self.position += 1
        return chr(int(self.text[self.position - 4 : self.position], 16))


def _joined_surrogates(text: str) -> str:
    """Join escaped surrogate pairs; a lone one becomes the replacement character, as in Go."""
    if text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
