"""Parse the bytes of a file into documents: YAML or JSON, with lists split into their items, each with its position.

Supported input:

- YAML: several documents separated by `---` lines, block and flow style (KYAML), anchors, aliases and merge keys, as
  interpreted by kubectl (see `bayplan.formats.yaml_text`).
- JSON: one object, or several objects, one per line or concatenated.
- In both, `List` objects as printed by `kubectl get -o yaml` and `-o json`, and typed lists (`PodList`) whose items may
  lack `apiVersion` and `kind`.

A text is read as JSON if the file's name ends in .json or .jsonl, or if it starts with `{` and parses as JSON; else as
YAML.
"""

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from bayplan.base.errors import InputError
from bayplan.base.plain_data import Document as PlainDocument
from bayplan.base.text_encoding import is_utf16
from bayplan.formats import json_text, yaml_text
from bayplan.formats.manifest import shown

_JSON_SUFFIXES = (".json", ".jsonl")
_SPLIT_ABOVE = 1_000_000
"""YAML lists with more characters are split into items as text. Composed as a whole, 50 MB would need gigabytes of memory."""


_JSON_START = re.compile(rb"\n(?=[^\s\]},])")
_DIRECTIVE = re.compile(r"^%.*", re.MULTILINE)
_END = re.compile(r"^\.\.\.(?=\s|\Z)", re.MULTILINE)
_ESCAPED = re.compile("[\udc80-\udcff]")


class Source(msgspec.Struct, frozen=True):
    """The position of a document: the file, and the document's first line, counted from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Document(msgspec.Struct):
    """One document, or one item of a list.

    Attributes:
        source: the position of the document.
        value: plain data; an object if the file is valid.
        raw: the value as compact JSON, which hosts store because it is small and immutable.
        list_type: (apiVersion, kind) of the typed list that contains the document, e.g. `("v1", "PodList")`, or None.
        duplicates: (position, name) of fields that occur repeatedly in one object; the last occurrence counts.
        number: the number of the document in its file, counted from 1 without empty documents; items have that of their list.
    """

    source: Source
    value: object
    raw: bytes
    list_type: tuple[str, str] | None = None
    duplicates: list[tuple[str, str]] = msgspec.field(default_factory=list)
    number: int = 0
    _text: str | bytes = ""
    _first_line: int = 0
    _index: int = 0
    _inside: str = "$"

    def checked_value(self) -> PlainDocument:
        """Return the value, which must be an object.

        Raises:
            InputError: the value is not an object.
        """
        if not isinstance(self.value, dict):
            is_table = isinstance(self.value, str) and self.value.startswith(("NAME ", "NAMESPACE "))
            hint = "the output of kubectl get -o yaml" if is_table else ""
            if isinstance(self.value, list) and self.value and isinstance(self.value[0], dict):
                hint = "'kind: List' and 'apiVersion: v1', with the list as its items"
            raise InputError("document", where=self.where(), wanted="an object", got=shown(self.value), hint=hint)
        return self.value

    def value_with_kind(self) -> PlainDocument:
        """Return the object. If it is an item of a typed list without kind, add the apiVersion and kind of the list's items.

        Raises:
            InputError: the value is not an object.
        """
        value = self.checked_value()
        if self.list_type is None or "kind" in value:
            return value
        version, kind = self.list_type
        return {"apiVersion": version, "kind": kind.removesuffix("List"), **value}

    def part(self, path: str, value: object) -> "Document":
        """Return the value at a JSON path as a separate document, whose paths start there."""
        source = Source(self.source.file, self.line_of(path))
        raw = _encode(value, str(source))
        inside = self._inside + path.removeprefix("$")
        return replace(self, source=source, value=value, raw=raw, list_type=None, duplicates=[], _inside=inside)

    def line_of(self, path: str) -> int:
        """Return the line, counted from 1, of the field at a JSON path such as `$.spec.containers[0].image`.

        The text is parsed a second time, with positions. If the path does not exist, return the line of its last
        existing part; if the text can't be parsed again, the document's first line.
        """
        return self._find(path)[0]

    def written(self, path: str) -> str:
        """Return the plain scalar at a JSON path with its spelling in YAML (`y`, `1.10`); "" if there is none."""
        return self._find(path)[1]

    def _find(self, path: str) -> tuple[int, str]:
        """Return the line of the field at a path and its plain scalar; see `line_of` and `written`."""
        # Few documents need positions, and PyYAML's import takes longer than reading a small manifest.
        from bayplan.formats.yaml_nodes import compose, find_node, plain_text

        text = self._text.decode("utf-8", "replace") if isinstance(self._text, bytes) else self._text
        try:
            for index, node in enumerate(compose(text)):
                if index == self._index:
                    line, found = find_node(node, self._inside.removeprefix("$") + path.removeprefix("$"))
                    return self._first_line + line + 1, plain_text(found)
        except yaml_text.YamlError:
            pass
        return self.source.line, ""

    def where(self, path: str = "$") -> str:
        """Return `file:line` of the field at a JSON path."""
        return f"{self.source.file}:{self.line_of(path)}"


class MalformedDocument(msgspec.Struct, frozen=True):
    """A document that can't be read: its position and number (see `Document.number`), and what is wrong."""

    where: str
    number: int
    problem: str

    @classmethod
    def of(cls, number: int, error: InputError) -> "MalformedDocument":
        """Return the document with a number that an error is about."""
        problem = InputError(error.what, wanted=error.wanted, got=error.got, hint=error.hint)
        return cls(error.where, number, str(problem).removeprefix("document: "))


