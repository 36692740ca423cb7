"""Sums as Go does them: float functions whose last bit differs between Go and C, and integers in texts."""

from __future__ import annotations

import math
from functools import cache

_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_ODD = (6.666666666666735130e-01, 2.857142874366239149e-01, 1.818357216161805012e-01, 1.479819860511658591e-01)
_EVEN = (3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01)


MAX_DIGITS = 100
"""Digits that are read. Python refuses to read more than 4,300, and takes quadratic time for them."""


def whole_number(digits: str) -> int:
    """Return the integer of decimal digits; one of more than `MAX_DIGITS` is merely bigger than any that fits a type."""
    return int(digits) if len(digits) <= MAX_DIGITS else 10**MAX_DIGITS


@cache
def log(x: float) -> float:
    """Return the natural logarithm of a positive finite number, to the last bit as Go's ``math.Log``.

    C libraries round differently for about one integer in a hundred, the first being 3. The method is that of FreeBSD's
    msun (e_log.c): the argument is reduced to ``2^k * (1 + f)``, a polynomial gives ``log(1 + f)``.
    """
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
