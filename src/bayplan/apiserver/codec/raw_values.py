"""Raw JSON in objects, which upstream stores as it was sent and compares byte by byte.

These are the data of ControllerRevisions, the parameters of device configurations, and the data of allocated devices. A
patch rewrites them without whitespace, so a patch of an object whose raw JSON was sent with whitespace changes it: the
generation of a DeviceClass increases, and the patch of an immutable spec is rejected. Two things differ from upstream:
responses contain the whitespace that was sent, which upstream removes; and raw JSON with an out-of-range number or an
unpaired surrogate, which could not be decoded again, is stored rewritten instead of as sent.

Source: the type RawExtension of v1.36.3; github.com/evanphx/json-patch for the text after a patch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TypeAlias, overload

import msgspec

from bayplan.base.go_text.json import json_text
from bayplan.base.plain_data import Document, with_sorted_keys

Place: TypeAlias = tuple[str, ...]
"""The path of a field with raw JSON; ``*`` stands for the items of a list."""
_Where: TypeAlias = tuple[str | int, ...]
"""The path of one value, with the indexes of list items."""

_ITEMS = "*"
_CONFIGURATION = ("config", _ITEMS, "opaque", "parameters")
_DATA: tuple[Place, ...] = (("data",),)
_CLASS: tuple[Place, ...] = (("spec", *_CONFIGURATION),)
_CLAIM: tuple[Place, ...] = (
    ("spec", "devices", *_CONFIGURATION),
    ("status", "allocation", "devices", *_CONFIGURATION),
    ("status", "devices", _ITEMS, "data"),
)
_TEMPLATE: tuple[Place, ...] = (("spec", "spec", "devices", *_CONFIGURATION),)
OF_TABLE: dict[str, tuple[Place, ...]] = {
    "apps/controllerrevisions": _DATA,
    "resource.k8s.io/deviceclasses": _CLASS,
    "resource.k8s.io/resourceclaims": _CLAIM,
    "resource.k8s.io/resourceclaimtemplates": _TEMPLATE,
}
"""The places of raw JSON in the objects of each table that has any."""
OF_TYPE: dict[str, tuple[Place, ...]] = {
    "io.k8s.api.apps.v1.ControllerRevision": _DATA,
    **{
        f"io.k8s.api.resource.{version}.{kind}": places
        for version in ("v1", "v1beta1", "v1beta2")
        for kind, places in (("DeviceClass", _CLASS), ("ResourceClaim", _CLAIM), ("ResourceClaimTemplate", _TEMPLATE))
    },
}
"""The places of raw JSON in each type that has any, by its name in OpenAPI."""
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


def sent(places: tuple[Place, ...], document: Document, body: bytes | None) -> Document:
    """Return a decoded object with the texts of its raw JSON.

    Args:
        places: the places of raw JSON in the object.
        document: the decoded object.
        body: the JSON that was sent, or None for other formats, which upstream converts to JSON with sorted keys.
    """

    def with_text(value: Document, where: _Where) -> object:
        text = "" if body is None else member_of(body, where)
        return RawObject(value, text) if text and _is_readable(text) else _written(value)

    return _changed(places, document, with_text)


def stored(places: tuple[Place, ...], document: Document) -> Document:
    """Return an object in the form that the store encodes: texts as raw JSON."""

    def as_text(value: Document, _where: _Where) -> object:
        return msgspec.Raw((value if isinstance(value, RawObject) else _written(value)).text.encode())

    return _changed(places, document, as_text)


def patched(places: tuple[Place, ...], document: Document, old: Document) -> Document:
    """Return an object after a JSON patch or merge patch; unchanged values keep their text, without whitespace."""

    def with_text(value: Document, where: _Where) -> object:
        before = _found(old, where)
        return _patched(value, before) if isinstance(before, RawObject) else _written(value)

    return _changed(places, document, with_text)


def _patched(value: Document, before: RawObject) -> RawObject:
    if dict.__eq__(value, before):
        return RawObject(value, compacted(before.text))
    texts = _members(before.text.encode())
    parts = [
        f"{json_text(name)}:{compacted(texts[name]) if name in before and before[name] == item else canonical(item)}"
        for name, item in sorted(value.items())
    ]
    return RawObject(_finite(value), "{" + ",".join(parts) + "}")


def rewritten(places: tuple[Place, ...], document: Document) -> Document:
    """Return an object after a strategic merge patch or an apply, which rewrite all raw JSON."""
    return _changed(places, document, lambda value, _where: _written(value))


def shown(data: object) -> str:
    """Return raw JSON for an error message."""
    return compacted(data.text) if isinstance(data, RawObject) else json_text(data)


def _changed(places: tuple[Place, ...], document: Document, change: Callable[[Document, _Where], object]) -> Document:
    """Return an object with a function applied to each JSON object at these places; it gets the value and its path."""
    for place in places:
        found = _changed_at(document, place, (), change)
        if isinstance(found, dict):
            document = found
    return document


def _changed_at(value: object, rest: Place, where: _Where, change: Callable[[Document, _Where], object]) -> object:
    if not rest:
        return change(value, where) if isinstance(value, dict) else value
    name, below = rest[0], rest[1:]
    if name == _ITEMS:
        if not isinstance(value, list):
            return value
        return [_changed_at(each, below, (*where, index), change) for index, each in enumerate(value)]
    if not isinstance(value, dict) or value.get(name) is None:
        return value
    return {**value, name: _changed_at(value[name], below, (*where, name), change)}


def _found(value: object, where: _Where) -> object:
    """Return the value at a path, or None."""
    for step in where:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def member_of(body: bytes, where: _Where) -> str:
    """Return the text of the value at a path in JSON, or "" if there is none, or if it contains an unpaired surrogate.

    Invalid UTF-8 is replaced, as in the decoded object.
    """
    found = body
    try:
        for step in where:
            if isinstance(step, int):
                found = bytes(msgspec.json.decode(_readable(found), type=list[msgspec.Raw])[step])
            else:
                found = bytes(msgspec.json.decode(_readable(found), type=dict[str, msgspec.Raw])[step])
    except (msgspec.DecodeError, LookupError):
        return ""
    return found.decode()


def _readable(body: bytes) -> str:
    return body.decode(errors="replace")


def _members(body: bytes) -> dict[str, str]:
    found = msgspec.json.decode(_readable(body), type=dict[str, msgspec.Raw])
    return {name: bytes(text).decode() for name, text in found.items()}


def _is_readable(text: str) -> bool:
    """Return whether JSON can be decoded: it has no unpaired surrogate and no number out of range."""
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _written(data: Document) -> RawObject:
    ordered = with_sorted_keys(_finite(data))
    assert isinstance(ordered, dict)
    return RawObject(ordered, json_text(ordered))


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