ReportMalformed: TypeAlias = Callable[[MalformedDocument], None]


def read_documents(
    data: bytes, name: str, *, suffix: str = "", report: ReportMalformed | None = None
) -> Iterator[Document]:
    """Yield the documents of a file, in order. Empty documents are skipped.

    Args:
        data: the content of the file, decompressed.
        name: the file's name, for positions and errors.
        suffix: `.json` or `.jsonl` if the file must be JSON.
        report: called with each malformed document, in order; the others are yielded.

    Raises:
        InputError: without `report`: the YAML or JSON is invalid; with file and line.
    """
    data = data.removeprefix(codecs.BOM_UTF8)
    if suffix in _JSON_SUFFIXES or data[:1024].lstrip().startswith(b"{"):
        try:
            parsed = json_text.parse(data) if data.strip() else []
        except json_text.JsonError as problem:
            if suffix in _JSON_SUFFIXES:
                if report is None:
                    raise _json_error(problem, 0, name) from None
                yield from _json_pieces(data, name, report)
                return
        else:
            yield from _json_documents(parsed, name)
            return
    number = 0
    for text, first_line in _pieces(_decode(data, name)) if report is None else _lenient_pieces(data):
        index = -1
        try:
            if report is not None:
                _check_decoded(text, first_line, name)
            for document in _yaml_documents(text, first_line, name):
                index = document._index
                document.number = number + index + 1
                yield document
        except InputError as error:
            if report is None:
                raise
            index = 0
            report(MalformedDocument.of(number + 1, error))
        number += index + 1


def _encode(value: object, where: str) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (ValueError, OverflowError, RecursionError) as problem:
        raise InputError("document", where=where, wanted="values that JSON can represent", got=str(problem)) from None


def _expand(document: Document, item_lines: Sequence[int] = ()) -> Iterator[Document]:
    """Yield the items of a List object. Yield any other document, or a List without items, unchanged."""
    value = document.value
    items = value.get("items") if isinstance(value, dict) else None
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(items, list) or not items or not isinstance(kind, str) or not kind.endswith("List"):
        yield document
        return
    list_type = _list_type(value.get("apiVersion"), kind) if isinstance(value, dict) else None
    file = document.source.file
    for index, item in enumerate(items):
        line = document._first_line + item_lines[index] + 1 if index < len(item_lines) else document.source.line
        child = replace(
            document,
            source=Source(file, line),
            value=item,
            raw=_encode(item, f"{file}:{line}"),
            list_type=list_type,
            duplicates=document.duplicates if index == 0 else [],
            _inside=f"{document._inside}.items[{index}]",
        )
        yield from _expand(child)


