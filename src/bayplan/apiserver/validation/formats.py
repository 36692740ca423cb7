"""Checks of single values: names, addresses, quantities, ports, percentages."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache

from bayplan.apiserver.model.errors import invalid_value, required
from bayplan.apiserver.model.object_meta import check_annotations, check_labels, check_path_segment
from bayplan.apiserver.validation.engine import Causes, Check, Rule, at_least, between, field, named
from bayplan.base.go_arithmetic import whole_number
from bayplan.objects.names import (
    check_dns1035_label,
    check_dns1123_label,
    check_dns1123_subdomain,
    check_label_value,
    check_qualified_name,
)
from bayplan.objects.quantity import Quantity
from bayplan.objects.selectors import quote

_WILDCARD_FORMAT = r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_CONFIG_KEY_FORMAT = "[-._a-zA-Z0-9]+"
_CONFIG_KEY = re.compile(_CONFIG_KEY_FORMAT)
_ENV_NAME = re.compile("[ -<>-~]+")
_PATH_FORMAT = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_PORT_NAME = re.compile(r"[-a-z0-9]+")
_PERCENT_TEXT = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
_INT32_MAX = 2**31 - 1

dns_label = named(check_dns1123_label)
dns_subdomain = named(check_dns1123_subdomain)
dns_1035_label = named(check_dns1035_label)
qualified_name = named(check_qualified_name)
label_value = named(check_label_value)
path_segment = named(check_path_segment)
nonnegative = at_least(0)
port = between(1, 65535)
user_id = between(0, _INT32_MAX)


def nonnegatives(*names: str) -> tuple[Rule, ...]:
    """Return one rule per name, each of which reports a negative number in that field."""
    return tuple(field(name, nonnegative) for name in names)


def positive(detail: str) -> Check:
    """Return a check that reports a number below 1."""
    return at_least(1, detail)


def check_wildcard_subdomain(text: str) -> tuple[str, ...]:
    """Return the errors of a host name with a wildcard, such as ``*.example.com``."""
    problems = ["must be no more than 253 characters"] if len(text) > 253 else []
    if not re.fullmatch(_WILDCARD_FORMAT, text):
        wording = (
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
            "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
        )
        problems.append(f"{wording} (e.g. '*.example.com', regex used for validation is '{_WILDCARD_FORMAT}')")
    return tuple(problems)


def check_config_key(text: str) -> tuple[str, ...]:
    """Return the errors of a key in a ConfigMap or Secret."""
    problems = ["must be no more than 253 characters"] if len(text) > 253 else []
    if not _CONFIG_KEY.fullmatch(text):
        wording = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        examples = "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is"
        problems.append(f"{wording} {examples} '{_CONFIG_KEY_FORMAT}')")
    return tuple(problems + _dots(text))


def _dots(text: str) -> list[str]:
    if not text.startswith("."):
        return []
    if text == ".":
        return ["must not be '.'"]
    if text == "..":
        return ["must not be '..'"]
    return ["must not start with '..'"] if text.startswith("..") else []


def check_env_name(text: str) -> tuple[str, ...]:
    """Return the errors of an environment variable's name, which consists of printable ASCII without ``=``."""
    problems = []
    if not _ENV_NAME.fullmatch(text):
        problems.append(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
        )
    return tuple(problems)


def check_port_name(text: str) -> tuple[str, ...]:
    """Return the errors of a port name."""
    problems = ["must be no more than 15 characters"] if len(text) > 15 else []
    if not _PORT_NAME.fullmatch(text):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", text):
        problems.append("must contain at least one letter (a-z)")
    if "--" in text:
        problems.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return tuple(problems)


def domain_name(found: object, path: str, out: Causes) -> None:
    """Check a domain name, which has at least two segments."""
    text = str(found).removesuffix(".")
    if not found:
        out.append(required(path))
        return
    problems = check_dns1123_subdomain(text)
    if problems:
        out.append(invalid_value(path, quote(text), ",".join(problems)))
        return
    if "." not in text:
        detail = "should be a domain with at least two segments separated by dots"
        out.append(invalid_value(path, quote(text), detail))
        return
    for label in text.split("."):
        problems = check_dns1123_label(label)
        if problems:
            out.append(invalid_value(path, quote(label), ",".join(problems)))
            return


