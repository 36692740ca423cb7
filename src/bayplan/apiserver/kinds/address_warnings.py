"""Warnings for clients about IP addresses and networks that are not in standard notation.

Source: k8s.io/apimachinery/pkg/util/validation/ip.go v0.36.3.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from bayplan.apiserver.validation.formats import parse_cidr, parse_ip
from bayplan.objects.selectors import quote


def address_warnings(value: object, field: str) -> Iterator[str]:
    """Yield a warning if an IP address is not in its standard notation."""
    text = str(value or "")
    if not text:
        return
    standard = ".".join(each.lstrip("0") or "0" for each in text.split(".")) if text.count(".") == 3 else text
    try:
        address = ipaddress.ip_address(standard)
    except ValueError:
        return
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    standard = str(mapped or address)
    if standard == text:
        return
    if ":" in text and mapped is None:
        yield f"{field}: IPv6 address {quote(text)} should be in RFC 5952 canonical format ({quote(standard)})"
    else:
        yield f"{field}: non-standard IP address {quote(text)} is invalid: use {quote(standard)}"


def network_warnings(text: str, field: str) -> Iterator[str]:
    """Yield warnings if a CIDR is ambiguous or not in its standard notation."""
    network, address = parse_cidr(text.strip()), parse_ip(text.strip().partition("/")[0])
    if network is None or address is None:
        return
    warned = False
    if address != network.network_address:
        single = f"{address}/{network.max_prefixlen}"
        warned = True
        yield (
            f"{field}: CIDR value {quote(text)} is ambiguous in this context "
            f"(should be {quote(str(network))} or {quote(single)}?)"
        )
    if network.version == 4 and re.search(r"(^|[./])0[0-9]", text):
        warned = True
        yield f"{field}: non-standard CIDR value {quote(text)} is invalid: use {quote(str(network))}"
    if not warned and network.version == 6 and str(network) != text:
        yield f"{field}: IPv6 CIDR value {quote(text)} should be in RFC 5952 canonical format ({quote(str(network))})"
