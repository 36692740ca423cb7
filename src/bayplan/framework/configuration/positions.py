"""Where in a configuration text a field stands: from a path like ``profiles[0].plugins`` to line and column.

YAML and JSON alike. Of a text that can't be parsed nothing is known; then every place is the beginning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import yaml

Step: TypeAlias = str | int
"""A key of an object, or the number of an element."""

_STEP = re.compile(r"\[(\d+)\]|\[([^\]]*)\]|([^.\[\]]+)")


class Place(NamedTuple):
    """A place in a text.

    Attributes:
        line, column: counted from 1; 0 where unknown.
        path: what stands there, as far as it is there: ``$.profiles[0]``.
    """

    line: int
    column: int
    path: str


def steps_of(path: str) -> tuple[Step, ...]:
    """Read a path as error texts have it; a leading dot is passed over."""
    return tuple(int(match[1]) if match[1] else match[2] or match[3] for match in _STEP.finditer(path))


def path_of(steps: Sequence[Step]) -> str:
    """Write a path: ``$.profiles[0]``; ``$`` is the whole."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


class TextPositions:
    """The places of everything in the first document of a text."""

    def __init__(self, text: str) -> None:
        self._root = _parse(text)

    def place(self, steps: Sequence[Step], *, of_key: bool = False) -> Place:
        """Return where a field stands, or what it would be part of where it is missing.

        A simple value is found itself, an object or list by its key. `of_key`: the key in any case.
        """
        if self._root is None:
            return Place(0, 0, path_of(steps))
        node, key, done = self._root, None, list[Step]()
        for step in steps:
            found = _child(node, step)
            if found is None:
                break
            name, key, node = found
            done.append(name)
        else:
            shown = node if key is None or (isinstance(node, yaml.ScalarNode) and not of_key) else key
            return _place(shown, path_of(steps))
        # What is missing would stand there.
        return _place(key if key is not None else node, path_of(steps))

    def on_line(self, line: int) -> Place:
        """Return the first field whose key stands on a line; without one the line alone."""
        for steps, key, _ in self.fields():
            if key.start_mark.line + 1 == line:
                return _place(key, path_of(steps))
        return Place(line, 1 if line else 0, "$")

    def fields(self) -> Iterator[tuple[tuple[Step, ...], yaml.Node, yaml.Node]]:
        """Yield all fields of objects in the order of the text: their paths, keys and values."""
        yield from _fields(self._root, ()) if self._root is not None else ()

    def first(self, wanted: Callable[[tuple[Step, ...], yaml.Node], bool]) -> tuple[Step, ...] | None:
        """Return the path of the first field that is wanted, told by its path and value."""
        return next((steps for steps, _, value in self.fields() if wanted(steps, value)), None)


def _parse(text: str) -> yaml.Node | None:
    try:
        node: yaml.Node | None = next(iter(yaml.compose_all(text, Loader=yaml.SafeLoader)), None)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    return node


def _child(node: yaml.Node, step: Step) -> tuple[Step, yaml.Node | None, yaml.Node] | None:
    """Return an element, or a field with its key; of a field that stands twice the last. Case does not matter for keys."""
    if isinstance(step, int):
        if isinstance(node, yaml.SequenceNode) and step < len(node.value):
            return step, None, node.value[step]
        return None
    if not isinstance(node, yaml.MappingNode):
        return None
    found = None
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value.lower() == step.lower():
            found = key.value, key, value
    return found


def _fields(node: yaml.Node, steps: tuple[Step, ...]) -> Iterator[tuple[tuple[Step, ...], yaml.Node, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*steps, str(key.value))
            yield inner, key, value
            yield from _fields(value, inner)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield from _fields(value, (*steps, number))


def _place(node: yaml.Node, path: str) -> Place:
    return Place(node.start_mark.line + 1, node.start_mark.column + 1, path)
