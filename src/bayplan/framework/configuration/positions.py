"""The positions of fields in a YAML or JSON text: from a path like ``profiles[0].plugins`` to line and column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import yaml

from bayplan.framework.configuration.field_errors import Step, path_of


class Place(NamedTuple):
    """A position in a text, 1-based or 0 if unknown, and the path of the field there, e.g. ``$.profiles[0]``."""

    line: int
    column: int
    path: str


class _Part(NamedTuple):
    """A field, or an element without key, of a `parent`: its path, its index there, and its nodes."""

    steps: tuple[Step, ...]
    parent: yaml.CollectionNode
    number: int
    key: yaml.Node | None
    value: yaml.Node


class TextPositions:
    """The positions of all fields and elements in the first document of a text; unknown if it can't be parsed."""

    def __init__(self, text: str) -> None:
        self._root = _parse(text)
        self._removed: dict[int, list[int]] = {}

    def place(self, steps: Sequence[Step], *, of_key: bool = False) -> Place:
        """Return the position of a field or, if it is missing, of its closest existing parent.

        The position of a scalar is that of its value, the position of an object or list is that of its key. With
        `of_key`, it is always that of the key.
        """
        if self._root is None:
            return Place(0, 0, path_of(steps))
        node, key, written = self._root, None, list[Step]()
        for step in steps:
            found = _child(node, step)
            if found is None:
                break
            written.append(self._written_index(node, step) if isinstance(step, int) else step)
            key, node = found
        else:
            shown = node if key is None or (isinstance(node, yaml.ScalarNode) and not of_key) else key
            return _place(shown, path_of(written))
        # The text lacks the field: return the position of the parent, where the field would belong.
        return _place(key if key is not None else node, path_of((*written, *steps[len(written) :])))

    def on_line(self, line: int) -> Place:
        """Return the position of the first field whose key is on a line; if there is none, of the line itself."""
        for part in _parts(self._root):
            if part.key is not None and part.key.start_mark.line + 1 == line:
                return _place(part.key, path_of(part.steps))
        return Place(line, 1 if line else 0, "$")

    def scalars(self, key: str) -> Iterator[tuple[tuple[Step, ...], str]]:
        """Yield the path and value of each field with this key that has a scalar value, in the order of the text."""
        for part in _parts(self._root):
            if part.steps[-1] == key and isinstance(part.value, yaml.ScalarNode):
                yield part.steps, part.value.value

    # Corrections change the text to be examined; positions remain those of the original text.

    def rename(self, line: int, column: int, name: str) -> bool:
        """Change the key or value at a position to `name`; return False if there is no scalar."""
        for part in _parts(self._root):
            for node in (part.key, part.value):
                if isinstance(node, yaml.ScalarNode) and _starts_at(node, line, column):
                    node.value = name
                    return True
        return False

    def remove(self, line: int, column: int) -> bool:
        """Remove the field or element whose key or value begins at a position; return False if there is none.

        Instead of the `name` of an element, the whole element is removed: without a name it would be another problem.
        """
        elements: dict[int, _Part] = {}
        for part in _parts(self._root):
            if part.key is None:
                elements[id(part.value)] = part
            if any(node is not None and _starts_at(node, line, column) for node in (part.key, part.value)):
                if part.key is not None and part.key.value == "name":
                    part = elements.get(id(part.parent), part)
                if part.key is None:
                    self._removed.setdefault(id(part.parent), []).append(self._written_index(part.parent, part.number))
                del part.parent.value[part.number]
                return True
        return False

    def text(self) -> str:
        """Return the corrected text, as YAML."""
        return "" if self._root is None else str(yaml.serialize(self._root, Dumper=yaml.SafeDumper))

    def _written_index(self, parent: yaml.Node, index: int) -> int:
        """Return the index of an element in the original text."""
        for removed in sorted(self._removed.get(id(parent), ())):
            index += removed <= index
        return index


def _parse(text: str) -> yaml.Node | None:
    try:
        node: yaml.Node | None = next(iter(yaml.compose_all(text, Loader=yaml.SafeLoader)), None)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    return node


def _child(node: yaml.Node, step: Step) -> tuple[yaml.Node | None, yaml.Node] | None:
    """Return (key, value) of an element or field, or None. Case is ignored, the last duplicate counts."""
    if isinstance(step, int):
        is_element = isinstance(node, yaml.SequenceNode) and step < len(node.value)
        return (None, node.value[step]) if is_element else None
    found = None
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if isinstance(key, yaml.ScalarNode) and key.value.lower() == step.lower():
            found = key, value
    return found


def _parts(node: yaml.Node | None, steps: tuple[Step, ...] = ()) -> Iterator[_Part]:
    """Yield the fields and elements inside a node, in the order of the text."""
    if not isinstance(node, yaml.CollectionNode):
        return
    for number, part in enumerate(node.value):
        key, value = part if isinstance(part, tuple) else (None, part)
        inner = (*steps, number if key is None else str(key.value))
        yield _Part(inner, node, number, key, value)
        yield from _parts(value, inner)


def _starts_at(node: yaml.Node, line: int, column: int) -> bool:
    return (node.start_mark.line + 1, node.start_mark.column + 1) == (line, column)


def _place(node: yaml.Node, path: str) -> Place:
    return Place(node.start_mark.line + 1, node.start_mark.column + 1, path)
