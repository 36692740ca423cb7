"""The lexer: splits an expression into tokens."""

from __future__ import annotations

import re
from typing import NamedTuple

from bayplan.cel.source import Source
from bayplan.cel.values import MAX_DIGITS, Uint


class Token(NamedTuple):
    """A token of an expression.

    Attributes:
        kind: ``op``, ``ident``, ``int``, ``uint``, ``float``, ``string``, ``bytes`` or ``end``.
        text: the source text.
        at: the position in the source text.
        value: the value of a constant.
    """

    kind: str
    text: str
    at: int
    value: object = None


_SPACE = re.compile(r"(?:[ \t\r\n\f]+|//[^\n]*)*")
_TOKEN = re.compile(
    r"""
    (?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)
    |(?P<uint>(?:0x[0-9a-fA-F]+|\d+)[uU])
    |(?P<int>0x[0-9a-fA-F]+|\d+)
    |(?P<string>[rRbB]{0,2}(?:\"\"\"|'''|"|'))
    |(?P<ident>[_a-zA-Z][_a-zA-Z0-9]*)
    |(?P<op>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}])
    """,
    re.VERBOSE,
)
_SIMPLE = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip
INT64 = 1 << 63


def tokens_of(source: Source) -> list[Token]:
    """Return the tokens of an expression; the last one has the kind ``end``.

    Raises:
        CompileProblem: a part of the text is not a token.
    """
    text, found, at = source.text, list[Token](), 0
    while True:
        space = _SPACE.match(text, at)
        at = space.end() if space is not None else at
        if at == len(text):
            found.append(Token("end", "<EOF>", at))
            return found
        match = _TOKEN.match(text, at)
        if match is None:
            raise source.problem(at, f"Syntax error: token recognition error at: '{text[at]}'")
        kind, written = str(match.lastgroup), match.group()
        if kind == "string":
            token = _text_token(source, at, written)
        else:
            token = Token(kind, written, at, _number(source, at, kind, written))
        found.append(token)
        at += len(token.text)


def _number(source: Source, at: int, kind: str, written: str) -> object:
    if kind == "float":
        return float(written)
    if kind == "uint":
        number = _whole(written[:-1])
        if number >= 2 * INT64:
            raise source.problem(at, "invalid uint literal")
        return Uint(number)
    if kind == "int":
        return _whole(written)
    return None


def _whole(written: str) -> int:
    """Return the value of an integer constant. One with too many digits becomes a number that no type can represent."""
    if len(written) > MAX_DIGITS:
        return 1 << 128
    return int(written, 16) if written.startswith("0x") else int(written)


def _text_token(source: Source, at: int, opening: str) -> Token:
    """Return the token of the string or bytes constant at a position."""
    text = source.text
    prefix = opening.rstrip("\"'").lower()
    quotes = opening[len(prefix) :]
    place, parts = at + len(opening), list[str]()
    while not text.startswith(quotes, place):
        if place >= len(text) or (len(quotes) == 1 and text[place] in "\r\n"):
            raise source.problem(at, f"Syntax error: token recognition error at: '{text[at:place]}'")
        if text[place] == "\\" and "r" not in prefix:
            piece, place = _escape(source, at, place, bytes_="b" in prefix)
            parts.append(piece)
        else:
            parts.append(text[place])
            place += 1
    end = place + len(quotes)
    value = "".join(parts)
    if "b" in prefix:
        data = b"".join(bytes([ord(char) - 0xF0000]) if ord(char) >= 0xF0000 else char.encode() for char in value)
        return Token("bytes", text[at:end], at, data)
    return Token("string", text[at:end], at, value)


def _escape(source: Source, at: int, place: int, *, bytes_: bool) -> tuple[str, int]:
    """Return the character of an escape sequence, and the position after it.

    Bytes are represented as private-use characters.
    """
    text = source.text
    code = text[place + 1 : place + 2]
    if code in _SIMPLE and code:
        return _SIMPLE[code], place + 2
    for letters, digits, base in (("xX", 2, 16), ("u", 4, 16), ("U", 8, 16), ("0123", 3, 8)):
        if code and code in letters:
            start = place + 1 if base == 8 else place + 2
            written = text[start : start + digits]
            try:
                number = int(written, base)
                if len(written) == digits and number <= 0x10FFFF:
                    return chr(number + 0xF0000 if bytes_ and letters not in ("u", "U") else number), start + digits
            except ValueError:
                pass
    raise source.problem(at, f"Syntax error: token recognition error at: '{text[at : place + 2]}'")