def domain_prefixed_path(found: object, path: str, out: Causes) -> None:
    """Check a name of the form ``example.com/path``."""
    text = str(found)
    if not text:
        out.append(required(path))
        return
    domain, slash, rest = text.partition("/")
    if not domain or not slash or not rest:
        out.append(invalid_value(path, quote(text), 'must be a domain-prefixed path (such as "acme.io/foo")'))
        return
    for problem in check_dns1123_subdomain(domain):
        out.append(invalid_value(path, quote(domain), problem))
    if not re.fullmatch(_PATH_FORMAT, rest):
        out.append(invalid_value(path, quote(rest), f"Invalid path (regex used for validation is '{_PATH_FORMAT}')"))


port_name = named(check_port_name)
config_key = named(check_config_key)
env_name = named(check_env_name)


# --- numbers ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=16384)
def amount_of(text: str) -> Quantity:
    """Return the quantity in a text. Results are cached, because most objects have the same few quantities."""
    return Quantity.parse(text)


def nonnegative_quantity(found: object, path: str, out: Causes) -> None:
    """Report a negative quantity."""
    if amount_of(str(found)).sign() < 0:
        out.append(invalid_value(path, quote(str(found)), "must be greater than or equal to 0"))


def positive_quantity(detail: str) -> Check:
    """Return a check that reports a quantity that is not positive."""

    def run(found: object, path: str, out: Causes) -> None:
        if amount_of(str(found)).sign() <= 0:
            out.append(invalid_value(path, quote(str(found)), detail))

    return run


def percent_value(found: object) -> int | None:
    """Return the number in a percentage such as "25%", or None for any other value."""
    if isinstance(found, str) and re.fullmatch("[0-9]+%", found):
        return whole_number(found[:-1])
    return None


def int_or_percent(found: object, path: str, out: Causes) -> None:
    """Check an integer or percentage, which must not be negative."""
    if isinstance(found, str):
        if percent_value(found) is None:
            out.append(invalid_value(path, quote(found), _PERCENT_TEXT))
    else:
        nonnegative(found, path, out)


def not_above_100_percent(found: object, path: str, out: Causes) -> None:
    """Report a percentage above 100. Integers always pass."""
    if (percent_value(found) or 0) > 100:
        out.append(invalid_value(path, quote(str(found)), "must not be greater than 100%"))


def amount_or_percent(found: object) -> int:
    """Return the number in an integer or percentage, as upstream reads it: 0 for other texts."""
    percent = percent_value(found)
    if percent is not None:
        return percent
    if isinstance(found, int):
        return found
    return int(found) if isinstance(found, str) and re.fullmatch("[+-]?[0-9]+", found) else 0


def port_or_name(found: object, path: str, out: Causes) -> None:
    """Check a port number or port name."""
    if isinstance(found, str):
        port_name(found, path, out)
    else:
        port(found, path, out)


# --- addresses --------------------------------------------------------------------------------------------------------

_SLOPPY = re.compile(r"(?<![0-9a-fA-F:.])0+(?=[0-9])|(?<=\.)0+(?=[0-9])")
_IP_TEXT = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_CIDR_TEXT = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def parse_ip(text: str) -> Address | None:
    """Return the IP address in a text, or None. Leading zeros are allowed, as in Go's older parser."""
    try:
        return ipaddress.ip_address(_SLOPPY.sub("", text) if ":" not in text else text)
    except ValueError:
        return None


def parse_cidr(text: str) -> Network | None:
    """Return the network of a CIDR, or None if the text is not a CIDR."""
    if not re.fullmatch(r"[^/]+/[0-9]+", text):
        return None
    address, _, bits = text.partition("/")
    found = parse_ip(address)
    try:
        return None if found is None else ipaddress.ip_network(f"{found}/{int(bits)}", strict=False)
    except ValueError:
        return None


