"""Go's arithmetic on amd64 where Python or C differ: wrapping int64, division, conversions, exact logarithms.

Compiled modules use the same functions from go_arithmetic.h, through go.pxd. Modules import this one `as go`. Arguments
and results are int64 and float64, unless a docstring says otherwise.
"""

from __future__ import annotations

import math
import struct

MIN_INT64 = -(1 << 63)
MAX_INT64 = (1 << 63) - 1

_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_ODD = (6.666666666666735130e-01, 2.857142874366239149e-01, 1.818357216161805012e-01, 1.479819860511658591e-01)
_EVEN = (3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01)


def wrap(value: int) -> int:
    """Return the int64 that consists of the lowest 64 bits of an integer of any size."""
    return value if MIN_INT64 <= value <= MAX_INT64 else (value + (1 << 63)) % (1 << 64) - (1 << 63)


def add(a: int, b: int) -> int:
    """Return the sum, wrapped."""
    return wrap(int(a) + int(b))


def sub(a: int, b: int) -> int:
    """Return the difference, wrapped."""
    return wrap(int(a) - int(b))


def mul(a: int, b: int) -> int:
    """Return the product, wrapped."""
    return wrap(int(a) * int(b))


def quotient(a: int, b: int) -> int:
    """Divide and truncate towards zero; the smallest int64 divided by -1 is itself.

    Raises ZeroDivisionError where Go panics.
    """
    a, b = int(a), int(b)
    if b == 0:
        raise ZeroDivisionError("integer divide by zero")
    magnitude = abs(a) // abs(b)
    return wrap(magnitude if (a < 0) == (b < 0) else -magnitude)


def remainder(a: int, b: int) -> int:
    """Return the remainder of `quotient`, with the sign of the dividend. Raises ZeroDivisionError where Go panics."""
    return sub(a, mul(quotient(a, b), b))


def divide(a: float, b: float) -> float:
    """Divide floats. Dividing by zero gives an infinity or NaN, where Python would raise."""
    if b == 0.0:
        return math.nan if a == 0.0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return float(a) / float(b)


def to_int64(x: float) -> int:
    """Truncate towards zero. Out-of-range values and NaN become the smallest int64, as on amd64 (arm64 saturates)."""
    return int(x) if -(2.0**63) <= x < 2.0**63 else MIN_INT64


def small_float(a: int) -> float:
    """Convert an integer from 0 to below 2^52, in a way that compilers can vectorize; undefined for other integers."""
    return float(a)


def small_int64(x: float) -> int:
    """Convert a whole number from 0 to below 2^52, in a way that compilers can vectorize.

    Undefined for other numbers.
    """
    return to_int64(x)


def round(x: float) -> float:
    """Round to the nearest whole number, halves away from zero."""
    if not abs(x) < 2.0**52:
        return x
    whole = math.copysign(float(int(x)), x)
    return whole + math.copysign(1.0, x) if abs(x - whole) >= 0.5 else whole


def log(x: float) -> float:
    """Return the natural logarithm, exactly as Go's `math.Log` returns it.

    C libraries round one integer in a hundred differently; the first is 3. The method is that of FreeBSD's msun
    (e_log.c): the argument is written as `2^k * (1 + f)`, and a polynomial gives `log(1 + f)`.
    """
    if not 0.0 < x < math.inf:
        return x if x == math.inf else -math.inf if x == 0.0 else math.nan
    fraction, k = math.frexp(x)
    if fraction < math.sqrt(2) / 2:
        fraction, k = fraction * 2, k - 1
    f = fraction - 1
    s = f / (2 + f)
    s2 = s * s
    s4 = s2 * s2
    odd = s2 * (_ODD[0] + s4 * (_ODD[1] + s4 * (_ODD[2] + s4 * _ODD[3])))
    even = s4 * (_EVEN[0] + s4 * (_EVEN[1] + s4 * _EVEN[2]))
    half_square = 0.5 * f * f
    return k * _LN2_HIGH - ((half_square - (s * (half_square + (odd + even)) + k * _LN2_LOW)) - f)


def float_bits(x: float) -> int:
    """Return the bits of a float as an int64."""
    bits: int = struct.unpack("<q", struct.pack("<d", x))[0]
    return bits


def float_from_bits(bits: int) -> float:
    """Return the float that has these bits."""
    x: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return x


MAX_DIGITS = 100
"""Maximum number of digits that are converted. Python takes quadratic time, and rejects more than 4,300 digits."""


def whole_number(digits: str) -> int:
    """Return the integer that decimal digits denote.

    For more than `MAX_DIGITS` digits, the result is wrong, but out of every range.
    """
    return int(digits) if len(digits) <= MAX_DIGITS else 10**MAX_DIGITS
