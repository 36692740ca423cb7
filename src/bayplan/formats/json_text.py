"""Parse JSON text into plain data: one value, concatenated values, one value per line, or the items of a list.

Independent of files and Kubernetes, except that the `items` of a list object are parsed one by one.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import cache

import msgspec


class JsonError(Exception):
    """A syntax error in a text, with its line (counted from 0)."""

    def __init__(self, problem: str, line: int) -> None:
        self.problem = problem
        self.line = line
        super().__init__(problem)


class Value:
    """One JSON value: its plain data, its text, and the line on which it starts (counted from 0).

    Args:
        text: the text of the value.
        line: the line on which it starts.
        value: the plain data. If UNSET, the text is parsed on each access, so that long lists take no more memory than
            their text.
    """

    __slots__ = ("_value", "line", "text")

    def __init__(self, text: bytes, line: int, value: object = msgspec.UNSET) -> None:
        self.text = text
        self.line = line
        self._value = value

    @property
    def value(self) -> object:
        """The plain data."""
        return msgspec.json.decode(self.text) if self._value is msgspec.UNSET else self._value


class _Envelope(msgspec.Struct, rename="camel"):
    """A list object, whose items are still text."""

    kind: str = ""
    api_version: str = ""
    items: list[msgspec.Raw] | None = None


class ItemList(msgspec.Struct):
    """A list object: its kind and apiVersion as written, and its items."""

    kind: str
    api_version: str
    items: list[Value]


def parse(data: bytes) -> Value | ItemList | list[Value]:
    """Parse a text. Return one value, a list object, or several values.

    Raises:
        JsonError: the text is not JSON.
    """
    envelope = _items(data)
    if envelope is not None:
        return envelope
    try:
        return Value(data, _first_line(data), msgspec.json.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        if "trailing characters" not in str(problem):
            raise _explain(problem, data) from None
    return list(_several(data))


def _first_line(data: bytes) -> int:
    return data.count(b"\n", 0, len(data) - len(data.lstrip()))


def _items(data: bytes) -> ItemList | None:
    """Return the list object in a text; None if the text is not a list object, or is an empty or invalid one."""
    if b'"items"' not in data:
        return None
    try:
        envelope = msgspec.json.decode(data, type=_Envelope)
        if not envelope.items or not envelope.kind.endswith("List"):
            return None
        items: list[Value] = []
        line, end = 0, data.index(b'"items"')
        line = data.count(b"\n", 0, end)
        for raw in envelope.items:
            text = bytes(raw)
            # Between two items there are only a comma and white space, so the next occurrence of the text is the item
            # itself.
            start = data.index(text, end)
            line += data.count(b"\n", end, start)
            items.append(Value(text, line, msgspec.json.decode(text) if _may_be_broken(text) else msgspec.UNSET))
            end = start + len(text)
            line += text.count(b"\n")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None  # The general parser reports the error.
    return ItemList(envelope.kind, envelope.api_version, items)


def _may_be_broken(text: bytes) -> bool:
    """Return whether a text with correct brackets, commas and quotes may still be invalid JSON."""
    return not text.isascii() or b"\\u" in text or _find_large()(text) is not None


@cache
def _find_large() -> Callable[[bytes], object]:
    """Return a function that searches for numbers that may be too large for the decoder.

    RE2 takes a tenth of the time of Python's `re`, which tries every digit and takes a quarter of the time of reading a
    dump.
    """
    try:
        import re2 as engine  # Import it here: only lists need it.
    except ModuleNotFoundError:
        engine = re
    search: Callable[[bytes], object] = engine.compile(rb"[0-9][eE][+]?[0-9]{3}|[0-9]{200}").search
    return search


_SPACE = re.compile(r"[ \t\r\n]*")
_BYTE = re.compile(r"(.*) \(byte (\d+)\)", re.DOTALL)


def _several(data: bytes) -> Iterator[Value]:
    """Yield concatenated values, one per line or not."""
    try:
        rows = [Value(row, line, msgspec.json.decode(row)) for line, row in enumerate(data.split(b"\n")) if row.strip()]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        yield from _one_by_one(data)
    else:
        yield from rows


def _one_by_one(data: bytes) -> Iterator[Value]:
    try:
        text = data.decode()
    except UnicodeDecodeError as problem:
        raise _explain(problem, data) from None
    decoder = json.JSONDecoder(parse_constant=_reject_constant)
    line = position = 0
    while True:
        space = _SPACE.match(text, position)
        start = space.end() if space else position
        line += text.count("\n", position, start)
        if start == len(text):
            return
        try:
            value, position = decoder.raw_decode(text, start)
        except json.JSONDecodeError as problem:
            raise JsonError(problem.msg[:1].lower() + problem.msg[1:], problem.lineno - 1) from None
        except (RecursionError, ValueError) as problem:
            raise JsonError(_reason(problem), line) from None
        yield Value(text[start:position].encode(), line, value)
        line += text.count("\n", start, position)


def _reject_constant(name: str) -> object:
    raise ValueError(f"{name}, which JSON does not have")


def _reason(problem: Exception) -> str:
    return "lists and objects nested too deeply" if isinstance(problem, RecursionError) else str(problem)


def _explain(problem: Exception, data: bytes) -> JsonError:
    """Convert a decoder's error to a JsonError with the line of the error."""
    if isinstance(problem, UnicodeDecodeError):  # Its position is relative to the start of a string inside the text.
        try:
            data.decode()
        except UnicodeDecodeError as whole:
            return JsonError("text that is not UTF-8", data.count(b"\n", 0, whole.start))
    text = _reason(problem).removeprefix("JSON is malformed: ")
    match = _BYTE.fullmatch(text)
    if match is not None:
        return JsonError(match[1], data.count(b"\n", 0, int(match[2])))
    line = data.rstrip().count(b"\n") if "truncated" in text else 0
    return JsonError("unexpected end of the text" if "truncated" in text else text, line)


# --- duplicate fields -------------------------------------------------------------------------------------------------

_ODD_COLON = re.compile(rb'"\s+:')


def duplicate_keys(value: Value, encoded: bytes) -> list[str]:
    """Return the fields that occur more than once in an object of a value; the last occurrence counts.

    Decoders keep only the last occurrence, so this compares the numbers of `":` in the text and in the encoded value:
    if they are equal, no field was dropped. If they differ, or if `":` may not be the end of a field name (white space
    before a colon, escaped quotes or colons), the text is parsed again by a slow parser.

    Args:
        value: a result of `parse`.
        encoded: `value.value` as compact JSON.
    """
    text = value.text
    if text.count(b'":') == encoded.count(b'":') and b"\\u00" not in text and not _ODD_COLON.search(text):
        return []
    found: list[str] = []

    def note(pairs: list[tuple[str, object]]) -> dict[str, object]:
        result = dict(pairs)
        if len(result) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    found.append(key)
                seen.add(key)
        return result

    try:
        json.loads(text, object_pairs_hook=note)
    except (ValueError, RecursionError):
        return []
    return found