def _list_type(api_version: object, kind: str) -> tuple[str, str] | None:
    """Return the (apiVersion, kind) of a typed list, whose items may lack them; None for a `List`."""
    return (api_version, kind) if isinstance(api_version, str) and kind != "List" else None


# --- JSON -------------------------------------------------------------------------------------------------------------


def _json_error(problem: json_text.JsonError, first_line: int, name: str) -> InputError:
    return InputError(f"broken JSON: {problem.problem}", where=f"{name}:{first_line + problem.line + 1}")


def _json_pieces(data: bytes, name: str, report: ReportMalformed) -> Iterator[Document]:
    """Yield the valid documents of a file that has others. A document starts on each line that is not indented."""
    first_line = 0
    for number, piece in enumerate(_JSON_START.split(data), 1):
        try:
            documents = list(_json_documents(json_text.parse(piece), name, first_line))
        except json_text.JsonError as problem:
            report(MalformedDocument.of(number, _json_error(problem, first_line, name)))
        except InputError as error:
            report(MalformedDocument.of(number, error))
        else:
            for document in documents:
                document.number = number
                yield document
        first_line += piece.count(b"\n") + 1


def _json_documents(
    parsed: json_text.Value | json_text.ItemList | list[json_text.Value], name: str, first_line: int = 0
) -> Iterator[Document]:
    if isinstance(parsed, json_text.ItemList):
        values, list_type = parsed.items, _list_type(parsed.api_version, parsed.kind)
    else:
        values, list_type = parsed if isinstance(parsed, list) else [parsed], None
    for index, value in enumerate(values, 1):
        line, data = first_line + value.line, value.value
        source = Source(name, line + 1)
        raw = _encode(data, str(source))
        duplicates = [(str(source), key) for key in json_text.duplicate_keys(value, raw)]
        if data is not None:
            number = 1 if isinstance(parsed, json_text.ItemList) else index
            yield from _expand(Document(source, data, raw, list_type, duplicates, number, value.text, line))


# --- YAML -------------------------------------------------------------------------------------------------------------


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-16" if is_utf16(data) else "utf-8")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise _not_text(data[problem.start], f"{name}:{line}") from None


def _lenient_pieces(data: bytes) -> list[tuple[str, int]]:
    """Return one piece for each document, even if the text of some is invalid. Bytes that are not text are escaped."""
    text = data.decode("utf-16", "replace") if is_utf16(data) else data.decode("utf-8", "surrogateescape")
    pieces = _pieces(text)
    if len(pieces) == 1:
        try:
            for _ in yaml_text.parse(text):
                pass
        except yaml_text.YamlError:
            # Directives are rare, and these have no effect on the objects. With them, the text after the error could not be read.
            pieces = _pieces(_DIRECTIVE.sub("", _END.sub("---", text)))
    return pieces


def _check_decoded(text: str, first_line: int, name: str) -> None:
    """Raise InputError if a piece has a byte that is not text."""
    if (found := _ESCAPED.search(text)) is not None:
        line = first_line + text.count("\n", 0, found.start()) + 1
        raise _not_text(ord(found[0]) - 0xDC00, f"{name}:{line}")


def _not_text(byte: int, where: str) -> InputError:
    return InputError("text", where=where, wanted="UTF-8", got=f"byte 0x{byte:02x}")


def _pieces(text: str) -> list[tuple[str, int]]:
    """Split a text at its `---` lines. Return the pieces and the lines on which they start (counted from 0).

    A text with directives or `...` lines is not split, because documents can end in other ways there.
    """
    if text.startswith(("%", "...")) or "\n%" in text or "\n..." in text:
        return [(text, 0)]
    pieces: list[tuple[str, int]] = []
    start = line = position = 0
    while (position := text.find("\n---", position)) >= 0:
        position += 1
        if text[position + 3 : position + 4] in ("", " ", "\t", "\n", "\r"):
            pieces.append((text[start:position], line))
            line += text.count("\n", start, position)
            start = position
    pieces.append((text[start:], line))
    return pieces


