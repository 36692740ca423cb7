"""Implementations of the functions and operators."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.go_text.floats import parse_float
from bayplan.cel import library_authorization, library_formats, library_lists, library_network, library_text, times
from bayplan.cel.meter import spend_copy
from bayplan.cel.problems import RunProblem
from bayplan.cel.values import (
    INT_MAX,
    INT_MIN,
    MAX_DIGITS,
    NONE,
    UINT_MAX,
    CelMap,
    Optional,
    TypeValue,
    Uint,
    UnorderedList,
    Version,
    checked_int,
    checked_uint,
    contains,
    equal,
    key_of,
    shown,
    type_name,
)
from bayplan.objects.quantity import Quantity, quantity_problem

Function: TypeAlias = Callable[..., object]


STANDARD = frozenset(
    (
        *("!_", "-_", "_+_", "_-_", "_*_", "_/_", "_%_", "_<_", "_<=_", "_>_", "_>=_"),
        *("contains", "endsWith", "startsWith", "matches", "size"),
    )
)
"""The operators and functions of the language itself, which have shorter error messages than those of libraries."""


class NoOverload(Exception):
    """The function has no overload for the types of these arguments. Only `call` catches this."""


def call(name: str, args: list[object]) -> object:
    """Return the result of a function or operator.

    Raises:
        RunProblem: the function fails, or has no overload for these arguments.
    """
    try:
        return FUNCTIONS[name](*args)
    except InputError as problem:
        raise RunProblem(str(problem)) from None
    except (NoOverload, TypeError):
        if name in STANDARD:
            if not _has_trait(name, args):
                raise RunProblem(f"no such overload: {name}") from None
            raise RunProblem("no such overload: size" if name == "size" else "no such overload") from None
        signature = ", ".join(type_name(arg) for arg in args)
        raise RunProblem(f"no such overload: {name}({signature})") from None
    except (ArithmeticError, ValueError) as problem:
        # A value that the function does not expect: a bug, but one expression must not end a server or a simulation.
        raise RunProblem(f"{name}: {problem}") from problem


def _has_trait(name: str, args: list[object]) -> bool:
    """Return whether the type of the first argument supports an operator at all."""
    kinds = _TRAITS.get(name)
    return kinds is None or (isinstance(args[0], kinds) and (bool in kinds or not isinstance(args[0], bool)))


_NUMBERS = (int, float)
_TIMES = (times.Timestamp, times.Duration)
_TRAITS: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), (bool, *_NUMBERS, str, bytes, *_TIMES)),
    "_+_": (*_NUMBERS, str, bytes, list, *_TIMES),
    "_-_": (*_NUMBERS, *_TIMES),
    **dict.fromkeys(("_*_", "_/_"), _NUMBERS),
    "_%_": (int,),
}


def _kind(value: object, *kinds: type) -> None:
    """Raise NoOverload unless a value has one of these types; booleans do not count as integers."""
    if isinstance(value, bool) and bool not in kinds:
        raise NoOverload
    if not isinstance(value, kinds):
        raise NoOverload


# Arithmetic.


def _arithmetic(left: object, right: object, compute: Callable[[int, int], int], real: Function) -> object:
    _kind(left, int, float)
    _kind(right, int, float)
    if isinstance(left, float) and isinstance(right, float):
        return real(left, right)
    if isinstance(left, Uint) and isinstance(right, Uint):
        return checked_uint(compute(int(left), int(right)))
    if isinstance(left, int) and isinstance(right, int) and not isinstance(left, Uint) and not isinstance(right, Uint):
        return checked_int(compute(left, right))
    raise NoOverload


def _add(left: object, right: object) -> object:
    spend_copy(left, right)
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    if isinstance(left, bytes) and isinstance(right, bytes):
        return left + right
    if isinstance(left, list) and isinstance(right, list):
        return left.joined(right) if isinstance(left, UnorderedList) else left + right
    moved = times.add(left, right)
    return _arithmetic(left, right, lambda a, b: a + b, lambda a, b: a + b) if moved is None else moved


def _subtract(left: object, right: object) -> object:
    moved = times.subtract(left, right)
    return _arithmetic(left, right, lambda a, b: a - b, lambda a, b: a - b) if moved is None else moved


def _divide(left: object, right: object) -> object:
    def whole(a: int, b: int) -> int:
        if b == 0:
            raise RunProblem("division by zero")
        return _truncated(a, b)

    def real(a: float, b: float) -> float:
        if b == 0:
            return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)
        return a / b

    return _arithmetic(left, right, whole, real)


def _modulo(left: object, right: object) -> object:
    def whole(a: int, b: int) -> int:
        if b == 0:
            raise RunProblem("modulus by zero")
        return a - b * checked_int(_truncated(a, b)) if a < 0 or b < 0 else a % b

    def real(a: float, b: float) -> float:
        raise NoOverload

    return _arithmetic(left, right, whole, real)


def _truncated(a: int, b: int) -> int:
    """Return a quotient rounded towards zero, as in Go."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _negate(value: object) -> object:
    _kind(value, int, float)
    if isinstance(value, Uint):
        raise NoOverload
    return -value if isinstance(value, float) else checked_int(-value)  # type: ignore[operator]


