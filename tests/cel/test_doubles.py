"""Doubles in texts; the answers are those of Kubernetes v1.36.3."""

from __future__ import annotations

import pytest

from bayplan.cel.problems import CompileProblem, RunProblem
from tests.cel.test_lists import value_of


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("string(1e6)", "1e+06", id="an exponent from a million on"),
        pytest.param("string(1234567.0)", "1.234567e+06", id="a whole number with an exponent"),
        pytest.param("string(123456.0)", "123456", id="no exponent below a million"),
        pytest.param("string(0.0001)", "0.0001", id="no exponent"),
        pytest.param("string(0.00001)", "1e-05", id="a negative exponent"),
        pytest.param("string(-0.0)", "-0", id="a negative zero"),
        pytest.param("string(double('-Inf'))", "-Inf", id="infinity"),
        pytest.param("'%s'.format([1e6])", "1e+06", id="a format"),
        pytest.param("'%f'.format([-0.0])", "0.000000", id="the clause f has no negative zero"),
        pytest.param(
            "'%.3e|%.16e'.format([1.5, 1.5])", "1.500000\u00d710⁰⁰|   1.500000\u00d710⁰⁰", id="a width of the clause e"
        ),
        pytest.param("string('%.101f'.format([1.5]).size())", "103", id="more than 100 digits"),
        pytest.param("string('%.1000f'.format([1.5]).size())", "234", id="digits in eight bits"),
        pytest.param(f"'%.{'0' * 5000}2f'.format([1.5])", "1.50", id="digits with leading zeros"),
        pytest.param("'%.9223372036854775807e'.format([1.5]).size() > 6 ? 'wide' : ''", "wide", id="the largest width"),
        pytest.param("'%s'.format([[1e6]])", "[1000000.000000]", id="a list in a format"),
    ],
)
def test_doubles_are_formatted_as_in_kubernetes(text: str, want: str) -> None:
    assert value_of(text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("dyn({1: 1})[1e6]", "no such key: 1e+06", id="a key"),
        pytest.param("dyn([1])[1e6]", "index out of bounds: 1e+06", id="an index"),
        pytest.param("dyn([1])[1e20]", "unsupported index value 1e+20 in list", id="an index beyond 64 bits"),
    ],
)
def test_errors_show_doubles_as_in_kubernetes(text: str, want: str) -> None:
    with pytest.raises(RunProblem) as failed:
        value_of(text)
    assert str(failed.value) == want


@pytest.mark.parametrize("digits", ["9" * 5000, str(2**63)], ids=["a long precision", "a precision of 64 bits"])
def test_a_precision_beyond_an_int64_is_refused(digits: str) -> None:
    want = (
        "could not parse formatting clause: error while parsing precision: error while converting precision to integer: "
        f'strconv.Atoi: parsing "{digits}": value out of range'
    )
    with pytest.raises(RunProblem) as failed:
        value_of(f"('%' + '.{digits}f').format([1.5])")
    assert str(failed.value) == want
    with pytest.raises(CompileProblem, match="error while converting precision to integer"):
        value_of(f"'%.{digits}f'.format([1.5])")
