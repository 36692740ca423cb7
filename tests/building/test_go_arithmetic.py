"""Go's arithmetic compared with Python's integers: in plain Python, in the compiled modules of each build, on arm64."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from building.compilers import NoCompilerError, find_compiler
from building.extensions import build
from building.modules import all_variants, has_x86_64_v3
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base import go_arithmetic as go
from bayplan.base.build import BASELINE, UNCOMPILED_VARIABLE, V3, VARIANT_VARIABLE, cpu_has_v3
from bayplan.testing import go_arithmetic_check as check
from tests.building.recorded import RESULTS_HASHES
from tests.building.sample import run, write_arithmetic
from tests.missing import missing

MIN, MAX = -(2**63), 2**63 - 1
INTEGERS = st.integers(MIN, MAX) | st.sampled_from([MIN, MIN + 1, -2, -1, 0, 1, 2, MAX - 1, MAX])
NON_ZERO = INTEGERS.filter(bool)
FLOATS = st.floats() | st.sampled_from(
    [0.5, -0.5, 1.5, 2.5, 0.49999999999999994, 4503599627370497.5, 2.0**63, -(2.0**63), 1e19]
)

IntegerFunction = Callable[[str, int, int], int]


def in_python(name: str, a: int, b: int) -> int:
    result: int = getattr(go, name)(a, b)
    return result


ways = pytest.mark.parametrize("result", [in_python, check.integer_result], ids=["in Python", "in this build"])


def low_64_bits(number: int) -> int:
    return int.from_bytes((number % 2**64).to_bytes(8, "little"), "little", signed=True)


@pytest.mark.parametrize(
    ("name", "a", "b", "want"),
    [
        pytest.param("add", MAX, 1, MIN, id="a sum that overflows wraps"),
        pytest.param("sub", MIN, 1, MAX, id="so does a difference"),
        pytest.param("mul", MIN, -1, MIN, id="and a product"),
        pytest.param("mul", 3037000500, 3037000500, -9223372036709301616, id="a product just over the limit"),
        pytest.param("quotient", 7, 2, 3, id="quotients are cut"),
        pytest.param("quotient", -7, 2, -3, id="towards zero if the dividend is negative"),
        pytest.param("quotient", 7, -2, -3, id="and if the divisor is"),
        pytest.param("quotient", MIN, -1, MIN, id="the smallest integer by -1 is itself"),
        pytest.param("remainder", -7, 2, -1, id="a remainder has the sign of the dividend"),
        pytest.param("remainder", 7, -2, 1, id="not of the divisor"),
        pytest.param("remainder", MIN, -1, 0, id="the smallest integer modulo -1 is 0"),
    ],
)
@ways
def test_integer_arithmetic_matches_go(result: IntegerFunction, name: str, a: int, b: int, want: int) -> None:
    assert result(name, a, b) == want


@ways
@given(a=INTEGERS, b=INTEGERS)
def test_sums_differences_and_products_wrap(result: IntegerFunction, a: int, b: int) -> None:
    assert [result(name, a, b) for name in ("add", "sub", "mul")] == [low_64_bits(n) for n in (a + b, a - b, a * b)]


@ways
@given(a=INTEGERS, b=NON_ZERO)
def test_quotients_are_truncated_and_remainders_match(result: IntegerFunction, a: int, b: int) -> None:
    exact = math.trunc(Fraction(a, b))
    assert [result(name, a, b) for name in ("quotient", "remainder")] == [low_64_bits(exact), a - b * exact]


@pytest.mark.parametrize("module", [go, check], ids=["in Python", "in this build"])
@given(a=st.integers(0, 2**52 - 1) | st.sampled_from([0, 1, 2**52 - 1]))
def test_small_integers_round_trip_through_floats(module: Any, a: int) -> None:
    assert module.small_float(a) == float(a)
    assert module.small_int64(float(a)) == a


@pytest.mark.parametrize("name", ["quotient", "remainder"])
@ways
def test_division_by_zero_raises(result: IntegerFunction, name: str) -> None:
    with pytest.raises(ZeroDivisionError, match="integer divide by zero"):
        result(name, 1, 0)


@pytest.mark.parametrize(
    ("x", "want"),
    [
        pytest.param(-2.9, -2, id="cut towards zero"),
        pytest.param(2.0**63, MIN, id="just too large"),
        pytest.param(-(2.0**63), MIN, id="just small enough"),
        pytest.param(math.nextafter(2.0**63, 0.0), 2**63 - 1024, id="the largest that fits"),
        pytest.param(math.inf, MIN, id="infinite"),
        pytest.param(math.nan, MIN, id="not a number"),
    ],
)
def test_to_int64_converts_floats_like_go(x: float, want: int) -> None:
    assert (go.to_int64(x), check.converted(x)) == (want, want)


@given(FLOATS)
def test_to_int64_matches_exact_fractions(x: float) -> None:
    fits = math.isfinite(x) and MIN <= math.trunc(Fraction(x)) <= MAX
    want = math.trunc(Fraction(x)) if fits else MIN
    assert (go.to_int64(x), check.converted(x)) == (want, want)


def same(x: float, y: float) -> bool:
    return go.float_bits(x) == go.float_bits(y) or (math.isnan(x) and math.isnan(y))


@pytest.mark.parametrize(
    ("name", "a", "b", "want"),
    [
        pytest.param("round", 0.5, 0.0, 1.0, id="a half is rounded up"),
        pytest.param("round", -0.5, 0.0, -1.0, id="a negative half is rounded down"),
        pytest.param("round", 2.5, 0.0, 3.0, id="to the odd number, too"),
        pytest.param("round", 0.49999999999999994, 0.0, 0.0, id="just less than a half"),
        pytest.param("round", -0.2, 0.0, -0.0, id="the sign stays"),
        pytest.param("round", math.inf, 0.0, math.inf, id="infinity is unchanged"),
        pytest.param("round", math.nan, 0.0, math.nan, id="NaN stays NaN"),
        pytest.param("divide", 1.0, 0.0, math.inf, id="one by zero"),
        pytest.param("divide", 1.0, -0.0, -math.inf, id="one by negative zero"),
        pytest.param("divide", 0.0, 0.0, math.nan, id="zero by zero"),
        pytest.param("log", 3.0, 0.0, 1.0986122886681096, id="the first integer for which C libraries differ"),
        pytest.param("log", 0.0, 0.0, -math.inf, id="of zero"),
        pytest.param("log", -1.0, 0.0, math.nan, id="of a negative number"),
        pytest.param("log", math.inf, 0.0, math.inf, id="of infinity"),
    ],
)
def test_float_arithmetic_matches_go(name: str, a: float, b: float, want: float) -> None:
    in_go = getattr(go, name)(a, b) if name == "divide" else getattr(go, name)(a)
    assert same(in_go, want)
    assert same(check.float_result(name, a, b), want)


@given(FLOATS, FLOATS)
def test_float_results_match_between_python_and_this_build(a: float, b: float) -> None:
    assert same(go.divide(a, b), check.float_result("divide", a, b))
    assert same(go.round(a), check.float_result("round", a, 0.0))
    assert same(go.log(a), check.float_result("log", a, 0.0))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_rounding_matches_exact_fractions(x: float) -> None:
    exact = Fraction(x)
    want = math.floor(abs(exact) + Fraction(1, 2))
    assert go.round(x) == (want if exact >= 0 else -want)


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_logarithms_are_close_to_the_c_library(x: float) -> None:
    assert go.log(x) == pytest.approx(math.log(x), rel=1e-15, abs=1e-15)


def test_results_have_the_recorded_hash() -> None:
    counts = [count for count in RESULTS_HASHES if count <= 10_000]
    assert {count: check.results_hash(count) for count in counts} == {count: RESULTS_HASHES[count] for count in counts}


@pytest.fixture(scope="module")
def arithmetic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package with the check of the arithmetic, compiled in all variants."""
    root = tmp_path_factory.mktemp("arithmetic") / "src"
    try:
        compiler = find_compiler(install_zig=False)
    except NoCompilerError as problem:
        missing(f"nothing compiles here: {problem}")
    build(write_arithmetic(root), compiler, root.parent / "scratch", all_variants())
    return root


@pytest.mark.parametrize("variant", [BASELINE, V3])
def test_a_million_results_have_the_recorded_hash_in_each_variant(arithmetic: Path, variant: str) -> None:
    if variant == V3 and not (has_x86_64_v3() and cpu_has_v3()):
        pytest.skip(f"{V3} is compiled only for x86-64 on Linux, and needs such a CPU")
    program = "from bayplan.testing.go_arithmetic_check import results_hash; print(results_hash(1_000_000))"
    assert int(run(arithmetic, program, **{VARIANT_VARIABLE: variant}).stdout) == RESULTS_HASHES[1_000_000]


def test_these_tests_pass_uncompiled() -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-k",
        "not hash and not uncompiled",
        __file__,
    ]
    environment = {**os.environ, UNCOMPILED_VARIABLE: "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
