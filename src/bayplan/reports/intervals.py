"""Means and their 95 % confidence intervals over runs that differ only in their seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayplan.state.arrays import Floats

# Two-sided 95 % quantiles of Student's t distribution for 1 to 30 degrees of freedom.
_STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_NORMAL = 1.960


def mean_and_margin(samples: Sequence[Floats] | Floats) -> tuple[Floats, Floats]:
    """Return the mean over runs, and half the width of its confidence interval (0 for a single run), elementwise.

    Args:
        samples: float64[runs, ...].
    """
    values = np.asarray(samples, dtype=np.float64)
    mean: Floats = np.asarray(values.mean(axis=0))
    runs = len(values)
    if runs < 2:
        return mean, np.zeros_like(mean)
    quantile = _STUDENT[runs - 2] if runs - 2 < len(_STUDENT) else _NORMAL
    margin: Floats = np.asarray(quantile * values.std(axis=0, ddof=1) / np.sqrt(runs))
    return mean, margin