def _yaml_documents(text: str, first_line: int, name: str) -> Iterator[Document]:
    big = _Slices.of(text) if len(text) > _SPLIT_ABOVE else None
    try:
        if big is not None:
            yield from _yaml_items(big, text, first_line, name)
            return
        for index, parsed in enumerate(yaml_text.parse(text)):
            yield from _yaml_document(parsed, name, text, first_line, index)
    except yaml_text.YamlError as problem:
        raise _yaml_error(problem, first_line, name) from None


def _yaml_error(problem: yaml_text.YamlError, first_line: int, name: str) -> InputError:
    where = f"{name}:{first_line + problem.line + 1}"
    return InputError(f"broken YAML: {problem.problem}", where=where, hint=problem.hint)


def _yaml_document(
    parsed: yaml_text.Parsed,
    name: str,
    text: str,
    first_line: int,
    index: int,
    list_type: tuple[str, str] | None = None,
) -> Iterator[Document]:
    if parsed.value is None:
        return
    source = Source(name, first_line + parsed.line + 1)
    duplicates = [(f"{name}:{first_line + line + 1}", key) for line, key in parsed.duplicates]
    raw = parsed.raw or _encode(parsed.value, str(source))
    document = Document(source, parsed.value, raw, list_type, duplicates, 0, text, first_line, index)
    yield from _expand(document, parsed.item_lines)


class _Slices(msgspec.Struct, frozen=True):
    """The text of a list object in block style, split into items.

    Attributes:
        kind, api_version: the kind and apiVersion of the list, as written.
        items: the text of each item, with a space instead of its dash, and its first line (counted from 0).
    """

    kind: str
    api_version: object
    items: list[tuple[str, int]]

    @classmethod
    def of(cls, text: str) -> "_Slices | None":
        """Split a text into items. Return None if it is not a list in block style."""
        head = _ITEMS.search(text)
        dash = _DASH.match(text, head.end()) if head else None
        if head is None or dash is None:
            return None
        tail = _TAIL.search(text, head.end())
        end = tail.start() + 1 if tail else len(text)
        try:
            outside = [parsed.value for parsed in yaml_text.parse(text[: head.start()] + text[end:])]
        except yaml_text.YamlError:
            return None
        envelope = outside[0] if len(outside) == 1 else None
        kind = envelope.get("kind") if isinstance(envelope, dict) else None
        if not isinstance(envelope, dict) or not isinstance(kind, str) or not kind.endswith("List"):
            return None
        items: list[tuple[str, int]] = []
        start, line, marker = head.end(), text.count("\n", 0, head.end()), f"\n{dash[1]}- "
        while start < end:
            found = text.find(marker, start, end)
            stop = found + 1 if found >= 0 else end
            items.append((text[start:stop].replace("-", " ", 1), line))
            line += text.count("\n", start, stop)
            start = stop
        return cls(kind, envelope.get("apiVersion"), items)


_ITEMS = re.compile(r"^items:[ \t]*\r?\n", re.MULTILINE)
_DASH = re.compile(r"( *)- ")
_TAIL = re.compile(r"\n(?=[^\s#\-])")


def _yaml_items(slices: _Slices, text: str, first_line: int, name: str) -> Iterator[Document]:
    """Yield the items of a large list, each parsed separately.

    A wrong split (at a dash inside a multi-line string), or an alias to another item, causes a syntax error in the
    piece where it starts, and the items before it are correct. In that case the whole list is parsed, and the remaining
    documents are yielded.
    """
    list_type = _list_type(slices.api_version, slices.kind)
    done = 0
    try:
        for item, line in slices.items:
            parsed = list(yaml_text.parse(item))
            if len(parsed) != 1:
                break
            for document in _yaml_document(parsed[0], name, item, first_line + line, 0, list_type):
                yield document
                done += 1
        else:
            return
    except yaml_text.YamlError:
        pass
    for parsed_whole in yaml_text.parse(text):
        yield from islice(_yaml_document(parsed_whole, name, text, first_line, 0), done, None)
