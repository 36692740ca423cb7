"""Objectives of sweeps: how their scores are printed."""

import pytest

from bayplan.sweeps.objectives import OBJECTIVES


@pytest.mark.parametrize(
    ("objective", "score", "want"),
    [
        ("waiting_time", 12.5, "12.5 s"),
        ("waiting_time", 12964.85, "12,965 s"),
        ("utilisation", 0.61342, "61.34 %"),
        ("cost", 4.8, "4.8"),
    ],
)
def test_scores_are_printed_without_exponents(objective: str, score: float, want: str) -> None:
    assert OBJECTIVES[objective].format_score(score) == want
