"""URLs in expressions; the answers are those of Kubernetes v1.36.3."""

from __future__ import annotations

import pytest

from bayplan.cel.problems import RunProblem
from bayplan.cel.values import CelMap
from tests.cel.test_lists import value_of


@pytest.mark.parametrize(
    ("url", "want"),
    [
        pytest.param("http://h:abc/", 'invalid port ":abc" after host', id="a port that is no number"),
        pytest.param("http://ho st/", 'invalid character " " in host name', id="a space in the host"),
        pytest.param("http://[::1]x:80/", 'invalid port "x:80" after host', id="text after an address"),
        pytest.param("http://[1.2.3.4]/", "invalid IP-literal", id="an IPv4 address in brackets"),
        pytest.param("http://h:1:2/", 'invalid port ":1:2" after host', id="two colons"),
        pytest.param("http://us er@h/", "net/url: invalid userinfo", id="a space in the user"),
        pytest.param("http://h/%zz", 'invalid URL escape "%zz"', id="a bad escape in the path"),
        pytest.param("a/b", "invalid URI for request", id="a relative path"),
        pytest.param("http://h/?a=%zz", "", id="a bad escape in the query"),
        pytest.param("mailto:a@b", "", id="an opaque URL"),
        pytest.param("http://[fe80::1%25en0]/", "", id="an address with a zone"),
        pytest.param("http://[fe80::1%25%25%20]/", "", id="a zone with escapes"),
        pytest.param("http://[fe80::1%25a b]/", 'invalid character " " in host name', id="a zone with a space"),
        pytest.param("http://[fe80::1%25%2F%]/", 'invalid URL escape "%2F"', id="an escaped slash in a zone"),
        pytest.param("http://[fe80::1%25^%]/", 'invalid character "^" in host name', id="the first problem of a zone"),
    ],
)
def test_invalid_urls_are_refused_as_in_kubernetes(url: str, want: str) -> None:
    assert value_of(f"isURL('{url}')") is (not want)
    if want:
        with pytest.raises(RunProblem) as failed:
            value_of(f"url('{url}')")
        assert str(failed.value) == f'URL parse error during conversion from string: parse "{url}": {want}'


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("url('http://h/a%2Fb').getEscapedPath()", "/a%2Fb", id="an escaped slash is kept"),
        pytest.param("url('http://h/a b').getEscapedPath()", "/a%20b", id="a space is escaped"),
        pytest.param("url('///x').getEscapedPath()", "///x", id="three slashes are a path"),
        pytest.param("url('//h/x').getHost()", "h", id="two slashes are a host"),
        pytest.param("url('http://u@[::1]:80/').getHostname()", "::1", id="an address"),
        pytest.param("url('http://u@[::1]:80/').getPort()", "80", id="a port"),
        pytest.param("url('http://h/x?y#z').getEscapedPath()", "/x", id="a fragment"),
    ],
)
def test_parts_of_urls_are_those_of_kubernetes(text: str, want: str) -> None:
    assert value_of(text) == want


def test_pairs_of_a_query_with_semicolons_or_bad_escapes_are_ignored() -> None:
    found = value_of("url('http://h/?a=1;b=2&c=3+4&c=%20&d&e=%zz').getQuery()")
    assert isinstance(found, CelMap)
    assert [*found.entries.values()] == [("c", ["3 4", " "]), ("d", [""])]
