"""The lexer: splits an expression into tokens."""

from __future__ import annotations

import re
from typing import NamedTuple

from bayplan.cel.problems import CompileProblem
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
    |(?P<string>(?:[rR]|[bB][rR]?)?(?:\"\"\"|'''|"|'))
    |(?P<ident>[_a-zA-Z][_a-zA-Z0-9]*)
    |(?P<op>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}])
    """,
    re.VERBOSE | re.ASCII,
)
_ESCAPE = re.compile(
    r"""\\(?:(?P<simple>[abfnrtv"'\\?`])|[xX](?P<byte>[0-9a-fA-F]{2})|(?P<octal>[0-3][0-7]{2})
    |u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8}))""",
    re.VERBOSE | re.ASCII,
)
_BEGUN_ESCAPE = re.compile(r"\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?)?", re.ASCII)
_CONTROL = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_MAX_CODE, _SURROGATES = 0x10FFFF, range(0xD800, 0xE000)
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
            raise _unrecognized(source, at, at + 1 if text[at] in "&|=" else at)
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
    place, data = at + len(opening), bytearray()
    while not text.startswith(quotes, place):
        if place >= len(text) or (len(quotes) == 1 and text[place] in "\r\n"):
            raise _unrecognized(source, at, place)
        if text[place] == "\\" and "r" not in prefix:
            piece, place = _escape(source, at, place, is_bytes="b" in prefix)
            data += piece
        elif text.startswith("\r", place):  # Line ends are normalized.
            data += b"\n"
            place += 2 if text.startswith("\r\n", place) else 1
        else:
            data += text[place].encode("utf-8", "replace")
            place += 1
    end = place + len(quotes)
    if "b" in prefix:
        return Token("bytes", text[at:end], at, bytes(data))
    return Token("string", text[at:end], at, data.decode())


def _escape(source: Source, at: int, place: int, *, is_bytes: bool) -> tuple[bytes, int]:
    """Return the bytes of an escape sequence, and the position after it.

    Raises:
        CompileProblem: the sequence is invalid, or not allowed in bytes.
    """
    match = _ESCAPE.match(source.text, place)
    if match is None:
        begun = _BEGUN_ESCAPE.match(source.text, place)
        raise _unrecognized(source, at, begun.end() if begun is not None else place)
    kind, digits = str(match.lastgroup), match[str(match.lastgroup)]
    if kind == "simple":
        return _CONTROL.get(digits, digits).encode(), match.end()
    number = int(digits, 8 if kind == "octal" else 16)
    if is_bytes:
        if kind in ("short", "long"):
            raise source.problem(at, "unable to unescape string")
        return bytes([number]), match.end()
    if number > _MAX_CODE or number in _SURROGATES:
        raise source.problem(at, "invalid unicode code point")
    return chr(number).encode(), match.end()


def _unrecognized(source: Source, at: int, place: int) -> CompileProblem:
    """Return the exception for a token that the character at a position does not continue."""
    return source.problem(at, f"Syntax error: token recognition error at: '{source.text[at : place + 1]}'")
