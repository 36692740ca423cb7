"""Functions of URLs, IP addresses and CIDRs.

Source: https://kubernetes.io/docs/reference/using-api/cel/ (URL library, IP address library, CIDR library).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import ClassVar, TypeAlias

import msgspec

from bayplan.base.go_text.quoting import GoTextError
from bayplan.base.go_text.urls import Url as GoUrl
from bayplan.base.go_text.urls import parse_request_url, parse_url
from bayplan.cel.problems import RunProblem
from bayplan.cel.values import CelMap
from bayplan.objects.selectors import quote as go_quote

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network


class Url(msgspec.Struct, frozen=True):
    """The value of ``url(text)``: a parsed URL."""

    cel_type_name: ClassVar[str] = "kubernetes.URL"

    parts: GoUrl


class Ip(msgspec.Struct, frozen=True):
    """The value of ``ip(text)``: an IPv4 or IPv6 address."""

    cel_type_name: ClassVar[str] = "net.IP"

    address: Address


class Cidr(msgspec.Struct, frozen=True):
    """A network as written: the address may have bits after the prefix.

    Attributes:
        address: the address as written.
        length: the length of the prefix.
    """

    cel_type_name: ClassVar[str] = "net.CIDR"

    address: Address
    length: int

    @property
    def network(self) -> Network:
        """The network, with the bits after the prefix set to zero."""
        return ip_network((self.address, self.length), strict=False)

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"


def url_problem(text: object) -> str:
    """Return Go's error if a text is not a valid request URL, else an empty string."""
    if not isinstance(text, str):
        raise TypeError
    try:
        parse_request_url(text)
    except GoTextError as problem:
        return f"parse {go_quote(text)}: {problem}"
    return ""


def _url(text: object) -> Url:
    problem = url_problem(text)
    try:
        found = parse_url(str(text))
    except GoTextError as why:
        problem = problem or f"parse {go_quote(str(text))}: {why}"
    if problem:
        raise RunProblem(f"URL parse error during conversion from string: {problem}")
    return Url(found)


def _of_url(read: Callable[[GoUrl], object]) -> Callable[[object], object]:
    def part(value: object) -> object:
        if not isinstance(value, Url):
            raise TypeError
        return read(value.parts)

    return part


def read_ip(text: object) -> Ip:
    """Return the IP address in a text.

    Raises:
        RunProblem: the text is not an IP address, has a zone, or is an IPv4-mapped IPv6 address.
    """
    if not isinstance(text, str):
        raise TypeError
    try:
        address = ip_address(text)
    except ValueError:
        why = f"ParseAddr({go_quote(text)}): {_address_problem(text)}"
        raise RunProblem(f"IP Address {go_quote(text)} parse error during conversion from string: {why}") from None
    if isinstance(address, IPv6Address):
        if address.scope_id:
            raise RunProblem(f"IP address {go_quote(text)} with zone value is not allowed")
        if address.ipv4_mapped is not None:
            raise RunProblem(f"IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return Ip(address)


def _address_problem(text: str) -> str:
    if re.fullmatch(r"[0-9.]+", text) and "." in text:
        fields = text.split(".")
        if any(len(each) > 1 and each[0] == "0" for each in fields):
            return "IPv4 field has octet with leading zero"
        if any(len(each) > 3 or (each and int(each) > 255) for each in fields):
            return "IPv4 field has value >255"
        if "" in fields:
            return "IPv4 field must have at least one digit"
        return "IPv4 address too short" if len(fields) < 4 else "IPv4 address too long"
    return "unable to parse IP"


def read_cidr(text: object) -> Cidr:
    """Return the network in a text.

    Raises:
        RunProblem: the text is not a CIDR.
    """
    if not isinstance(text, str):
        raise TypeError
    prefix = "network address parse error during conversion from string: "
    before, slash, length = text.rpartition("/")
    where = f"{prefix}{prefix}netip.ParsePrefix({go_quote(text)}): "
    if not slash:
        raise RunProblem(f"{where}no '/'")
    try:
        address = ip_address(before)
    except ValueError:
        raise RunProblem(f"{where}ParseAddr({go_quote(before)}): {_address_problem(before)}") from None
    if isinstance(address, IPv6Address) and address.scope_id:
        raise RunProblem(f"{where}IPv6 zones cannot be present in a prefix")
    if not re.fullmatch(r"0|[1-9][0-9]{0,2}", length):
        raise RunProblem(f"{where}bad bits after slash: {go_quote(length)}")
    if int(length) > address.max_prefixlen:
        raise RunProblem(f"{where}prefix length out of range")
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise RunProblem(f"{prefix}IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return Cidr(address, int(length))


def _reads(read: Callable[[object], object]) -> Callable[[object], bool]:
    def check(text: object) -> bool:
        try:
            read(text)
        except RunProblem:
            return False
        return True

    return check


def _of_ip(read: Callable[[Address], object]) -> Callable[[object], object]:
    def part(value: object) -> object:
        if not isinstance(value, Ip):
            raise TypeError
        return read(value.address)

    return part


def _ip(value: object) -> Ip:
    return Ip(value.address) if isinstance(value, Cidr) else read_ip(value)


def _cidr(value: object) -> Cidr:
    if not isinstance(value, Cidr):
        raise TypeError
    return value


def _contains_ip(network: object, address: object) -> bool:
    """Return whether a network contains an address. A text that is not an address is a wrong argument, as in upstream."""
    try:
        wanted = address if isinstance(address, Ip) else read_ip(address)
    except RunProblem:
        raise RunProblem("no such overload") from None
    return wanted.address in _cidr(network).network


def _contains_cidr(network: object, other: object) -> bool:
    outer, inner = _cidr(network).network, (other if isinstance(other, Cidr) else read_cidr(other)).network
    if outer.version != inner.version:
        return False
    return outer.prefixlen <= inner.prefixlen and inner.network_address in outer


def _masked(value: object) -> Cidr:
    found = _cidr(value)
    return Cidr(found.network.network_address, found.length)


def _is_global(address: Address) -> bool:
    """Return whether an address is global unicast as Go defines it, which includes private addresses."""
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and str(address) != "255.255.255.255"


def _is_link_local_multicast(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return address in IPv4Network("224.0.0.0/24")
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 2


FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "url": _url,
    "isURL": lambda text: not url_problem(text),
    "getScheme": _of_url(lambda parts: parts.scheme),
    "getHost": _of_url(lambda parts: parts.host),
    "getHostname": _of_url(lambda parts: parts.host_and_port()[0]),
    "getPort": _of_url(lambda parts: parts.host_and_port()[1]),
    "getEscapedPath": _of_url(lambda parts: parts.escaped_path),
    "getQuery": _of_url(lambda parts: CelMap.of_texts({**parts.query_values()})),
    "ip": _ip,
    "isIP": _reads(read_ip),
    "ip.isCanonical": lambda text: str(read_ip(text).address) == text,
    "family": _of_ip(lambda address: address.version),
    "isUnspecified": _of_ip(lambda address: address.is_unspecified),
    "isLoopback": _of_ip(lambda address: address.is_loopback),
    "isLinkLocalMulticast": _of_ip(_is_link_local_multicast),
    "isLinkLocalUnicast": _of_ip(lambda address: address.is_link_local),
    "isGlobalUnicast": _of_ip(_is_global),
    "cidr": read_cidr,
    "isCIDR": _reads(read_cidr),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "prefixLength": lambda value: _cidr(value).length,
    "masked": _masked,
}
