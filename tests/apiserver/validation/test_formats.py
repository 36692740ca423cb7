"""Checks of single values: valid and invalid ones, with upstream's messages."""

from __future__ import annotations

import pytest

from bayplan.apiserver.model.errors import Cause
from bayplan.apiserver.validation import formats as f
from bayplan.apiserver.validation.engine import Check

CANONICAL = 'must be in canonical form ("{}")'


def problems(check: Check, value: object) -> list[str]:
    causes: list[Cause] = []
    check(value, "x", causes)
    return [each.message.partition(": ")[2].partition(": ")[2] or each.message for each in causes]


@pytest.mark.parametrize(
    ("check", "value"),
    [
        pytest.param(f.dns_label, "a-1", id="a label"),
        pytest.param(f.dns_subdomain, "a.b-c.1", id="a subdomain"),
        pytest.param(f.dns_1035_label, "a1", id="an older label, which starts with a letter"),
        pytest.param(f.qualified_name, "example.com/Some_Name.1", id="a qualified name"),
        pytest.param(f.label_value, "", id="an empty label value"),
        pytest.param(f.config_key, "A_b.c-d", id="a key of a ConfigMap"),
        pytest.param(f.env_name, "a b!", id="an environment variable may hold any printable ASCII"),
        pytest.param(f.port_name, "http-2", id="the name of a port"),
        pytest.param(f.domain_name, "a.example.com.", id="a domain with a dot at its end"),
        pytest.param(f.domain_prefixed_path, "example.com/a/b", id="a domain-prefixed path"),
        pytest.param(f.ip_address, "2001:DB8::0:1", id="an address that is not canonical"),
        pytest.param(f.strict_ip_address, "2001:db8::1", id="a canonical address"),
        pytest.param(f.cidr, "10.0.0.0/8", id="a network"),
        pytest.param(f.strict_cidr, "2001:db8::/32", id="a canonical network"),
        pytest.param(f.endpoint_ip, "10.1.2.3", id="an address of an endpoint"),
        pytest.param(f.nonnegative_quantity, "0", id="an amount of zero"),
        pytest.param(f.int_or_percent, "100%", id="a percentage"),
        pytest.param(f.not_above_100_percent, "100%", id="all of it"),
        pytest.param(f.port_or_name, 65535, id="the last port"),
        pytest.param(f.port_or_name, "web", id="a port by name"),
    ],
)
def test_valid_values_are_accepted(check: Check, value: object) -> None:
    assert problems(check, value) == []


@pytest.mark.parametrize(
    ("check", "value", "want"),
    [
        pytest.param(f.dns_label, "a" * 64, "must be no more than 63 characters", id="a label that is too long"),
        pytest.param(f.dns_label, "A", "a lowercase RFC 1123 label", id="a label in capitals"),
        pytest.param(f.dns_1035_label, "1a", "a DNS-1035 label", id="an older label that starts with a digit"),
        pytest.param(f.dns_subdomain, "a..b", "a lowercase RFC 1123 subdomain", id="a subdomain with an empty segment"),
        pytest.param(f.qualified_name, "a/b/c", "a valid label key must consist of", id="two slashes"),
        pytest.param(
            f.label_value, "-a", "a valid label must be an empty string", id="a label value with a dash first"
        ),
        pytest.param(f.config_key, "..", "must not be '..'", id="a key of two dots"),
        pytest.param(f.config_key, "..a", "must not start with '..'", id="a key that starts with two dots"),
        pytest.param(f.env_name, "a=b", "must consist only of printable ASCII", id="an equals sign"),
        pytest.param(f.port_name, "a" * 16, "must be no more than 15 characters", id="a port name that is too long"),
        pytest.param(f.port_name, "80", "must contain at least one letter (a-z)", id="a port name of digits"),
        pytest.param(f.port_name, "a--b", "must not contain consecutive hyphens", id="two hyphens"),
        pytest.param(f.port_name, "-a", "must not begin or end with a hyphen", id="a hyphen first"),
        pytest.param(f.domain_name, "local", "should be a domain with at least two segments", id="one segment"),
        pytest.param(f.domain_prefixed_path, "a.b", "must be a domain-prefixed path", id="no path"),
        pytest.param(f.ip_address, "10.0.0", "must be a valid IP address", id="three numbers"),
        pytest.param(f.ip_address, "010.0.0.1", "must not have leading 0s", id="a leading zero"),
        pytest.param(f.ip_address, "::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address", id="IPv4 in IPv6"),
        pytest.param(f.strict_ip_address, "2001:DB8::1", CANONICAL.format("2001:db8::1"), id="an address in capitals"),
        pytest.param(
            f.cidr, "10.0.0.1/8", "must not have bits set beyond the prefix length", id="an address in a network"
        ),
        pytest.param(f.cidr, "10.0.0.0/33", "must be a valid CIDR value", id="a prefix that is too long"),
        pytest.param(
            f.cidr, "10.0.0.0/08", "must not have leading 0s in IP or prefix length", id="a prefix with a zero"
        ),
        pytest.param(
            f.cidr, "fd00::/064", "must not have leading 0s in IP or prefix length", id="an IPv6 prefix with a zero"
        ),
        pytest.param(
            f.cidr, "::ffff:1.2.3.0/120", "must not have an IPv4-mapped IPv6 address", id="IPv4 network in IPv6"
        ),
        pytest.param(f.strict_cidr, "2001:DB8::/32", CANONICAL.format("2001:db8::/32"), id="a network in capitals"),
        pytest.param(f.endpoint_ip, "127.0.0.1", "may not be in the loopback range", id="loopback"),
        pytest.param(f.endpoint_ip, "0.0.0.0", "may not be unspecified", id="the unspecified address"),
        pytest.param(f.endpoint_ip, "169.254.1.1", "may not be in the link-local range", id="link-local"),
        pytest.param(f.endpoint_ip, "224.0.0.1", "may not be in the link-local multicast range", id="multicast"),
        pytest.param(f.nonnegative_quantity, "-1m", "must be greater than or equal to 0", id="a negative amount"),
        pytest.param(f.int_or_percent, "5", "a valid percent string must be", id="a number as text"),
        pytest.param(f.int_or_percent, -1, "must be greater than or equal to 0", id="a negative number"),
        pytest.param(f.not_above_100_percent, "101%", "must not be greater than 100%", id="more than all"),
        pytest.param(f.port_or_name, 0, "must be between 1 and 65535, inclusive", id="port 0"),
    ],
)
def test_invalid_values_are_refused(check: Check, value: object, want: str) -> None:
    assert any(want in each for each in problems(check, value))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("50%", 50, id="a percentage"),
        pytest.param(7, 7, id="a number"),
        pytest.param("+7", 7, id="a number as text, with a sign"),
        pytest.param("seven", 0, id="any other text counts as 0"),
    ],
)
def test_amount_or_percent_parses_numbers_and_percentages(text: object, want: int) -> None:
    assert f.amount_or_percent(text) == want
