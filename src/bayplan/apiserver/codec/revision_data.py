"""The data of ControllerRevisions: raw JSON, which upstream stores as it was sent and compares byte by byte.

A patch rewrites the data without whitespace, so a patch of an object whose data was sent with whitespace changes the
data, and is rejected. Two things differ from upstream: responses contain the whitespace that was sent, which upstream
removes; and data with an out-of-range number or an unpaired surrogate, which could not be decoded again, is stored
rewritten instead of as sent.

Source: the type RawExtension of v1.36.3; github.com/evanphx/json-patch for the text after a patch.
"""

from __future__ import annotations

import math
import re
from typing import overload

import msgspec

from bayplan.base.go_text.json import json_text
from bayplan.base.plain_data import Document, with_sorted_keys

TABLE = "apps/controllerrevisions"
TYPE = "io.k8s.api.apps.v1.ControllerRevision"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\s+')
_ESCAPED = {ord(each): f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"}


class RawObject(dict[str, object]):
    """A JSON object with its text. Two such objects are equal if their texts are.

    Attributes:
        text: the object as JSON.
    """

    __slots__ = ("text",)

    def __init__(self, value: Document, text: str) -> None:
        super().__init__(value)
        self.text = text

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, RawObject) else dict.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None


def sent(document: Document, body: bytes | None) -> Document:
    """Return a decoded ControllerRevision with the text of its data.

    Args:
        document: the decoded object.
        body: the JSON that was sent, or None for other formats, which upstream converts to JSON with sorted keys.
    """
    data = document.get("data")
    if not isinstance(data, dict):
        return document
    text = "" if body is None else member_of(body, "data")
    return {**document, "data": RawObject(data, text) if text and _is_readable(text) else _written(data)}


def stored(data: object) -> object:
    """Return the data in the form that the store encodes: its text as raw JSON."""
    if not isinstance(data, dict):
        return data
    return msgspec.Raw((data if isinstance(data, RawObject) else _written(data)).text.encode())


def patched(document: Document, old: Document) -> Document:
    """Return an object after a JSON patch or merge patch; unchanged values keep their text, without whitespace."""
    data, before = document.get("data"), old.get("data")
    if not isinstance(data, dict):
        return document
    if not isinstance(before, RawObject):
        return rewritten(document)
    texts = _members(before.text.encode())
    if dict.__eq__(data, before):
        return {**document, "data": RawObject(data, compacted(before.text))}
    parts = [
        f"{json_text(name)}:{compacted(texts[name]) if name in before and before[name] == value else canonical(value)}"
        for name, value in sorted(data.items())
    ]
    return {**document, "data": RawObject(_finite(data), "{" + ",".join(parts) + "}")}


def rewritten(document: Document) -> Document:
    """Return an object after a strategic merge patch or an apply, which rewrite all data."""
    data = document.get("data")
    return {**document, "data": _written(data)} if isinstance(data, dict) else document


def shown(data: object) -> str:
    """Return the data for an error message."""
    return compacted(data.text) if isinstance(data, RawObject) else json_text(data)


def member_of(body: bytes, name: str) -> str:
    """Return the text of a member of a JSON object, or "" if it lacks the member or contains an unpaired surrogate.

    Invalid UTF-8 is replaced, as in the decoded object.
    """
    try:
        return _members(body).get(name, "")
    except msgspec.DecodeError:
        return ""


def _members(body: bytes) -> dict[str, str]:
    found = msgspec.json.decode(body.decode(errors="replace"), type=dict[str, msgspec.Raw])
    return {name: bytes(text).decode() for name, text in found.items()}


def _is_readable(text: str) -> bool:
    """Return whether JSON can be decoded: it has no unpaired surrogate and no number out of range."""
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _written(data: Document) -> RawObject:
    return RawObject(_finite(data), canonical(data))


def canonical(value: object) -> str:
    """Return the JSON that Go encodes for a decoded value: sorted keys, short numbers, null for infinite numbers."""
    return json_text(with_sorted_keys(_finite(value)))


@overload
def _finite(value: Document) -> Document: ...
@overload
def _finite(value: object) -> object: ...
def _finite(value: object) -> object:
    """Return a value with null for numbers that are out of the range of float64, which JSON cannot represent."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def compacted(text: str) -> str:
    """Return JSON text without whitespace, with the characters escaped that Go escapes for HTML."""
    return _TOKEN.sub(lambda token: token[0].translate(_ESCAPED) if token[0][0] == '"' else "", text)
