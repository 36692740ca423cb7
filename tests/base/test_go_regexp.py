"""Go's regular expressions: what matches, what is refused and how, and how much work they may take."""

from __future__ import annotations

import random

import pytest

from bayplan.base.go_regexp import RegexpError, WorkBudget, WorkBudgetExceeded, cache_counts, compile_regexp


# Recorded from Go 1.26: regexp.Compile(pattern).FindAllString(text, -1).
@pytest.mark.parametrize(
    ("pattern", "text", "want"),
    [
        pytest.param("[[:alpha:]]+", "ab1é", ["ab"], id="classes have names"),
        pytest.param(r"\Qa.b\E", "a.b axb", ["a.b"], id="quoted text stands for itself"),
        pytest.param(r"\d+", "1٣", ["1"], id="digits are those of ASCII"),
        pytest.param(r"\w+", "aéb", ["a", "b"], id="words are of ASCII"),
        pytest.param(r"\pL+", "aéb1", ["aéb"], id="letters of Unicode have a class"),
        pytest.param("a*", "baaac", ["", "aaa", ""], id="no empty match next to a match"),
        pytest.param("x*", "é", ["", ""], id="no empty match inside a character"),
        pytest.param("a$", "a\n", [], id="the end is the very end"),
        pytest.param("(?m)a$", "a\na", ["a", "a"], id="the end of a line"),
        pytest.param("(a|ab)(c|bcd)", "abcd", ["abcd"], id="the leftmost alternative wins"),
        pytest.param(r"(?P<n>a)(?<m>b)", "ab", ["ab"], id="groups have names"),
        pytest.param(r"[\s]", "\v", [], id="a vertical tab is not a space"),
    ],
)
def test_expressions_match_as_in_go(pattern: str, text: str, want: list[str]) -> None:
    compiled = compile_regexp(pattern)
    assert [match for match, _ in compiled.find_each(text)] == want
    assert compiled.matches(text) is bool(want)
    assert compiled.find(text) == (want[0] if want else "")


# Recorded from Go 1.26.
@pytest.mark.parametrize(
    ("pattern", "want"),
    [
        pytest.param("(", "missing closing ): `(`", id="an open parenthesis"),
        pytest.param("a)", "unexpected ): `a)`", id="a closing parenthesis"),
        pytest.param("[a", "missing closing ]: `[a`", id="an open class"),
        pytest.param("[z-a]", "invalid character class range: `z-a`", id="a reversed character range"),
        pytest.param("(?=a)", "invalid or unsupported Perl syntax: `(?=`", id="looking ahead"),
        pytest.param("(?<=a)", "invalid named capture: `(?<=a)`", id="looking behind"),
        pytest.param("(?<é>a)", "invalid named capture: `(?<é>`", id="a name that is not ASCII"),
        pytest.param("a++", "invalid nested repetition operator: `++`", id="a possessive quantifier"),
        pytest.param("*", "missing argument to repetition operator: `*`", id="nothing to repeat"),
        pytest.param("a{2,1}", "invalid repeat count: `{2,1}`", id="counts backwards"),
        pytest.param("a{1001}?", "invalid repeat count: `{1001}`", id="too many repetitions"),
        pytest.param("a{0}{2,1}", "invalid repeat count: `{2,1}`", id="an invalid repetition of a repetition"),
        pytest.param("(a{1000}){1000}", "invalid repeat count: `{1000}`", id="too many repetitions of repetitions"),
        pytest.param(r"\C", r"invalid escape sequence: `\C`", id="a single byte"),
        pytest.param(r"\Z\C", r"invalid escape sequence: `\Z`", id="the first problem counts"),
        pytest.param(r"(\C", r"invalid escape sequence: `\C`", id="an open parenthesis is found last"),
        pytest.param("\\", "trailing backslash at end of expression: ``", id="a backslash at the end"),
    ],
)
def test_invalid_patterns_raise_the_errors_of_go(pattern: str, want: str) -> None:
    with pytest.raises(RegexpError) as refused:
        compile_regexp(pattern)
    assert str(refused.value) == f"error parsing regexp: {want}"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        pytest.param("^(a+)+$", "a" * 100_000 + "!", id="nested repetitions"),
        pytest.param("(a|aa)+$", "a" * 100_000 + "!", id="overlapping alternatives"),
        pytest.param("(x+x+)+y", "x" * 100_000, id="neighbours that share letters"),
        pytest.param("(.*){30}[^a]$", "a" * 10_000, id="many repetitions of anything"),
    ],
)
def test_catastrophic_backtracking_patterns_complete_without_a_match(pattern: str, text: str) -> None:
    assert not WorkBudget().matches(pattern, text)


@pytest.mark.parametrize(
    "patterns",
    [
        pytest.param([("(a?){900}b", "a" * 3_000_000)], id="a big program and a long text"),
        pytest.param([(f"{number}(a?){{900}}b", "a" * 1_000) for number in range(1000)], id="many of them"),
        pytest.param([(rf"{number}\pL{{150}}", "a") for number in range(1000)], id="many that take long to compile"),
    ],
)
def test_the_work_budget_limits_matching_and_compiling(patterns: list[tuple[str, str]]) -> None:
    budget = WorkBudget()

    def match_all() -> None:
        for pattern, text in patterns:
            budget.matches(pattern, text)

    with pytest.raises(WorkBudgetExceeded):
        match_all()


def test_an_oversized_program_is_refused_and_exhausts_the_budget() -> None:
    budget = WorkBudget()
    with pytest.raises(RegexpError, match="expression too large"):
        budget.compile(r"\pL{1000}")
    with pytest.raises(WorkBudgetExceeded):
        budget.compile("a")


def test_a_repeated_pattern_is_charged_once() -> None:
    budget = WorkBudget()
    for _ in range(20_000):
        assert budget.matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a")


def test_long_invalid_patterns_are_refused() -> None:
    chance = random.Random(1)
    for piece in ("[", "(?P<", "[[:a", r"\Q", "[^\\", "(?"):
        with pytest.raises(RegexpError):
            compile_regexp("(" + piece * 200_000 + chance.choice("ab"))


def test_compiled_expressions_are_cached() -> None:
    pattern = "^only-this-test-[a-z]+$"
    before = cache_counts()
    compile_regexp(pattern)
    compile_regexp(pattern)
    after = cache_counts()
    assert (after.found - before.found, after.compiled - before.compiled) == (1, 1)
