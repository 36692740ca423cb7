"""Reasons with their numbers of nodes."""

from __future__ import annotations

import pytest

from bayplan.analysis.reason_counts import MAX_REASONS, largest_first, reason_counts


@pytest.mark.parametrize(
    ("reasons", "want"),
    [
        pytest.param(1, "taint 0 (1)", id="one reason"),
        pytest.param(MAX_REASONS, ", ".join(f"taint {n} ({n + 1})" for n in range(MAX_REASONS)), id="all are listed"),
        pytest.param(
            MAX_REASONS + 1,
            ", ".join(f"taint {n} ({n + 1})" for n in range(MAX_REASONS + 1)),
            id="so is a single one more",
        ),
        pytest.param(
            MAX_REASONS + 2,
            ", ".join(f"taint {n} ({n + 1})" for n in range(MAX_REASONS))
            + f", other reasons ({2 * MAX_REASONS + 3})",  # The last two counts.
            id="the rest is summed up",
        ),
    ],
)
def test_reasons_beyond_the_limit_are_summed_up(reasons: int, want: str) -> None:
    assert reason_counts({f"taint {number}": number + 1 for number in range(reasons)}) == want


def test_a_prefix_is_removed_from_each_reason() -> None:
    assert reason_counts({"taint a": 2000, "b": 1}, "taint ") == "a (2,000), b (1)"


def test_reasons_are_ordered_by_descending_number_and_then_by_text() -> None:
    assert largest_first({"b": 1, "c": 2, "a": 1}) == [("c", 2), ("a", 1), ("b", 1)]
