"""Call Go's arithmetic in compiled modules, for tests: each function by name, and one hash over many results.

The hash is the same compiled and not compiled, in both variants, and on arm64, where a C program computes it
(tests/building).
"""

from __future__ import annotations

from bayplan.base import go_arithmetic as go

MULTIPLIER = 6364136223846793005
INCREMENT = 1442695040888963407
PRIME = 1099511628211


def integer_result(name: str, a: int, b: int) -> int:
    """Call the function of two integers with this name."""
    if name == "add":
        return go.add(a, b)
    if name == "sub":
        return go.sub(a, b)
    if name == "mul":
        return go.mul(a, b)
    if name == "quotient":
        return go.quotient(a, b)
    if name == "remainder":
        return go.remainder(a, b)
    raise ValueError(f"no function of two integers is called {name}")


def float_result(name: str, a: float, b: float) -> float:
    """Call the float function with this name. Only ``divide`` uses the second argument."""
    if name == "divide":
        return go.divide(a, b)
    if name == "round":
        return go.round(a)
    if name == "log":
        return go.log(a)
    raise ValueError(f"unknown float function {name!r}: expected divide, round or log")


def converted(x: float) -> int:
    """Return `go.to_int64(x)`."""
    return go.to_int64(x)


def small_float(a: int) -> float:
    """Return `go.small_float(a)`."""
    return go.small_float(a)


def small_int64(x: float) -> int:
    """Return `go.small_int64(x)`."""
    return go.small_int64(x)


def results_hash(count: int) -> int:
    """Return a hash over the results of all functions for `count` random pairs: small and large, integral and fractional."""
    total = 1469598103934665603
    state = 42
    for index in range(count):
        state = go.add(go.mul(state, MULTIPLIER), INCREMENT)
        a = state >> (index % 64)
        state = go.add(go.mul(state, MULTIPLIER), INCREMENT)
        b = state >> (index // 64 % 64)
        total = mixed(total, go.add(a, b))
        total = mixed(total, go.sub(a, b))
        total = mixed(total, go.mul(a, b))
        if b != 0:
            total = mixed(total, go.quotient(a, b))
            total = mixed(total, go.remainder(a, b))
        x, y = go.float_from_bits(a), go.float_from_bits(b)
        total = mixed_float(total, go.divide(x, y))
        total = mixed_float(total, go.divide(float(a), float(b)))
        total = mixed_float(total, x * y + float(a))
        total = mixed_float(total, go.round(x))
        total = mixed_float(total, go.round(float(a) / 2.0))
        total = mixed_float(total, go.log(x))
        total = mixed_float(total, go.log(float(a)))
        total = mixed(total, go.to_int64(x))
        total = mixed(total, go.to_int64(float(a) * 3.0))
    return total


def mixed(total: int, value: int) -> int:
    """Return the hash (FNV-1a, word by word) after one more value."""
    return go.mul(total ^ value, PRIME)


def mixed_float(total: int, x: float) -> int:
    """Return the hash after one more float. NaN counts as 0, because its bits depend on the processor."""
    return mixed(total, 0 if x != x else go.float_bits(x))
