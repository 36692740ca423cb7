"""Names, label keys and label values: the results, and upstream's messages."""

import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.objects.names import (
    check_dns1035_label,
    check_dns1123_label,
    check_dns1123_subdomain,
    check_label_value,
    check_qualified_name,
)

Check = Callable[[str], tuple[str, ...]]

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
KEY = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("check", "value", "want"),
    [
        pytest.param(check_dns1123_label, "my-name", (), id="a label"),
        pytest.param(check_dns1123_label, "1", (), id="a label of one digit"),
        pytest.param(check_dns1123_label, "a.b", ("must not contain dots",), id="a label with dots"),
        pytest.param(check_dns1123_label, "A", (LABEL,), id="a label with a capital"),
        pytest.param(check_dns1123_label, "a" * 64, ("must be no more than 63 characters",), id="a long label"),
        pytest.param(check_dns1123_subdomain, "a.b-c.d", (), id="a subdomain"),
        pytest.param(check_dns1123_subdomain, "a..b", (SUBDOMAIN,), id="an empty part"),
        pytest.param(check_dns1123_subdomain, "", (SUBDOMAIN,), id="an empty subdomain"),
        pytest.param(check_dns1123_subdomain, "a\n", (SUBDOMAIN,), id="a subdomain with a line end"),
        pytest.param(
            check_dns1123_subdomain,
            "é" * 127,
            ("must be no more than 253 characters", SUBDOMAIN),
            id="lengths are counted in bytes",
        ),
        pytest.param(check_dns1035_label, "a1", (), id="a service's name"),
        pytest.param(
            check_dns1035_label,
            "1a",
            (
                "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
                "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
                "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
            ),
            id="a service's name that starts with a digit",
        ),
        pytest.param(check_qualified_name, "app", (), id="a key without prefix"),
        pytest.param(check_qualified_name, "example.com/App_1.x", (), id="a key with a prefix"),
        pytest.param(check_qualified_name, "/x", ("prefix part must be non-empty",), id="an empty prefix"),
        pytest.param(check_qualified_name, "Foo/x", (f"prefix part {SUBDOMAIN}",), id="a prefix with a capital"),
        pytest.param(
            check_qualified_name, "a/", ("name part must be non-empty", f"name part {KEY}"), id="a key without name"
        ),
        pytest.param(
            check_qualified_name, "a" * 64, ("name part must be no more than 63 bytes",), id="a key with a long name"
        ),
        pytest.param(
            check_qualified_name,
            f"{'a' * 254}/x",
            ("prefix part must be no more than 253 bytes",),
            id="a key with a long prefix",
        ),
        pytest.param(
            check_qualified_name,
            "a/b/c",
            (f"a valid label key {KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",),
            id="two slashes",
        ),
        pytest.param(check_label_value, "", (), id="an empty value"),
        pytest.param(check_label_value, "v1.2_3", (), id="a value"),
        pytest.param(check_label_value, "-v", (VALUE,), id="a value that starts with a dash"),
        pytest.param(check_label_value, "v" * 64, ("must be no more than 63 bytes",), id="a long value"),
    ],
)
def test_invalid_names_give_upstreams_messages(check: Check, value: str, want: tuple[str, ...]) -> None:
    assert check(value) == want


@given(st.text("aZ0-_.", max_size=6))
def test_an_unprefixed_qualified_name_is_a_nonempty_label_value(text: str) -> None:
    assert bool(check_qualified_name(text)) == (not text or bool(check_label_value(text)))


@given(st.text("aA1-.", max_size=6))
def test_a_dns_label_is_a_subdomain_without_dots(text: str) -> None:
    assert (not check_dns1123_label(text)) == (not check_dns1123_subdomain(text) and "." not in text)


@pytest.mark.parametrize(("length", "cached"), [(60, True), (100_000, False)], ids=["a short text", "a long text"])
def test_results_of_short_texts_are_cached(length: int, cached: bool) -> None:
    text = "y" * length
    before = sys.getrefcount(text)
    check_dns1123_label(text)
    assert (sys.getrefcount(text) > before) == cached
