"""Numbers have the same format everywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.analysis.units import format_amount, format_choice, format_duration, format_list, format_share
from bayplan.analysis.waits import percentile

GI = 1 << 30


@pytest.mark.parametrize(
    ("resource", "amount", "want"),
    [
        ("cpu", 0, "0"),
        ("cpu", 1500, "1.5"),
        ("cpu", 1, "0.001"),
        ("cpu", -250, "-0.25"),
        ("cpu", 64_000, "64"),
        ("cpu", 118_650, "118.7"),
        ("cpu", 12_345_678, "12,345.7"),
        ("memory", 0, "0"),
        ("memory", 1023, "1,023"),
        ("memory", 8 * GI, "8Gi"),
        ("memory", 8 * GI + GI // 2, "8.5Gi"),
        ("memory", -GI, "-1Gi"),
        ("memory", 1 << 62, "4Ei"),
        ("hugepages-2Mi", 4 << 20, "4Mi"),
        ("pods", 110, "110"),
        ("nvidia.com/gpu", 12_000, "12,000"),
    ],
)
def test_amounts_are_formatted_in_the_units_of_their_resource(resource: str, amount: int, want: str) -> None:
    assert format_amount(resource, amount) == want


@pytest.mark.parametrize(
    ("duration_ns", "want"),
    [
        (0, "0 s"),
        (1, "1 ns"),
        (999, "999 ns"),
        (1_234, "1.23 \u00b5s"),
        (999_499, "999 \u00b5s"),
        (999_500, "1 ms"),
        (999_499_999, "999 ms"),
        (999_500_000, "1 s"),
        (350_000_000, "350 ms"),
        (1_000_000_000, "1 s"),
        (12_590_000_000, "12.5 s"),
        (60_000_000_000, "1 min"),
        (200_000_000_000, "3 min 20 s"),
        (3_600_000_000_000, "1 h"),
        (5_400_000_000_000, "1 h 30 min"),
        (180_000_000_000_000, "2 d 2 h"),
        (86_400_000_000_000, "1 d"),
        (-2_000_000_000, "-2 s"),
    ],
)
def test_durations_are_formatted_with_a_suitable_unit(duration_ns: int, want: str) -> None:
    assert format_duration(duration_ns) == want


@pytest.mark.parametrize(
    ("share", "want"),
    [
        (0.0, "0 %"),
        (0.0001, "< 0.1 %"),
        (0.025, "2.5 %"),
        (0.0996, "10 %"),
        (0.571, "57 %"),
        (0.996, "99 %"),
        (1.0, "100 %"),
        (1.2, "120 %"),
    ],
)
def test_shares_are_formatted_as_percentages(share: float, want: str) -> None:
    assert format_share(share) == want


@given(st.lists(st.integers(), min_size=1), st.integers(1, 100))
def test_a_percentile_is_the_smallest_number_that_covers_its_share(numbers: list[int], percent: int) -> None:
    ascending = sorted(numbers)
    found = percentile(ascending, percent)
    assert found == min(
        each for each in ascending if sum(it <= each for it in ascending) * 100 >= percent * len(ascending)
    )


@pytest.mark.parametrize(
    ("items", "more", "want"),
    [
        pytest.param(["a"], 0, "a", id="a single item"),
        pytest.param(["a", "b"], 0, "a and b", id="two have no comma"),
        pytest.param(["a", "b", "c"], 0, "a, b and c", id="three have one"),
        pytest.param(["a", "b"], 1200, "a, b and 1,200 more", id="unlisted items are counted"),
    ],
)
def test_lists_are_formatted_with_commas_and_a_final_and(items: list[str], more: int, want: str) -> None:
    assert format_list(items, more=more) == want


@pytest.mark.parametrize(
    ("items", "more", "want"),
    [
        pytest.param(["a"], 0, "a", id="one"),
        pytest.param(["a", "b"], 0, "a or b", id="two"),
        pytest.param(["a", "b"], 3, "a, b or 3 more", id="more than are listed"),
    ],
)
def test_alternatives_end_with_or(items: list[str], more: int, want: str) -> None:
    assert format_choice(items, more=more) == want