def _not(value: object) -> bool:
    _kind(value, bool)
    return not value


def _compare(holds: Callable[[int], bool]) -> Function:
    def compared(left: object, right: object) -> bool:
        found = library_text.order(left, right)
        if found is not None:
            return holds(found)
        if left != left or right != right:
            raise RunProblem("NaN values cannot be ordered")
        raise NoOverload

    return compared


def _in(item: object, container: object) -> bool:
    if isinstance(container, list):
        return contains(container, item)
    if isinstance(container, CelMap):
        return key_of(item) in container.entries
    raise NoOverload


def size(value: object) -> int:
    """Return the number of characters, bytes, elements or entries of a value."""
    if isinstance(value, str | bytes | list):
        return len(value)
    if isinstance(value, CelMap):
        return len(value.entries)
    raise NoOverload


# Conversions.


def _to_int(value: object) -> object:
    if isinstance(value, times.Timestamp):
        return value.ns // SECOND_NS
    if isinstance(value, times.Duration):
        return value.ns
    _kind(value, int, float, str)
    if isinstance(value, str):
        if len(value) <= MAX_DIGITS and re.fullmatch(r"[+-]?[0-9]+", value) and INT_MIN <= int(value) <= INT_MAX:
            return int(value)
        raise _no_conversion(value, "int")
    if isinstance(value, float):
        if not -(2.0**63) < value < 2.0**63:
            raise RunProblem("integer overflow")
        return int(value)
    return checked_int(int(value))  # type: ignore[call-overload]


def _to_uint(value: object) -> object:
    _kind(value, int, float, str)
    if isinstance(value, str):
        if len(value) <= MAX_DIGITS and re.fullmatch(r"[0-9]+", value) and int(value) <= UINT_MAX:
            return Uint(int(value))
        raise _no_conversion(value, "uint")
    if isinstance(value, float) and not 0 <= value < 2.0**64:
        raise RunProblem("unsigned integer overflow")
    return checked_uint(int(value))  # type: ignore[call-overload]


def _to_double(value: object) -> object:
    _kind(value, int, float, str)
    if isinstance(value, str):
        found = parse_float(value)
        if found is None:
            raise _no_conversion(value, "double")
        return found
    return float(value)  # type: ignore[arg-type]


def _no_conversion(value: object, wanted: str) -> RunProblem:
    return RunProblem(f"type conversion error from '{type_name(value)}' to '{wanted}'")


def _to_bool(value: object) -> object:
    _kind(value, bool, str)
    if isinstance(value, bool):
        return value
    if value in ("true", "True", "TRUE", "t", "T", "1"):
        return True
    if value in ("false", "False", "FALSE", "f", "F", "0"):
        return False
    raise _no_conversion(value, "bool")


def _to_string(value: object) -> object:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise RunProblem("invalid UTF-8 in bytes, cannot convert to string") from None
    if isinstance(value, times.Timestamp):
        return times.timestamp_text(value)
    if isinstance(value, times.Duration):
        return times.duration_text(value)
    if isinstance(value, library_network.Ip):
        return str(value.address)
    if isinstance(value, library_network.Cidr):
        return str(value)
    _kind(value, bool, int, float)
    return shown(value)


def _to_timestamp(value: object) -> object:
    if isinstance(value, times.Timestamp):
        return value
    _kind(value, int, str)
    return times.parse_timestamp(value) if isinstance(value, str) else times.checked_timestamp(int(value) * SECOND_NS)  # type: ignore[call-overload]


def _to_duration(value: object) -> object:
    if isinstance(value, times.Duration):
        return value
    _kind(value, int, str)
    if isinstance(value, str):
        return times.parse_duration(value)
    # The overload for integers exists, but fails.
    raise _no_conversion(value, "google.protobuf.Duration")


def _escape_key(key: object) -> str:
    _kind(key, str)
    return str(key).replace("~", "~0").replace("/", "~1")


# Quantities, versions, values that may be missing.


def _quantity(text: object) -> Quantity:
    _kind(text, str)
    try:
        return Quantity.parse(str(text))
    except InputError:
        raise RunProblem(quantity_problem(str(text))) from None


def _is_quantity(text: object) -> bool:
    _kind(text, str)
    try:
        Quantity.parse(str(text))
    except InputError:
        return False
    return True


MAX_SCALE = 18
"""Maximum number of zeros of an int64: a larger power of ten may take forever to compute."""


def _as_integer(value: object) -> int | None:
    """Return a quantity as an integer, or None if it does not fit an int64."""
    _kind(value, Quantity)
    assert isinstance(value, Quantity)
    if value.is_decimal or value.scale < 0 or (value.scale > MAX_SCALE and value.unscaled):
        return None
    number: int = value.unscaled * 10 ** min(value.scale, MAX_SCALE)
    return number if INT_MIN <= number <= INT_MAX else None


