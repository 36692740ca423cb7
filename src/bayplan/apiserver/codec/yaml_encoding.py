"""Encoding of JSON values as YAML, exactly as go-yaml writes it.

PyYAML and go-yaml share libyaml's emitter; this module adds Go's order of keys and its quoting.

Source: go.yaml.in/yaml/v2 (encode.go, resolve.go, sorter.go), which sigs.k8s.io/yaml uses.
"""

from __future__ import annotations

import re
from functools import cmp_to_key
from typing import Any, cast

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from bayplan.base.go_text.json import yaml_number
from bayplan.formats.yaml_scalars import resolve

_TEXT = "tag:yaml.org,2002:str"
_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_TIMESTAMP = re.compile(
    r"[0-9]{4}-(?:0?[1-9]|1[0-2])-(?:0?[1-9]|[12][0-9]|3[01])"
    r"(?:[Tt][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]+)?(?:Z|[-+][0-9]{2}:[0-9]{2})"
    r"| [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]+)?)?"
)
_DIGITS = "0123456789"
_END = "\n...\n"
"""The end marker of a document. The text of a value is on the line of its key, or indented."""

_NUMBER = re.compile(r"[0-9]*")


def encode_yaml(value: object) -> bytes:
    """Return a JSON value as YAML."""
    text: str = yaml.serialize(_node(value), Dumper=cast("Any", _Dumper), allow_unicode=True)
    # libyaml ends a document with a marker after a text that keeps its last line breaks; go-yaml does not.
    if text.endswith(_END):
        text = text[: 1 - len(_END)]
    return text.encode()


class _Dumper(getattr(yaml, "CDumper", yaml.Dumper)):  # type: ignore[misc]
    """A dumper that treats all scalars as text, so that none gets a tag, and that writes no anchors."""

    def resolve(self, kind: type, value: object, implicit: object) -> str:
        if kind is ScalarNode:
            return _TEXT
        return f"tag:yaml.org,2002:{'seq' if kind is SequenceNode else 'map'}"


def _node(value: object) -> Node:
    if isinstance(value, dict):
        keys = sorted(value, key=cmp_to_key(_compare_keys))
        pairs = [(_scalar(key), _node(value[key])) for key in keys]
        return MappingNode("tag:yaml.org,2002:map", pairs, flow_style=not pairs)
    if isinstance(value, list):
        return SequenceNode("tag:yaml.org,2002:seq", [_node(each) for each in value], flow_style=not value)
    if isinstance(value, str):
        return _scalar(value)
    if value is None or isinstance(value, bool):
        return ScalarNode(_TEXT, {None: "null", True: "true", False: "false"}[value])
    return ScalarNode(_TEXT, yaml_number(value) if isinstance(value, float) else repr(value))


def _scalar(text: str) -> ScalarNode:
    """Return text in Go's style: literal if it has several lines, quoted if it would not be read as a string."""
    return ScalarNode(_TEXT, text, style="|" if "\n" in text else '"' if _is_ambiguous(text) else None)


def _is_ambiguous(text: str) -> bool:
    if resolve(text) is not text or text == "":
        return True
    return _TIMESTAMP.fullmatch(text) is not None or _BASE_60.fullmatch(text) is not None


def _compare_keys(one: str, two: str) -> int:
    """Compare keys as Go does: letters sort after other characters, and runs of digits by their value."""
    for at, (left, right) in enumerate(zip(one, two, strict=False)):
        if left == right:
            continue
        if left.isalpha() or right.isalpha():
            if left.isalpha() and right.isalpha():
                return -1 if left < right else 1
            return -1 if right.isalpha() else 1
        return _compare_numbers(one, two, at)
    return len(one) - len(two)


def _compare_numbers(one: str, two: str, at: int) -> int:
    first, second = (cast("re.Match[str]", _NUMBER.match(each, at))[0] for each in (one, two))
    before = one[:at][len(one[:at].rstrip(_DIGITS)) :]
    # A leading zero counts if common nonzero digits precede it.
    if not ("0" in (one[at], two[at]) and before.strip("0")):
        first, second = first.lstrip("0"), second.lstrip("0")
    # Compare as texts: `int` limits the number of digits.
    if (len(first), first) != (len(second), second):
        return -1 if (len(first), first) < (len(second), second) else 1
    first, second = (cast("re.Match[str]", _NUMBER.match(each, at))[0] for each in (one, two))
    if len(first) != len(second):
        return len(first) - len(second)
    return -1 if one[at] < two[at] else 1
