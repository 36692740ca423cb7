"""Conversions, arithmetic and types; the answers are those of Kubernetes v1.36.3."""

from __future__ import annotations

import pytest

from bayplan.cel.problems import CompileProblem, RunProblem
from tests.cel.test_lists import value_of


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("double('0x1p-2')", 0.25, id="a hexadecimal double"),
        pytest.param("bool('T')", True, id="a boolean of one letter"),
        pytest.param("-7 % 3", -1, id="a remainder has the sign of the dividend"),
        pytest.param("9007199254740993 % -2", 1, id="a large remainder"),
        pytest.param(r"'\u00a0\x1ca\u0085'.trim()", "\x1ca", id="trim removes Go's spaces"),
        pytest.param("optional.ofNonZeroValue(duration('0s')).hasValue()", False, id="no duration"),
        pytest.param(
            "optional.ofNonZeroValue(timestamp('0001-01-01T00:00:00Z')).hasValue()", False, id="the zero time"
        ),
        pytest.param("optional.ofNonZeroValue(timestamp(0)).hasValue()", True, id="1970 is not the zero time"),
        pytest.param(
            "'%.15e|%.0e'.format([-1.5, 1.5])",
            " -1.500000\u00d710⁰⁰|1.500000\u00d710⁰⁰",
            id="the precision of %e is a width",
        ),
        pytest.param("type(ip('1.2.3.4')) == net.IP", True, id="the type of an address"),
        pytest.param("type(cidr('1.2.3.4/8')) == net.CIDR", True, id="the type of a network"),
        pytest.param("{[1]: 2}.size()", 1, id="a list as a key"),
        pytest.param("quantity('1e2147483647').isInteger()", False, id="a quantity with two billion zeros"),
        pytest.param("quantity('0e2147483647').asInteger()", 0, id="zero with a large exponent"),
        pytest.param("quantity('1e18').asInteger()", 10**18, id="the largest power of ten"),
        pytest.param("{[1]: 2} == {[1]: 2}", False, id="keys that are lists are compared by identity"),
        pytest.param("[,].size() + {,}.size()", 0, id="an empty list and map with a comma"),
    ],
)
def test_functions_return_the_values_of_kubernetes(text: str, want: object) -> None:
    assert value_of(text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("double('1e999')", "type conversion error from 'string' to 'double'", id="a double out of range"),
        pytest.param(
            "double('\u0661')", "type conversion error from 'string' to 'double'", id="a digit of another script"
        ),
        pytest.param("-9223372036854775808 % -1", "integer overflow", id="the remainder that overflows"),
        pytest.param("duration(1)", "invalid duration argument", id="a number is not a duration"),
        pytest.param("duration(null)", "invalid duration argument", id="null is not a duration"),
        pytest.param(
            "duration(dyn('a'))",
            "program instantiation failed: type conversion error from 'string' to 'google.protobuf.Duration'",
            id="a constant in dyn",
        ),
        pytest.param(
            "timestamp('2020-01-01T00:00:00Z').getHours(dyn(1))",
            r"no such overload: getHours\(google.protobuf.Timestamp, int\)",
            id="a time zone that is not a text",
        ),
        pytest.param(
            "timestamp('2020-01-01T00:00:00Z').getMilliseconds(dyn([]))",
            r"no such overload: getMilliseconds\(google.protobuf.Timestamp, list\)",
            id="a time zone that is a list",
        ),
        pytest.param("semver('1.2.3').major", "unexpected failed resolution of 'kubernetes.Semver'", id="a field"),
        pytest.param("dyn({}).true", "1:9: Syntax error: mismatched input 'true' expecting IDENTIFIER", id="a keyword"),
        pytest.param(".null", "1:2: Syntax error: mismatched input 'null' expecting IDENTIFIER", id="a global keyword"),
        pytest.param("[,1]", "Syntax error", id="a comma before an element"),
        pytest.param("[1].map(1, 1)", "1:9: argument is not an identifier", id="the variable of map"),
        pytest.param("[1].all(1, true)", "1:9: argument must be a simple name", id="the variable of all"),
        pytest.param(
            "optional.of(1).optMap(1, 2)",
            r"1:23: optMap\(\) variable name must be a simple identifier",
            id="the variable of optMap",
        ),
        pytest.param("timestamp(-62135596801)", "invalid timestamp argument", id="before the year 1"),
        pytest.param("cidr('10.0.0.0/8').containsIP('x')", "^no such overload$", id="a network and a wrong address"),
        pytest.param(
            "duration('x') - 's'", "^compilation failed: ERROR: <input>:1:15", id="wrong types before wrong constants"
        ),
        pytest.param("'%s'.format([[?optional.of(2)]])", "was given optional_type", id="an optional item in a format"),
        pytest.param(
            "'%s'.format([{?'o': optional.of(2)}])", "was given optional_type", id="an optional entry in a format"
        ),
        pytest.param(
            "jsonpatch.escapeKey('a/b')", "undeclared reference to 'jsonpatch'", id="patches outside mutations"
        ),
    ],
)
def test_invalid_calls_fail_as_in_kubernetes(text: str, want: str) -> None:
    with pytest.raises((CompileProblem, RunProblem), match=want):
        value_of(text)
