"""The array types of the columns.

Columns of the state, and arrays that plugins receive and return, are annotated with these types.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
"""Exact values for decisions: quantities, counts, scores."""

Floats: TypeAlias = npt.NDArray[np.float64]
"""Intermediate scores, in Go's order of operations."""

Flags: TypeAlias = npt.NDArray[np.uint8]
"""Bools for compiled code: 0 or 1."""

Bools: TypeAlias = npt.NDArray[np.bool_]

Codes: TypeAlias = npt.NDArray[np.uint16]
"""Filter verdicts: 0 passes; a plugin defines the other values, except for the two top bits (`framework.status`)."""

Index: TypeAlias = npt.NDArray[np.intp]
"""Row numbers, and codes used as indexes: always intp, because indexing with int32 is three times slower."""

SMALL = 1 << 46
"""Products of smaller numbers and 100 are exact in float64, and plain Python arithmetic on them equals Go's int64."""


def largest_amount(amounts: Ints) -> int:
    """Return the largest amount; 0 for an empty array.

    If any amount is negative, at least `SMALL`, so that the amounts do not count as small.
    """
    if len(amounts) == 0:
        return 0
    low, high = amounts.item(amounts.argmin()), amounts.item(amounts.argmax())
    return high if low >= 0 else max(SMALL, high)
