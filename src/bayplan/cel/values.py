"""The values of expressions: their Python types, equality, order, and type names.

bool, int, float, str, bytes, None and list represent the same CEL values. `Uint` distinguishes unsigned integers,
`CelMap` is a map, and quantities and versions have their own classes.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from functools import total_ordering

import msgspec

from bayplan.base.go_text.json import shortest_text
from bayplan.base.go_text.quoting import quote
from bayplan.cel.meter import CostExceeded, spend_work
from bayplan.cel.problems import RunProblem
from bayplan.objects.quantity import Quantity

INT_MIN, INT_MAX = -(1 << 63), (1 << 63) - 1
UINT_MAX = (1 << 64) - 1
MAX_DIGITS = 100
"""Maximum number of digits of a number that is parsed; longer ones are out of range.

Python takes quadratic time to parse a number, and rejects more than 4,300 digits.
"""


class Uint(int):
    """An unsigned integer."""

    __slots__ = ()


class CelMap:
    """A map. Keys are bool, int, `Uint` or str; equal numbers are the same key.

    Attributes:
        entries: the (key, value) pairs, by the result of `key_of` for the key.
        missing: the value of every absent key; None if absent keys have no value.
    """

    __slots__ = ("entries", "missing")

    def __init__(self, entries: dict[object, tuple[object, object]], missing: CelMap | None = None) -> None:
        self.entries = entries
        self.missing = missing

    @classmethod
    def of_texts(cls, items: dict[str, object], missing: CelMap | None = None) -> CelMap:
        """Return a map whose keys are strings."""
        return cls({key: (key, value) for key, value in items.items()}, missing)

    def find(self, key: object) -> tuple[bool, object]:
        """Return whether a key has a value, and the value."""
        entry = self.entries.get(key_of(key))
        if entry is not None:
            return True, entry[1]
        return (True, self.missing) if self.missing is not None else (False, None)

    def keys(self) -> list[object]:
        """Return the keys, in order of insertion."""
        return [key for key, _ in self.entries.values()]


class UnorderedList(list[object], ABC):
    """A list in a custom resource whose order does not matter: a set, or a list of items with keys."""

    __slots__ = ()

    @abstractmethod
    def equals(self, other: list[object]) -> bool:
        """Return whether another list has the same items."""

    @abstractmethod
    def joined(self, other: list[object]) -> list[object]:
        """Return the concatenation of both lists by the rules of the list type."""


class Optional(msgspec.Struct, frozen=True):
    """An optional value; `present`: whether it has a value."""

    value: object = None
    present: bool = False


NONE = Optional()


class TypeValue(msgspec.Struct, frozen=True):
    """A type as a value, such as the result of ``type(1)``."""

    name: str


_ALPHANUMERIC = re.compile(r"[0-9A-Za-z-]*", re.ASCII)
_DIGITS = re.compile(r"[0-9]*", re.ASCII)


@total_ordering
class Version:
    """A semantic version (https://semver.org). Comparisons ignore the build metadata after ``+``."""

    __slots__ = ("numbers", "parts")

    def __init__(self, numbers: tuple[int, int, int], parts: tuple[int | str, ...]) -> None:
        self.numbers = numbers
        self.parts = parts

    @classmethod
    def parse(cls, text: str) -> Version:
        """Return the version in a text.

        Raises:
            RunProblem: the text is not a semantic version.
        """
        if not text:
            raise RunProblem("Version string empty")
        written = text.split(".", 2)
        if len(written) != 3:
            raise RunProblem("No Major.Minor.Patch elements found")
        major, minor = _number("Major", written[0]), _number("Minor", written[1])
        rest, plus, build = written[2].partition("+")
        rest, minus, release = rest.partition("-")
        patch = _number("Patch", rest)
        parts = tuple(_release_part(part) for part in release.split(".")) if minus else ()
        for part in build.split(".") if plus else ():
            if not part:
                raise RunProblem("Build meta data is empty")
            if not _ALPHANUMERIC.fullmatch(part):
                raise RunProblem(f"Invalid character(s) found in build meta data {quote(part)}")
        return cls((major, minor, patch), parts)

    def compare(self, other: Version) -> int:
        """Return -1, 0 or 1. A pre-release sorts before its release."""
        if self.numbers != other.numbers:
            return 1 if self.numbers > other.numbers else -1
        if not self.parts or not other.parts:
            return bool(other.parts) - bool(self.parts)
        for mine, theirs in zip(self.parts, other.parts, strict=False):
            if mine == theirs:
                continue
            if isinstance(mine, int) and isinstance(theirs, int):
                return 1 if mine > theirs else -1
            if isinstance(mine, int) != isinstance(theirs, int):
                return -1 if isinstance(mine, int) else 1
            return 1 if str(mine) > str(theirs) else -1
        return (len(self.parts) > len(other.parts)) - (len(self.parts) < len(other.parts))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.compare(other) == 0

    def __lt__(self, other: Version) -> bool:
        return self.compare(other) < 0

    def __hash__(self) -> int:
        return hash((self.numbers, self.parts))


def _number(name: str, part: str) -> int:
    """Return the major, minor or patch number in a text.

    Raises:
        RunProblem: the text is not a number, or has a leading zero.
    """
    if not _DIGITS.fullmatch(part):
        raise RunProblem(f"Invalid character(s) found in {name.lower()} number {quote(part)}")
    if len(part) > 1 and part[0] == "0":
        raise RunProblem(f"{name} number must not contain leading zeroes {quote(part)}")
    return _parsed(part)


def _release_part(part: str) -> int | str:
    """Return an identifier of a pre-release: an integer if it is numeric.

    Raises:
        RunProblem: the identifier is invalid.
    """
    if not part:
        raise RunProblem("Prerelease is empty")
    if _DIGITS.fullmatch(part):
        if len(part) > 1 and part[0] == "0":
            raise RunProblem(f"Numeric PreRelease version must not contain leading zeroes {quote(part)}")
        return _parsed(part)
    if not _ALPHANUMERIC.fullmatch(part):
        raise RunProblem(f"Invalid character(s) found in prerelease {quote(part)}")
    return part


def _parsed(digits: str) -> int:
    if not digits:
        raise RunProblem('strconv.ParseUint: parsing "": invalid syntax')
    if len(digits) > MAX_DIGITS or int(digits) > UINT_MAX:
        raise RunProblem(f"strconv.ParseUint: parsing {quote(digits)}: value out of range")
    return int(digits)


def type_name(value: object) -> str:
    """Return the name that a value's type has at run time."""
    if value is None:
        return "null_type"
    for kind, name in _NAMES:
        if isinstance(value, kind):
            return name
    named = getattr(value, "cel_type_name", None)  # Set by the classes of libraries.
    return named if isinstance(named, str) else type(value).__name__


_NAMES: tuple[tuple[type, str], ...] = (
    (bool, "bool"),
    (Uint, "uint"),
    (int, "int"),
    (float, "double"),
    (str, "string"),
    (bytes, "bytes"),
    (list, "list"),
    (CelMap, "map"),
    (Quantity, "kubernetes.Quantity"),
    (Version, "kubernetes.Semver"),
    (Optional, "optional_type"),
    (TypeValue, "type"),
)


def key_of(key: object) -> object:
    """Return the dictionary key for a map key: equal numbers have the same one, and true differs from 1.

    Keys of types that can't be hashed, such as lists, are compared by identity, as in cel-go.
    """
    if isinstance(key, bool):
        return ("bool", key)
    if isinstance(key, float):
        return int(key) if key.is_integer() else key
    if isinstance(key, int):
        return int(key)
    try:
        hash(key)
    except TypeError:
        return ("object", id(key))
    return key


def equal(left: object, right: object) -> bool:
    """Return whether two values are equal. Numbers of different types compare by value; values of other types differ.

    Raises:
        RunProblem: a quantity or version is compared with a value of another type.
        CostExceeded: the comparison takes too much work.
    """
    if isinstance(left, bool) or isinstance(right, bool):
        return isinstance(left, bool) and isinstance(right, bool) and left == right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return _compare_numbers(left, right) == 0 if left == left and right == right else False
    if isinstance(left, list):
        if not isinstance(right, list) or len(left) != len(right):
            return False
        spend_work(len(left))
        if isinstance(left, UnorderedList):
            return left.equals(right)
        return all(equal(mine, theirs) for mine, theirs in zip(left, right, strict=True))
    if isinstance(left, CelMap):
        if not isinstance(right, CelMap) or left.entries.keys() != right.entries.keys():
            return False
        spend_work(len(left.entries))
        return all(equal(value, right.entries[key][1]) for key, (_, value) in left.entries.items())
    if isinstance(left, Quantity | Version) and type(left) is not type(right):
        # As in Kubernetes, only the left operand decides: in the other direction, the values are just different.
        raise RunProblem("no such overload")
    if isinstance(left, Optional) and isinstance(right, Optional):
        return left.present == right.present and (not left.present or equal(left.value, right.value))
    return type(left) is type(right) and left == right


def compare(left: object, right: object) -> int:
    """Return -1, 0 or 1 for two values that have an order: numbers, or values of one other type."""
    if isinstance(left, int | float) and isinstance(right, int | float):
        return _compare_numbers(left, right)
    if isinstance(left, str) and isinstance(right, str):
        left, right = left.encode(errors="surrogatepass"), right.encode(errors="surrogatepass")
    order: int = (left > right) - (left < right)  # type: ignore[operator]
    return order


def _compare_numbers(left: float, right: float) -> int:
    """Compare two numbers as cel-go does: an integer is converted to a double if the other one is a double."""
    if isinstance(left, float) != isinstance(right, float):
        left, right = float(left), float(right)
    return (left > right) - (left < right)


def contains(items: list[object], wanted: object) -> bool:
    """Return whether a list contains a value. Items that cannot be compared with it count as different."""
    spend_work(len(items))
    for item in items:
        try:
            if equal(wanted, item):
                return True
        except CostExceeded:
            raise
        except RunProblem:
            continue
    return False


def checked_int(number: int) -> int:
    """Return an integer, which must fit an int64.

    Raises:
        RunProblem: the integer is out of range.
    """
    if INT_MIN <= number <= INT_MAX:
        return number
    raise RunProblem("integer overflow")


def checked_uint(number: int) -> Uint:
    """Return an unsigned integer, which must fit a uint64.

    Raises:
        RunProblem: the integer is out of range.
    """
    if 0 <= number <= UINT_MAX:
        return Uint(number)
    raise RunProblem("unsigned integer overflow")


def shown(value: object) -> str:
    """Return a value as error messages show it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return shortest_text(value)
    return str(int(value)) if isinstance(value, Uint) else str(value)
