"""A naive implementation of quantities from the documentation: fractions without limits or overflow."""

import math
from fractions import Fraction

POWERS = {
    "": Fraction(1),
    **{suffix: Fraction(10) ** exponent for suffix, exponent in zip("num", (-9, -6, -3), strict=True)},
    **{suffix: Fraction(10) ** (3 * step) for step, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Fraction(2) ** (10 * step) for step, suffix in enumerate("KMGTPE", start=1)},
}


def exact(number: str, suffix: str) -> Fraction:
    """Return a number with a suffix or an exponent, such as ``e3``, as a fraction rounded up to 10**-9."""
    power = POWERS[suffix] if suffix in POWERS else Fraction(10) ** int(suffix[1:])
    return round_up(Fraction(number) * power * 10**9) / Fraction(10**9)


def round_up(number: Fraction) -> int:
    """Round away from zero."""
    return math.ceil(number) if number > 0 else math.floor(number)
