"""String formats in the schemas of custom resources: dates, addresses, UUIDs and others.

Unknown formats accept every string.

Source: the formats that upstream lists for CustomResourceDefinitions. ISBN, credit card and similar formats are not
checked.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date
from urllib.parse import urlsplit

from bayplan.objects.names import check_dns1123_label, check_dns1123_subdomain

_UUID = r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?%s-?%s-?[0-9a-f]{12}"
_ANY, _RFC = "[0-9a-f]{4}", "[89ab][0-9a-f]{3}"
_DURATION = re.compile(
    r"[-+]?(0|(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))*"
)
_WORDY_DURATION = re.compile(r"(?i)\d+\s*(ns|nano|us|µs|micro|ms|milli|s|sec|m|min|h|hr|hour|d|day|w|week|wk)")
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(.\d+)?(z|[+-]\d\d:\d\d)")
_LABEL = re.compile(r"[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?")
_MAX_HOST_LENGTH = 255


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


def _is_address(version: int) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            return ipaddress.ip_address(text).version == version
        except ValueError:
            return False

    return check


def _is_network(text: str) -> bool:
    try:
        return "/" in text and ipaddress.ip_interface(text) is not None
    except ValueError:
        return False


def _is_host(text: str) -> bool:
    return len(text) <= _MAX_HOST_LENGTH and all(_LABEL.fullmatch(each) for each in text.removesuffix(".").split("."))


def _is_uri(text: str) -> bool:
    try:
        return text.startswith("/") or bool(urlsplit(text).scheme)
    except ValueError:
        return False


def _is_base64(text: str) -> bool:
    try:
        return bool(text) and base64.b64decode(text, validate=True) is not None
    except binascii.Error:
        return False


_CHECKS: dict[str, Callable[[str], bool]] = {
    "date": _is_date,
    "datetime": _is_time,
    "duration": lambda text: bool(_DURATION.fullmatch(text) or _WORDY_DURATION.search(text)),
    "ipv4": _is_address(4),
    "ipv6": _is_address(6),
    "cidr": _is_network,
    "mac": _matching(r"(?i)([0-9a-f]{2}([:-][0-9a-f]{2}){5}|[0-9a-f]{4}(\.[0-9a-f]{4}){2})"),
    "hostname": _is_host,
    "uri": _is_uri,
    "email": _matching(r"[^@\s]+@[^@\s]+|.*<[^@\s]+@[^@\s]+>"),
    "uuid": _matching(_UUID % (_ANY, _ANY)),
    "uuid3": _matching(_UUID % ("3[0-9a-f]{3}", _ANY)),
    "uuid4": _matching(_UUID % ("4[0-9a-f]{3}", _RFC)),
    "uuid5": _matching(_UUID % ("5[0-9a-f]{3}", _RFC)),
    "hexcolor": _matching(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "byte": _is_base64,
    "k8sshortname": lambda text: not check_dns1123_label(text),
    "k8slongname": lambda text: not check_dns1123_subdomain(text),
}


def fits_format(kind: str, text: str) -> bool:
    """Return whether a text has a format; dashes in the format's name are ignored."""
    check = _CHECKS.get(kind.replace("-", ""))
    return check is None or check(text)
