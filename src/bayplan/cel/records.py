"""Values with named fields that are not maps: objects that expressions construct, and lazily evaluated variables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from bayplan.cel.problems import RunProblem


class Record(ABC):
    """A value with named fields."""

    __slots__ = ()

    @abstractmethod
    def find(self, name: str) -> tuple[bool, object]:
        """Return whether a field is set, and its value."""


class Message(Record):
    """An object that an expression constructed, such as ``Object.spec{replicas: 1}`` or ``JSONPatch{op: "add"}``.

    Attributes:
        type_name: the type name as written.
        fields: the values of the fields, by name.
    """

    __slots__ = ("fields", "type_name")

    @property
    def cel_type_name(self) -> str:
        """The name of the CEL type."""
        return self.type_name

    def __init__(self, type_name: str, fields: Mapping[str, object]) -> None:
        self.type_name = type_name
        self.fields = fields

    def find(self, name: str) -> tuple[bool, object]:
        """Return whether a field is set, and its value."""
        return (True, self.fields[name]) if name in self.fields else (False, None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and (self.type_name, self.fields) == (other.type_name, other.fields)

    __hash__ = None  # type: ignore[assignment]


class Variables(Record):
    """The variables of a policy. Each is evaluated at most once, when it is first read.

    Args:
        codes: the functions that evaluate the variables, by name.
    """

    __slots__ = ("_codes", "_known")

    def __init__(self, codes: Mapping[str, Callable[[], object]]) -> None:
        self._codes = codes
        self._known: dict[str, object | RunProblem] = {}

    def find(self, name: str) -> tuple[bool, object]:
        """Return whether a variable exists, and its value.

        Raises:
            RunProblem: the evaluation of the variable fails.
        """
        if name not in self._codes:
            return False, None
        if name not in self._known:
            try:
                self._known[name] = self._codes[name]()
            except RunProblem as problem:
                self._known[name] = problem
        found = self._known[name]
        if isinstance(found, RunProblem):
            raise found
        return True, found
