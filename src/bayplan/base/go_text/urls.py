"""URLs as Go's `net/url` reads them."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, ip_address
from typing import NamedTuple
from urllib.parse import quote as percent_encoded
from urllib.parse import unquote_to_bytes

from bayplan.base.go_text.quoting import GoTextError, quote

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)?:")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2}).{0,2}", re.DOTALL)
_NOT_IN_HOST = re.compile(r"[^a-zA-Z0-9_.~!$&'()*+,;=:\[\]<>\"%\x80-\U0010ffff-]")
_ASCII_ESCAPE = re.compile(r"%(?!25)[0-7][0-9a-fA-F]")
_ZONE_PART = re.compile(r"%.{0,2}|.", re.DOTALL)
_PORT = re.compile(r"(?::[0-9]*)?")
_USER = re.compile(r"[a-zA-Z0-9._:~!$&'()*+,;=%@-]*")
_ENCODED_PATH = re.compile(r"[a-zA-Z0-9._~!$&'()*+,;=:@\[\]%/-]*")
_SAFE_IN_PATH = "$&+,/:;=@~"


class Url(NamedTuple):
    """The parts of a URL that functions of expressions return."""

    scheme: str = ""
    host: str = ""
    escaped_path: str = ""
    query: str = ""

    def host_and_port(self) -> tuple[str, str]:
        """Return the host without brackets, and the port; "" for none."""
        host, colon, port = self.host.rpartition(":")
        if not colon or not _PORT.fullmatch(f":{port}"):
            host, port = self.host, ""
        return host[1:-1] if host.startswith("[") and host.endswith("]") else host, port

    def query_values(self) -> dict[str, list[str]]:
        """Return the values of each name in the query. Pairs with a semicolon or an invalid escape are ignored."""
        found: dict[str, list[str]] = {}
        for pair in self.query.split("&"):
            if pair and ";" not in pair and not _BAD_ESCAPE.search(pair):
                name, _, value = pair.replace("+", " ").partition("=")
                found.setdefault(_unescaped(name), []).append(_unescaped(value))
        return found


def parse_request_url(text: str) -> Url:
    """Return the parts of an absolute URL or path, like `ParseRequestURI`. A fragment is part of the path or query.

    Raises:
        GoTextError: the text is invalid; the message is Go's.
    """
    return _parse(text, request=True)


def parse_url(text: str) -> Url:
    """Return the parts of a URL, without the fragment.

    Raises:
        GoTextError: the text is invalid; the message is Go's.
    """
    whole, _, fragment = text.partition("#")
    found = _parse(whole, request=False)
    _check_escapes(fragment)
    return found


def _parse(text: str, *, request: bool) -> Url:
    if _CONTROL.search(text):
        raise GoTextError("net/url: invalid control character in URL")
    if request and not text:
        raise GoTextError("empty url")
    if text == "*":
        return Url(escaped_path="*")
    match = _SCHEME.match(text)
    if match is not None and match[1] is None:
        raise GoTextError("missing protocol scheme")
    scheme = match[1].lower() if match is not None else ""
    rest, _, query = text[match.end() if match is not None else 0 :].partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme, query=query)
        if request:
            raise GoTextError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise GoTextError("first path segment in URL cannot contain colon")
    host = ""
    if rest.startswith("//") and (scheme or (not request and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        host, rest = _authority(scheme, authority), slash + path
    _check_escapes(rest)
    is_encoded = _ENCODED_PATH.fullmatch(rest) is not None
    path = rest if is_encoded else percent_encoded(unquote_to_bytes(rest), safe=_SAFE_IN_PATH)
    return Url(scheme, host, path, query)


def _authority(scheme: str, text: str) -> str:
    user, at, host = text.rpartition("@")
    found = _host(scheme, host)
    if at:
        if not _USER.fullmatch(user):
            raise GoTextError("net/url: invalid userinfo")
        _check_escapes(user)
    return found


def _host(scheme: str, text: str) -> str:
    bracket = text.rfind("[")
    if bracket > 0:
        raise GoTextError("invalid IP-literal")
    if bracket == 0:
        name, closing, port = text[1:].rpartition("]")
        if not closing:
            raise GoTextError("missing ']' in host")
        _check_port(port)
        address, percent, zone = name.partition("%25")
        _check_host(address)
        _check_zone(zone)
        return f"[{_address(_unescaped(address + percent + zone))}]{port}"
    if ":" in text:
        strict = scheme in ("http", "https")
        _check_port(text[text.index(":") if strict else text.rindex(":") :])
    _check_host(text)
    return _unescaped(text)


def _address(text: str) -> str:
    address, percent, zone = text.partition("%")
    try:
        found = ip_address(address)
    except ValueError:
        raise GoTextError(f"invalid host: ParseAddr({quote(text)}): unable to parse IP") from None
    if percent and not zone:
        raise GoTextError(f"invalid host: ParseAddr({quote(text)}): zone must be a non-empty string")
    if isinstance(found, IPv4Address):
        raise GoTextError("invalid IP-literal")
    return text


def _check_port(port: str) -> None:
    if not _PORT.fullmatch(port):
        raise GoTextError(f"invalid port {quote(port)} after host")


def _check_host(text: str) -> None:
    problems = [found for pattern in (_BAD_ESCAPE, _ASCII_ESCAPE, _NOT_IN_HOST) if (found := pattern.search(text))]
    if problems:
        first = min(problems, key=lambda found: found.start())[0]
        if first.startswith("%"):
            raise GoTextError(f"invalid URL escape {quote(first)}")
        raise GoTextError(f"invalid character {quote(first)} in host name")


def _check_zone(text: str) -> None:
    """Raise GoTextError if the zone of an IPv6 address has a character that hosts lack, escaped or not, except for a space."""
    for part in _ZONE_PART.findall(text):
        _check_escapes(part)
        char = chr(int(part[1:], 16)) if part.startswith("%") else part
        is_wrong = _NOT_IN_HOST.match(char) is not None
        if part != char and (is_wrong or char >= "\x80") and char != " ":
            raise GoTextError(f"invalid URL escape {quote(part)}")
        if part == char and is_wrong:
            raise GoTextError(f"invalid character {quote(part)} in host name")


def _check_escapes(text: str) -> None:
    match = _BAD_ESCAPE.search(text)
    if match is not None:
        raise GoTextError(f"invalid URL escape {quote(match[0])}")


def _unescaped(text: str) -> str:
    return unquote_to_bytes(text).decode("utf-8", "replace")
