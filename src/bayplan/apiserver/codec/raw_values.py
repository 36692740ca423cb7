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
from functools import cache
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
_DUPLICATE = re.compile(r'duplicate field "(.*)"', re.DOTALL)
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
    found: object = document
    text = None if body is None else _readable(body).encode()
    for place in places:
        found = _sent_at(found, place, text)
    assert isinstance(found, dict)
    return found


def _sent_at(value: object, rest: Place, text: bytes | None) -> object:
    """Return a value with the texts of its raw JSON. Each level of the JSON is decoded once, however many items it has."""
    if not rest:
        if not isinstance(value, dict):
            return value
        found = "" if text is None else text.decode()
        return RawObject(value, found) if found and _is_readable(found) else _written(value)
    name, below = rest[0], rest[1:]
    if name == _ITEMS:
        if not isinstance(value, list):
            return value
        texts = _raw_items(text)
        return [
            _sent_at(each, below, bytes(texts[index]) if index < len(texts) else None)
            for index, each in enumerate(value)
        ]
    if not isinstance(value, dict) or value.get(name) is None:
        return value
    return {**value, name: _sent_at(value[name], below, _raw_member(text, name))}


def _raw_items(text: bytes | None) -> list[msgspec.Raw]:
    """Return the texts of the items of a JSON list; none if the text is absent or contains an unpaired surrogate."""
    if text is None:
        return []
    try:
        return msgspec.json.decode(text, type=list[msgspec.Raw])
    except msgspec.DecodeError:
        return []


def _raw_member(text: bytes | None, name: str) -> bytes | None:
    """Return the text of a member of a JSON object; None if it is absent or the text contains an unpaired surrogate."""
    if text is None:
        return None
    try:
        return bytes(msgspec.json.decode(text, type=dict[str, msgspec.Raw])[name])
    except (msgspec.DecodeError, KeyError):
        return None


def outside(places: tuple[Place, ...], problems: list[str]) -> list[str]:
    """Return errors about duplicate fields without those inside raw JSON, which upstream's strict decoding skips."""
    return [each for each in problems if not _is_inside(places, each)]


def _is_inside(places: tuple[Place, ...], problem: str) -> bool:
    found = _DUPLICATE.fullmatch(problem)
    return found is not None and any(_inside(place).match(found[1]) is not None for place in places)


@cache
def _inside(place: Place) -> re.Pattern[str]:
    """Return a pattern of the paths in errors that lead into raw JSON, such as ``spec.config[0].opaque.parameters.a``."""
    path = ".".join(re.escape(name) if name != _ITEMS else _ITEMS for name in place)
    return re.compile(path.replace(f".{_ITEMS}", r"\[\d+\]") + r"[.\[]")


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
