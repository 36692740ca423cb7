"""Kubernetes quantities: exact numbers with suffixes, parsed, rounded, added and printed like k8s.io/apimachinery.

Upstream stores a quantity in one of two forms: an int64 with a decimal scale, or (if that overflows) a decimal of any
size, rounded up to nanos. Within the range of int64 both forms give the same results; outside of it they fail in
different ways (an int64 that wraps, a 0, a value truncated to its low 64 bits), on which recorded decisions depend. So
`Quantity` has the same two forms. Everyday code calls `value`, `milli_value` and `nano_value`, which are cached.

Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/ and the behavior of
k8s.io/apimachinery/pkg/api/resource v0.36.3 on amd64.
"""

import re
from decimal import Decimal
from functools import lru_cache, total_ordering
from math import inf
from typing import Literal

from bayplan.base.errors import InputError

QuantityLike = str | int | float
Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

QUANTITY_PATTERN = (
    r"^\s*(?:[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,19})?"
    r"|(?=\S)[+-]?\.?(?:[KMGT]i|[numkMGTPE]|[eE](?:\+?[0-9]{1,19}|-0*[0-9]))?)\s*\Z"
)
"""A quantity as documents may write it: digits may be missing (`Ki`, `.` and `-` are zero), spaces are stripped."""

_PARTS = re.compile(r"([+-]?)([0-9]*)(?:(\.)([0-9]*))?([numkMGTPE]?|[KMGTPE]i|[eE][+-]?[0-9]+)", re.ASCII)
_DECIMAL_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_NAMES = {exponent: name for name, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_NAMES = {exponent: name for name, exponent in _BINARY_SUFFIXES.items()}
_MAX = 2**63 - 1
_MIN = -(2**63)
_NANO = -9
_FACTORS = 18  # Number of decimal digits that always fit into an int64.
_WRAPPING_SCALES = (1, 2, 3, 6, 9)  # Upstream multiplies by these in one step and returns the wrapped result.
_MAX_EXPONENT = 2_000  # Upstream computes 10**exponent at any cost; Bayplan rejects exponents above this.
_PLAIN_LENGTH = 12  # Numbers with fewer digits fit into an int64 in any unit.
_MAX_LENGTH = 2_000  # Longest accepted text; upstream parses longer ones, too, at any cost.


def wrap_int64(number: int) -> int:
    """Return a number wrapped to int64 as in Go: its low 64 bits, as a signed number."""
    return number if _MIN <= number <= _MAX else ((number - _MIN) & 0xFFFFFFFFFFFFFFFF) + _MIN


def _wrap_int32(number: int) -> int:
    return ((number + 2**31) & 0xFFFFFFFF) - 2**31


def _ten(exponent: int) -> int:
    """Return `10**exponent`; the exponent must not be negative."""
    return int(10**exponent)


def _go_pow10(exponent: int) -> float:
    """Return `10**exponent` as Go's math.Pow10 does: the product of two table entries, not the nearest float."""
    if exponent > 308 or exponent < -323:
        return inf if exponent > 0 else 0.0
    high, low = divmod(abs(exponent), 32)
    return (
        float(f"1e{32 * high}") * float(f"1e{low}") if exponent >= 0 else float(f"1e-{32 * high}") / float(f"1e{low}")
    )


@total_ordering
class Quantity:
    """An exact amount, with the form and format that determine how it overflows and prints. Immutable.

    Attributes:
        unscaled, scale: the amount is `unscaled * 10**scale`, which is a whole number of nanos.
        is_decimal: whether upstream would store the amount in its second form, an unbounded decimal.
        format: the format in which it prints.
    """

    __slots__ = ("_text", "format", "is_decimal", "scale", "unscaled")

    def __init__(
        self, unscaled: int, scale: int = 0, *, format: Format = "DecimalSI", is_decimal: bool = False
    ) -> None:
        self.unscaled = unscaled
        self.scale = scale
        self.format = format
        self.is_decimal = is_decimal
        self._text = ""

    @classmethod
    def parse(cls, text: str) -> "Quantity":
        """Return the quantity that a text represents, like upstream's ParseQuantity.

        Raises:
            InputError: upstream rejects the text, or an exponent is so large that upstream would run out of memory.
        """
        if text == "0":
            return _with_text(cls(0), text)
        match = _PARTS.fullmatch(text) if 0 < len(text) <= _MAX_LENGTH else None
        if match is None:
            raise _refused(text)
        sign, integer, point, fraction, suffix = match.groups()
        fraction = fraction or ""
        digits = integer.lstrip("0") or "0"
        if not point and not suffix and digits == "0":
            return cls(0)
        exponent, notation = _interpret(suffix, text)
        if notation == "BinarySI":
            multiplier, scale = 1 << exponent, 0
            precision = -1 if fraction else 15 - len(digits) - exponent * 3 // 10 - 1
        else:
            multiplier, scale = 1, exponent
            precision = _FACTORS - len(digits) - len(fraction)
        scale = _wrap_int32(scale - len(fraction))
        if precision >= 0 and scale >= _NANO:
            mantissa = int(digits + fraction)
            amount = mantissa * multiplier
            if amount <= _MAX:
                quantity = cls(-amount if sign == "-" else amount, scale, format=notation)
                if notation == "BinarySI":
                    canonical = bool(mantissa & 7)
                else:
                    shifted = digits + fraction
                    canonical = scale % 3 == 0 and not shifted.endswith("000") and shifted[0] != "0"
                return _with_text(quantity, text) if canonical else quantity
        if not integer and not fraction:
            raise _refused(text)
        return cls._parse_decimal(text, sign, int("0" + integer + fraction), len(fraction), exponent, notation)

    @classmethod
    def _parse_decimal(
        cls, text: str, sign: str, unscaled: int, places: int, exponent: int, notation: Format
    ) -> "Quantity":
        """Parse a number that does not fit into an int64: rounded up to nanos; binary amounts are limited to int64."""
        if notation == "BinarySI":
            unscaled <<= exponent
            scale = -places
        else:
            scale = -_wrap_int32(places + _wrap_int32(-exponent))
        if unscaled:
            if abs(scale) > _MAX_EXPONENT and (scale > 0 or unscaled.bit_length() > 3 * _MAX_EXPONENT):
                raise _refused(text)
            shift = scale - _NANO
            if shift >= 0:
                unscaled *= _ten(shift)
            else:
                unscaled = 1 if -shift > unscaled.bit_length() else -(-unscaled // _ten(-shift))
            scale = _NANO
        if notation == "BinarySI" and unscaled > _MAX * _ten(-scale):
            unscaled, scale = _MAX, 0
        if notation == "BinarySI" and 0 < unscaled < _ten(-scale):
            notation = "DecimalSI"
        return cls(-unscaled if sign == "-" else unscaled, scale, format=notation, is_decimal=True)

    # --- numbers ---

    def value(self) -> int:
        """Return the amount as an int64, rounded up (away from zero). Overflows give upstream's results."""
        return self.scaled_value(0)

    def milli_value(self) -> int:
        """Return the amount times 1000 as an int64, rounded up (away from zero)."""
        return self.scaled_value(-3)

    def scaled_value(self, scale: int) -> int:
        """Return the amount divided by `10**scale` as an int64, rounded up (away from zero).

        A negative amount of the second form that fits into an int64 is rounded towards zero, and then increased by one,
        which is an upstream quirk.
        """
        shift = self.scale - scale
        if self.is_decimal:
            return _scale_decimal(self.unscaled, shift)
        if shift < 0:
            return _divide_up(self.unscaled, -shift)
        return _multiply_int64(self.unscaled, shift)[0]

    def as_nanos(self) -> int:
        """Return the exact amount in nanos, of any size. Every parsed quantity is a whole number of nanos."""
        shift = self.scale - _NANO
        return _raised(self.unscaled, shift) if shift >= 0 else self.unscaled // _ten(-shift)

    def as_approximate_float(self) -> float:
        """Return the float that upstream computes (mantissa times a power of ten), infinite if it is out of range."""
        try:
            base = float(self.unscaled)
        except OverflowError:
            base = inf if self.unscaled > 0 else -inf
        return base if self.scale == 0 else base * _go_pow10(self.scale)

    def rounded_up(self, scale: int) -> "Quantity":
        """Return the amount rounded up (away from zero) to a multiple of `10**scale`, like upstream's RoundUp."""
        if self.scale >= scale:
            return self
        unscaled = _divide_up(self.unscaled, scale - self.scale)
        return Quantity(unscaled, scale, format=self.format, is_decimal=self.is_decimal)

    def sign(self) -> int:
        """Return -1, 0 or 1: the sign of the amount."""
        return (self.unscaled > 0) - (self.unscaled < 0)

    # --- arithmetic ---

    def __add__(self, other: "Quantity") -> "Quantity":
        format_ = other.format if self.unscaled == 0 else self.format
        if not self.is_decimal and not other.is_decimal:
            if other.unscaled == 0:
                return Quantity(self.unscaled, self.scale, format=format_)
            if self.unscaled == 0:
                return Quantity(other.unscaled, other.scale, format=format_)
            scale = min(self.scale, other.scale)
            left, left_fits = _multiply_int64(self.unscaled, self.scale - scale)
            right, right_fits = _multiply_int64(other.unscaled, other.scale - scale)
            if left_fits and right_fits and _MIN <= left + right <= _MAX:
                return Quantity(left + right, scale, format=format_)
        scale = min(self.scale, other.scale)
        total = _raised(self.unscaled, self.scale - scale) + _raised(other.unscaled, other.scale - scale)
        return Quantity(total, scale, format=format_, is_decimal=True)

    def __neg__(self) -> "Quantity":
        unscaled = -self.unscaled if self.is_decimal else wrap_int64(-self.unscaled)
        return Quantity(unscaled, self.scale, format=self.format, is_decimal=self.is_decimal)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return self + -other

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self._compare(other) == 0

    def __lt__(self, other: "Quantity") -> bool:
        return self._compare(other) < 0

    def _compare(self, other: "Quantity") -> int:
        if self.scale == other.scale:
            left, right = self.unscaled, other.unscaled
        elif self.sign() != other.sign():
            left, right = self.sign(), other.sign()
        elif self._magnitude() != other._magnitude():  # No power of ten is computed for numbers of very different size.
            left, right = self._magnitude() * self.sign(), other._magnitude() * self.sign()
        else:
            scale = min(self.scale, other.scale)
            left = _raised(self.unscaled, self.scale - scale)
            right = _raised(other.unscaled, other.scale - scale)
        return (left > right) - (left < right)

    def compared_with(self, other: "Quantity") -> "Quantity":
        """Return the quantity as upstream stores it after a comparison: as a decimal if `other` is a decimal."""
        if not other.is_decimal or self.is_decimal:
            return self
        return Quantity(self.unscaled, self.scale, format=self.format, is_decimal=True)

    def _magnitude(self) -> int:
        """Return the number of digits before the decimal point; if negative, of zeros after it."""
        return len(str(abs(self.unscaled))) + self.scale

    def __hash__(self) -> int:
        mantissa, exponent = _without_factors(self.unscaled, 10)
        return hash((mantissa, exponent + self.scale if mantissa else 0))

    # --- text ---

    def __str__(self) -> str:
        """Return the canonical text: an integer with the largest suffix for which it is an integer."""
        if not self._text:
            self._text = self._canonical_text()
        return self._text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def _canonical_text(self) -> str:
        if self.unscaled == 0:
            return "0"
        if self.format == "BinarySI" and not self._prints_as_decimal():
            whole = _raised(self.unscaled, self.scale) if self.scale >= 0 else self.unscaled // _ten(-self.scale)
            mantissa, times = _without_factors(whole, 1024)
            return f"{mantissa}{_BINARY_NAMES.get(times * 10, '')}"
        mantissa, exponent = _without_factors(self.unscaled, 10)
        exponent += self.scale
        surplus = exponent % 3
        mantissa, exponent = mantissa * 10**surplus, exponent - surplus
        if self.format == "DecimalExponent":
            return f"{mantissa}e{exponent}" if exponent else str(mantissa)
        return f"{mantissa}{_DECIMAL_NAMES.get(exponent, '')}"

    def _prints_as_decimal(self) -> bool:
        """Return whether a binary amount is too small for a binary suffix, or not a whole number."""
        if self.scale < 0 and self.unscaled % _ten(-self.scale):
            return True
        return abs(_raised(self.unscaled, max(self.scale, 0))) < 1024 * _ten(max(-self.scale, 0))


def _with_text(quantity: Quantity, text: str) -> Quantity:
    quantity._text = text
    return quantity


def _refused(text: str) -> InputError:
    return InputError("quantity", wanted="a quantity", got=repr(text))


def _raised(number: int, exponent: int) -> int:
    """Return `number * 10**exponent`; raise InputError if the exponent is too large."""
    if number and exponent > _MAX_EXPONENT:
        raise InputError("quantity", wanted=f"an exponent of at most {_MAX_EXPONENT}", got=str(exponent))
    return number * _ten(exponent) if number else 0


def _interpret(suffix: str, text: str) -> tuple[int, Format]:
    """Return the exponent that a suffix stands for (base 10 or 2), and its format."""
    if suffix in _DECIMAL_SUFFIXES:
        return _DECIMAL_SUFFIXES[suffix], "DecimalSI"
    if suffix in _BINARY_SUFFIXES:
        return _BINARY_SUFFIXES[suffix], "BinarySI"
    digits = suffix[1:]
    if len(digits.lstrip("+-0")) > 19 or not _MIN <= int(digits) <= _MAX:
        raise _refused(text)
    return _wrap_int32(int(digits)), "DecimalExponent"


def _multiply_int64(number: int, exponent: int) -> tuple[int, bool]:
    """Return `number * 10**exponent` as upstream computes it, and whether it fits into an int64."""
    if number == 0 or exponent == 0:
        return number, True
    product = number * _ten(exponent) if exponent <= 19 else _MAX + 1
    if _MIN < product <= _MAX:
        return product, True
    if number == _MIN or exponent not in _WRAPPING_SCALES:
        return 0, False
    return wrap_int64(product), False


def _divide_up(number: int, exponent: int) -> int:
    """Return `number / 10**exponent`, rounded away from zero."""
    if exponent > 19:
        return (number > 0) - (number < 0)
    divisor = _ten(exponent)
    return -(-number // divisor) if number > 0 else number // divisor


def _scale_decimal(unscaled: int, shift: int) -> int:
    """Return `unscaled * 10**shift` as an int64, as upstream computes it for its second form."""
    if shift == 0:
        return wrap_int64(unscaled)
    if shift > 0:  # A float that is too large becomes the smallest int64 on amd64.
        return wrap_int64(wrap_int64(unscaled) * (_ten(shift) if shift <= 18 else _MIN))
    if unscaled < _MAX and -shift < 19:
        number, divisor = wrap_int64(unscaled), _ten(-shift)
        quotient = abs(number) // divisor
        quotient = quotient if number >= 0 else -quotient
        return quotient + 1 if number % divisor else quotient
    quotient, rest = divmod(unscaled, _ten(-shift))
    return wrap_int64(wrap_int64(quotient) + 1) if rest else wrap_int64(quotient)


def _without_factors(number: int, factor: int) -> tuple[int, int]:
    """Divide a number by a factor while it is divisible; return the quotient and the number of divisions."""
    times = 0
    while number and number % factor == 0:
        number //= factor
        times += 1
    return number, times


# --- everyday functions -----------------------------------------------------------------------------------------------

SPACES = "".join(chr(code) for code in range(0x3001) if chr(code).isspace() and not 0x1C <= code <= 0x1F)
"""The characters that Go's `strings.TrimSpace` removes."""


@lru_cache(maxsize=65536)
def parse_quantity(quantity: QuantityLike) -> Quantity:
    """Parse a quantity in a document: text (surrounding spaces are stripped) or a plain number. Cached.

    Raises:
        InputError: the value is not a quantity.
    """
    if isinstance(quantity, str):
        return Quantity.parse(quantity.strip(SPACES))
    return Quantity.parse(number_text(quantity))


_WITH_SUFFIX = re.compile(r"[+-]?[0-9]*(\.[0-9]*)?[eEinumkKMGTP]*[-+]?[0-9]*")


def quantity_problem(text: str) -> str:
    """Return upstream's error for a text that is not a quantity."""
    if text and _WITH_SUFFIX.fullmatch(text):
        return "unable to parse quantity's suffix"
    return "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def number_text(number: int | float) -> str:
    """Return a number as Go's encoding/json writes it: without an exponent from 1e-6 to 1e21."""
    text = repr(number)
    return f"{Decimal(text):f}" if "e" in text and 1e-6 <= abs(number) < 1e21 else text


@lru_cache(maxsize=65536)
def value(quantity: QuantityLike) -> int:
    """Return a quantity as an int64, rounded up. For all resources except CPU. Cached.

    Raises:
        InputError: the value is not a quantity.
    """
    return parse_quantity(quantity).value()


@lru_cache(maxsize=65536)
def milli_value(quantity: QuantityLike) -> int:
    """Return a quantity times 1000 as an int64, rounded up. For CPU. Cached.

    Raises:
        InputError: the value is not a quantity.
    """
    return parse_quantity(quantity).milli_value()


@lru_cache(maxsize=65536)
def nano_value(quantity: QuantityLike) -> int:
    """Return a quantity in nanos: exact, of any size. For sums that are rounded once, at the end. Cached.

    Raises:
        InputError: the value is not a quantity.
    """
    if isinstance(quantity, str) and len(quantity) <= _PLAIN_LENGTH and quantity.isascii():
        # Fast path without full parsing: most quantities are integers of units or of millis.
        if quantity[-1:] == "m" and quantity[:-1].isdigit():
            return int(quantity[:-1]) * 1_000_000
        if quantity.isdigit():
            return int(quantity) * 1_000_000_000
    return parse_quantity(quantity).as_nanos()
