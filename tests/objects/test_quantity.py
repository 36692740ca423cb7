"""Quantities compared with Kubernetes' results, tables of special cases, and a naive implementation."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.errors import InputError
from bayplan.objects.quantity import (
    QUANTITY_PATTERN,
    Quantity,
    milli_value,
    nano_value,
    parse_quantity,
    value,
    wrap_int64,
)
from tests.objects.golden.files import read_golden
from tests.oracle.quantity import POWERS, exact, round_up

MAX = 2**63 - 1


def describe(quantity: Quantity) -> dict[str, object]:
    return {
        "text": str(quantity),
        "value": quantity.value(),
        "milli": quantity.milli_value(),
        "format": quantity.format,
    }


def test_quantities_are_parsed_computed_and_formatted_like_upstream() -> None:
    """4,000 random texts, in pairs."""
    lines = read_golden("quantities")
    assert len(lines) == 4000
    for line in lines:
        question, want = line["question"], line["want"]
        try:
            quantity = Quantity.parse(question["text"])
        except InputError:
            assert want == {"refused": True}, question
            continue
        got = {**describe(quantity), "negative": str(-quantity)}
        if "sum" in want:
            other = Quantity.parse(question["other"])
            got["sum"], got["difference"] = describe(quantity + other), describe(quantity - other)
            got["compare"] = (quantity > other) - (quantity < other)
        assert repr(quantity.as_approximate_float()) == repr(float(want.pop("float"))), question
        assert got == want, question


@pytest.mark.parametrize(
    ("text", "want_value", "want_milli"),
    [
        pytest.param("100m", 1, 100, id="a value is rounded up"),
        pytest.param("1.5", 2, 1500, id="a fraction is exact in milli"),
        pytest.param("0.0001", 1, 1, id="the least amount is one"),
        pytest.param("-100m", -1, -100, id="negative amounts are rounded away from zero"),
        pytest.param("1Ki", 1024, 1024000, id="binary suffixes are powers of 1024"),
        pytest.param("1k", 1000, 1000000, id="decimal suffixes are powers of 1000"),
        pytest.param("1e3", 1000, 1000000, id="an exponent"),
        pytest.param("1E", 10**18, 0, id="milli of an exa leaves int64 and is 0"),
        pytest.param("10E", 0, 0, id="an int64 that overflows is 0"),
        pytest.param("16Ei", MAX, -1000, id="binary amounts are capped, their milli wraps"),
        pytest.param("9223372036854775808", -(2**63), 0, id="a big decimal keeps its low bits"),
        pytest.param("0.1n", 1, 1, id="less than a nano is a nano"),
        pytest.param(".5Ki", 512, 512000, id="no digit before the point"),
        pytest.param("1.Gi", 2**30, 2**30 * 1000, id="no digit after the point"),
        pytest.param("-", 0, 0, id="a lone sign is zero"),
        pytest.param("Mi", 0, 0, id="a lone suffix is zero"),
        pytest.param(".", 0, 0, id="a lone point is zero"),
        pytest.param("1e4294967298", 100, 100000, id="an exponent wraps at 32 bits"),
    ],
)
def test_values_round_up_and_overflow_like_upstream(text: str, want_value: int, want_milli: int) -> None:
    quantity = Quantity.parse(text)
    assert (quantity.value(), quantity.milli_value()) == (want_value, want_milli)
    assert (value(text), milli_value(text)) == (want_value, want_milli)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("1000m", "1", id="milli become whole"),
        pytest.param("1500m", "1500m", id="the largest suffix that stays whole"),
        pytest.param("1024Ki", "1Mi", id="binary stays binary"),
        pytest.param("0.5Gi", "512Mi", id="a binary fraction becomes whole"),
        pytest.param("0.5Ki", "512", id="less than 1024 has no binary suffix"),
        pytest.param("1.1Ki", "1126400m", id="a binary amount that is not whole prints as decimal"),
        pytest.param("1e3", "1e3", id="an exponent stays an exponent"),
        pytest.param("12e2", "1200", id="an exponent that is not a multiple of three is written out"),
        pytest.param("+5", "+5", id="a text that is canonical except for its sign is unchanged"),
        pytest.param("1000E", "1", id="above exa upstream loses the suffix"),
        pytest.param("0Ki", "0", id="zero has no suffix"),
    ],
)
def test_quantities_are_formatted_canonically(text: str, want: str) -> None:
    assert str(Quantity.parse(text)) == want


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("2 cores", id="a unit"),
        pytest.param("4GB", id="bytes"),
        pytest.param("1Kb", id="bits"),
        pytest.param("0x10", id="hexadecimal"),
        pytest.param("1_000", id="underscore"),
        pytest.param("1K", id="a capital K"),
        pytest.param("--1", id="two signs"),
        pytest.param("1e", id="an exponent without a number"),
        pytest.param("1e99999999999999999999", id="an exponent beyond int64"),
        pytest.param("e-10", id="no digits and an exponent below nano"),
        pytest.param("٣", id="a digit of another script"),
        pytest.param("1\n", id="a line end"),
        pytest.param("inf", id="infinity"),
        pytest.param("9" * 5000, id="an excessive number of digits"),
        pytest.param("NaN", id="nan"),
    ],
)
def test_invalid_quantities_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected a quantity"):
        Quantity.parse(text)


@pytest.mark.parametrize(
    ("document", "want"),
    [
        pytest.param(2, 2000, id="a whole number"),
        pytest.param(0.5, 500, id="a fraction"),
        pytest.param(1e3, 1_000_000, id="a float without a fraction"),
        pytest.param(1e22, 0, id="a float with an exponent"),
        pytest.param(1e20, 200376420520689664, id="a float that Go writes without an exponent"),
        pytest.param(1e-05, 1, id="a small float that Go writes without an exponent"),
        pytest.param(" 2 ", 2000, id="spaces around a text"),
        pytest.param("\u00a02\n", 2000, id="any spaces around a text"),
    ],
)
def test_documents_may_contain_numbers_and_surrounding_spaces(document: str | float, want: int) -> None:
    assert milli_value(document) == want


def test_huge_exponents_compare_but_cannot_be_added() -> None:
    huge = Quantity.parse("1e2000000000")
    assert huge > Quantity.parse("1E")
    assert -huge < Quantity.parse("0")
    assert huge.value() == 0
    with pytest.raises(InputError, match="an exponent of at most"):
        huge + Quantity.parse("1")


def test_equal_quantities_compare_and_hash_equal() -> None:
    assert Quantity.parse("0Ki") == Quantity.parse("0e5") == Quantity.parse("-0")
    assert len({Quantity.parse(text) for text in ("1000m", "1", "1e0", "0.001k")}) == 1
    assert Quantity.parse("1") != "1"


# Up to 15 digits, so that amounts in nano fit into int64, and caps and overflow do not matter.
NUMBERS = st.from_regex(r"\A[+-]?[0-9]{1,4}(\.[0-9]{1,6})?\Z")
SUFFIXES = st.sampled_from([suffix for suffix in POWERS if suffix not in ("Ei", "E", "Pi", "P")])
EXPONENTS = st.integers(-9, 12).map("e{}".format)


@given(NUMBERS, SUFFIXES | EXPONENTS)
def test_quantities_match_the_naive_oracle_within_int64(number: str, suffix: str) -> None:
    quantity = Quantity.parse(number + suffix)
    want = exact(number, suffix)
    assert nano_value(number + suffix) == want * 10**9
    assert quantity.sign() == (want > 0) - (want < 0)
    assert Quantity.parse(str(quantity)) == quantity
    if want >= 0:
        assert quantity.value() == round_up(want)
        if want * 1000 < 2**63:
            assert quantity.milli_value() == round_up(want * 1000)


@given(st.lists(st.tuples(NUMBERS, SUFFIXES), min_size=2, max_size=4))
def test_sums_are_exact(parts: list[tuple[str, str]]) -> None:
    quantities = [Quantity.parse(number + suffix) for number, suffix in parts]
    total = sum(quantities[1:], quantities[0])
    assert total.as_nanos() == sum(nano_value(number + suffix) for number, suffix in parts)
    assert total - quantities[-1] == sum(quantities[1:-1], quantities[0])


@given(st.text("0123456789.+-eEinumkKMGTP \u00a0\n", max_size=8))
def test_quantity_pattern_and_parser_accept_the_same_texts(text: str) -> None:
    try:
        parse_quantity(text)
    except InputError:
        assert not re.search(QUANTITY_PATTERN, text)
    else:
        assert re.search(QUANTITY_PATTERN, text)


@given(st.integers(-(2**70), 2**70))
def test_wrap_int64_wraps_like_int64(number: int) -> None:
    assert wrap_int64(number) == int.from_bytes((number % 2**64).to_bytes(8, "little"), "little", signed=True)