def ip_address(found: object, path: str, out: Causes) -> None:
    """Check an IP address: IPv4 without leading zeros, IPv6 not necessarily in canonical form but not IPv4-mapped."""
    text = str(found)
    address = parse_ip(text)
    if address is None:
        out.append(invalid_value(path, quote(text), _IP_TEXT))
    elif address.version == 4 and str(address) != text:
        out.append(invalid_value(path, quote(text), "must not have leading 0s"))
    elif isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        out.append(invalid_value(path, quote(text), "must not be an IPv4-mapped IPv6 address"))


def cidr(found: object, path: str, out: Causes) -> None:
    """Check a CIDR: no leading zeros in IPv4 and prefix, no bits after it; IPv6 not canonical, but not IPv4-mapped."""
    text = str(found)
    network, address = parse_cidr(text), parse_ip(text.partition("/")[0])
    if network is None:
        out.append(invalid_value(path, quote(text), _CIDR_TEXT))
    elif re.search(r"(^|[./])0[0-9]" if network.version == 4 else r"/0[0-9]", text):
        out.append(invalid_value(path, quote(text), "must not have leading 0s in IP or prefix length"))
    elif isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        out.append(invalid_value(path, quote(text), "must not have an IPv4-mapped IPv6 address"))
    elif address != network.network_address:
        out.append(invalid_value(path, quote(text), "must not have bits set beyond the prefix length"))


def strict_ip_address(found: object, path: str, out: Causes) -> None:
    """Check an IP address, which must be in canonical form."""
    before, text = len(out), str(found)
    ip_address(found, path, out)
    address = parse_ip(text)
    if len(out) == before and str(address) != text:
        out.append(invalid_value(path, quote(text), f"must be in canonical form ({quote(str(address))})"))


def strict_cidr(found: object, path: str, out: Causes) -> None:
    """Check a CIDR, which must be in canonical form."""
    before, text = len(out), str(found)
    cidr(found, path, out)
    network = parse_cidr(text)
    if len(out) == before and str(network) != text:
        out.append(invalid_value(path, quote(text), f"must be in canonical form ({quote(str(network))})"))


def endpoint_ip(found: object, path: str, out: Causes) -> None:
    """Check the IP address of an endpoint, which must not be unspecified, loopback or link-local."""
    text = str(found)
    address = parse_ip(text)
    if address is None:
        out.append(invalid_value(path, quote(text), "must be a valid IP address"))
        return
    for wrong, detail in (
        (address.is_unspecified, f"may not be unspecified ({text})"),
        (address.is_loopback, "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        (address.is_link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        (
            address.is_multicast and _is_link_local_multicast(address),
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
        ),
    ):
        if wrong:
            out.append(invalid_value(path, quote(text), detail))


def _is_link_local_multicast(address: Address) -> bool:
    network = "224.0.0.0/24" if address.version == 4 else "ff02::/16"
    return address in ipaddress.ip_network(network)


# --- maps and selectors -----------------------------------------------------------------------------------------------


def labels(found: object, path: str, out: Causes) -> None:
    """Check the keys and values of labels."""
    out.extend(check_labels(found if isinstance(found, dict) else {}, path))


def annotation_map(found: object, path: str, out: Causes) -> None:
    """Check the keys and the total size of annotations."""
    out.extend(check_annotations(found if isinstance(found, dict) else {}, path))


def keys(check: Check, *, at_key: bool = True) -> Check:
    """Return a check that applies `check` to each key of a map."""

    def run(found: object, path: str, out: Causes) -> None:
        if isinstance(found, dict):
            for key in sorted(found):
                check(key, f"{path}[{key}]" if at_key else path, out)

    return run


def here(check: Check) -> Rule:
    """Return a rule that applies a check to the struct itself."""
    return lambda document, path, out: check(document, path, out)
