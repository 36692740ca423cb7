"""The functions and operators of the language, with the types of their parameters and results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bayplan.cel.library_formats import FORMATS
from bayplan.cel.library_lists import SORT_BY
from bayplan.cel.types import (
    AUTHORIZER,
    BOOL,
    BYTES,
    CIDR,
    DECISION,
    DOUBLE,
    DURATION,
    DYN,
    FORMAT,
    GROUP_CHECK,
    INT,
    IP,
    PATH_CHECK,
    QUANTITY,
    RESOURCE_CHECK,
    SEMVER,
    STRING,
    TIMESTAMP,
    UINT,
    URL,
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
COMPARABLE = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)


class Overload(NamedTuple):
    """One overload of a function. If it is a `member` function, the first argument is the receiver."""

    args: tuple[CelType, ...]
    result: CelType
    member: bool = False


def _plain(result: CelType, *args: CelType) -> Overload:
    return Overload(args, result)


def _member(result: CelType, *args: CelType) -> Overload:
    return Overload(args, result, True)


def _comparisons() -> Iterable[tuple[str, list[Overload]]]:
    numbers = [_plain(BOOL, left, right) for left in NUMBERS for right in NUMBERS]
    others = [_plain(BOOL, kind, kind) for kind in (BOOL, STRING, BYTES, TIMESTAMP, DURATION)]
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
        _plain(DURATION, DURATION, DURATION),
        _plain(TIMESTAMP, DURATION, TIMESTAMP),
        _plain(TIMESTAMP, TIMESTAMP, DURATION),
    ],
    "_-_": [
        *(_plain(kind, kind, kind) for kind in (DOUBLE, INT, UINT, DURATION)),
        _plain(TIMESTAMP, TIMESTAMP, DURATION),
        _plain(DURATION, TIMESTAMP, TIMESTAMP),
    ],
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
    "int": [_plain(INT, kind) for kind in (INT, DOUBLE, DURATION, STRING, TIMESTAMP, UINT)],
    "uint": [_plain(UINT, kind) for kind in (UINT, DOUBLE, INT, STRING)],
    "string": [
        _plain(STRING, kind) for kind in (STRING, BOOL, BYTES, DOUBLE, DURATION, INT, TIMESTAMP, UINT, IP, CIDR)
    ],
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
    "sum": [_member(kind, list_of(kind)) for kind in (*NUMBERS, DURATION)],
    "min": [_member(kind, list_of(kind)) for kind in COMPARABLE],
    "max": [_member(kind, list_of(kind)) for kind in COMPARABLE],
    "flatten": [_member(LIST_A, list_of(LIST_A)), _member(list_of(DYN), list_of(DYN), INT)],
    "sort": [_member(list_of(kind), list_of(kind)) for kind in COMPARABLE],
    SORT_BY: [_member(LIST_A, LIST_A, list_of(kind)) for kind in COMPARABLE],
    "slice": [_member(LIST_A, LIST_A, INT, INT)],
    "reverse": [_member(LIST_A, LIST_A)],
    "first": [_member(optional_of(A), LIST_A)],
    "last": [_member(optional_of(A), LIST_A)],
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
    # Times.
    "timestamp": [_plain(TIMESTAMP, kind) for kind in (TIMESTAMP, INT, STRING)],
    "duration": [_plain(DURATION, kind) for kind in (DURATION, INT, STRING)],
    **{
        name: [_member(INT, TIMESTAMP), _member(INT, TIMESTAMP, STRING)]
        for name in ("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear")
    },
    **{
        name: [_member(INT, TIMESTAMP), _member(INT, TIMESTAMP, STRING), _member(INT, DURATION)]
        for name in ("getHours", "getMinutes", "getSeconds", "getMilliseconds")
    },
    # URLs, addresses and networks.
    "url": [_plain(URL, STRING)],
    "isURL": [_plain(BOOL, STRING)],
    **{name: [_member(STRING, URL)] for name in ("getScheme", "getHost", "getHostname", "getPort", "getEscapedPath")},
    "getQuery": [_member(map_of(STRING, list_of(STRING)), URL)],
    "ip": [_plain(IP, STRING), _member(IP, CIDR)],
    "isIP": [_plain(BOOL, STRING)],
    "ip.isCanonical": [_plain(BOOL, STRING)],
    "family": [_member(INT, IP)],
    **{
        name: [_member(BOOL, IP)]
        for name in ("isUnspecified", "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast")
    },
    "cidr": [_plain(CIDR, STRING)],
    "isCIDR": [_plain(BOOL, STRING)],
    "containsIP": [_member(BOOL, CIDR, STRING), _member(BOOL, CIDR, IP)],
    "containsCIDR": [_member(BOOL, CIDR, STRING), _member(BOOL, CIDR, CIDR)],
    "prefixLength": [_member(INT, CIDR)],
    "masked": [_member(CIDR, CIDR)],
    # Formats.
    "format": [_member(STRING, STRING, list_of(DYN))],
    "strings.quote": [_plain(STRING, STRING)],
    "format.named": [_plain(optional_of(FORMAT), STRING)],
    "validate": [_member(optional_of(list_of(STRING)), FORMAT, STRING)],
    **{f"format.{name}": [_plain(FORMAT)] for name in FORMATS},
    # Authorization.
    "path": [_member(PATH_CHECK, AUTHORIZER, STRING)],
    "group": [_member(GROUP_CHECK, AUTHORIZER, STRING)],
    "serviceAccount": [_member(AUTHORIZER, AUTHORIZER, STRING, STRING)],
    "resource": [_member(RESOURCE_CHECK, GROUP_CHECK, STRING)],
    **{
        name: [_member(RESOURCE_CHECK, RESOURCE_CHECK, STRING)]
        for name in ("subresource", "namespace", "name", "fieldSelector", "labelSelector")
    },
    "check": [_member(DECISION, PATH_CHECK, STRING), _member(DECISION, RESOURCE_CHECK, STRING)],
    "errored": [_member(BOOL, DECISION)],
    "error": [_member(STRING, DECISION)],
    "allowed": [_member(BOOL, DECISION)],
    "reason": [_member(STRING, DECISION)],
    "jsonpatch.escapeKey": [_plain(STRING, STRING)],
    # Optional values.
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
"""The overloads of each function, in the order in which they are tried."""

TYPE_NAMES: Mapping[str, CelType] = {
    "bool": BOOL,
    "bytes": BYTES,
    "double": DOUBLE,
    "int": INT,
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "null_type": CelType("null", "null_type"),
    "optional_type": optional_of(DYN),
    "net.CIDR": CIDR,
    "net.IP": IP,
    "string": STRING,
    "type": type_of(DYN),
    "uint": UINT,
    "google.protobuf.Duration": DURATION,
    "google.protobuf.Timestamp": TIMESTAMP,
}
"""The types that can be named in expressions."""
