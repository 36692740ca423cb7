"""Named formats, and ``format`` of strings.

Source: https://kubernetes.io/docs/reference/using-api/cel/ (format library),
https://github.com/google/cel-go/tree/master/ext#format.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import msgspec

from bayplan.base.go_text.times import day_number
from bayplan.cel.library_network import url_problem
from bayplan.cel.meter import spend_copy
from bayplan.cel.problems import RunProblem
from bayplan.cel.times import Duration, Timestamp, atoi, duration_text, timestamp_text
from bayplan.cel.values import NONE, CelMap, Optional, TypeValue, shown, type_name
from bayplan.objects import names
from bayplan.objects.selectors import quote

_UUID = re.compile(r"(?i)[a-f0-9]{8}-?[a-f0-9]{4}-?[a-f0-9]{4}-?[a-f0-9]{4}-?[a-f0-9]{12}")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(?:.\d+)?(?:z|[+-]\d\d:\d\d)", re.ASCII)
_CLAUSE = re.compile(r"%(?:%|(?:\.(\d+))?([a-zA-Z]))?")
_DEFAULT_DIGITS, _DIGITS, _WIDTHS = 6, 1 << 8, 1 << 16

# --- named formats ----------------------------------------------------------------------------------------------------


class Format(msgspec.Struct, frozen=True):
    """A named format, such as ``dns1123Label``."""

    cel_type_name: ClassVar[str] = "kubernetes.NamedFormat"

    name: str


def _prefix(check: Callable[[str], Sequence[str]]) -> Callable[[str], Sequence[str]]:
    """Return a check for prefixes of generated names, which may end with a dash."""
    return lambda text: check(text[:-1] + "a" if text.endswith("-") and len(text) > 1 else text)


def _uri(text: str) -> Sequence[str]:
    problem = url_problem(text)
    return (problem,) if problem else ()


def _byte(text: str) -> Sequence[str]:
    return () if _BASE64.fullmatch(text) else ("invalid base64",)


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    try:
        return match is not None and day_number(*map(int, match.groups())) is not None
    except ValueError:
        return False


def _is_datetime(text: str) -> bool:
    """Return whether a text is a date and a time; like upstream, ignore a second ``T`` and what follows it."""
    day, *rest = text.lower().split("t")
    time = _TIME.fullmatch(rest[0]) if rest else None
    return time is not None and _is_date(day) and time[1] <= "23" and time[2] <= "59" and time[3] <= "59"


FORMATS: Mapping[str, Callable[[str], Sequence[str]]] = {
    "dns1123Label": names.check_dns1123_label,
    "dns1123Subdomain": names.check_dns1123_subdomain,
    "dns1035Label": names.check_dns1035_label,
    "qualifiedName": names.check_qualified_name,
    "dns1123LabelPrefix": _prefix(names.check_dns1123_label),
    "dns1123SubdomainPrefix": _prefix(names.check_dns1123_subdomain),
    "dns1035LabelPrefix": _prefix(names.check_dns1035_label),
    "labelValue": names.check_label_value,
    "uri": _uri,
    "uuid": lambda text: () if _UUID.fullmatch(text) else ("does not match the UUID format",),
    "byte": _byte,
    "date": lambda text: () if _is_date(text) else ("invalid date",),
    "datetime": lambda text: () if _is_datetime(text) else ("invalid datetime",),
}
"""By format name: the function that returns the errors of a string."""


def _named(name: object) -> Optional:
    if not isinstance(name, str):
        raise TypeError
    return Optional(Format(name), True) if name in FORMATS else NONE


def _validate(found: object, text: object) -> Optional:
    if not isinstance(found, Format) or not isinstance(text, str):
        raise TypeError
    problems = FORMATS[found.name](text)
    return Optional([*problems], True) if problems else NONE


def _constant(name: str) -> Callable[[], Format]:
    found = Format(name)
    return lambda: found


# --- format strings ---------------------------------------------------------------------------------------------------


def text_of(value: object, *, inner: bool = False) -> str:
    """Return a value as the clause ``%s`` formats it. Within lists and maps (`inner`), strings are quoted.

    Raises:
        RunProblem: values of this type cannot be formatted.
    """
    if value is None:
        return "null"
    if isinstance(value, str):
        return quote(value) if inner else value
    if isinstance(value, bool | int):
        return shown(value)
    if isinstance(value, float):
        return _inner_double(value) if inner else shown(value)
    if isinstance(value, bytes):
        text = value.decode("utf-8", "replace")
        return f"b{quote(text)}" if inner else text
    if isinstance(value, Timestamp):
        return f'timestamp("{timestamp_text(value)}")' if inner else timestamp_text(value)
    if isinstance(value, Duration):
        return f'duration("{duration_text(value)}")' if inner else duration_text(value)
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, list):
        return f"[{', '.join(text_of(each, inner=True) for each in value)}]"
    if isinstance(value, CelMap):
        written = sorted((text_of(key, inner=True), text_of(item, inner=True)) for key, item in value.entries.values())
        return f"{{{', '.join(f'{key}:{item}' for key, item in written)}}}"
    raise RunProblem("error during formatting: " + clause_problem("s", type_name(value)))


def _inner_double(value: float) -> str:
    """Return a double in the format of list and map items: with six digits, or quoted if it is not finite."""
    if math.isfinite(value):
        return f"{value:.6f}"
    return quote(shown(value))


_CLAUSE_PROBLEMS = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps",
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
}
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def clause_problem(clause: str, type_: str) -> str:
    """Return the error of a clause that cannot format values of a type."""
    return f"{_CLAUSE_PROBLEMS[clause.lower()]}, was given {type_}"


def clauses_of(text: str) -> list[str]:
    """Return the letters of the clauses in a format string, in order.

    Raises:
        RunProblem: a clause is invalid.
    """
    return [letter for match in _CLAUSE.finditer(text) if (letter := _letter(match))]


def _letter(match: re.Match[str]) -> str:
    if match[0] == "%%":
        return ""
    if not match[2]:
        raise RunProblem("unexpected end of string")
    _digits(match)
    if match[2] not in "sdfebxXo":
        raise RunProblem(f"could not parse formatting clause: unrecognized formatting clause {quote(match[2])}")
    return match[2]


def _digits(match: re.Match[str]) -> int:
    """Return the precision of a clause, or the default.

    Raises:
        RunProblem: it exceeds an int64.
    """
    try:
        return atoi(match[1]) if match[1] else _DEFAULT_DIGITS
    except RunProblem as problem:
        wrong = f"error while parsing precision: error while converting precision to integer: {problem}"
        raise RunProblem(f"could not parse formatting clause: {wrong}") from None


def _whole(value: object, clause: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise RunProblem("error during formatting: " + clause_problem(clause, type_name(value)))


def _real(value: object, clause: str, digits: int) -> str:
    """Return a number as the clause ``f`` or ``e`` formats it: with thousands separators, or with a power of ten.

    Like in cel-go, which passes the number of digits on as 8 or 16 bits, `digits` is a width for ``e``.
    """
    number = value
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        number = float(value)
    if not isinstance(number, float):
        raise RunProblem("error during formatting: " + clause_problem(clause, type_name(value)))
    if not math.isfinite(number):
        text = "NaN" if math.isnan(number) else "∞" if number > 0 else "-∞"
        return text if clause == "f" else text.rjust(digits % _WIDTHS)
    number = number or 0.0  # Drop the sign of -0.0, as cel-go does.
    if clause == "f":
        return format(number, f",.{digits % _DIGITS}f")
    mantissa, _, exponent = format(number, f".{_DEFAULT_DIGITS}e").partition("e")
    text = f"{mantissa}\u00d710{exponent.removeprefix('+').translate(_SUPERSCRIPTS)}"
    return text.rjust(digits % _WIDTHS)


def _clause(letter: str, digits: int, value: object) -> str:
    if letter == "s":
        return text_of(value)
    if letter == "d":
        return str(_whole(value, "d"))
    if letter in "fe":
        return _real(value, letter, digits)
    if letter in "xX":
        data = value.encode() if isinstance(value, str) else value
        text = data.hex() if isinstance(data, bytes) else format(_whole(value, "x"), "x")
        return text.upper() if letter == "X" else text
    if letter == "b" and isinstance(value, bool):
        return "1" if value else "0"
    return format(_whole(value, letter), letter)


def _format(text: object, args: object) -> str:
    if not isinstance(text, str) or not isinstance(args, list):
        raise TypeError
    spend_copy(text, args)
    left = list(args)

    def written(match: re.Match[str]) -> str:
        letter = _letter(match)
        if not letter:
            return "%"
        if not left:
            raise RunProblem(f"index {len(args)} out of range")
        return _clause(letter, _digits(match), left.pop(0))

    found = _CLAUSE.sub(written, text)
    spend_copy(found)
    return found


def _quote(text: object) -> str:
    if not isinstance(text, str):
        raise TypeError
    return quote(text)


FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "format.named": _named,
    "validate": _validate,
    "format": _format,
    "strings.quote": _quote,
    **{f"format.{name}": _constant(name) for name in FORMATS},
}
