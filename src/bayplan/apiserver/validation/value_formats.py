"""String formats in the schemas of custom resources: dates, addresses, card numbers and others.

Unknown formats accept every string.

Source: the formats that upstream lists for CustomResourceDefinitions.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Callable
from datetime import date

from bayplan.cel.library_network import url_problem
from bayplan.objects.names import check_dns1123_label, check_dns1123_subdomain

_UUID = r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?%s-?%s-?[0-9a-f]{12}"
_ANY, _RFC = "[0-9a-f]{4}", "[89ab][0-9a-f]{3}"
_DURATION = re.compile(
    r"[-+]?(0|(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))*"
)
_WORDY_DURATION = re.compile(r"(?<!\d)\d++\s*+([A-Za-zµ]+)")
_UNITS = {
    *("ns", "nano", "us", "µs", "micro", "ms", "milli", "s", "sec", "m", "min", "h", "hr", "hour", "d", "day"),
    *("w", "wk", "week"),
}
_UNIT_STARTS = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
"""A longer unit only has to start with the last name of its unit: `3 seconds`."""
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(.\d+)?(z|[+-]\d\d:\d\d)")
_HOST = re.compile(
    r"[a-zA-Z0-9$]-?[a-zA-Z0-9$]{0,62}|([a-zA-Z0-9$]([a-zA-Z0-9$-]{0,61}[a-zA-Z0-9$])?\.)+[a-zA-Z]{2,63}"
)
"""A host name in which `_ascii_classes` replaced letters and symbols."""
_MAX_HOST_LENGTH, _MAX_LABEL_LENGTH = 255, 63
_ATOM = r"[^\s()<>\[\]:;@\\,.\"\x00-\x1f\x7f]+"
_MAILBOX = rf"({_ATOM}(\.{_ATOM})*|\"([^\"\\]|\\.)*\")@({_ATOM}(\.{_ATOM})*|\[[^\[\]\s]*\])"
_PHRASE = r"([^()<>\[\]:;@\\,\"\x00-\x08\x0a-\x1f\x7f]|\"([^\"\\]|\\.)*\")*"
_EMAIL = rf"\s*+({_MAILBOX}|{_PHRASE}<\s*{_MAILBOX}\s*>)\s*(\([^()]*\)\s*)?"
_MAX_PREFIX_DIGITS = 3
_MAC_BYTES = (6, 8, 20)
_CARD = re.compile(
    r"4[0-9]{12}([0-9]{3})?|5[1-5][0-9]{14}|6(011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(0[0-5]|[68][0-9])[0-9]{11}|"
    r"(2131|1800|35[0-9]{3})[0-9]{11}"
)
_COLOR = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"


def _matching(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


def _is_date(text: str) -> bool:
    try:
        return re.fullmatch(r"\d{4}-\d\d-\d\d", text) is not None and date.fromisoformat(text) is not None
    except ValueError:
        return False


def _is_time(text: str) -> bool:
    day, _, rest = text.lower().partition("t")
    found = _TIME.fullmatch(rest)
    return found is not None and _is_date(day) and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def _is_duration(text: str) -> bool:
    if _DURATION.fullmatch(text):
        return True
    units = [found[1].lower() for found in _WORDY_DURATION.finditer(text)]
    return any(unit in _UNITS or unit.startswith(_UNIT_STARTS) for unit in units)


def _without_zeros(text: str) -> str:
    """Remove leading zeros from the numbers of an IPv4 address, which upstream accepts."""
    return re.sub(r"(?<![0-9a-fA-F:])0+(?=[0-9])", "", text) if "." in text else text


def _is_ipv4(text: str) -> bool:
    return "." in text and _is_address(_without_zeros(text))


def _is_ipv6(text: str) -> bool:
    return ":" in text and _is_address(text)


def _is_address(text: str) -> bool:
    try:
        return "%" not in text and ipaddress.ip_address(text) is not None
    except ValueError:
        return False


def _is_network(text: str) -> bool:
    address, _, length = text.partition("/")
    found = _without_zeros(address)
    if not (_is_address(found) and length.isascii() and length.isdigit()):
        return False
    digits = length.lstrip("0")  # As in Go, any number of leading zeros is allowed.
    return len(digits) <= _MAX_PREFIX_DIGITS and int(digits or "0") <= (128 if ":" in found else 32)


def _is_mac(text: str) -> bool:
    size, separator = (4, ".") if text[4:5] == "." else (2, text[2:3])
    groups = text.split(separator) if separator in (":", "-", ".") else []
    digits = all(re.fullmatch(rf"[0-9a-fA-F]{{{size}}}", each) for each in groups)
    return digits and len(groups) * size // 2 in _MAC_BYTES


def _ascii_classes(text: str) -> str:
    """Replace letters by `a` and symbols by `$`, except for ASCII letters."""
    kinds = [(each, unicodedata.category(each)[0]) for each in text]
    return "".join(
        each if kind == "L" and each.isascii() else {"L": "a", "S": "$"}.get(kind, each) for each, kind in kinds
    )


def _is_host(text: str) -> bool:
    labels = [each.encode() for each in text.split(".")]
    fits = len(text.encode()) <= _MAX_HOST_LENGTH and all(len(each) <= _MAX_LABEL_LENGTH for each in labels)
    return fits and _HOST.fullmatch(_ascii_classes(text)) is not None


def _is_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    doubled = [int(each) * (1 + index % 2) for index, each in enumerate(reversed(digits))]
    return _CARD.fullmatch(digits) is not None and sum(each - 9 * (each > 9) for each in doubled) % 10 == 0


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{9}[0-9X]", digits):
        return False
    return sum((index + 1) * (10 if each == "X" else int(each)) for index, each in enumerate(digits)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    return sum((1 + index % 2 * 2) * int(each) for index, each in enumerate(digits)) % 10 == 0


_CHECKS: dict[str, Callable[[str], bool]] = {
    "date": _is_date,
    "datetime": _is_time,
    "duration": _is_duration,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "cidr": _is_network,
    "mac": _is_mac,
    "hostname": _is_host,
    "uri": lambda text: not url_problem(text),
    "email": _matching(_EMAIL),
    "uuid": _matching(_UUID % (_ANY, _ANY)),
    "uuid3": _matching(_UUID % ("3[0-9a-f]{3}", _ANY)),
    "uuid4": _matching(_UUID % ("4[0-9a-f]{3}", _RFC)),
    "uuid5": _matching(_UUID % ("5[0-9a-f]{3}", _RFC)),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_card,
    "ssn": _matching(r"[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}"),
    "hexcolor": _matching(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matching(rf"rgb\({_COLOR},{_COLOR},{_COLOR}\)"),
    "bsonobjectid": _matching(r"[0-9a-fA-F]{24}"),
    "byte": _matching(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "k8sshortname": lambda text: not check_dns1123_label(text),
    "k8slongname": lambda text: not check_dns1123_subdomain(text),
}


FORMATS = frozenset(_CHECKS)
"""The names of the known formats, without dashes."""


def fits_format(kind: str, text: str) -> bool:
    """Return whether a text has a format; dashes in the format's name are ignored."""
    check = _CHECKS.get(kind.replace("-", ""))
    return check is None or check(text)
