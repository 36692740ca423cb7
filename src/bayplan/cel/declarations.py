"""The functions and operators of expressions, with the types that they take and give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bayplan.cel.library_lists import SORT_BY
from bayplan.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    QUANTITY,
    SEMVER,
    STRING,
    UINT,
    CelType,
    list_of,
    map_of,
    optional_of,
    param,
    type_of,
)

A, B, K, V = param("A"), param("B"), param("K"), param("V")
LIST_A, MAP_KV, OPTIONAL_V = list_of(A), map_of(K, V), optional_of(V)
NUMBERS = (INT, UINT, DOUBLE)
COMPARABLE = (INT, UINT, DOUBLE, BOOL, STRING, BYTES)


class Overload(NamedTuple):
    """One way to call a function. `member`: the first argument is the receiver."""

    args: tuple[CelType, ...]
    result: CelType
    member: bool = False


def _plain(result: CelType, *args: CelType) -> Overload:
    return Overload(args, result)


def _member(result: CelType, *args: CelType) -> Overload:
    return Overload(args, result, True)


def _comparisons() -> Iterable[tuple[str, list[Overload]]]:
    numbers = [_plain(BOOL, left, right) for left in NUMBERS for right in NUMBERS]
    others = [_plain(BOOL, kind, kind) for kind in (BOOL, STRING, BYTES)]
    for operator in ("_<_", "_<=_", "_>_", "_>=_"):
        yield operator, others[:1] + numbers + others[1:]


FUNCTIONS: Mapping[str, list[Overload]] = {
    "_?_:_": [_plain(A, BOOL, A, A)],
    "!_": [_plain(BOOL, BOOL)],
    "-_": [_plain(DOUBLE, DOUBLE), _plain(INT, INT)],
    "_==_": [_plain(BOOL, A, A)],
    "_!=_": [_plain(BOOL, A, A)],
    **dict(_comparisons()),
    "_+_": [
        _plain(BYTES, BYTES, BYTES),
        _plain(DOUBLE, DOUBLE, DOUBLE),
        _plain(INT, INT, INT),
        _plain(LIST_A, LIST_A, LIST_A),
        _plain(STRING, STRING, STRING),
        _plain(UINT, UINT, UINT),
    ],
    "_-_": [_plain(kind, kind, kind) for kind in (DOUBLE, INT, UINT)],
    "_*_": [_plain(kind, kind, kind) for kind in (DOUBLE, INT, UINT)],
    "_/_": [_plain(kind, kind, kind) for kind in (DOUBLE, INT, UINT)],
    "_%_": [_plain(kind, kind, kind) for kind in (INT, UINT)],
    "@in": [_plain(BOOL, A, LIST_A), _plain(BOOL, K, MAP_KV)],
    "_[_]": [
        _plain(A, LIST_A, INT),
        _plain(V, MAP_KV, K),
        _plain(optional_of(V), optional_of(list_of(V)), INT),
        _plain(optional_of(V), optional_of(MAP_KV), K),
    ],
    "_[?_]": [
        _plain(optional_of(V), list_of(V), INT),
        _plain(optional_of(V), optional_of(list_of(V)), INT),
        _plain(optional_of(V), MAP_KV, K),
        _plain(optional_of(V), optional_of(MAP_KV), K),
    ],
    "size": [
        *(_plain(INT, kind) for kind in (BYTES, LIST_A, map_of(A, B), STRING)),
        *(_member(INT, kind) for kind in (BYTES, LIST_A, map_of(A, B), STRING)),
    ],
    "type": [_plain(type_of(A), A)],
    "dyn": [_plain(DYN, A)],
    "bool": [_plain(BOOL, BOOL), _plain(BOOL, STRING)],
    "bytes": [_plain(BYTES, BYTES), _plain(BYTES, STRING)],
    "double": [_plain(DOUBLE, kind) for kind in (DOUBLE, INT, STRING, UINT)],
    "int": [_plain(INT, kind) for kind in (INT, DOUBLE, STRING, UINT)],
    "uint": [_plain(UINT, kind) for kind in (UINT, DOUBLE, INT, STRING)],
    "string": [_plain(STRING, kind) for kind in (STRING, BOOL, BYTES, DOUBLE, INT, UINT)],
    "contains": [_member(BOOL, STRING, STRING)],
    "endsWith": [_member(BOOL, STRING, STRING)],
    "startsWith": [_member(BOOL, STRING, STRING)],
    "matches": [_plain(BOOL, STRING, STRING), _member(BOOL, STRING, STRING)],
    # Strings.
    "charAt": [_member(STRING, STRING, INT)],
    "indexOf": [
        _member(INT, LIST_A, A),
        _member(INT, STRING, STRING),
        _member(INT, STRING, STRING, INT),
    ],
    "lastIndexOf": [
        _member(INT, LIST_A, A),
        _member(INT, STRING, STRING),
        _member(INT, STRING, STRING, INT),
    ],
    "lowerAscii": [_member(STRING, STRING)],
    "upperAscii": [_member(STRING, STRING)],
    "replace": [_member(STRING, STRING, STRING, STRING), _member(STRING, STRING, STRING, STRING, INT)],
    "split": [_member(list_of(STRING), STRING, STRING), _member(list_of(STRING), STRING, STRING, INT)],
    "substring": [_member(STRING, STRING, INT), _member(STRING, STRING, INT, INT)],
    "trim": [_member(STRING, STRING)],
    "join": [_member(STRING, list_of(STRING)), _member(STRING, list_of(STRING), STRING)],
    "find": [_member(STRING, STRING, STRING)],
    "findAll": [_member(list_of(STRING), STRING, STRING), _member(list_of(STRING), STRING, STRING, INT)],
    # Lists.
    "isSorted": [_member(BOOL, list_of(kind)) for kind in COMPARABLE],
    "sum": [_member(kind, list_of(kind)) for kind in NUMBERS],
    "min": [_member(kind, list_of(kind)) for kind in COMPARABLE],
    "max": [_member(kind, list_of(kind)) for kind in COMPARABLE],
    "flatten": [_member(LIST_A, list_of(LIST_A)), _member(list_of(DYN), list_of(DYN), INT)],
    "sort": [_member(list_of(kind), list_of(kind)) for kind in COMPARABLE],
    SORT_BY: [_member(LIST_A, LIST_A, list_of(kind)) for kind in COMPARABLE],
    "slice": [_member(LIST_A, LIST_A, INT, INT)],
    "reverse": [_member(LIST_A, LIST_A)],
    "distinct": [_member(LIST_A, LIST_A)],
    "lists.range": [_plain(list_of(INT), INT)],
    "sets.contains": [_plain(BOOL, LIST_A, LIST_A)],
    "sets.equivalent": [_plain(BOOL, LIST_A, LIST_A)],
    "sets.intersects": [_plain(BOOL, LIST_A, LIST_A)],
    # Quantities and versions.
    "quantity": [_plain(QUANTITY, STRING)],
    "isQuantity": [_plain(BOOL, STRING)],
    "sign": [_plain(INT, QUANTITY)],
    "isGreaterThan": [_member(BOOL, QUANTITY, QUANTITY), _member(BOOL, SEMVER, SEMVER)],
    "isLessThan": [_member(BOOL, QUANTITY, QUANTITY), _member(BOOL, SEMVER, SEMVER)],
    "compareTo": [_member(INT, QUANTITY, QUANTITY), _member(INT, SEMVER, SEMVER)],
    "asApproximateFloat": [_member(DOUBLE, QUANTITY)],
    "asInteger": [_member(INT, QUANTITY)],
    "isInteger": [_member(BOOL, QUANTITY)],
    "add": [_member(QUANTITY, QUANTITY, QUANTITY), _member(QUANTITY, QUANTITY, INT)],
    "sub": [_member(QUANTITY, QUANTITY, QUANTITY), _member(QUANTITY, QUANTITY, INT)],
    "semver": [_plain(SEMVER, STRING), _plain(SEMVER, STRING, BOOL)],
    "isSemver": [_plain(BOOL, STRING), _plain(BOOL, STRING, BOOL)],
    "major": [_member(INT, SEMVER)],
    "minor": [_member(INT, SEMVER)],
    "patch": [_member(INT, SEMVER)],
    # Values that may be missing.
    "optional.of": [_plain(OPTIONAL_V, V)],
    "optional.ofNonZeroValue": [_plain(OPTIONAL_V, V)],
    "optional.none": [_plain(OPTIONAL_V)],
    "value": [_member(V, OPTIONAL_V)],
    "hasValue": [_member(BOOL, OPTIONAL_V)],
    "or": [_member(OPTIONAL_V, OPTIONAL_V, OPTIONAL_V)],
    "orValue": [_member(V, OPTIONAL_V, V)],
    # Attributes that are lists.
    "includes": [_member(BOOL, DYN, DYN)],
}
"""By name, in the order in which they are tried."""

TYPE_NAMES: Mapping[str, CelType] = {
    "bool": BOOL,
    "bytes": BYTES,
    "double": DOUBLE,
    "int": INT,
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "null_type": CelType("null", "null_type"),
    "optional_type": optional_of(DYN),
    "string": STRING,
    "type": type_of(DYN),
    "uint": UINT,
}
"""Names that stand for types."""
