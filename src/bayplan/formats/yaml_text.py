"""Parse YAML text into plain data as kubectl does. Independent of Kubernetes objects, files and JSON text.

kubectl reads YAML with sigs.k8s.io/yaml: a port of libyaml (YAML 1.1 grammar), its own resolution of plain scalars, and
a conversion to JSON. PyYAML's C parser is libyaml itself, so grammar and anchors are equal by construction.
`bayplan.formats.yaml_nodes` replaces PyYAML's resolver and constructor (which are slow, and for another dialect) with
kubectl's rules:

- `y`, `yes`, `on`, `true` ... are booleans; `0777`, `0o777`, `0x1f`, `0b1`, `1_000` are integers; `1:30` and timestamps
  are strings; floats with integral values become integers (JSON makes no difference).
- Mapping keys become strings: `on: 1` is the field `true`. A null key is refused, as are `.inf` and `.nan`.
- Merge keys apply at their position: `<<` overwrites earlier keys, and later keys overwrite its values.
- Of duplicate keys the last one counts; `Parsed.duplicates` lists them.

It is imported only if `bayplan.formats.yaml_fast` can't read a text, because importing PyYAML takes as long as reading
hundreds of manifests.
"""

import re
from collections.abc import Iterator

import msgspec

from bayplan.formats import yaml_fast

MAX_DEPTH = 256
"""Maximum nesting of lists and objects. Kubernetes' own types nest less than 30 levels."""

GO_MAX_DEPTH = 10_000
"""Maximum nesting that go-yaml allows."""


class YamlError(Exception):
    """A syntax error in a text, with its line (counted from 0)."""

    def __init__(self, problem: str, line: int, hint: str = "") -> None:
        self.problem = problem
        self.line = line
        self.hint = hint
        super().__init__(problem)


class Parsed(msgspec.Struct):
    """One YAML document.

    Attributes:
        value: plain data in new dicts and lists; an alias shares the data of its anchor.
        line: the line on which the document starts, counted from 0.
        duplicates: (line, key) of keys that occur more than once in a mapping.
        item_lines: the lines on which the elements of a top-level list `items` start, counted from 0.
        raw: the value as compact JSON if it is available, or None.
        complaint: the error of go-yaml's strict decoding about keys that are set twice, also by merge keys; "" if there
            is none.
    """

    value: object
    line: int
    duplicates: list[tuple[int, str]] = msgspec.field(default_factory=list)
    item_lines: list[int] = msgspec.field(default_factory=list)
    raw: bytes | None = None
    complaint: str = ""


def parse(text: str) -> Iterator[Parsed]:
    """Yield the documents of a text, one by one. Empty documents are None or omitted.

    Raises:
        YamlError: the YAML is invalid, not allowed by the rules of this module, or nested deeper than `MAX_DEPTH`.
    """
    start = _BEFORE.match(text)
    first = start.end() if start else 0
    if first == len(text) and "---" not in text and text.replace("\n", "").isprintable():
        return  # Only comments, as above the first document of many files.
    # Lists need the slow parser, which has the lines of their items.
    head = text[first : first + 6]
    may_be_list = head.startswith(("{", "items", '"items', "'items")) and "items" in text
    may_be_list = may_be_list or "\nitems" in text or '\n"items' in text or "\n'items" in text
    answer = None if may_be_list else yaml_fast.parse(text)
    if answer is None:
        from bayplan.formats.yaml_nodes import parse_slowly

        yield from parse_slowly(text)
    else:
        yield Parsed(answer.value, text.count("\n", 0, first), raw=answer.raw)


_BEFORE = re.compile(r"(?:(?:---(?=[ \t\r\n]))?[ \t]*(?:#[^\n]*)?\r?\n)*(?:---[ \t]+)?")
