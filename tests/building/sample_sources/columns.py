"""Columns, a rule, and undeclared kinds of classes, which test the statements of docs/compiled.md."""

from __future__ import annotations

import enum
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Generic, NamedTuple, TypeVar

from bayplan.base import go_arithmetic as go

T = TypeVar("T")

FACTOR = 7
_FACTOR = FACTOR


class Pair(NamedTuple):
    """A pair of numbers."""

    x: int
    y: int = 2


class Colour(enum.IntEnum):
    """An enumeration."""

    RED = 1

    def nice(self) -> str:
        """Return the name in lower case."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Spec:
    """A data class."""

    name: str
    parts: list[int] = field(default_factory=list)
    kind: ClassVar[str] = "spec"


class Box(Generic[T]):
    """A generic class."""

    def __init__(self, value: T) -> None:
        self.value = value


class Columns:
    """The columns of a cluster."""

    LIMIT: ClassVar[int] = 5

    def __init__(self, size: int) -> None:
        self.size = size
        self.hidden = 1
        self.free = array("q", [10] * size)

    @property
    def doubled(self) -> int:
        """Return twice the number of rows."""
        return self.size * 2

    def share(self, row: int, parts: int = 3) -> int:
        """Return a fraction of the free amount of a row."""
        return go.quotient(self.free[row], parts) * _FACTOR

    def rows(self) -> Iterator[int]:
        """Yield the indices of all rows."""
        yield from range(self.size)

    def __reduce__(self) -> tuple[type[Columns], tuple[int]]:
        return Columns, (self.size,)


class Rule:
    """A rule that checks one node at a time; this one passes every node."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns

    def filter(self, row: int) -> int:
        """Return 0 if the pod fits the node in this row, else a positive number."""
        return 0
