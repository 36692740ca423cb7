"""Decoding of JSON and YAML 1.1 bodies to JSON values, with errors about repeated keys."""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import NamedTuple

import msgspec

from bayplan.base.go_text.json import json_problem
from bayplan.formats import yaml_text
from bayplan.formats.yaml_nodes import read_yaml
from bayplan.formats.yaml_tree import GoYamlError

_FLOAT = re.compile(rb"[:\[,\s]-?[0-9]+[.eE]|[0-9]{16}")
_BRACKETS = re.compile(rb"[][{}]")


class BodyError(ValueError):
    """A body cannot be decoded; the text is Go's message."""


class Parsed(NamedTuple):
    """A decoded value, and the errors of strict decoding about repeated keys.

    Attributes:
        value: the value, with the last value of each repeated key.
        duplicates: the errors.
        sent: the value with `Repeated` objects; None if no key in a JSON body is repeated.
    """

    value: object
    duplicates: list[str]
    sent: object = None


class Repeated(dict[str, object]):
    """An object in which a key is repeated.

    Attributes:
        pairs: all keys and values.
    """

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def parse_json(data: bytes) -> Parsed:
    """Return the value of a JSON body.

    Raises:
        BodyError: the body is not JSON; the text is the message of Go's decoder.
    """
    plain = _read_plain(data)
    if plain is not None:
        return plain
    repeated = False

    def collect(pairs: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal repeated
        found = dict(pairs)
        if len(found) != len(pairs):
            repeated = True
            return Repeated(pairs)
        return found

    text = data.decode("utf-8", "replace")
    try:
        value = json.loads(text, object_pairs_hook=collect, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as problem:
        raise BodyError(json_problem(data.decode("utf-8", "surrogateescape")) or str(problem)) from problem
    if "\\ud" in text or "\\uD" in text:
        value = _without_surrogates(value)
    if repeated:
        found = [f'duplicate field "{path}"' for path in dict.fromkeys(_list_repeated(value, ""))]
        return Parsed(without_repeated(value), found, value)
    return Parsed(value, [])


class _Literal(float):
    """A number that is shown as it was sent, such as 1e3."""

    text = ""

    def __repr__(self) -> str:
        return self.text


def _literal(text: str) -> _Literal:
    found = _Literal(text)
    found.text = text
    return found


def with_literals(data: bytes) -> object:
    """Return the value of valid JSON; the `repr` of a floating point number is its text in the JSON."""
    return json.loads(data.decode("utf-8", "replace"), parse_float=_literal)


def _read_plain(data: bytes) -> Parsed | None:
    """Return the value of a JSON body if it is valid and certainly has no repeated keys, else None.

    Decoding drops a repeated key together with its colon. So if the encoded value has as many colons as the body, no
    key was repeated, provided that no colon was sent as an escape sequence.
    """
    if b"\\u003a" in data or b"\\u003A" in data:
        return None
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return Parsed(value, []) if msgspec.json.encode(value).count(b":") == data.count(b":") else None


def _without_surrogates(value: object) -> object:
    """Return a value with unpaired surrogates replaced, as Go does, because they could not be encoded."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Repeated):
        return Repeated([(str(_without_surrogates(name)), _without_surrogates(item)) for name, item in value.pairs])
    if isinstance(value, dict):
        return {str(_without_surrogates(name)): _without_surrogates(item) for name, item in value.items()}
    return [_without_surrogates(item) for item in value] if isinstance(value, list) else value


def without_repeated(value: object) -> object:
    """Return a value with the last value of each repeated key."""
    if isinstance(value, dict):
        return {name: without_repeated(item) for name, item in value.items()}
    return [without_repeated(item) for item in value] if isinstance(value, list) else value


def _reject_constant(name: str) -> object:
    raise ValueError(f"invalid character '{name[0]}' looking for beginning of value")


def _list_repeated(value: object, path: str) -> list[str]:
    found: list[str] = []
    if isinstance(value, dict):
        seen: set[str] = set()
        for name, item in value.pairs if isinstance(value, Repeated) else value.items():
            here = f"{path}.{name}" if path else name
            if name in seen:
                found.append(here)
            seen.add(name)
            found += _list_repeated(item, here)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += _list_repeated(item, f"{path}[{index}]")
    return found


def parse_yaml(data: bytes) -> Parsed:
    """Return the value of the first YAML document, read as Kubernetes does: YAML 1.1, keys as strings.

    JSON is valid YAML.

    Raises:
        BodyError: the body is not YAML; the text is go-yaml's message.
    """
    if data.count(b"{") + data.count(b"[") > yaml_text.GO_MAX_DEPTH and _is_too_deep(data):
        # The parser would also detect this, but takes time quadratic in the depth.
        raise BodyError(f"yaml: exceeded max depth of {yaml_text.GO_MAX_DEPTH}")
    if data[:1] == b"{" and b"\\" not in data and b"\t" not in data and not _FLOAT.search(data):
        # Go clients send apply configurations as JSON, and here both decoders return the same value.
        plain = _read_plain(data)
        if plain is not None:
            return plain
    try:
        documents = list(yaml_text.parse(data.decode("utf-8", "replace")))
    except yaml_text.YamlError as problem:
        in_first = _yaml_problem(data)
        documents = [] if in_first else _first_document(data)
        if not documents:
            raise BodyError(in_first or f"yaml: {problem}") from problem
    if not documents:
        return Parsed(None, [])
    first = documents[0]
    return Parsed(first.value, [first.complaint] if first.complaint else [])


def _first_document(data: bytes) -> list[yaml_text.Parsed]:
    """Return the first document of a text with an error in a later one; an empty list if it cannot be read."""
    try:
        return list(islice(yaml_text.parse(data.decode("utf-8", "replace")), 1))
    except yaml_text.YamlError:
        return []


def _yaml_problem(data: bytes) -> str:
    """Return go-yaml's error for a text, or "" if it can read the first document."""
    try:
        read_yaml(data)
    except GoYamlError as problem:
        return str(problem)
    return ""


def _is_too_deep(data: bytes) -> bool:
    """Return whether brackets, including those inside strings, are nested more deeply than go-yaml allows."""
    depth = 0
    for bracket in _BRACKETS.finditer(data):
        depth += 1 if bracket[0] in b"{[" else -1
        if depth > yaml_text.GO_MAX_DEPTH:
            return True
    return False


_MAX_SHOWN = 30
"""Maximum number of bytes of a body that an error message shows."""


def summarize(data: bytes) -> str:
    """Return the excerpt of a body for an error message: as text if it looks like JSON, else in hexadecimal."""
    if not data:
        return "<empty>"
    rest = " ..." if len(data) > _MAX_SHOWN else ""
    if data[:1] == b"{":
        return data[:_MAX_SHOWN].decode("utf-8", "replace") + rest
    return data[:_MAX_SHOWN].hex() + rest
