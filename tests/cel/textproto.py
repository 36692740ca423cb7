"""Read the part of the text format of Protocol Buffers that the conformance tests of cel-spec use.

A message is a dict of field names to lists of values, in order. A value is a message, a number, a string (bytes,
since strings and bytes are written alike) or a `Name` (true, an enum). An expanded ``Any`` is a field named ``[TYPE]``.

Source: https://protobuf.dev/reference/protobuf/textformat-spec/
"""

from __future__ import annotations

import re
from typing import TypeAlias

Value: TypeAlias = "Message | int | float | bytes | Name"
Message: TypeAlias = dict[str, list[Value]]


class Name(str):
    """An unquoted word: ``true``, ``false`` or the name of an enum's value."""

    __slots__ = ()


_TOKEN = re.compile(
    r"""(?:\s|\#[^\n]*+)*+(?:
      (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<number>-?\s*(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fF]?)(?![\w.])
    | (?P<name>-?[A-Za-z_]\w*)
    | (?P<any>\[[\w./\s]+\](?=\s*[:{]))
    | (?P<mark>[{}<>\[\]:;,])
    )""",
    re.VERBOSE,
)
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


def _escaped(match: re.Match[bytes]) -> bytes:
    found = match[1]
    if found[:1] == b"x":
        return bytes([int(found[1:], 16)])
    if found[:1] in (b"u", b"U"):
        return chr(int(found[1:], 16)).encode("utf-8", "surrogatepass")
    if found[:1] in b"01234567":
        return bytes([int(found, 8)])
    return _LETTERS.get(found, found)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._kind = ""
        self._token = ""
        self._advance()

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._place)
        if match is None:
            rest = re.sub(r"#[^\n]*", "", self._text[self._place :]).strip()
            if rest:
                raise ValueError(f"line {self._text.count(chr(10), 0, self._place) + 1}: can't read {rest[:40]!r}")
            self._kind, self._token = "end", ""
            return
        self._place = match.end()
        self._kind = str(match.lastgroup)
        self._token = match[self._kind]

    def message(self, closing: str = "") -> Message:
        """Read the fields of a message up to the token `closing`."""
        found: Message = {}
        while self._token != closing:
            if self._kind not in ("name", "any"):
                raise ValueError(f"expected the name of a field, got {self._token!r}")
            field = re.sub(r"\s", "", self._token)
            self._advance()
            if self._token == ":":
                self._advance()
            values = found.setdefault(field, [])
            if self._token == "[":
                self._advance()
                while self._token != "]":
                    values.append(self._value())
                    if self._token == ",":
                        self._advance()
                self._advance()
            else:
                values.append(self._value())
            while self._token in (",", ";"):
                self._advance()
        if closing:
            self._advance()
        return found

    def _value(self) -> Value:
        kind, token = self._kind, self._token
        if token in ("{", "<"):
            self._advance()
            return self.message("}" if token == "{" else ">")
        if kind == "text":
            parts = []
            while self._kind == "text":
                parts.append(_ESCAPE.sub(_escaped, self._token[1:-1].encode()))
                self._advance()
            return b"".join(parts)
        self._advance()
        if kind == "name":
            return _WORDS.get(token.lower(), Name(token))
        if kind != "number":
            raise ValueError(f"expected a value, got {token!r}")
        plain = re.sub(r"\s", "", token)
        if re.fullmatch(r"-?\d+", plain):
            return int(plain)
        return int(plain, 16) if "x" in plain.lower() else float(plain.rstrip("fF"))


_WORDS: dict[str, Value] = {
    "inf": float("inf"), "infinity": float("inf"), "-inf": float("-inf"), "-infinity": float("-inf"),
    "nan": float("nan"), "-nan": float("nan"),
}  # fmt: skip


def parse(text: str) -> Message:
    """Parse a text and return its message.

    Raises:
        ValueError: The text is not in the text format, or uses a part of it that this reader does not know.
    """
    return _Reader(text).message()