def _integer_of(value: object) -> int:
    number = _as_integer(value)
    if number is None:
        raise RunProblem("cannot convert value to integer")
    return number


def _order(left: object, right: object) -> int:
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        return (left > right) - (left < right)
    if isinstance(left, Version) and isinstance(right, Version):
        return left.compare(right)
    raise NoOverload


def _quantity_sum(combine: Callable[[Quantity, Quantity], Quantity]) -> Function:
    def run(left: object, right: object) -> Quantity:
        _kind(left, Quantity)
        _kind(right, Quantity, int)
        assert isinstance(left, Quantity)
        other = right if isinstance(right, Quantity) else Quantity(int(right), format="DecimalExponent")  # type: ignore[call-overload]
        return combine(left, other)

    return run


def _semver(text: object, normalize: object = False) -> Version:
    _kind(text, str)
    _kind(normalize, bool)
    return Version.parse(library_text.normalized_version(str(text)) if normalize else str(text))


def _is_semver(text: object, normalize: object = False) -> bool:
    try:
        _semver(text, normalize)
    except RunProblem:
        return False
    return True


def _number_of(place: int) -> Function:
    def number(version: object) -> int:
        _kind(version, Version)
        assert isinstance(version, Version)
        return version.numbers[place]

    return number


def _optional(value: object) -> Optional:
    _kind(value, Optional)
    assert isinstance(value, Optional)
    return value


def _value(optional: object) -> object:
    held = _optional(optional)
    if not held.present:
        raise RunProblem("optional.none() dereference")
    return held.value


def _of_non_zero(value: object) -> Optional:
    zero = value is None or value in (False, 0, 0.0, "", b"") or value == []
    if isinstance(value, CelMap):
        zero = not value.entries
    elif isinstance(value, times.Timestamp | times.Duration):
        zero = value in (times.ZERO_TIME, times.Duration(0))
    return NONE if zero else Optional(value, True)


ZEROS: Mapping[str, object] = {type_name(zero): zero for zero in (0, Uint(0), 0.0, times.Duration(0))}
"""By the name of a type whose values can be summed: the sum of no values."""


def _sum(items: object) -> object:
    """Return the sum of a list. The evaluator, which knows the type of the elements, sums empty lists."""
    spend_copy(items)
    _kind(items, list)
    assert isinstance(items, list)
    total = ZEROS.get(type_name(items[0]))
    if total is None:
        raise NoOverload
    try:
        for item in items:
            total = _add(total, item)
    except NoOverload:
        raise RunProblem("no such overload") from None
    return total


CONVERSIONS = frozenset(("bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint"))
"""Functions that are evaluated at compile time if their argument is a constant."""

FUNCTIONS: Mapping[str, Function] = {
    **library_text.FUNCTIONS,
    **library_lists.FUNCTIONS,
    **library_network.FUNCTIONS,
    **library_formats.FUNCTIONS,
    **library_authorization.FUNCTIONS,
    **times.FUNCTIONS,
    "!_": _not,
    "-_": _negate,
    "_==_": equal,
    "_!=_": lambda left, right: not equal(left, right),
    "_<_": _compare(lambda order: order < 0),
    "_<=_": _compare(lambda order: order <= 0),
    "_>_": _compare(lambda order: order > 0),
    "_>=_": _compare(lambda order: order >= 0),
    "_+_": _add,
    "_-_": _subtract,
    "_*_": lambda left, right: _arithmetic(left, right, lambda a, b: a * b, lambda a, b: a * b),
    "_/_": _divide,
    "_%_": _modulo,
    "@in": _in,
    "size": size,
    "type": lambda value: TypeValue(type_name(value)),
    "dyn": lambda value: value,
    "bool": _to_bool,
    "bytes": lambda value: value.encode() if isinstance(value, str) else value,
    "double": _to_double,
    "int": _to_int,
    "uint": _to_uint,
    "string": _to_string,
    "timestamp": _to_timestamp,
    "duration": _to_duration,
    "jsonpatch.escapeKey": _escape_key,
    "quantity": _quantity,
    "isQuantity": _is_quantity,
    "sign": lambda value: value.sign(),
    "isGreaterThan": lambda left, right: _order(left, right) > 0,
    "isLessThan": lambda left, right: _order(left, right) < 0,
    "compareTo": _order,
    "asApproximateFloat": lambda value: value.as_approximate_float(),
    "asInteger": _integer_of,
    "isInteger": lambda value: _as_integer(value) is not None,
    "add": _quantity_sum(operator.add),
    "sub": _quantity_sum(operator.sub),
    "semver": _semver,
    "isSemver": _is_semver,
    "major": _number_of(0),
    "minor": _number_of(1),
    "patch": _number_of(2),
    "optional.of": lambda value: Optional(value, True),
    "optional.ofNonZeroValue": _of_non_zero,
    "optional.none": lambda: NONE,
    "value": _value,
    "hasValue": lambda value: _optional(value).present,
    "sum": _sum,
}
"""Functions by name, except those with lazy arguments (``or``, ``orValue``), which the evaluator implements."""
